// The sentence whose maps are drawn, once for all heads: a word that is pointed at, or held by a click, is a row of
// each.
import { make } from "../dom.js";

/** @typedef {{ root: HTMLElement, show: (row: number, col: number) => void, row: () => number }} SentenceView */

// `changed`: another word is pointed at; none, -1.
/** @type {(words: string[], changed: () => void) => SentenceView} */
export function sentenceOf(words, changed) {
  const parts = words.map((text) => make("bdi", {}, text));
  const root = make("p", { class: "sentence" }, ...parts.flatMap((part) => [part, " "]));
  let [pointed, held] = [-1, -1];
  /** @type {(row: number, col: number) => void} */
  const show = (row, col) =>
    parts.forEach((part, i) => {
      part.classList.toggle("row", i === row);
      part.classList.toggle("col", i === col);
    });
  /** @type {(to: number) => void} */
  const mark = (to) => {
    if (to === pointed) return;
    show((pointed = to), -1);
    changed();
  };
  const wordAt = (/** @type {Event} */ event) => parts.indexOf(/** @type {HTMLElement} */ (event.target));
  root.addEventListener("pointerover", (event) => mark(wordAt(event) < 0 ? held : wordAt(event)));
  root.addEventListener("pointerleave", () => mark(held));
  root.addEventListener("click", (event) => mark((held = wordAt(event) === held ? -1 : wordAt(event))));
  return { root, show: (row, col) => show(row < 0 ? pointed : row, col), row: () => pointed };
}
