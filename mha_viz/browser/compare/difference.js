// Show the second of two panels minus the first: as a signed heatmap, a list of the largest differences, and a table.
import { make, isolateText } from "../dom.js";
import { describeLabelStep } from "../heatmap.js";
import { findHeatmapSpot } from "../layouts.js";
import { formatDivergence, formatNumber, formatSigned } from "../numerals.js";
import { formatMapName, formatPaperName } from "../reading.js";
import { getPoint } from "../stage.js";
import {
  joinPanelTexts,
  makeAmount,
  makeBold,
  drawCanvasPair,
  describeMissing,
  makeLinkText,
  makeSoft,
} from "./parts.js";
import { subtract, findLargestCells, getReading, computeSignedShades, mapSpot, distinguishPanels } from "./together.js";
/** @import { Children, Parts } from "../dom.js" */
/** @import { Unit } from "../geometry.js" */
/** @import { HeatScene, HeatmapData } from "../heatmap.js" */
/** @import { Span, Spot } from "../layouts.js" */
/** @import { Stage } from "../stage.js" */
/** @import { Settings } from "../view.js" */
/** @import { Stores } from "./compare.js" */
/** @import { PanelElements } from "./parts.js" */
/** @import { Difference, Panels, PanelsView, Place, Refusal } from "./together.js" */

/**
 * A difference ready to be drawn, with its largest cells.
 *
 * @typedef {Difference & { head: HeatmapData, largest: number[] }} DrawnDifference
 */

const LIST_LENGTH = 12;
const NO_DIVERGENCE =
  "Only visible cells are subtracted. There is no divergence: the special tokens do not correspond.";
const MIXED_NOTE = "These two cannot be subtracted: one is attention between two texts, the other within one text.";
const REPLACED_HINT = "Compare two sentences of equal length that differ only in some words.";

// Return the difference that a view asks for, ready to draw, or null if it asks for none.
/** @type {(panelSet: Panels, view: PanelsView) => DrawnDifference | Refusal | null} */
export function subtractPanels(panelSet, view) {
  const result = view.diff && subtract(panelSet, view, view.diff);
  if (!result?.partner) return result;
  const head = {
    block: { w: result.d, R: result.R, C: result.C },
    shade: computeSignedShades(result),
    largest: result.top,
  };
  return { ...result, head, largest: findLargestCells(result, LIST_LENGTH) };
}

// Whether a difference is between panel `index` and the next one.
/** @type {(diff: number[] | null, index: number) => boolean} */
export const isBetween = (diff, index) => !!diff && Math.min(...diff) === index && Math.max(...diff) === index + 1;

// Draw everything that does not depend on the hovered spot: all except the heatmap.
/** @type {(stores: Stores, page: Parts & { panels: PanelElements[] }) => void} */
export function drawDifference({ data, stage, look }, page) {
  const { panelSet, derived } = data;
  const { diff } = stage.view;
  page.panels.forEach(({ pill }, index) => pill?.setAttribute("aria-pressed", String(isBetween(diff, index))));
  const result = /** @type {DrawnDifference | Refusal} */ (derived?.diff);
  page.largestSection.hidden = !diff || !result.partner;
  if (!diff) return;
  page.diffTitle.replaceChildren(...makeTitle(panelSet, diff));
  page.diffTitle.title = page.diffTitle.textContent ?? "";
  page.diff.classList.toggle("refused", !result.partner);
  for (const element of [page.diffScale, page.map.box, page.diffReadout]) element.hidden = !result.partner;
  page.diffText.replaceChildren(
    ...(result.partner ? describeMeaning(panelSet, diff) : explainRefusal(stage, diff, result)),
  );
  if (!result.partner) return;
  page.diffRamp.style.background = `linear-gradient(90deg, ${look.signed.join()})`;
  const end = formatNumber(result.top, { quantity: result.kind.quantity });
  const minusNote = look.hasMinus ? ", marked −" : "";
  page.diffLess.replaceChildren(`more in ${diff[0] + 1}${minusNote}  `, makeAmount(`−${end}`));
  page.diffMore.replaceChildren(makeAmount(`+${end}`), `  more in ${diff[1] + 1}`);
  page.largestList.replaceChildren(...result.largest.map((cell) => makeDifferenceItem(stage, diff, result, cell)));
  if (!result.largest.length) page.largestList.append(make("li", { class: "soft" }, "None: the two are identical."));
}

/** @type {(panelSet: Panels, diff: [number, number]) => Children} */
function makeTitle(panelSet, diff) {
  /** @type {(panel: { name: string, more: string }) => Children} */
  const makePanelName = ({ name, more }) => [make("code", {}, name), ...(more ? [" ", isolateText(more)] : [])];
  const [first, second] = distinguishPanels(panelSet, diff);
  const isOneHead = first.name === second.name && first.more.startsWith("with "); // name it once
  return [...makePanelName(second), " minus ", ...(isOneHead ? [isolateText(first.more)] : makePanelName(first))];
}

/** @type {(panelSet: Panels, diff: [number, number]) => Children} */
function describeMeaning(panelSet, [p, q]) {
  const nats = panelSet.divergence[p][q];
  if (nats === null) return [NO_DIVERGENCE];
  const unit =
    panelSet.compared[panelSet.panels[p].reading][panelSet.panels[q].reading] === "words" ? "words" : "tokens";
  const measure = `Jensen–Shannon divergence over all ${unit}, special tokens included`;
  const ends = make("span", { title: measure }, "(0% = identical, 100% = no overlap)");
  return ["Difference ", makeBold(formatDivergence(nats)), " ", ends, "."];
}

// Explain why two panels cannot be subtracted, with a button for the remedy, if there is one.
/** @type {(stage: Stage<PanelsView>, diff: [number, number], result: Refusal) => Children} */
function explainRefusal(stage, [p, q], { ours, theirs, remedy, isMixed }) {
  if (isMixed) return [MIXED_NOTE];
  if (!remedy) {
    const list = [...listUnmatched(ours, p), ...listUnmatched(theirs, q)].flatMap((span, i) => [i ? "; " : "", span]);
    return [
      "These two cannot be subtracted: their words do not correspond one to one. ",
      ...list,
      `. ${REPLACED_HINT}`,
    ];
  }
  const [label, reason] = describeRemedy(remedy);
  const button = make("button", { type: "button", class: "quiet", onclick: () => stage.change(remedy) }, label);
  return [`With these settings, these two cannot be subtracted: ${reason}. `, button];
}

/** @type {(units: Unit[], panel: number) => HTMLElement[]} */
function listUnmatched(units, panel) {
  if (!units.length) return [];
  const words = units.slice(0, 5).flatMap((unit, i) => [i ? ", " : "", "“", isolateText(unit.text), "”"]);
  const restNote = units.length > 5 ? ` and ${units.length - 5} more` : "";
  return [make("span", {}, ...words, restNote, ` only in panel ${panel + 1}`)];
}

/** @type {(remedy: Partial<Settings>) => [string, string]} */
function describeRemedy({ unit, special }) {
  const [splitReason, tokensReason] = ["their words are split differently", "their special tokens differ"];
  if (unit && special) return ["Compare by words, without special tokens", `${splitReason}, and ${tokensReason}`];
  return unit ? ["Compare by words", splitReason] : ["Hide special tokens", tokensReason];
}

/** @type {(stage: Stage<PanelsView>, diff: [number, number], result: DrawnDifference, cell: number) => HTMLElement} */
function makeDifferenceItem(stage, [reference], { rows, cols, d, C, first, second, top, kind }, cell) {
  const spot = { at: reference, row: Math.floor(cell / C), col: cell % C };
  const [enter, leave] = [() => stage.hover(spot), () => stage.hover(null)];
  const numbers = [formatNumber(first[cell], kind), formatNumber(second[cell], kind), formatSigned(d[cell], kind)];
  const handlers = {
    onclick: () => stage.togglePin(spot),
    onpointerenter: enter,
    onpointerleave: leave,
    onfocus: enter,
    onblur: leave,
  };
  return makeEntry(rows[spot.row].text, cols[spot.col].text, numbers, d[cell] / top, handlers);
}

// Make an entry of the list: "it → animal 0.677 → 0.051 −0.626", with a bar for its size and sign.
/** @type {(from: string, to: string, numbers: string[], share: number, handlers: object) => HTMLElement} */
function makeEntry(from, to, numbers, share, handlers) {
  const strip = make("i", { class: share < 0 ? "less" : "more", "aria-hidden": true });
  strip.style.setProperty("--share", `${Math.abs(share) * 50}%`);
  const [first, second, change] = numbers;
  const button = make(
    "button",
    { type: "button", ...handlers },
    make("span", { class: "link" }, isolateText(from), " → ", isolateText(to)),
    make("span", { class: "soft" }, `${first} → ${second}`),
    strip,
    make("span", { class: "value" }, change),
  );
  return make("li", {}, button);
}

// ---- The hovered spot -----------------------------------------------------------------------------------------

// Return the panel that provides the rows and columns of the difference.
/** @type {(stage: Stage<PanelsView>) => number} */
const getReferencePanel = (stage) => stage.view.diff?.[0] ?? 0;

/** @type {(stores: Stores, page: Parts, spot: Spot | null, all: boolean) => void} */
export function refreshDifference(stores, page, spot, all) {
  const { data, stage, look } = stores;
  const { panelSet, derived } = data;
  const result = derived?.diff;
  if (!result?.partner) return;
  const place = mapSpot(stores, panelSet.panels[getReferencePanel(stage)].reading, spot);
  const key = JSON.stringify(place);
  if (!all && key === page.diffKey) return;
  page.diffKey = key;
  const focus = place?.missing ? null : place;
  /** @type {HeatScene} */
  const scene = { rows: result.rows, cols: result.cols, head: result.head, focus: null };
  drawCanvasPair(page.map, scene, focus, all, { ...look, colours: look.signedColours });
  page.diffReadout.replaceChildren(...describeFocus(stores, place), makeSoft(describeLabelStep(page.map.layout?.cell)));
  page.map.canvas.setAttribute("aria-label", `Difference. ${page.diffReadout.textContent}`);
  markEntries(page.largestList, result, focus);
}

/** @type {(list: HTMLElement, result: DrawnDifference, focus: Span | null) => void} */
function markEntries(list, { largest: cells, C }, focus) {
  const isCell = focus && focus.row !== null && focus.col !== null;
  const cell = isCell ? focus.row * C + focus.col : -1;
  [...list.querySelectorAll("button")].forEach((item, i) =>
    item.setAttribute("aria-current", String(cells[i] === cell)),
  );
}

/** @type {(stores: Stores, page: Parts & { panels: PanelElements[] }) => void} */
export function listenToDifference(stores, page) {
  const { data, stage } = stores;
  /** @type {(event: MouseEvent) => Spot | null} */
  const findSpot = (event) => {
    const result = data.derived?.diff;
    if (!page.map.layout || !result?.partner) return null;
    const spot = findHeatmapSpot(page.map.layout, result.R, result.C, ...getPoint(page.map.canvas, event));
    return spot && { ...spot, at: getReferencePanel(stage) };
  };
  const getKeyContext = () => {
    const reference = getReferencePanel(stage);
    const spot = mapSpot(stores, data.panelSet.panels[reference].reading, stage.getFocus());
    const from = spot && !spot.missing ? /** @type {Spot} */ ({ at: reference, row: spot.row, col: spot.col }) : null;
    const { R, C } = /** @type {DrawnDifference} */ (data.derived.diff);
    return { from, isHeatmap: true, R, C, start: { at: reference }, onMove };
  };
  const onMove = () => {
    page.announcement.textContent = `${page.diffReadout.textContent}. ${joinPanelTexts(data.panelSet, page.panels)}`;
  };
  stage.listenTo(page.map.canvas, findSpot, getKeyContext);
}

/** @type {(stores: Stores, spot: Place | null) => Children} */
function describeFocus({ data: { derived }, stage }, spot) {
  const { rows, cols, d, C, first, second, kind } = /** @type {DrawnDifference} */ (derived.diff);
  if (spot?.missing) return describeMissing(stage.view, spot.missing);
  if (!spot) return [makeSoft("Hover over a cell for its numbers.")];
  if (spot.row === null || spot.col === null)
    return [describeWord(/** @type {DrawnDifference} */ (derived.diff), spot)];
  const cell = spot.row * C + spot.col;
  const link = makeLinkText(makeBold(rows[spot.row].text), " → ", makeBold(cols[spot.col].text));
  const values = `${formatNumber(first[cell], kind)} → ${formatNumber(second[cell], kind)}`;
  return [link, " ", makeSoft(values), " ", makeAmount(formatSigned(d[cell], kind))];
}

const MAX_LISTED = 3; // differences of a word

// List the largest differences of a row or a column.
/** @type {(result: DrawnDifference, spot: Span) => HTMLElement} */
function describeWord({ rows, cols, d, C, kind }, { row, col }) {
  const isQuery = row !== null;
  const units = isQuery ? cols : rows;
  const cells = units.map((_, i) => (row !== null ? row * C + i : i * C + (col ?? 0)));
  const strongestCells = findLargestCells({ d: Float32Array.from(cells, (cell) => d[cell]) }, MAX_LISTED);
  const entries = strongestCells.flatMap((i, index) => [
    index ? ", " : "",
    isolateText(units[i].text),
    ` ${formatSigned(d[cells[i]], kind)}`,
  ]);
  const word = isQuery ? rows[row] : cols[col ?? 0];
  return makeLinkText(makeBold(word.text), isQuery ? " → " : " ← ", ...entries);
}

// ---- As a table ---------------------------------------------------------------------------------------------

const MAX_ROWS = 300;

/** @type {(panelSet: Panels, diff: [number, number], result: DrawnDifference) => HTMLElement} */
export function makeDifferenceTable(panelSet, diff, result) {
  const { rows, cols, d, C, first, second, kind } = result;
  /** @type {(panel: number) => string} */
  const describeMap = (panel) => {
    const [reading, { head }] = [getReading(panelSet, panel), panelSet.panels[panel]];
    return `${formatMapName(reading, head)} (${formatPaperName(reading, head)})`;
  };
  const [p, q] = diff.map(describeMap);
  const cells = findLargestCells(result, MAX_ROWS);
  /** @type {(cell: number) => string[]} */
  const makeRow = (cell) => {
    const words = [rows[Math.floor(cell / C)].text, cols[cell % C].text];
    return [...words, formatNumber(first[cell], kind), formatNumber(second[cell], kind), formatSigned(d[cell], kind)];
  };
  return makeTable(`${q} minus ${p}: the ${cells.length} largest of ${d.length} differences`, cells.map(makeRow));
}

/** @type {(caption: string, rows: string[][]) => HTMLElement} */
function makeTable(caption, rows) {
  /** @type {(tag: "th" | "td", cells: string[]) => HTMLElement} */
  const makeRow = (tag, cells) =>
    make("tr", {}, ...cells.map((cell) => make(tag, tag === "th" ? { scope: "col" } : {}, isolateText(cell))));
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, makeRow("th", ["from", "to", "first", "second", "difference"])),
    make("tbody", {}, ...rows.map((row) => makeRow("td", row))),
  );
}
