// Draw the panels with one size, layout and scale, show the focused spot in each of them, and make a table of weights.
import { make, isolateText } from "../dom.js";
import { computeBlock } from "../geometry.js";
import { EDGE, measureHeatmapLabel, describeLabelStep } from "../heatmap.js";
import { getSignColours } from "../ink.js";
import { computeHeatmapLayout, findHeatmapSpot, findLinksSpot, computeSpanWeight } from "../layouts.js";
import { CROWDED, describeFewLinks, makeLineRamp, measureLinksLabel, makeLinks } from "../links.js";
import { formatNumber } from "../numerals.js";
import { getKeys } from "../reading.js";
import { getPoint, revealRow } from "../stage.js";
import { isShare, serializeSettings, nameUnits } from "../view.js";
import { describeHidden, describeOff, describeScale, findStrongest, makeTables } from "../words.js";
import { refreshDifference, subtractPanels, makeDifferenceTable } from "./difference.js";
import {
  joinPanelTexts,
  makeAmount,
  makeBold,
  drawCanvasPair,
  describeMissing,
  makeLinkText,
  shortenName,
  makeSoft,
} from "./parts.js";
import {
  chooseColumnCount,
  namePanel,
  getReading,
  computeSharedShades,
  mapSpot,
  findLargestWeight,
  computeTextUnits,
} from "./together.js";
/** @import { Children, Parts } from "../dom.js" */
/** @import { Axes, Block, Unit } from "../geometry.js" */
/** @import { Cells, Span, Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { NumberKind, Settings } from "../view.js" */
/** @import { Stores } from "./compare.js" */
/** @import { DrawnDifference } from "./difference.js" */
/** @import { PanelElements } from "./parts.js" */
/** @import { Panels, Place, Refusal } from "./together.js" */

/** @typedef {Parts & { panels: PanelElements[] }} ComparePage */
/**
 * The visible part of every panel.
 *
 * @typedef {{ key: string, units: Unit[][], columns: Unit[][], heads: ShownHead[], top: number, counterparts:
 *   Record<string, ([number, number] | null)[]>, diff: DrawnDifference | Refusal | null }} Derived
 */

const GAP = 32; // pixels between panels
const FEW_PANELS = 4; // up to this many panels get a wide gap
const MANY_TOKENS = 40; // with more tokens than this, the gap is narrow, to leave room for cells
const WIDE_GAP = 64;
const MIN_ROW_HEIGHT = 14; // pixels; panels exceed the window only to keep rows this high
const MIN_WIDTH = 292; // minimum width of a panel, pixels
const LINKS_WIDTH = 560; // maximum width of a link diagram, pixels

// Compute the visible part of every panel, once per view.
/** @type {(stores: Stores) => void} */
export function computeVisiblePart({ data, stage: { view }, look }) {
  const { panelSet, derived } = data;
  const { links, scale, as } = view;
  const key = JSON.stringify([panelSet.key, serializeSettings(view, "compare"), view.diff, look.theme]);
  if (derived?.key === key) return;
  const units = panelSet.readings.map((reading) => computeTextUnits(reading, view));
  const cols = panelSet.readings.map((reading, i) =>
    reading.keys ? computeTextUnits(getKeys(reading), view) : units[i],
  );
  const blocks = panelSet.panels.map(({ reading, head }) =>
    computeBlock(panelSet.readings[reading], head, view, { rows: units[reading], cols: cols[reading] }),
  );
  const top = findLargestWeight(blocks);
  const heads = panelSet.panels.map(({ reading, head }, index) => {
    const [block, axes] = [blocks[index], { rows: units[reading], cols: cols[reading] }];
    return {
      head,
      block,
      shade: computeSharedShades(block, scale, top),
      ...(as === "links" ? makeLinks([block], axes, links, scale, top)[0] : {}),
      colour: look.heads[(head % panelSet.readings[reading].heads) % look.heads.length],
      dash: /** @type {number[]} */ ([]),
      ...(block.signed ? getSignColours(look) : {}),
    };
  });
  data.derived = { key, units, columns: cols, heads, top, counterparts: {}, diff: subtractPanels(panelSet, view) };
}

// Choose the kind of numbers of the scale: that of the first signed panel or, if none is, of the first without shares.
/** @type {(heads: ShownHead[]) => NumberKind} */
const chooseKind = (heads) => {
  const blocks = heads.map(({ block }) => block);
  return blocks.find(({ signed }) => signed) ?? blocks.find((block) => !isShare(block)) ?? {};
};

/** @type {(stores: Stores, page: Parts) => void} */
export function drawScale({ data: { panelSet, derived }, stage, look }, page) {
  const { as, scale } = stage.view;
  const isSigned = derived.heads.some((head) => head.block.signed);
  const { colour, negativeColour } = isSigned ? getSignColours(look) : { colour: look.ink };
  const colours = `linear-gradient(90deg, ${(isSigned ? look.signed : look.ramp).join()})`;
  page.ramp.style.background = as === "links" ? makeLineRamp(colour, negativeColour) : colours;
  const subject = panelSet.panels.length > 1 ? "All panels share one scale" : "Scale";
  const fewTexts = derived.units.map((rows, i) =>
    describeFewLinks({ rows, cols: derived.columns[i] }, stage.view.unit),
  );
  const fewText = fewTexts.find(Boolean);
  const crowdedTexts = fewTexts.every(Boolean)
    ? "panel"
    : `text of ${CROWDED.words} ${nameUnits(stage.view.unit)} or more`;
  const fewNote = fewText
    ? `. Without a pinned word, ${fewText}${panelSet.panels.length > 1 ? ` of each ${crowdedTexts}` : ""}`
    : "";
  const lineNote = as === "links" ? `, as width and darkness of the line${fewNote}` : "";
  page.scaleText.textContent = `${subject}: ${describeScale(scale, derived.top, chooseKind(derived.heads))}${lineNote}`;
}

// Give all panels and their difference one size and one layout, so that cells can be compared by position. Two panels
// leave a third column for the difference, so that nothing moves when it opens.
/** @type {(stores: Stores, page: ComparePage) => void} */
export function layOutPanels({ data: { panelSet, derived }, stage, look }, page) {
  const isLinks = stage.view.as === "links";
  const { units, columns: others } = derived;
  const maxUnits = Math.max(1, ...[...units, ...others].map((list) => list.length));
  const axes = units.map((rows, i) => ({ rows, cols: others[i] }));
  if (derived.diff?.partner) axes.push(derived.diff);
  const label = Math.max(
    ...axes.map(({ rows, cols }) => (isLinks ? measureLinksLabel : measureHeatmapLabel)(rows, cols, look)),
  );
  const width = page.sheet.clientWidth;
  const minWidth = isLinks ? MIN_WIDTH : Math.max(MIN_WIDTH, Math.min(width, label + 2 * maxUnits));
  const count = panelSet.panels.length;
  const gap = count > FEW_PANELS || maxUnits > MANY_TOKENS || width < 600 ? GAP : WIDE_GAP;
  const columnCount = chooseColumnCount(width, count === 2 ? 3 : count, width < 600 ? width : minWidth, gap);
  const column = Math.floor((width - (columnCount - 1) * gap) / columnCount);
  const maxHeight = Math.max(300, Math.min(Math.max(680, window.innerHeight - 370), window.innerHeight - 230));
  const height = Math.min(maxHeight, Math.max(300, window.innerHeight - 360, label + MIN_ROW_HEIGHT * maxUnits));
  const maxCell = Math.min(64, Math.max(44, (window.innerHeight - 350 - label) / maxUnits)); // in a large window
  const size = { width: isLinks ? Math.min(column, LINKS_WIDTH) : column, height, maxCell };
  Object.assign(look, { maxUnits, labelWidth: label, ...size });
  const drawnWidth = isLinks
    ? look.width
    : computeHeatmapLayout(column - EDGE, maxUnits, maxUnits, height - EDGE, label, label, maxCell).width + EDGE;
  for (const { box } of page.panels) box.style.maxHeight = `${isLinks ? height : Math.max(height, column) + 12}px`;
  const panelWidth = Math.min(column, Math.max(drawnWidth, MIN_WIDTH)); // tools are above its right edge
  page.sheet.style.cssText = `grid-template-columns: repeat(${columnCount}, ${panelWidth}px); --gap: ${gap}px`;
  page.sheet.classList.toggle("single", columnCount === 1);
  page.sheet.classList.toggle("few", gap === WIDE_GAP || columnCount === 1);
  placeDifference(page, stage.view.diff, columnCount);
}

// Place the difference after the second of its panels, or at the end of the first one's row if that comes earlier.
/** @type {(page: ComparePage, diff: [number, number] | null, columnCount: number) => void} */
function placeDifference({ panels, sheet, diff: box }, diff, columnCount) {
  const boxes = panels.map((panel) => panel.all);
  if (diff) {
    const first = Math.min(...diff);
    const rowEnd = (Math.floor(first / columnCount) + 1) * columnCount - 1;
    boxes.splice(Math.max(first + 1, Math.min(Math.max(...diff) + 1, rowEnd)), 0, box);
  }
  if (boxes.length !== sheet.children.length || boxes.some((panelBox, i) => panelBox !== sheet.children[i]))
    sheet.replaceChildren(...boxes);
  panels.forEach(({ all: panel, pill }) => {
    const index = boxes.indexOf(panel);
    if (pill) pill.hidden = columnCount > 1 && index % columnCount === columnCount - 1;
  });
}

// Redraw panels whose focus has changed, or all of them.
/** @type {(stores: Stores, page: ComparePage, all?: boolean) => void} */
export function refresh(stores, page, all = false) {
  const { panelSet } = stores.data;
  if (!panelSet) return;
  const spot = stores.stage.getFocus();
  page.panels.forEach((panel, index) => {
    const place = mapSpot(stores, panelSet.panels[index].reading, spot);
    const key = JSON.stringify(place);
    if (!all && key === panel.drawnKey) return;
    panel.drawnKey = key;
    drawPanel(stores, panel, index, place, all);
  });
  refreshDifference(stores, page, spot, all);
}

/** @type {(stores: Stores, panel: PanelElements, index: number, place: Place | null, all: boolean) => void} */
function drawPanel(stores, panel, index, place, all) {
  const { panelSet, derived } = stores.data;
  const { stage, look } = stores;
  const { view } = stage;
  const { reading } = panelSet.panels[index];
  const [rows, cols] = [derived.units[reading], derived.columns[reading]];
  const [head, focus] = [derived.heads[index], place?.missing ? null : place];
  const links = view.as === "links" ? { heads: [head] } : {};
  drawCanvasPair(panel, { rows, cols, head, ...links, focus: null, view }, focus, all, look);
  panel.readout.replaceChildren(...describePanel(stores, index, place));
  panel.readout.classList.toggle("rest", !place);
  const hiddenNote =
    view.special === "keep" ? "" : describeHidden(head, { rows }, focus, view, getReading(panelSet, index));
  const off = describeOff(getReading(panelSet, index), [panelSet.panels[index].head]);
  const note = [off, hiddenNote, view.as === "links" ? "" : describeLabelStep(panel.layout?.cell)]
    .filter(Boolean)
    .join(" ");
  if (panel.note.textContent !== note) panel.note.textContent = note;
  const kind = view.as === "links" ? "Token links" : "Heatmap";
  const label = `${kind} of panel ${index + 1}, ${namePanel(panelSet, index).name}`;
  panel.canvas.setAttribute("aria-label", `${label}. ${panel.readout.textContent}`);
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------

/** @type {(stores: Stores, page: ComparePage, index: number) => void} */
export function listenToPanel(stores, page, index) {
  const { data, stage } = stores;
  const panel = page.panels[index];
  const { reading } = data.panelSet.panels[index];
  const isLinks = () => stage.view.as === "links";
  /** @type {() => [number, number]} */
  const counts = () => [data.derived.units[reading].length, data.derived.columns[reading].length];
  /** @type {(event: MouseEvent) => Spot | null} */
  const findSpot = (event) => {
    if (!panel.layout || !data.derived) return null;
    const [x, y] = getPoint(panel.canvas, event);
    const spot = isLinks()
      ? findLinksSpot(panel.layout, ...counts(), x, y + panel.box.scrollTop)
      : findHeatmapSpot(panel.layout, ...counts(), x, y);
    return spot && { at: index, ...spot };
  };
  const getKeyContext = () => {
    const place = mapSpot(stores, reading, stage.getFocus());
    const from = place && !place.missing ? /** @type {Spot} */ ({ at: index, row: place.row, col: place.col }) : null;
    const [R, C] = counts();
    return { from, isHeatmap: !isLinks(), R, C, start: { at: index }, onMove };
  };
  /** @type {(spot: Spot) => void} */
  const onMove = (spot) => {
    page.announcement.textContent = joinPanelTexts(data.panelSet, page.panels);
    if (isLinks()) revealRow(panel.box, (spot.row ?? spot.col) * panel.layout.rowHeight);
  };
  stage.listenTo(panel.canvas, findSpot, getKeyContext);
  panel.box.onscroll = () => linkScrolling(stores, page, index);
}

// Make panels with the same layout scroll together.
/** @type {(stores: Stores, page: ComparePage, index: number) => void} */
function linkScrolling(stores, page, index) {
  const panel = page.panels[index];
  const { scrollTop, scrollLeft } = panel.box;
  for (const other of page.panels) {
    if (other === panel) continue;
    if (other.box.scrollTop !== scrollTop) other.box.scrollTop = scrollTop;
    if (other.box.scrollLeft !== scrollLeft) other.box.scrollLeft = scrollLeft;
  }
  if (stores.stage.view.as === "links") drawPanel(stores, panel, index, JSON.parse(panel.drawnKey), true);
}

// ---- The sentence of a panel about a spot -------------------------------------------------------------------

// Describe one link with its exact weight, or the largest links of a word; if nothing is focused, the strongest link.
/** @type {(stores: Stores, index: number, spot: Place | null) => Children} */
function describePanel({ data: { panelSet, derived }, stage }, index, spot) {
  const { reading } = panelSet.panels[index];
  const { block } = derived.heads[index];
  const axes = { rows: derived.units[reading], cols: derived.columns[reading] };
  if (!axes.rows.length || !axes.cols.length) return ["This panel has only special tokens."];
  if (spot?.missing) return describeMissing(stage.view, spot.missing);
  if (!spot) return describeStrongest(block, axes, stage.view);
  if (spot.row !== null && spot.col !== null) return describeLink(axes, spot, computeSpanWeight(block, spot), block);
  return describeWord(block, axes, spot);
}

/** @type {(block: Block, axes: Axes, view: Settings) => Children} */
function describeStrongest(block, axes, view) {
  const best = findStrongest(block, axes.rows, axes.cols);
  const isOrdinary = !axes.rows[best.row].special && !axes.cols[best.col].special;
  return [
    makeSoft(`strongest ${isOrdinary ? `between ${nameUnits(view.unit)} ` : ""}`),
    ...describeLink(axes, best, best.weight, block),
  ];
}

/** @type {(axes: Axes, cells: Cells, weight: number, kind: NumberKind) => Children} */
function describeLink(axes, { row, rows, col, cols }, weight, kind) {
  const link = makeLinkText(
    makeBold(joinTexts(axes.rows, row, rows)),
    " → ",
    makeBold(joinTexts(axes.cols, col, cols)),
  );
  return [link, " ", makeAmount(formatNumber(weight, kind))];
}

/** @type {(block: Block, axes: Axes, spot: Span) => Children} */
function describeWord(block, axes, spot) {
  const isQuery = spot.row !== null;
  /** @type {(i: number) => Cells} */
  const makeCells = (i) => (spot.row === null ? { ...spot, row: i, rows: 1 } : { ...spot, col: i, cols: 1 });
  const units = isQuery ? axes.cols : axes.rows;
  const weights = units.map((_, i) => computeSpanWeight(block, makeCells(i)));
  const word = isQuery ? joinTexts(axes.rows, spot.row, spot.rows) : joinTexts(axes.cols, spot.col, spot.cols);
  const targets = findTopThree(weights).flatMap((i, index) => [
    index ? ", " : "",
    isolateText(units[i].text),
    ` ${formatNumber(weights[i], block)}`,
  ]);
  return [makeLinkText(makeBold(word), isQuery ? " → " : " ← ", ...targets)];
}

/** @type {(weights: number[]) => number[]} */
function findTopThree(weights) {
  /** @type {number[]} */
  const best = [];
  weights.forEach((weight, i) => {
    let position = best.length;
    while (position && weight > weights[best[position - 1]]) position--;
    if (position < 3) best.splice(position, 0, i);
    best.length = Math.min(best.length, 3);
  });
  return best;
}

/** @type {(units: Unit[], from: number, count?: number) => string} */
const joinTexts = (units, from, count = 1) =>
  units
    .slice(from, from + count)
    .map((unit) => unit.text)
    .join(" ");

// ---- The weights of one panel, or the difference, as a table ------------------------------------------------

/** @type {(stores: Stores, page: Parts) => void} */
export function drawTable({ data, stage }, page) {
  const { panelSet, derived } = data;
  if (!panelSet.panels.length || !page.table.open) return;
  const { diff } = stage.view;
  const result = derived.diff?.partner ? derived.diff : null;
  drawMenu(panelSet, page, !!result);
  const choice = page.tableMenu.value;
  const isDifference = choice === "diff" && diff && result;
  page.tableBox.replaceChildren(
    ...(isDifference ? [makeDifferenceTable(panelSet, diff, result)] : makePanelTable(data, stage.view, +choice)),
  );
}

/** @type {(panelSet: Panels, page: Parts, hasDifference: boolean) => void} */
function drawMenu(panelSet, page, hasDifference) {
  const panels = panelSet.panels.map((_, i) => [String(i), shortenName(panelSet, i)]);
  const options = [...panels, ...(hasDifference ? [["diff", "the difference"]] : [])];
  const key = JSON.stringify(options);
  const previous = page.tableMenu.value || (hasDifference ? "diff" : "0");
  if (page.tableMenuKey !== key) {
    page.tableMenu.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
    page.tableMenuKey = key;
  }
  page.tableMenu.value = options.some(([value]) => value === previous) ? previous : "0";
}

/** @type {(data: Stores["data"], view: Stores["stage"]["view"], index: number) => HTMLElement[]} */
function makePanelTable({ panelSet, derived }, view, index) {
  const { reading } = panelSet.panels[index];
  const [rows, cols] = [derived.units[reading], derived.columns[reading]];
  return rows.length && cols.length
    ? makeTables(derived.heads[index], { rows, cols }, getReading(panelSet, index), view)
    : [];
}
