// Draw the links of the open head as arcs under the words of a text field, with a caption that describes the head.
import { DEPTH_SHARE, drawArc } from "../arcs.js";
import { make, makeSvg } from "../dom.js";
import { growField } from "./fields.js";
/** @import { WordAnchor } from "../arcs.js" */

/**
 * `links`: from one word to another, as indices of `words`, with their weights; `says`: a description of the head.
 *
 * @typedef {{ words: string[], links: [number, number, number][], colour: string, says: string }} Arcs
 */

const MAX_LENGTH = 400; // characters of a text with arcs
const MAX_DEPTH = 42; // pixels of an arc
const MARGIN = 3; // pixels below an arc: half the width of the thickest line
const LETTER_HEIGHT = 1.1; // including descenders, in font sizes

export class ArcField {
  box;
  caption = make("span", { class: "caption" });
  #area;
  // A copy of the text whose words can be measured.
  #mirror = make("div", { class: "mirror", dir: "auto", "aria-hidden": "true" });
  #lines = makeSvg("svg", { class: "bows", "aria-hidden": "true" });
  #arcs = /** @type {Arcs | null} */ (null);
  #isHidden = false;

  /** @param {HTMLTextAreaElement} area */
  constructor(area) {
    this.#area = area;
    this.box = make("div", { class: "field" }, area, this.#mirror, this.#lines);
    new ResizeObserver(() => this.draw()).observe(this.box);
    void document.fonts?.ready.then(() => this.draw());
  }

  // Show arcs if there is room for them.
  /** @type {(isArched: boolean) => void} */
  show(isArched) {
    this.box.classList.toggle("arched", isArched && this.#area.value.length <= MAX_LENGTH);
    growField(this.#area); // the room below the text has changed
    this.draw();
  }

  // Hide the arcs while they would reveal an answer.
  /** @type {(isHidden: boolean) => void} */
  hide(isHidden) {
    this.#isHidden = isHidden;
    this.draw();
  }

  /** @type {(arcs: Arcs) => void} */
  setArcs(arcs) {
    if (JSON.stringify(arcs) === JSON.stringify(this.#arcs)) return;
    this.#arcs = arcs;
    this.draw();
  }

  // Draw the arcs at the current positions of the words. While the user types, arcs stay under words that still exist.
  // Texts of several lines get wider line spacing, to make room below each line.
  draw() {
    const isShown = this.box.classList.contains("arched") && !this.#isHidden;
    const { words = [], links = [], colour = "", says = "" } = (isShown && this.#arcs) || {};
    const places = words.length ? this.#measurePlaces(words) : null;
    this.caption.textContent = places ? says : "";
    this.caption.style.setProperty("--colour", colour);
    const hasSeveralLines = !!places?.some(({ y }) => y !== places[0].y);
    if (places && this.box.classList.toggle("lined", hasSeveralLines) === hasSeveralLines) growField(this.#area);
    this.#lines.replaceChildren(...(places && links.length ? this.#makeArcs(words, links, colour) : []));
  }

  /** @type {(words: string[], links: Arcs["links"], colour: string) => SVGElement[]} */
  #makeArcs(words, links, colour) {
    const places = this.#measurePlaces(words) ?? [];
    const { paddingLeft, paddingRight } = getComputedStyle(this.#area);
    const ends = { left: parseFloat(paddingLeft) / 2, right: this.box.clientWidth - parseFloat(paddingRight) };
    const lines = [...new Set(places.map(({ y }) => y))];
    const letterHeight = LETTER_HEIGHT * parseFloat(getComputedStyle(this.#area).fontSize);
    const lineGap = lines.length > 1 ? lines[1] - lines[0] - letterHeight : Infinity;
    const roomBelow = this.box.clientHeight - lines[lines.length - 1];
    const maxDepth = Math.min(MAX_DEPTH, (Math.min(lineGap, roomBelow) - MARGIN) / DEPTH_SHARE);
    return links.flatMap(([from, to, weight]) => drawArc(places[from], places[to], weight, colour, maxDepth, ends));
  }

  // Return the middle of each word's lower edge, or null if the text has other words.
  /** @type {(words: string[]) => WordAnchor[] | null} */
  #measurePlaces(words) {
    const text = this.#area.value;
    this.#mirror.textContent = text;
    const { fontFamily, fontSize, fontWeight, lineHeight, letterSpacing } = getComputedStyle(this.#area);
    Object.assign(this.#mirror.style, { fontFamily, fontSize, fontWeight, lineHeight, letterSpacing });
    const { left, top } = this.box.getBoundingClientRect();
    let position = 0;
    const boxes = words.map((word) => {
      const begin = text.indexOf(word, position);
      if (begin < 0) return null;
      position = begin + word.length;
      const range = document.createRange();
      range.setStart(/** @type {Node} */ (this.#mirror.firstChild), begin);
      range.setEnd(/** @type {Node} */ (this.#mirror.firstChild), position);
      return range.getBoundingClientRect();
    });
    if (boxes.some((box) => !box)) return null;
    return boxes.map((box) => {
      const { x, width, bottom } = /** @type {DOMRect} */ (box);
      return { x: x + width / 2 - left, y: Math.round(bottom - top) };
    });
  }
}
