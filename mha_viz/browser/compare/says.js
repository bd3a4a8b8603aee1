// The sentences of a panel and of the difference about the spot under the pointer.
import { make, typedText } from "../dom.js";
import { spanWeight } from "../layouts.js";
import { number, signed } from "../numerals.js";
import { strongest } from "../words.js";
import { nameOf } from "./set.js";
/** @import { Children } from "../dom.js" */
/** @import { Axes, Block, Unit } from "../geometry.js" */
/** @import { Cells, Span } from "../layouts.js" */
/** @import { Kind, Settings } from "../view.js" */
/** @import { Stores } from "./compare.js" */
/** @import { DrawnDifference } from "./difference.js" */
/** @import { PanelPart } from "./parts.js" */
/** @import { Panels } from "./set.js" */
/** @import { Place } from "./spots.js" */

/** @type {(text: string) => HTMLElement} */
export const bold = (text) => make("b", {}, typedText(text));
/** @type {(text: string) => HTMLElement} */
export const amount = (text) => make("span", { class: "value" }, text);
/** @type {(...children: Children) => HTMLElement} */
export const softly = (...children) => make("span", { class: "soft" }, ...children);
/** @type {(...children: Children) => HTMLElement} */
const linkText = (...children) => make("span", { class: "link" }, ...children);
/** @type {(units: Unit[], from: number, count?: number) => string} */
const textOf = (units, from, count = 1) =>
  units
    .slice(from, from + count)
    .map((unit) => unit.text)
    .join(" ");

// One link with its exact weight, or the largest of a word; without a pointer, the strongest link.
/** @type {(stores: Stores, index: number, spot: Place | null) => Children} */
export function panelSays({ read: { set, derived }, stage }, index, spot) {
  const { reading } = set.panels[index];
  const { part } = derived.heads[index];
  const axes = { rows: derived.units[reading], cols: derived.columns[reading] };
  if (!axes.rows.length || !axes.cols.length) return ["Only special tokens are here."];
  if (spot?.missing) return lacking(stage.view, spot.missing);
  if (!spot) return strongestSays(part, axes, stage.view);
  if (spot.row !== null && spot.col !== null) return linkSays(axes, spot, spanWeight(part, spot), part);
  return wordSays(part, axes, spot);
}

/** @type {(part: Block, axes: Axes, view: Settings) => Children} */
function strongestSays(part, axes, view) {
  const best = strongest(part, axes.rows, axes.cols);
  const isOrdinary = !axes.rows[best.row].special && !axes.cols[best.col].special;
  return [softly(`strongest ${isOrdinary ? `between ${view.unit} ` : ""}`), ...linkSays(axes, best, best.weight, part)];
}

/** @type {(axes: Axes, cells: Cells, weight: number, kind: Kind) => Children} */
function linkSays(axes, { row, rows, col, cols }, weight, kind) {
  const link = linkText(bold(textOf(axes.rows, row, rows)), " → ", bold(textOf(axes.cols, col, cols)));
  return [link, " ", amount(number(weight, kind))];
}

/** @type {(part: Block, axes: Axes, spot: Span) => Children} */
function wordSays(part, axes, spot) {
  const isQuery = spot.row !== null;
  /** @type {(i: number) => Cells} */
  const linked = (i) => (spot.row === null ? { ...spot, row: i, rows: 1 } : { ...spot, col: i, cols: 1 });
  const units = isQuery ? axes.cols : axes.rows;
  const weights = units.map((_, i) => spanWeight(part, linked(i)));
  const word = isQuery ? textOf(axes.rows, spot.row, spot.rows) : textOf(axes.cols, spot.col, spot.cols);
  const others = topThree(weights).flatMap((i, at) => [
    at ? ", " : "",
    typedText(units[i].text),
    ` ${number(weights[i], part)}`,
  ]);
  return [linkText(bold(word), isQuery ? " → " : " ← ", ...others)];
}

/** @type {(weights: number[]) => number[]} */
function topThree(weights) {
  /** @type {number[]} */
  const best = [];
  weights.forEach((weight, i) => {
    let at = best.length;
    while (at && weight > weights[best[at - 1]]) at--;
    if (at < 3) best.splice(at, 0, i);
    best.length = Math.min(best.length, 3);
  });
  return best;
}

/** @type {(view: Settings, unit: Unit) => Children} */
function lacking(view, unit) {
  const kind = unit.special ? "special token" : view.unit === "words" ? "word" : "piece";
  const isHidden = unit.special && view.special !== "keep";
  return [softly(`no ${kind} “`, typedText(unit.text), `” here${isHidden ? ": hidden" : ""}`)];
}

// The sentences of every panel, for screen readers.
/** @type {(set: Panels, panels: PanelPart[]) => string} */
export const allSay = (set, panels) =>
  panels.map((panel, i) => `${i + 1}, ${nameOf(set, i).name}: ${panel.says.textContent}`).join("; ");

/** @type {(stores: Stores, spot: Place | null) => Children} */
export function differenceSays({ read: { derived }, stage }, spot) {
  const { rows, cols, d, C, first, second, kind } = /** @type {DrawnDifference} */ (derived.diff);
  if (spot?.missing) return lacking(stage.view, spot.missing);
  if (!spot || spot.row === null || spot.col === null) return [softly("Point at a cell for its numbers.")];
  const cell = spot.row * C + spot.col;
  const link = linkText(bold(rows[spot.row].text), " → ", bold(cols[spot.col].text));
  const both = `${number(first[cell], kind)} → ${number(second[cell], kind)}`;
  return [link, " ", softly(both), " ", amount(signed(d[cell], kind))];
}
