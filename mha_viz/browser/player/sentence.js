// Draw the sentence once for the maps of all heads. A word that is hovered, or pinned by a click, selects its row in
// each map. Above it, an example shows the task: arcs from one word to the words whose letters it must name.
import { make, makeSvg } from "../dom.js";
/** @import { PlayerData, PlayerMark } from "./player.js" */

/** @typedef {{ root: HTMLElement, show: (row: number, col: number) => void, row: () => number }} SentenceView */

const [MIN_HEIGHT, MAX_HEIGHT] = [6, 15]; // height of an arc over its words, pixels
const SIGN_RADIUS = 3.5; // half the size of a sign at the end of an arc, pixels

// Make the sentence; `onChange` is called when another word, or none, is hovered.
/** @type {(data: PlayerData, onChange: () => void) => SentenceView} */
export function makeSentence({ words, marks }, onChange) {
  const parts = words.map((text) => make("bdi", {}, text));
  const root = make("p", { class: "sentence" }, ...parts.flatMap((part) => [part, " "]));
  const example = findExample(words, marks);
  const arcs = example < 0 ? null : makeArcDrawer(root, parts, marks);
  let [hovered, pinned] = [-1, -1];
  /** @type {(row: number, col: number) => void} */
  const show = (row, col) => {
    parts.forEach((part, i) => {
      part.classList.toggle("row", i === row);
      part.classList.toggle("col", i === col);
    });
    arcs?.(row < 0 ? example : row);
  };
  /** @type {(index: number) => void} */
  const hoverWord = (index) => {
    if (index === hovered) return;
    show((hovered = index), -1);
    onChange();
  };
  const findWord = (/** @type {Event} */ event) => parts.indexOf(/** @type {HTMLElement} */ (event.target));
  root.addEventListener("pointerover", (event) => hoverWord(findWord(event) < 0 ? pinned : findWord(event)));
  root.addEventListener("pointerleave", () => hoverWord(pinned));
  root.addEventListener("click", (event) => hoverWord((pinned = findWord(event) === pinned ? -1 : findWord(event))));
  if (arcs) new ResizeObserver(() => arcs(hovered < 0 ? example : hovered)).observe(root);
  return { root, show: (row, col) => show(row < 0 ? hovered : row, col), row: () => hovered };
}

// Find the first word that illustrates the task: it and the words that it must name have different letters. Return -1
// if there is none: a sign marks few words, there is only one sign, or words are not a letter with a symbol.
/** @type {(words: string[], marks: Pick<PlayerMark, "places">[]) => number} */
export const findExample = (words, marks) =>
  marks.length < 2 || words.some((word) => [...word].length !== 2)
    ? -1
    : words.findIndex((word, i) => {
        const places = marks.map((mark) => mark.places[i]);
        const letters = new Set([word[0], ...places.map((place) => words[place]?.[0])]);
        return places.every((place) => place >= 0 && place < i) && letters.size === marks.length + 1;
      });

// Draw arcs over the words from one of them, each to its sign over an underlined letter. Arcs to another line are left
// out.
/** @type {(root: HTMLElement, parts: HTMLElement[], marks: PlayerMark[]) => (from: number) => void} */
function makeArcDrawer(root, parts, marks) {
  const overlay = makeSvg("svg", { class: "example", "aria-hidden": "true" });
  root.append(overlay);
  root.classList.add("with-example");
  return (from) => {
    const arcs = marks.flatMap(({ places, colour }, relation) => {
      if (!(places[from] >= 0)) return [];
      const [begin, end] = [from, places[from]].map((word) => measureLetter(root, parts[word]));
      const style = { fill: "none", stroke: colour, "stroke-width": 1.75 };
      const arc = begin.top === end.top ? [makeSvg("path", { d: makeArcPath(begin, end), ...style })] : [];
      return [...arc, ...drawSignOver(end, relation, style)];
    });
    overlay.replaceChildren(...arcs);
  };
}

/** @typedef {{ left: number, top: number, width: number, height: number }} Box */

// Return the box of a word's first letter within the sentence; class mode enlarges everything.
/** @type {(root: HTMLElement, word: HTMLElement) => Box} */
function measureLetter(root, word) {
  const range = document.createRange();
  range.setStart(/** @type {Node} */ (word.firstChild), 0);
  range.setEnd(/** @type {Node} */ (word.firstChild), 1);
  const [box, outerBox] = [range.getBoundingClientRect(), root.getBoundingClientRect()];
  const zoom = outerBox.width / root.offsetWidth || 1;
  const size = { width: box.width / zoom, height: box.height / zoom };
  return { left: (box.left - outerBox.left) / zoom, top: (box.top - outerBox.top) / zoom, ...size };
}

/** @type {(begin: Box, end: Box) => string} */
function makeArcPath(begin, end) {
  const [from, to] = [begin, end].map(({ left, width }) => left + width / 2);
  const [y, peak] = [begin.top, begin.top - 1.33 * Math.min(MAX_HEIGHT, MIN_HEIGHT + Math.abs(from - to) / 12)];
  return `M ${from} ${y + 3} C ${from} ${peak} ${to} ${peak} ${to} ${y - SIGN_RADIUS}`;
}

/** @type {(box: Box, relation: number, look: Record<string, string | number>) => SVGElement[]} */
function drawSignOver({ left, top, width, height }, relation, look) {
  const [x, side] = [left + width / 2, 2 * SIGN_RADIUS];
  const sign =
    relation === 0
      ? makeSvg("circle", { cx: x, cy: top, r: SIGN_RADIUS, ...look })
      : makeSvg("rect", { x: x - SIGN_RADIUS, y: top - SIGN_RADIUS, width: side, height: side, ...look });
  return [sign, makeSvg("path", { d: `M ${left} ${top + height - 3} h ${width}`, ...look })];
}
