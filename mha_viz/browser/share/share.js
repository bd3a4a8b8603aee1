// "Copy link" for pages without a sentence field.
import { make } from "../dom.js";
import { copiedLink } from "../link.js";
import { mounted } from "../mount.js";
/** @import { LinkData } from "../link.js" */
/** @import { StreamlitComponent } from "../mount.js" */

const CLOSES = ["keydown", "pointerdown"];

/** @type {(root: HTMLElement) => { show: (data: LinkData) => void, stop: () => void }} */
function share(root) {
  let data = /** @type {Partial<LinkData>} */ ({});
  const note = make("span", { role: "status" });
  const onclick = async () => note.replaceChildren(...(await copiedLink(data)));
  root.replaceChildren(make("button", { type: "button", class: "quiet", onclick }, "Copy link"), " ", note);
  // The note lies over the page until a key or a click elsewhere closes it.
  const close = (/** @type {Event} */ event) => {
    const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
    if (!note.firstChild || !(isEscape || (event.type === "pointerdown" && !event.composedPath().includes(root))))
      return;
    if (isEscape) event.stopPropagation(); // it closes one thing at a time
    note.replaceChildren();
  };
  for (const type of CLOSES) document.addEventListener(type, close, true);
  return {
    show: (next) => (data = next),
    stop: () => CLOSES.forEach((type) => document.removeEventListener(type, close, true)),
  };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-share", share);
}
