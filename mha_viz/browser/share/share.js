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
  // The note lies over the page until a key or a click elsewhere closes it.
  const close = (/** @type {Event} */ event) => {
    const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
    if (!note.firstChild || !(isEscape || (event.type === "pointerdown" && !event.composedPath().includes(root))))
      return;
    if (isEscape) event.stopPropagation(); // it closes one thing at a time
    note.replaceChildren();
  };
  for (const type of ["keydown", "pointerdown"]) document.addEventListener(type, close, true);
  return () => ["keydown", "pointerdown"].forEach((type) => document.removeEventListener(type, close, true));
}
