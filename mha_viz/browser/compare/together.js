// Compare several heads: unpack their data, align their words, map spots between panels, compute the common scale and
// differences, and read and write the address. No DOM access. Tested with `node --test`.
import { computeBlock, isLong, formatPin, parsePin, computeShades, computeUnits } from "../geometry.js";
import { getKeys, formatMapName, formatPaperName, unpack } from "../reading.js";
import { getDefaults, getLastParameter, parseSettings, encodeSettings } from "../view.js";
/** @import { Axes, Block, Pin, Unit } from "../geometry.js" */
/** @import { Span, Spot } from "../layouts.js" */
/** @import { Axis, Reading, Themes, TypedAxis } from "../reading.js" */
/** @import { NumberKind, Settings } from "../view.js" */
/** @import { Stores } from "./compare.js" */
/** @import { Edit } from "./comparison.js" */
/** @import { Derived } from "./panels.js" */

/** @typedef {Settings & { pin: Pin | null, diff: [number, number] | null }} PanelsView */

/**
 * Difference of two matrices: d[row * C + col] is `second` minus `first`, at most `top` in absolute value.
 *
 * @typedef {object} Subtraction
 * @property {number[]} partner the row of the second panel for each row of the first
 * @property {Float32Array} d
 * @property {number} R
 * @property {number} C
 * @property {number} top
 * @property {Float32Array} first
 * @property {Float32Array} second
 */

/**
 * One panel minus another, with its axes and the kind of its numbers.
 *
 * @typedef {Axes & Subtraction & { kind: NumberKind }} Difference
 */

/**
 * Why two panels cannot be subtracted: the units without a counterpart, and a remedy.
 *
 * @typedef {{ partner?: undefined, ours: Unit[], theirs: Unit[], remedy: Partial<Settings> | null, isMixed?: boolean }}
 *   Refusal
 */

/**
 * The index of each unit's only partner, or the units on both sides that have none.
 *
 * @typedef {{ partner: number[]; ours?: undefined; theirs?: undefined } | { partner?: undefined; ours: Unit[]; theirs:
 *   Unit[] }} Partners
 */

// ---- The panels ---------------------------------------------------------------------------------------------

// figures/layout/panels.py defines the format: readings, and the alignment of their words.

/**
 * The texts along the rows or columns of all readings, and the alignment of their words. For each word of reading i,
 * `aligned[i][j]` has the equal word of reading j, or null; `place[i][j]` has the equal word or its replacement.
 *
 * @typedef {{ readings: TypedAxis[], aligned: (number | null)[][][], place: (number | null)[][][] }} Sides
 */

/**
 * Panels to compare (figures/layout/panels.py).
 *
 * @typedef {object} PanelsFields
 * @property {Sides} [columns]
 * @property {string} key
 * @property {boolean} editable
 * @property {{ reading: number, head: number, name: string, source?: number }[]} panels
 * @property {Reading[]} readings
 * @property {number[]} sizes the bytes of each reading
 * @property {(string | null)[][]} compared [reading][reading]: the units that correspond, or null
 * @property {(number | null)[][]} divergence [panel][panel], in nats
 * @property {Themes} themes
 * @property {{ diff: string, special?: string, pin?: string }} [start]
 */
/** @typedef {Omit<Sides, "readings"> & PanelsFields} Panels */

/**
 * The data that determine the settings with which panels open.
 *
 * @typedef {Pick<Panels, "readings" | "start">} Opening
 */

// Unpack the bytes of figures/layout/panels.py: the header, its readings, and the word number of each token.
/** @type {(bytes: Uint8Array) => Panels} */
export function unpackPanels(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const panelSet = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let offset = 4 + length;
  panelSet.readings = panelSet.sizes.map((/** @type {number} */ size) => {
    const reading = unpack(bytes.subarray(offset, offset + size));
    offset += size;
    for (const axis of [reading, reading.keys]) if (axis) axis.wordOf = mapTokensToWords(axis);
    return reading;
  });
  if (panelSet.columns) Object.assign(panelSet.columns, { readings: panelSet.readings.map(getKeys) });
  return panelSet;
}

/** @type {(axis: Axis) => number[]} */
function mapTokensToWords({ groups }) {
  /** @type {number[]} */
  const words = [];
  groups.forEach((tokens, word) => tokens.forEach((token) => (words[token] = word)));
  return words;
}

// Return the alignment of rows or of columns. Readings of one text have the same units.
/** @type {(panelSet: Panels, side: "rows" | "cols") => Sides} */
export const getSide = (panelSet, side) => (side === "cols" && panelSet.columns) || panelSet;

/** @type {(panelSet: Panels, panel: number) => Reading} */
export const getReading = (panelSet, panel) => panelSet.readings[panelSet.panels[panel].reading];

/** @type {(panelSet: Panels, panel: number) => { name: string, paper: string }} */
export const namePanel = (panelSet, panel) => {
  const [reading, { head }] = [getReading(panelSet, panel), panelSet.panels[panel]];
  return { name: formatMapName(reading, head), paper: formatPaperName(reading, head) };
};

// ---- The view in the URL ------------------------------------------------------------------------------------

// Return the initial settings. If any text is long, show only the strongest links, on one scale.
/** @type {(panelSet: Opening) => Record<string, string>} */
export const getInitialSettings = (panelSet) => ({
  ...getDefaults("compare", panelSet.readings, panelSet.readings.some(isLong)),
  ...(panelSet.start?.special && { special: panelSet.start.special }),
});

// Parse URLSearchParams into a view. Unknown or out-of-range values become the default; never throws.
/** @type {(params: URLSearchParams, panelSet: Panels) => PanelsView} */
export function parsePanelsView(params, panelSet) {
  /** @type {(name: string) => string} */
  const getParameter = (name) => getLastParameter(params, name) ?? "";
  /** @type {PanelsView} */
  const view = { ...parseSettings(params, getInitialSettings(panelSet), "compare"), pin: null, diff: null };
  const count = panelSet.panels.length;
  const [, first, second] = /^(\d{1,2})-(\d{1,2})$/.exec(getParameter("diff") || panelSet.start?.diff || "") || [];
  if (first !== undefined && +first !== +second && +first < count && +second < count) view.diff = [+first, +second];
  const pinPanel = /^\d{1,2}$/.test(getParameter("at")) ? +getParameter("at") : 0;
  const pin = pinPanel < count && parsePin(getParameter("pin") || panelSet.start?.pin, getReading(panelSet, pinPanel));
  return { ...view, pin: pin ? { ...pin, at: pinPanel } : null };
}

// Return the URL parameters of a view that differ from the defaults; null removes a parameter. If the panels open with
// a difference or a pinned word, a view without it must say so.
/** @type {(view: PanelsView, panelSet: Opening) => Record<string, string | null>} */
export function encodePanelsView(view, panelSet) {
  const fields = encodeSettings(view, getInitialSettings(panelSet));
  fields.diff = view.diff ? view.diff.join("-") : panelSet.start?.diff ? "none" : null;
  const pin = formatPin(view.pin) ?? (panelSet.start?.pin ? "none" : null);
  fields.pin = pin === panelSet.start?.pin && !view.pin?.at ? null : pin;
  fields.at = view.pin && view.pin.at ? String(view.pin.at) : null;
  return fields;
}

// ---- Changes of the compared heads --------------------------------------------------------------------------

// Return the new number of panel `panel` after an edit, or null if it was removed.
/** @type {(edit: Edit, panel: number) => number | null} */
export function updatePlace({ action, index, to = index }, panel) {
  if (action === "remove") return panel === index ? null : panel - (panel > index ? 1 : 0);
  if (action === "duplicate") return panel + (panel > index ? 1 : 0);
  if (action !== "move") return panel;
  if (panel === index) return to;
  return panel + (panel > index ? -1 : 0) + (panel - (panel > index ? 1 : 0) >= to ? 1 : 0);
}

// Return the view after an edit of the compared heads, with its panel numbers updated.
/** @type {(edit: Edit, view: PanelsView) => PanelsView} */
export function updateView(edit, view) {
  const [first, second] = (view.diff ?? []).map((panel) => updatePlace(edit, panel));
  const pinPanel = view.pin && updatePlace(edit, view.pin.at ?? 0);
  return {
    ...view,
    diff: typeof first === "number" && typeof second === "number" ? [first, second] : null,
    pin: view.pin && pinPanel !== null ? { ...view.pin, at: pinPanel } : null,
  };
}

// Return the data that determine the initial settings after an edit, so that one message can contain both the edit and
// the address. Two panels whose readings correspond open with their difference.
/** @type {(edit: Edit, panelSet: Panels) => Opening} */
export function updateOpening(edit, panelSet) {
  if (!panelSet.editable) return panelSet;
  const newPlaces = panelSet.panels.map(({ reading }, panel) => ({ reading, place: updatePlace(edit, panel) }));
  const readings = newPlaces.filter(({ place }) => place !== null).map(({ reading }) => reading);
  if (edit.action === "duplicate") readings.push(panelSet.panels[edit.index].reading);
  const opensDifference = readings.length === 2 && panelSet.compared[readings[0]][readings[1]] !== null;
  return {
    readings: readings.map((reading) => panelSet.readings[reading]),
    start: { ...panelSet.start, diff: opensDifference ? "0-1" : "" },
  };
}

// ---- Alignment ----------------------------------------------------------------------------------------------

/** @type {(axis: TypedAxis, view: Settings) => Unit[]} */
export const computeTextUnits = (axis, view) =>
  computeUnits(/** @type {Reading} */ (axis), { ...view, side: "all" }).rows;
/** @type {(a: TypedAxis, b: TypedAxis) => boolean} */
export const isSameText = (a, b) => a.text === b.text && a.pair === b.pair;

// For each unit of reading i, return the corresponding units of reading j as [first, count], or null if there are none.
// In readings of the same text, units correspond if they cover the same characters. Otherwise the word is looked up in
// `aligned`; if both words are split into the same tokens, tokens correspond one by one.
/** @type {(side: Sides, i: number, j: number, ours: Unit[], theirs: Unit[]) => ([number, number] | null)[]} */
export function findCounterparts(side, i, j, ours, theirs) {
  if (i === j) return ours.map((_, unit) => [unit, 1]);
  const unitOfToken = new Map(); // token of j → unit of j
  theirs.forEach((unit, place) => unit.tokens.forEach((token) => unitOfToken.set(token, place)));
  const [a, b] = [side.readings[i], side.readings[j]];
  const tokensFor = isSameText(a, b) ? matchBySpan(a, b, side.aligned[i][j]) : matchByWord(a, b, side.aligned[i][j]);
  return ours.map((unit) => {
    const places = tokensFor(unit)
      .map((token) => unitOfToken.get(token))
      .filter((place) => place !== undefined);
    return places.length ? [Math.min(...places), new Set(places).size] : null;
  });
}

/** @type {(a: TypedAxis, b: TypedAxis, aligned: (number | null)[]) => (unit: Unit) => number[]} */
function matchBySpan(a, b, aligned) {
  return ({ tokens, segment }) => {
    const spans = tokens.flatMap((t) => (a.spans[t] ? [a.spans[t]] : []));
    if (!spans.length) return b.groups[aligned[a.wordOf[tokens[0]]] ?? -1] || [];
    const [start, end] = [Math.min(...spans.map((s) => s[0])), Math.max(...spans.map((s) => s[1]))];
    /** @type {(span: [number, number] | null, t: number) => boolean} */
    const overlaps = (span, t) => !!span && b.segments[t] === segment && span[0] < end && start < span[1];
    return b.spans.flatMap((span, t) => (overlaps(span, t) ? [t] : []));
  };
}

/** @type {(a: TypedAxis, b: TypedAxis, aligned: (number | null)[]) => (unit: Unit) => number[]} */
function matchByWord(a, b, aligned) {
  return ({ tokens }) => {
    const word = a.wordOf[tokens[0]];
    const [ours, theirs] = [a.groups[word], b.groups[aligned[word] ?? -1] || []];
    const isWholeWord = tokens.length === ours.length || !isSplitAlike(a, b, ours, theirs);
    return isWholeWord ? theirs : [theirs[ours.indexOf(tokens[0])]];
  };
}

/** @type {(a: TypedAxis, b: TypedAxis, ours: number[], theirs: number[]) => boolean} */
const isSplitAlike = (a, b, ours, theirs) =>
  ours.length === theirs.length && ours.every((t, index) => isSameWord(a.tokens[t], b.tokens[theirs[index]]));
/** @type {(a: string, b: string) => boolean} */
const isSameWord = (a, b) => a === b || a.toLowerCase() === b.toLowerCase();

// Name two panels by everything in which they differ, as [{name, more}], like `distinguish_panels` in
// figures/layout/difference.py. `more` is empty if the names of the heads differ.
/** @type {(panelSet: Panels, pair: [number, number]) => { name: string, more: string }[]} */
export function distinguishPanels(panelSet, pair) {
  const [i, j] = pair.map((panel) => panelSet.panels[panel].reading);
  const differences = [nameModels(panelSet, i, j), findDifferingWords(panelSet, i, j), describeSteps(panelSet, i, j)];
  const phrases = differences.filter(([first, second]) => first !== second);
  return pair.map((panel, index) => ({
    name: namePanel(panelSet, panel).name,
    more: phrases.map((words) => words[index]).join(" "),
  }));
}

/** @type {(panelSet: Panels, i: number, j: number) => [string, string]} */
function nameModels(panelSet, i, j) {
  const [a, b] = [panelSet.readings[i], panelSet.readings[j]];
  const [firstName, secondName] = [a, b].map(({ label }) => `of ${label}`);
  return firstName === secondName ? [nameModel(a), nameModel(b)] : [firstName, secondName];
}

/** @type {(reading: Reading) => string} */
const nameModel = ({ label, revision }) => `of ${label} (${revision || "no revision"})`;

/** @type {(panelSet: Panels, i: number, j: number) => [string, string]} */
function describeSteps(panelSet, i, j) {
  const [firstName, secondName] = [i, j].map((reading) => panelSet.readings[reading].steps || "as read");
  return [firstName, secondName];
}

// If the rows do not distinguish the panels, use the columns.
/** @type {(panelSet: Panels, i: number, j: number) => [string, string]} */
function findDifferingWords(panelSet, i, j) {
  const [rows, cols] = [panelSet, getSide(panelSet, "cols")].map((side) => [
    listOwnWords(side, i, j),
    listOwnWords(side, j, i),
  ]);
  return /** @type {[string, string]} */ (rows[0] === rows[1] ? cols : rows);
}

/** @type {(side: Sides, i: number, j: number) => string} */
function listOwnWords(side, i, j) {
  const { words, text } = side.readings[i];
  const unmatched = i === j ? [] : words.filter((_, word) => (side.aligned[i][j][word] ?? null) === null);
  return unmatched.length && unmatched.length <= 3 ? `with “${unmatched.join(" ")}”` : `of “${text}”`;
}

// Whether two sentences have most words in common, so that differing words can be highlighted.
/** @type {(side: Sides, i: number, j: number) => boolean} */
export function areAlike(side, i, j) {
  const [ours, theirs] = [
    [i, j],
    [j, i],
  ].map(([a, b]) => side.aligned[a][b].map((word) => (word ?? null) !== null));
  return [ours, theirs].every(
    (matches) => matches.filter((isMatched) => !isMatched).length <= Math.min(8, matches.length / 2),
  );
}

// Find the partner in reading j of each unit of reading i, including replaced words, so that the matrices can be
// subtracted. Return {partner: [unit]} or, if some units have none, {ours, theirs} with these units.
/** @type {(side: Sides, i: number, j: number, ours: Unit[], theirs: Unit[], view: Settings) => Partners} */
export function findPartners(side, i, j, ours, theirs, view) {
  const [a, b] = [side.readings[i], side.readings[j]];
  const partnerWords = i === j ? a.groups.map((_, word) => word) : side.place[i][j];
  const unitOfTokens = new Map();
  theirs.forEach((unit, index) => unitOfTokens.set(unit.tokens.join(), index));
  const partner = ours.map(({ tokens }) => {
    const word = a.wordOf[tokens[0]];
    const partnerTokens = b.groups[partnerWords[word] ?? -1];
    if (!partnerTokens) return null;
    if (view.unit === "words") return unitOfTokens.get(partnerTokens.join()) ?? null;
    return canSubtractTokens(a, b, a.groups[word], partnerTokens)
      ? (unitOfTokens.get(String(partnerTokens[a.groups[word].indexOf(tokens[0])])) ?? null)
      : null;
  });
  const partners = new Set(partner);
  if (!partners.has(null) && partners.size === ours.length && ours.length === theirs.length) return { partner };
  return {
    ours: ours.filter((_, unit) => partner[unit] === null || partner.indexOf(partner[unit]) !== unit),
    theirs: theirs.filter((_, unit) => !partners.has(unit)),
  };
}

// Whether the tokens of two words can be subtracted: there are equally many, and if the words are equal, they are split
// at the same characters.
/** @type {(a: TypedAxis, b: TypedAxis, ours: number[], theirs: number[]) => boolean} */
function canSubtractTokens(a, b, ours, theirs) {
  if (ours.length !== theirs.length) return false;
  if (isSameText(a, b)) return ours.every((t, index) => String(a.spans[t]) === String(b.spans[theirs[index]]));
  /** @type {(reading: TypedAxis, tokens: number[]) => string} */
  const getWord = (reading, tokens) => reading.words[reading.wordOf[tokens[0]]];
  return !isSameWord(getWord(a, ours), getWord(b, theirs)) || isSplitAlike(a, b, ours, theirs) || !!a.special[ours[0]];
}

// ---- One scale ----------------------------------------------------------------------------------------------

// Return the largest weight of all blocks: the end of the scale that panels share.
/** @type {(blocks: (Block | null)[]) => number} */
export const findLargestWeight = (blocks) => blocks.reduce((top, block) => Math.max(top, block?.max ?? 0), 0);
/** @type {(block: Block, scale: string, top: number) => Uint8ClampedArray} */
export const computeSharedShades = (block, scale, top) => computeShades({ ...block, max: top }, scale);

// ---- Differences --------------------------------------------------------------------------------------------

const REMEDIES = [{ special: "hide" }, { unit: "words" }, { unit: "words", special: "hide" }];

// Subtract the first of two panels from the second: {rows, cols, partner, d, R, C, top, first, second}. Where their
// words differ, rows and columns name both: "tired / wide". If the panels do not correspond, return {ours, theirs,
// remedy}: the units without a partner and, if there is one, a change of the view that would help.
/** @type {(panelSet: Panels, view: Settings, pair: [number, number]) => Difference | Refusal} */
export function subtract(panelSet, view, [p, q]) {
  const [i, j] = [panelSet.panels[p].reading, panelSet.panels[q].reading];
  const [a, b] = [panelSet.readings[i], panelSet.readings[j]];
  if (!a.keys !== !b.keys) return { ours: [], theirs: [], remedy: null, isMixed: true };
  const rowPairs = pairUnits(panelSet, i, j, view);
  const columnPairs = panelSet.columns ? pairUnits(panelSet.columns, i, j, view) : rowPairs;
  if (!rowPairs.partner || !columnPairs.partner) {
    const remedy = REMEDIES.find((change) => corresponds(panelSet, i, j, { ...view, ...change })) ?? null;
    const { ours = [], theirs = [] } = rowPairs.partner ? columnPairs : rowPairs;
    return { ours, theirs, remedy };
  }
  const first = computeBlock(a, panelSet.panels[p].head, view, { rows: rowPairs.units, cols: columnPairs.units });
  const second = computeBlock(b, panelSet.panels[q].head, view, { rows: rowPairs.others, cols: columnPairs.others });
  const kind = { quantity: a.quantity, signed: a.signed };
  const [rows, cols] = [joinUnits(rowPairs, rowPairs.partner), joinUnits(columnPairs, columnPairs.partner)];
  return { ...subtractBlocks(first, second, rowPairs.partner, columnPairs.partner), rows, cols, kind };
}

// Return the units of two readings along one axis and how they correspond.
/** @type {(side: Sides, i: number, j: number, view: Settings) => Partners & { units: Unit[], others: Unit[] }} */
function pairUnits(side, i, j, view) {
  const [ours, theirs] = [i, j].map((reading) => computeTextUnits(side.readings[reading], view));
  return { ...findPartners(side, i, j, ours, theirs, view), units: ours, others: theirs };
}

/** @type {(first: Block, other: Block, rowPartners: number[], columnPartners: number[]) => Subtraction} */
function subtractBlocks(first, other, rowPartners, columnPartners) {
  const [R, C] = [rowPartners.length, columnPartners.length];
  const [d, second] = [new Float32Array(R * C), new Float32Array(R * C)];
  let top = 0;
  for (let r = 0, cell = 0; r < R; r++) {
    for (let c = 0; c < C; c++, cell++) {
      second[cell] = other.w[rowPartners[r] * C + columnPartners[c]];
      d[cell] = second[cell] - first.w[cell];
      if (Math.abs(d[cell]) > top) top = Math.abs(d[cell]);
    }
  }
  return { partner: rowPartners, d, R, C, top, first: first.w, second };
}

/** @type {(panelSet: Panels, i: number, j: number, view: Settings) => boolean} */
const corresponds = (panelSet, i, j, view) =>
  [panelSet, getSide(panelSet, "cols")].every((side) => !!pairUnits(side, i, j, view).partner);
/** @type {(pairing: { units: Unit[], others: Unit[] }, partner: number[]) => Unit[]} */
const joinUnits = ({ units: ours, others }, partner) =>
  ours.map((unit, index) => joinUnit(unit, others[partner[index]]));
/** @type {(unit: Unit, other: Unit) => Unit} */
const joinUnit = (unit, other) =>
  unit.special || isSameWord(unit.text, other.text) ? unit : { ...unit, text: `${unit.text} / ${other.text}` };

// Convert each difference to a level of the signed scale, 0…255, where 128 is zero. Keep in step with
// `quantise_levels` in figures/layout/difference.py.
/** @type {(difference: Subtraction) => Uint8ClampedArray} */
export function computeSignedShades({ d, top }) {
  const out = new Uint8ClampedArray(d.length);
  for (let i = 0; i < d.length; i++) out[i] = 128 + (127 * d[i]) / (top || 1);
  return out;
}

// Return the cells that differ most, largest first.
/** @type {(difference: Pick<Subtraction, "d">, count: number) => number[]} */
export const findLargestCells = ({ d }, count) =>
  Array.from(d.keys())
    .filter((i) => d[i])
    .sort((a, b) => Math.abs(d[b]) - Math.abs(d[a]) || a - b)
    .slice(0, count);

// ---- Layout -------------------------------------------------------------------------------------------------

// Return the number of columns for `count` panels of at least `minWidth` pixels: at most four, with as few gaps in the
// last row as possible.
/** @type {(width: number, count: number, minWidth: number, gap: number) => number} */
export function chooseColumnCount(width, count, minWidth, gap) {
  const fit = Math.max(1, Math.min(4, count, Math.floor((width + gap) / (minWidth + gap))));
  return Math.max(1, Math.ceil(count / Math.ceil(count / fit)));
}

// ---- The spot under the pointer in one panel, mapped to the others ------------------------------------------

// A spot is {at: panel, row, col} in units of that panel.

/**
 * The position of a spot in one reading, or the unit that this reading lacks.
 *
 * @typedef {(Span & { missing?: undefined }) | { missing: Unit }} Place
 */

/**
 * The data needed to map a spot to other panels.
 *
 * @typedef {{ data: { panelSet: Panels, derived: Pick<Derived, "units" | "counterparts"> & { columns?: Unit[][],
 *   diff: { partner?: number[] } | null } }, stage: { view: PanelsView } }} SpotContext
 */

// Return the rows or the columns of every reading.
/** @type {(derived: SpotContext["data"]["derived"], side: "rows" | "cols") => Unit[][]} */
const getUnits = (derived, side) => (side === "cols" && derived.columns) || derived.units;

// Return the units of reading j that correspond to each unit of reading i along one axis. While the two are subtracted,
// replaced words correspond too.
/** @type {(stores: SpotContext, side: "rows" | "cols", i: number, j: number) => ([number, number] | null)[]} */
function mapUnits({ data: { panelSet, derived }, stage }, side, i, j) {
  const key = `${side} ${i}-${j}`;
  if (derived.counterparts[key]) return derived.counterparts[key];
  const [ours, theirs] = [i, j].map((reading) => getUnits(derived, side)[reading]);
  /** @type {(reading: number) => boolean} */
  const isSubtracted = (reading) => !!stage.view.diff?.some((panel) => panelSet.panels[panel].reading === reading);
  const includesReplaced = derived.diff?.partner && i !== j && isSubtracted(i) && isSubtracted(j);
  const { partner } = includesReplaced ? findPartners(getSide(panelSet, side), i, j, ours, theirs, stage.view) : {};
  derived.counterparts[key] =
    partner?.map((unit) => [unit, 1]) ?? findCounterparts(getSide(panelSet, side), i, j, ours, theirs);
  return derived.counterparts[key];
}

// Map a spot to another reading: {row, rows, col, cols}, or {missing: the unit that it lacks}.
/** @type {(stores: SpotContext, reading: number, spot: Spot | null) => Place | null} */
export function mapSpot(stores, reading, spot) {
  if (!spot) return null;
  const { panelSet, derived } = stores.data;
  const from = panelSet.panels[spot.at ?? 0].reading;
  /** @type {(side: "rows" | "cols", index: number | null) => [number | null, number] | null} */
  const mapIndex = (side, index) => (index === null ? [null, 1] : mapUnits(stores, side, from, reading)[index]);
  const [rows, cols] = [mapIndex("rows", spot.row), mapIndex("cols", spot.col)];
  if (!rows) return { missing: getUnits(derived, "rows")[from][spot.row ?? 0] };
  if (!cols) return { missing: getUnits(derived, "cols")[from][spot.col ?? 0] };
  return /** @type {Span} */ ({ row: rows[0], rows: rows[1], col: cols[0], cols: cols[1] });
}

/** @type {(stores: Stores) => Spot | null} */
export function findPinnedSpot({ data: { panelSet, derived }, stage }) {
  if (!stage.view.pin || !derived) return null;
  const { at, query, key } = stage.view.pin;
  const [rows, cols] = [getUnits(derived, "rows"), getUnits(derived, "cols")].map(
    (units) => units[panelSet.panels[at ?? 0].reading],
  );
  /** @type {(list: Unit[], token: number | null) => number | null} */
  const find = (list, token) => (token === null ? null : list.findIndex((unit) => unit.tokens.includes(token)));
  const spot = /** @type {Spot} */ ({ at, row: find(rows, query), col: find(cols, key) });
  return spot.row === -1 || spot.col === -1 ? null : spot;
}

/** @type {(stores: Stores, spot: Spot) => Pin} */
export function makePin({ data: { panelSet, derived } }, { at = 0, row, col }) {
  const { reading } = panelSet.panels[at];
  /** @type {(list: Unit[], unit: number | null) => number | null} */
  const token = (list, unit) => (unit === null ? null : list[unit].tokens[0]);
  const [query, key] = [token(derived.units[reading], row), token(derived.columns[reading], col)];
  return { at, query, key };
}
