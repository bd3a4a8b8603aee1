// Charts come from the server in the colours of the page. When the page turns dark or light, they are asked for again.
import { isDark } from "../explorer/ink.js";

const SETTLED = 400; // milliseconds until the page has its new colours

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-scheme");
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  const look = () => {
    const type = isDark(root) ? "dark" : "light";
    if (type !== data.type) setTriggerValue("turned", type);
  };
  const turned = () => setTimeout(look, SETTLED);
  media.addEventListener("change", turned);
  return () => media.removeEventListener("change", turned);
}
