// Charts come from the server in the colours of the page. When the page turns dark or light, they are asked for again.
import { isDark } from "../ink.js";

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

let left = 1; // how often they may still be asked for: never without end

/** @param {StreamlitComponent} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-scheme");
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  let timers = [];
  const look = () => {
    const type = isDark(root) ? "dark" : "light";
    if (type === data.type || left === 0) return;
    left -= 1;
    setTriggerValue("turned", type);
  };
  const watch = () => {
    timers.forEach(clearTimeout);
    timers = LOOKS.map((wait) => setTimeout(look, wait));
  };
  const turned = () => {
    left = LOOKS.length;
    watch();
  };
  if (data.type) watch(); // the page may have turned before this was here
  media.addEventListener("change", turned);
  return () => {
    timers.forEach(clearTimeout);
    media.removeEventListener("change", turned);
  };
}
