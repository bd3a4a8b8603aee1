// Compute numbers and positions; no DOM access, no colours. Tested with `node --test`.
import { formatHead, getKeys } from "./reading.js";
import { visitRows, gatherRow, findLargestSize, findLargest, getColumns, sumVisible } from "./rows.js";
import { LONG_TOKENS, getDefaults, getLastParameter, parseSettings, encodeSettings } from "./view.js";
/** @import { Axis, Bins, Reading } from "./reading.js" */
/** @import { NumberKind, Settings } from "./view.js" */

/**
 * The query and key token pinned in a view, or null; `at`: their panel.
 *
 * @typedef {{ query: number | null, key: number | null, at?: number }} Pin
 */

/** @typedef {{ query: number, key: number }} Link */

/**
 * The view of the explorer: `head` is the open head, `on` are the heads drawn together.
 *
 * @typedef {Settings & { roles: boolean, arrows: boolean, head: number, on: number[], pin: Pin | null, link: Link |
 *   null }} ReadingView
 */

/**
 * A row or column: a word, a subword or a special token. `tokens` are token indices. `written`: by the model.
 *
 * @typedef {{ text: string, tokens: number[], special: boolean, segment: number, written?: boolean }} Unit
 */

/** @typedef {{ rows: Unit[], cols: Unit[] }} Axes */

/**
 * The visible part of one head: w[row * C + col]; hidden[row] is the share of the row that is not shown.
 *
 * @typedef {NumberKind & { w: Float32Array, R: number, C: number, max?: number, hidden?: Float32Array }} Block
 */

/** @typedef {Block & { max: number }} ShownBlock a block with its largest absolute value */

/**
 * A shown block with the hidden share of every row.
 *
 * @typedef {ShownBlock & { hidden: Float32Array }} BlockWithHidden
 */

/** @typedef {{ head: number, weight: number }} RankedHead */

// ---- The view: the visible part of a reading, and its form in the URL -------------------------------

/** @type {(reading: Reading) => boolean} */
export const isLong = (reading) => Math.max(reading.n, getKeys(reading).n) > LONG_TOKENS;
// Return the default view of a reading. For a long text it shows only the strongest links.
/** @type {(reading: Reading) => Record<string, string>} */
export const getDefaultView = (reading) => getDefaults("explorer", [reading], isLong(reading));

// Parse URLSearchParams into a view. Unknown or out-of-range values become the default; never throws.
/** @type {(params: URLSearchParams, reading: Reading) => ReadingView} */
export function parseView(params, reading) {
  const start = reading.start || {};
  const view = /** @type {ReadingView} */ (parseSettings(params, getDefaultView(reading), "explorer"));
  /** @type {(name: string) => string | null} */
  const getParameter = (name) => getLastParameter(params, name);
  view.head = parseHead(getParameter("head"), reading) ?? parseHead(start.head, reading) ?? 0;
  const layer = Math.floor(view.head / reading.heads) * reading.heads;
  const others = (getParameter("on") || "")
    .split(".")
    .filter((s) => /^\d{1,3}$/.test(s))
    .map(Number);
  const openHeads = new Set([view.head, ...others.filter((h) => h < reading.heads).map((h) => layer + h)]);
  view.on = [...openHeads].slice(0, reading.together);
  const startPin = getParameter("head") === null ? start.pin : null;
  view.pin = parsePin(getParameter("pin") ?? startPin, reading);
  view.link = parseLink(getParameter("link"), reading);
  return view;
}

// Parse a pin: "q10" is a query, "k1" a key, "q10k1" one link.
/** @type {(value: string | null | undefined, reading: Reading) => Pin | null} */
export function parsePin(value, reading) {
  const match = /^(?:q(\d{1,4}))?(?:k(\d{1,4}))?$/.exec(value || "");
  if (!match || !value) return null;
  const [query, key] = [match[1], match[2]].map((t) => (t === undefined ? null : +t));
  return (query ?? 0) < reading.n && (key ?? 0) < getKeys(reading).n ? { query, key } : null;
}

/** @type {(pin: Pin | null) => string | null} */
export const formatPin = (pin) =>
  pin ? (pin.query === null ? "" : `q${pin.query}`) + (pin.key === null ? "" : `k${pin.key}`) : null;

// Return the URL parameters of a view that differ from the defaults; null removes a parameter.
/** @type {(view: ReadingView, reading: Reading) => Record<string, string | null>} */
export function encodeView(view, reading) {
  const start = reading.start || {};
  const fields = encodeSettings(view, getDefaultView(reading));
  const head = formatHead(reading, view.head);
  const pin = formatPin(view.pin);
  const isAtStart = head === (start.head || formatHead(reading, 0)) && pin === (start.pin || null);
  fields.head = isAtStart ? null : head;
  fields.pin = isAtStart ? null : pin;
  const others = view.on.filter((h) => h !== view.head).map((h) => h % reading.heads);
  fields.on = others.length ? others.join(".") : null;
  fields.link = view.link ? `${view.link.query}-${view.link.key}` : null;
  return fields;
}

/** @type {(name: string | null | undefined, reading: Reading) => number | null} */
export function parseHead(name, reading) {
  const match = /^L(\d{1,3})H(\d{1,3})$/i.exec(name || "");
  if (!match) return null;
  const row = reading.layer_numbers ? reading.layer_numbers.indexOf(+match[1]) : +match[1];
  if (row < 0 || row >= reading.layers || +match[2] >= reading.heads) return null;
  return row * reading.heads + +match[2];
}

/** @type {(value: string | null, reading: Reading) => Link | null} */
function parseLink(value, reading) {
  const match = /^(\d{1,4})-(\d{1,4})$/.exec(value || "");
  if (!match || +match[1] >= reading.n || +match[2] >= getKeys(reading).n) return null;
  return { query: +match[1], key: +match[2] };
}

// ---- Units and blocks: the part of one head's matrix that a view shows -------------------------------

// Return the rows and columns of a view. A unit is {text, tokens, special, segment}; words join their tokens.
/** @type {(reading: Reading, view: Settings) => Axes} */
export const computeUnits = (reading, view) => ({
  rows: computeAxisUnits(reading, view, getSides(view)[0]),
  cols: computeAxisUnits(getKeys(reading), view, getSides(view)[1]),
});

// Return the sentences of a pair shown by rows and columns: "a" or "b", "" for both.
/** @type {(view: Settings) => string[]} */
const getSides = ({ side = "all" }) => (side === "all" ? ["", ""] : [...side]);

// Return the units of one axis.
/** @type {(axis: Axis, view: Settings, side: string) => Unit[]} */
function computeAxisUnits(axis, view, side) {
  const words = view.unit === "words";
  const groups = words ? axis.groups : axis.tokens.map((_, i) => [i]);
  const allUnits = groups.map((tokens, i) => ({
    text: (words ? axis.words : axis.tokens)[i],
    tokens,
    special: !!axis.special[tokens[0]],
    segment: axis.segments[tokens[0]],
    ...(isWritten(axis, tokens) ? { written: true } : {}),
  }));
  const visibleUnits = view.special === "keep" ? allUnits : allUnits.filter((u) => !u.special);
  if (!side || !hasSecondText(axis)) return visibleUnits;
  return visibleUnits.filter((u) => u.segment === (side === "a" ? 0 : 1));
}

/** @type {(axis: Axis, tokens: number[]) => boolean} */
const isWritten = ({ written = Infinity, special }, tokens) =>
  !special[tokens[0]] && tokens[tokens.length - 1] >= written;
/** @type {(axis: Axis) => boolean} */
const hasSecondText = (axis) => axis.segments.some((s) => s === 1);
/** @type {(reading: Reading) => boolean} */
export const isPair = (reading) => hasSecondText(reading) || hasSecondText(getKeys(reading));

// Return the block of one head, with hidden[row], the share of the row that is not shown.
/** @type {(reading: Reading, head: number, view: Settings, axes?: Axes) => BlockWithHidden} */
export function computeBlock(reading, head, view, axes = computeUnits(reading, view)) {
  const block = computeShownBlock(reading, head, view, axes);
  const { quantity, signed } = reading;
  return Object.assign(block, { quantity, signed, hidden: computeHiddenShares(reading, head, axes) });
}

// Return the weights of a head, which must have been sent.
/** @type {(reading: Reading, head: number) => Float32Array} */
const getMatrix = (reading, head) => /** @type {Float32Array} */ (reading.matrices.get(head));

// Return a block without hidden shares. The weight to a word is the sum over its tokens, the weight from a word the
// mean (Clark et al. 2019, 4.1). If everything is shown unchanged, w is the matrix itself.
/** @type {(reading: Reading, head: number, view: Settings, axes: Axes) => ShownBlock} */
export function computeShownBlock(reading, head, view, { rows, cols }) {
  const raw = getMatrix(reading, head);
  const [R, C] = [rows.length, cols.length];
  const { signed } = reading;
  const isRescaled = view.special === "rescale" && !signed;
  if (R === reading.n && C === getKeys(reading).n && !isRescaled) return makeShownBlock(raw, R, C, signed);
  const w = new Float32Array(R * C);
  const columns = getColumns(cols);
  visitRows(raw, getKeys(reading).n, rows, (row, begin, pieces, r) => {
    const first = begin + columns.tokens[0];
    if (columns.isConsecutive && row === raw && !isRescaled) return w.set(raw.subarray(first, first + C), r * C);
    const share = 1 / pieces.length;
    const visibleSum = share * gatherRow(row, begin, columns, share, w, r * C);
    const outputRow = w.subarray(r * C, r * C + C);
    if (isRescaled && visibleSum > 1e-12) for (let c = 0; c < C; c++) outputRow[c] /= visibleSum;
    else if (isRescaled) outputRow.fill(1 / C);
  });
  return makeShownBlock(w, R, C, signed);
}

// Make a block whose largest number is computed on first use.
/** @type {(w: Float32Array, R: number, C: number, signed?: boolean) => ShownBlock} */
const makeShownBlock = (w, R, C, signed) => ({
  w,
  R,
  C,
  signed,
  get max() {
    return findLargestSize(w);
  },
});

// Return for each row the share that no column shows. If a reading was rescaled, add the share hidden before that.
/** @type {(reading: Reading, head: number, axes: Axes) => Float32Array} */
function computeHiddenShares(reading, head, { rows, cols }) {
  const hidden = new Float32Array(rows.length);
  const previouslyHidden = reading.hidden?.[reading.full.indexOf(head)];
  const { signed = false } = reading;
  const columns = getColumns(cols);
  const { n: m } = getKeys(reading);
  if (cols.length === m && !previouslyHidden) return hidden;
  visitRows(getMatrix(reading, head), m, rows, (row, begin, pieces, r) => {
    let total = 0;
    for (let i = begin; i < begin + m; i++) total += signed ? Math.abs(row[i]) : row[i];
    hidden[r] = total ? 1 - sumVisible(row, begin, columns, signed) / total : 0;
    if (previouslyHidden) {
      const hiddenBefore = computeMean(pieces.map((q) => previouslyHidden[q]));
      hidden[r] = hiddenBefore + (1 - hiddenBefore) * hidden[r];
    }
  });
  return hidden;
}

/** @type {(values: number[]) => number} */
export const computeMean = (values) => values.reduce((a, b) => a + b, 0) / (values.length || 1);

// Return the rows and columns of a view for the grid if only pooled thumbnails were sent.
/** @type {(reading: Reading, view: Settings) => { rows: number[], cols: number[] }} */
export function listPooledUnits(reading, view) {
  const bins = getBins(reading);
  /** @type {(axis: Axis, bins: Bins, side: string) => number[]} */
  const listVisible = (axis, { starts, special }, side) => {
    const visibleUnits = starts.map((_, i) => i).filter((i) => view.special === "keep" || !special[i]);
    if (!side || !hasSecondText(axis)) return visibleUnits;
    return visibleUnits.filter((i) => axis.segments[starts[i]] === (side === "a" ? 0 : 1));
  };
  return {
    rows: listVisible(reading, bins.rows, getSides(view)[0]),
    cols: listVisible(getKeys(reading), bins.cols, getSides(view)[1]),
  };
}

// Return the pooled rows and columns of a reading that has them.
/** @type {(reading: Reading) => { rows: Bins, cols: Bins }} */
function getBins(reading) {
  const bins = /** @type {NonNullable<Reading["bins"]>} */ (reading.bins);
  return { rows: bins, cols: bins.keys ?? bins };
}

// Return the pooled block of one head.
/** @type {(reading: Reading, head: number, bins: { rows: number[], cols: number[] }) => ShownBlock} */
export function poolBlock(reading, head, { rows, cols }) {
  const bins = getBins(reading);
  const thumbs = /** @type {Uint8Array} */ (reading.thumbs);
  const [rowCount, columnCount] = [bins.rows, bins.cols].map(({ starts }) => starts.length);
  const [R, C] = [rows.length, cols.length];
  const w = new Float32Array(R * C);
  let max = 0;
  for (let r = 0; r < R; r++) {
    const offset = (head * rowCount + rows[r]) * columnCount;
    for (let c = 0; c < C; c++) {
      const root = thumbs[offset + cols[c]] / 255;
      w[r * C + c] = root * root;
      if (root * root > max) max = root * root;
    }
  }
  return { w, R, C, max };
}

// ---- Rules for links and shades -----------------------------------------------------------------------

// Parse the links setting into {mode, value}.
/** @type {(links: string) => { mode: string, value: number }} */
export function parseLinkRule(links) {
  const [, mode = "all", value = ""] = /^(all|top|min|mass)(.*)$/.exec(links) ?? [];
  return { mode, value: +value };
}

// Mark with 1 each cell whose link is drawn. top: the k largest keys of a query; min: weight >= value; mass: the fewest
// keys of a query that hold this share of the visible row.
/** @type {(block: Block, links: string) => Uint8Array} */
export function chooseLinks({ w: values, R, C, signed }, links) {
  const w = signed ? values.map(Math.abs) : values;
  const { mode, value } = parseLinkRule(links);
  const mask = new Uint8Array(R * C);
  if (mode === "all") return mask.fill(1);
  for (let r = 0; r < R; r++) {
    const row = w.subarray(r * C, r * C + C);
    if (mode === "min") {
      for (let c = 0; c < C; c++) mask[r * C + c] = row[c] >= value ? 1 : 0;
      continue;
    }
    if (mode === "top") {
      for (const c of findLargest(row, value)) mask[r * C + c] = 1;
      continue;
    }
    const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a] || a - b);
    const goal = value * row.reduce((a, b) => a + b, 0);
    let mass = 0;
    for (let i = 0; i < C; i++) {
      if (mass >= goal && i > 0) break;
      mask[r * C + order[i]] = 1;
      mass += row[order[i]];
    }
  }
  return mask;
}

const LOG_DECADES = 3; // logarithmic shades run from 0.001 to 1

/**
 * Shading of numbers: each is multiplied by the factor of its row, `shade` maps it to 0…255, and larger values are
 * clipped.
 *
 * @typedef {{ factors: Float64Array, shade: (size: number) => number }} Shading
 */

/** @type {(size: number) => number} */
const scaleLinearly = (size) => size;
/** @type {(size: number) => number} */
const scaleLogarithmically = (size) => (size > 0 ? 255 * (1 + Math.log10(size) / LOG_DECADES) : 0);

// Return the shading of a block. fixed: 0–1; head: up to the largest weight shown; row: up to the largest of
// each row.
/** @type {(block: ShownBlock, scale: string) => Shading} */
export function computeShading(block, scale) {
  const { w, R, C } = block;
  const factors = new Float64Array(R);
  if (scale === "log") return { factors: factors.fill(1), shade: scaleLogarithmically };
  if (scale !== "row")
    return { factors: factors.fill(255 / ((scale === "head" && block.max) || 1)), shade: scaleLinearly };
  for (let r = 0; r < R; r++) factors[r] = 255 / (findLargestSize(w.subarray(r * C, r * C + C)) || 1);
  return { factors, shade: scaleLinearly };
}

// Return the shade of every cell, 0…255.
/** @type {(block: ShownBlock, scale: string) => Uint8ClampedArray} */
export function computeShades(block, scale) {
  const { w, R, C } = block;
  const { factors, shade } = computeShading(block, scale);
  const out = new Uint8ClampedArray(R * C); // rounds and clips values
  for (let r = 0, i = 0; r < R; r++) for (const end = i + C; i < end; i++) out[i] = shade(Math.abs(w[i]) * factors[r]);
  return out;
}

// Rank all heads by their weight between two units, largest first; return null if the browser lacks the matrices.
/** @type {(reading: Reading, view: ReadingView & { link: Link }) => RankedHead[] | null} */
export function rankHeads(reading, view) {
  const { query, key } = view.link;
  const words = view.unit === "words";
  const sentLink = reading.link;
  if (sentLink && sentLink.query === query && sentLink.key === key && sentLink.words === words)
    return rankWeights(sentLink.weights);
  if (reading.matrices.size < reading.layers * reading.heads) return null;
  const columns = getKeys(reading);
  /** @type {(axis: Axis, token: number) => number[]} */
  const findTokens = (axis, token) => (words && axis.groups.find((g) => g.includes(token))) || [token];
  const [queries, keys] = [findTokens(reading, query), findTokens(columns, key)];
  const weights = [];
  for (let head = 0; head < reading.layers * reading.heads; head++) {
    const raw = getMatrix(reading, head);
    let sum = 0;
    for (const q of queries) for (const k of keys) sum += raw[q * columns.n + k];
    weights.push(sum / queries.length);
  }
  return rankWeights(weights);
}

/** @type {(weights: number[]) => RankedHead[]} */
const rankWeights = (weights) => weights.map((weight, head) => ({ head, weight })).sort((a, b) => b.weight - a.weight);
