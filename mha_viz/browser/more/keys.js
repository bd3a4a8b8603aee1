// The keyboard shortcuts of the page, in a list that "?" opens.
import { make } from "../dom.js";
import { remembersShortcuts, rememberShortcuts } from "../memory.js";

const KEYS = [
  ["/", "Find a head, from anywhere on the page"],
  ["?", "Open this list"],
  ["Esc", "Close what is open; then let go of the held word"],
  ["Enter", "In the sentence: show its attention. In the grid: open the head. In a drawing: hold the word"],
  ["Shift Enter", "In the sentence: begin a new line"],
  ["← ↑ → ↓", "In the grid: from head to head. In a drawing: from word to word"],
  ["Home End", "To the ends of a row or column; with Ctrl to the corners of a grid"],
  ["← →", "On Inside a head: from step to step, Enter opens one"],
  ["c", "In the grid: add the head to the compared heads"],
  ["x", "On Explore: switch the open head off, or on again; in the grid the one that is marked"],
  ["Tab", "From control to control; the first one skips to the page"],
];

// A dialog with the keyboard shortcuts.
/** @type {() => HTMLDialogElement} */
export function keyList() {
  const rows = KEYS.map(([key, does]) =>
    make("div", {}, make("dt", {}, ...key.split(" ").map((name) => make("kbd", {}, name))), make("dd", {}, does)),
  );
  const shortcuts = make("input", { type: "checkbox", checked: remembersShortcuts() });
  shortcuts.onchange = () => rememberShortcuts(shortcuts.checked);
  const dialog = make(
    "dialog",
    { "aria-label": "Keys" },
    make("h2", {}, "Keys"),
    make("dl", {}, ...rows),
    make("label", { class: "switch" }, shortcuts, make("span", {}, "Use /, ? and x as keys everywhere on a page")),
    make("button", { type: "button", class: "close", autofocus: true, onclick: () => dialog.close() }, "Close"),
  );
  dialog.onkeydown = (event) => {
    if (event.key === "Escape" && dialog.open) event.stopPropagation(); // Escape closes only the list
  };
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close(); // a click outside of it
  };
  return dialog;
}
