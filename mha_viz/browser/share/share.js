// "Copy link" for pages without a sentence field.
import { make } from "../dom.js";
import { copiedLink } from "../link.js";

// Streamlit calls this with the same page elements on every change of the data.
/** @param {StreamlitComponent} component */
export default function ({ data, parentElement }) {
  const root = /** @type {any} */ (parentElement.querySelector(".mha-share"));
  root.linkData = data;
  if (root.firstChild) return;
  const note = make("span", { role: "status" });
  const onclick = async () => note.replaceChildren(...(await copiedLink(root.linkData)));
  root.append(make("button", { type: "button", class: "quiet", onclick }, "Copy link"), " ", note);
}
