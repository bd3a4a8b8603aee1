// Describe a head in words and numbers: the line above the drawings, the note below them, the table.
import { make, isolateText } from "./dom.js";
import { isPair, computeMean } from "./geometry.js";
import { formatNumber, formatPercent } from "./numerals.js";
import { isSwitchedOff, formatMapName, formatPaperName } from "./reading.js";
import { isOfLayers, getLabel, nameUnits } from "./view.js";
import { isShare } from "./view.js";
/** @import { Children } from "./dom.js" */
/** @import { Axes, Block, Unit } from "./geometry.js" */
/** @import { Spot } from "./layouts.js" */
/** @import { ShownHead } from "./links.js" */
/** @import { Reading } from "./reading.js" */
/** @import { NumberKind, Settings } from "./view.js" */

const TABLE_UNITS = 40; // larger matrices are listed by weight
const MAX_LISTED = 300;
/** @type {(text: string) => HTMLElement} */
const makeStrong = (text) => make("b", {}, isolateText(text));
const SPECIAL_TITLE =
  "Not a word: a mark that the model adds, where heads look when they look at nothing in particular";
/** @type {(unit: { text: string, special: boolean }) => HTMLElement} */
const makeName = ({ text, special }) =>
  special ? make("abbr", { title: SPECIAL_TITLE }, isolateText(text)) : isolateText(text);
/** @type {(text: string) => HTMLElement} */
const makeSoft = (text) => make("span", { class: "soft" }, text);

// Describe the focused token or cell or, by default, the strongest link, with exact weights. `quiet`: leave out the
// strongest link, because it would reveal an answer; `hints`: explain what the pointer does.
/**
 * @type {(head: ShownHead, axes: Axes, focus: Spot | null, unit: string, quiet?: boolean, hints?: boolean) =>
 *   Children}
 */
export function describeFocus({ block }, { rows, cols }, focus, unit, quiet = false, hints = true) {
  if (!rows.length || !cols.length) return ["Nothing to draw: this text has only special tokens here."];
  if (!focus) {
    const hint = hints ? [makeSoft(" Hover over a word; click to pin.")] : [];
    if (quiet) return hint;
    const { row, col, weight } = findStrongest(block, rows, cols);
    const isOrdinary = !rows[row].special && !cols[col].special;
    return [
      `Strongest link${isOrdinary ? ` between ${nameUnits(unit)}` : ""}: `,
      ...describeLink(rows[row], cols[col], weight, block),
      ...hint,
    ];
  }
  const { row, col } = focus;
  if (row !== null && col !== null) return describeLink(rows[row], cols[col], block.w[row * block.C + col], block);
  return describeReach(block, rows, cols, focus);
}

/** @type {(from: Unit, to: Unit, weight: number, kind: NumberKind) => Children} */
const describeLink = (from, to, weight, kind) => [
  makeStrong(from.text),
  " → ",
  makeStrong(to.text),
  ` ${formatNumber(weight, kind)}`,
];

// Describe the scale in words. Keep in step with `describe_range` in figures/layout/view.py.
/** @type {(scale: string, top: number, kind?: NumberKind) => string} */
export const describeScale = (scale, top, { quantity, signed } = {}) => {
  const end = `${signed ? "±" : ""}${scale === "fixed" ? "1" : formatNumber(top, { quantity })}`;
  if (scale !== "log") return `0 to ${end}`;
  return signed ? "logarithmic, from ±0.001 to ±1" : "0.001 to 1, logarithmic";
};

// List the four tokens to which one token attends most, or which attend to it most.
/** @type {(block: Block, rows: Unit[], cols: Unit[], focus: Spot) => Children} */
function describeReach(block, rows, cols, { row, col }) {
  const { w, C } = block;
  const isQuery = row !== null;
  /** @type {(i: number) => number} */
  const getWeight = (i) => w[isQuery ? row * C + i : i * C + col];
  const linkedUnits = (isQuery ? cols : rows).map(({ text, special }, i) => ({ text, special, weight: getWeight(i) }));
  linkedUnits.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  const words = linkedUnits
    .slice(0, 4)
    .filter(({ weight }, i) => !i || !isShare(block) || Math.abs(weight) >= 0.0005) // smaller ones round to 0
    .flatMap(({ weight, ...unit }, i) => [i ? ", " : "", makeName(unit), ` ${formatNumber(weight, block)}`]);
  return [
    makeStrong((isQuery ? rows[row] : cols[col]).text),
    isQuery ? " attends to " : " is attended to by ",
    ...words,
  ];
}

// Find the strongest link between ordinary words, if there are any: most heads give most weight to [CLS] or [SEP],
// which is not informative.
/** @type {(block: Block, rows: Unit[], cols: Unit[]) => { row: number, col: number, weight: number }} */
export function findStrongest({ w, R, C, max = 1 }, rows, cols) {
  const best = { row: 0, col: 0, weight: w[0] };
  let top = -Infinity;
  for (let row = 0, i = 0; row < R; row++) {
    const isSpecial = rows[row].special;
    for (let col = 0; col < C; col++, i++) {
      const size = Math.abs(w[i]);
      if (size <= top) continue;
      const weight = size - (isSpecial || cols[col].special ? 1 + max : 0);
      if (weight <= top) continue;
      top = weight;
      Object.assign(best, { row, col, weight: w[i] });
    }
  }
  return best;
}

// Describe the hidden share; return "" if every weight is shown.
/** @type {(head: ShownHead, axes: { rows: Unit[] }, focus: Spot | null, view: Settings, reading: Reading) => string} */
export function describeHidden({ block: { hidden } }, { rows }, focus, view, reading) {
  const showsAll = view.special === "keep" && !(isPair(reading) && view.side !== "all");
  if (showsAll && !reading.hidden) return "";
  const allAttention = isOfLayers(reading) ? `this layer’s ${getLabel(reading)}` : "this head’s attention";
  if (!hidden.length) return `${formatPercent(1)} of ${allAttention} goes to hidden tokens.`;
  const hasRow = focus && focus.row !== null;
  const share = hasRow ? hidden[focus.row] : computeMean(Array.from(hidden));
  const subject = hasRow ? `the attention from “${rows[focus.row].text}”` : allAttention;
  const isRescaled = showsAll ? isShare(reading) : view.special === "rescale" && !reading.signed;
  const outcome = isRescaled ? "went to hidden tokens before rescaling" : "goes to hidden tokens";
  return `${formatPercent(share)} of ${subject} ${outcome}.`;
}

// Describe the drawn heads that are switched off; return "" if there are none.
/** @type {(reading: Reading, heads: number[]) => string} */
export function describeOff(reading, heads) {
  const names = heads.filter((head) => isSwitchedOff(reading, head)).map((head) => formatMapName(reading, head));
  if (!names.length) return "";
  if (names.length === 1) return `${names[0]} is off: this pattern is computed, its output is not used.`;
  const nameList = `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  return `${nameList} are off: their patterns are computed, their outputs are not used.`;
}

// Name the numbers of a view: "weight" only if the model computed them. Keep in step with `name_numbers` in
// attention/numbers.py.
/** @type {(reading: Reading, view: Pick<Settings, "unit" | "special">) => string} */
function nameNumbers(reading, view) {
  const baseName = reading.numbers ?? "weight";
  const parts = [
    view.unit === "words" && !reading.numbers?.includes("_by_words") && "by_words",
    view.special === "rescale" && !reading.signed && !reading.numbers?.includes("_rescaled") && "rescaled",
  ];
  return [baseName, ...parts].filter(Boolean).join("_").replaceAll("_", " ");
}

// List the numbers of one head: the whole matrix or, if it is large, the largest numbers.
/** @type {(head: ShownHead, axes: Axes, reading: Reading, view: Settings) => HTMLElement[]} */
export function makeTables(head, axes, reading, view) {
  const name = `${formatMapName(reading, head.head)} (${formatPaperName(reading, head.head)}), ${reading.cited}`;
  const numbers = nameNumbers(reading, view);
  const caption = make("caption", {}, `${name}: ${numbers}; rows attend to columns`);
  const isSmall = Math.max(axes.rows.length, axes.cols.length) <= TABLE_UNITS;
  return isSmall ? [makeWholeTable(caption, head.block, axes)] : makeLargestTable(caption, head.block, axes, numbers);
}

/** @type {(tag: "td" | "th", text: string, scope?: string) => HTMLElement} */
const makeCell = (tag, text, scope) => make(tag, scope ? { scope } : {}, isolateText(text));
/** @type {(cells: HTMLElement[]) => HTMLElement} */
const makeTableRow = (cells) => make("tr", {}, ...cells);
/** @type {(caption: HTMLElement, header: HTMLElement[], body: HTMLElement[]) => HTMLElement} */
const makeTable = (caption, header, body) =>
  make("table", {}, caption, make("thead", {}, makeTableRow(header)), make("tbody", {}, ...body));

/** @type {(caption: HTMLElement, block: Block, axes: Axes) => HTMLElement} */
function makeWholeTable(caption, block, { rows, cols }) {
  const header = [makeCell("td", ""), ...cols.map((unit) => makeCell("th", unit.text, "col"))];
  /** @type {(unit: Unit, r: number) => HTMLElement[]} */
  const makeCells = (unit, r) => [
    makeCell("th", unit.text, "row"),
    ...cols.map((_, c) => makeCell("td", formatNumber(block.w[r * block.C + c], block))),
  ];
  return makeTable(
    caption,
    header,
    rows.map((unit, r) => makeTableRow(makeCells(unit, r))),
  );
}

/** @type {(caption: HTMLElement, block: Block, axes: Axes, numbers: string) => HTMLElement[]} */
function makeLargestTable(caption, block, { rows, cols }, numbers) {
  const { w, C } = block;
  const largest = Array.from(w.keys())
    .filter((i) => w[i])
    .sort((a, b) => Math.abs(w[b]) - Math.abs(w[a]))
    .slice(0, MAX_LISTED);
  /** @type {(i: number) => HTMLElement[]} */
  const makeCells = (i) =>
    [rows[Math.floor(i / C)].text, cols[i % C].text, formatNumber(w[i], block)].map((text) => makeCell("td", text));
  const header = ["from", "to", numbers].map((text) => makeCell("th", text, "col"));
  const note = `The ${largest.length} largest of ${w.length} numbers.`;
  return [
    makeTable(
      caption,
      header,
      largest.map((i) => makeTableRow(makeCells(i))),
    ),
    make("p", { class: "soft" }, note),
  ];
}
