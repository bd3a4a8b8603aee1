// On a first visit: the links of the head that is open below, as arcs under the words of the sentence.
import { make } from "../dom.js";
import { svg } from "../svg.js";
import { grow } from "./fields.js";

/**
 * `links`: from a word to another, by their places among the `words`, with their weights.
 *
 * @typedef {{ words: string[], links: [number, number, number][], colour: string }} Bows
 */

const DEEP = 34; // pixels of the deepest arc…
const FLAT = 15; // …and between lines of text
const LOW = 0.75; // how far down of this an arc comes, and…
const EDGE = 4; // …pixels below it
const ROOM = 1.6; // the least height of such lines, in sizes of their font

export class Arched {
  box;
  #area;
  #mirror = make("div", { class: "mirror", "aria-hidden": "true" }); // the text again, whose words can be measured
  #lines = svg("svg", { class: "bows", "aria-hidden": "true" });
  #bows = /** @type {Bows | null} */ (null);
  #isHidden = false;

  /** @param {HTMLTextAreaElement} area */
  constructor(area) {
    this.#area = area;
    this.box = make("div", { class: "field" }, area, this.#mirror, this.#lines);
    new ResizeObserver(() => this.draw()).observe(this.box);
    void document.fonts?.ready.then(() => this.draw());
  }

  // Whether there is room for arcs.
  /** @type {(isArched: boolean) => void} */
  show(isArched) {
    this.box.classList.toggle("arched", isArched);
    grow(this.#area); // below the text is more or less room now
    this.draw();
  }

  // Whether arcs would give an answer away.
  /** @type {(isHidden: boolean) => void} */
  hide(isHidden) {
    this.#isHidden = isHidden;
    this.draw();
  }

  /** @type {(bows: Bows) => void} */
  take(bows) {
    if (JSON.stringify(bows) === JSON.stringify(this.#bows)) return;
    this.#bows = bows;
    this.draw();
  }

  // Where the words are now: while somebody types, arcs stay under those that are still there.
  draw() {
    const isShown = this.box.classList.contains("arched") && !this.#isHidden;
    const { words = [], links = [], colour = "" } = (isShown && this.#bows) || {};
    const at = links.length ? this.#places(words) : null;
    const room = (this.box.clientHeight - (at?.at(-1)?.y ?? 0) - EDGE) / LOW; // below the last line
    const deep = Math.min(room, at?.some(({ y }) => y !== at[0].y) ? FLAT : DEEP);
    const paths = at ? links.map(([from, to, weight]) => arc(at[from], at[to], weight, colour, deep)) : [];
    this.#lines.replaceChildren(...paths);
  }

  // The middle of each word's lower edge; null if the text has other words, or lines without room between them.
  /** @type {(words: string[]) => { x: number, y: number }[] | null} */
  #places(words) {
    const text = this.#area.value;
    this.#mirror.textContent = text;
    const { fontFamily, fontSize, fontWeight, lineHeight, letterSpacing } = getComputedStyle(this.#area);
    Object.assign(this.#mirror.style, { fontFamily, fontSize, fontWeight, lineHeight, letterSpacing });
    const { left, top } = this.box.getBoundingClientRect();
    let at = 0;
    const boxes = words.map((word) => {
      const begin = text.indexOf(word, at);
      if (begin < 0) return null;
      at = begin + word.length;
      const range = document.createRange();
      range.setStart(/** @type {Node} */ (this.#mirror.firstChild), begin);
      range.setEnd(/** @type {Node} */ (this.#mirror.firstChild), at);
      return range.getBoundingClientRect();
    });
    const first = boxes[0];
    const isTight = parseFloat(lineHeight) < ROOM * parseFloat(fontSize);
    if (!first || boxes.some((box) => !box || (isTight && Math.abs(box.top - first.top) > 2))) return null;
    return boxes.map((box) => {
      const { x, width, bottom } = /** @type {DOMRect} */ (box);
      return { x: x + width / 2 - left, y: Math.round(bottom - top) };
    });
  }
}

/**
 * @type {(from: { x: number, y: number }, to: { x: number, y: number }, weight: number, colour: string, deepest?:
 *   number) => SVGElement}
 */
export function arc(from, to, weight, colour, deepest = DEEP) {
  const deep = Math.min(deepest, 10 + Math.abs(to.x - from.x) / 10);
  const d = `M${from.x} ${from.y}C${from.x} ${from.y + deep} ${to.x} ${to.y + deep} ${to.x} ${to.y + 2}`;
  const isThin = Math.abs(to.y - from.y) > 2; // from line to line, across words
  const look = { "stroke-width": 1 + (isThin ? 1 : 4) * weight, opacity: isThin ? 0.45 : 0.3 + 0.7 * weight };
  return svg("path", { d, pathLength: 1, stroke: colour, ...look });
}
