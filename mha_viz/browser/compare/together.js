// Several heads at once: correspondence, common scale, differences, and the address. Numbers only, no page. Tested with
// `node --test`.
import { block, isLong, pinName, shades, units } from "../geometry.js";
import { keysOf } from "../reading.js";
import { LONG, defaultsFor, defaultsOf, patternsOf } from "../view.js";
import { nameOf, readingOf, sideOf } from "./set.js";
/** @import { Axes, Block, Pin, Unit } from "../geometry.js" */
/** @import { Reading, TypedAxis } from "../reading.js" */
/** @import { Kind, Setting, Settings } from "../view.js" */
/** @import { Opening, Panels, Sides } from "./set.js" */
/** @import { Edit } from "./comparison.js" */

/** @typedef {Settings & { pin: Pin | null, diff: [number, number] | null }} PanelsView */

/**
 * Matrices subtracted: d[row * C + col] is `second` minus `first`, at most `top` in size.
 *
 * @typedef {object} Subtraction
 * @property {number[]} partner
 * @property {Float32Array} d
 * @property {number} R
 * @property {number} C
 * @property {number} top
 * @property {Float32Array} first
 * @property {Float32Array} second
 */

/**
 * One panel minus another, with the units and what the numbers are.
 *
 * @typedef {Axes & Subtraction & { kind: Kind }} Difference
 */

/**
 * Why two panels cannot be subtracted: the units that have no counterpart, and a remedy.
 *
 * @typedef {{ partner?: undefined, ours: Unit[], theirs: Unit[], remedy: Partial<Settings> | null, isMixed?: boolean }}
 *   Refusal
 */

/**
 * For each unit its one partner, or the units that have none.
 *
 * @typedef {{ partner: number[]; ours?: undefined; theirs?: undefined } | { partner?: undefined; ours: Unit[]; theirs:
 *   Unit[] }} Partners
 */

// ---- The view in the URL ------------------------------------------------------------------------------------

export const START = defaultsOf(["as", "unit", "special", "links", "scale"]);
const PATTERNS = patternsOf(Object.keys(START));

// If any of the texts is long, the panels begin with its strongest links, on one scale.
const { special, links } = LONG.defaults;
/** @type {(set: Opening) => Record<string, string>} */
export const startOf = (set) => ({
  ...(set.readings.some(isLong) ? { ...START, special, links, scale: "head" } : defaultsFor(START, set.readings)),
  ...(set.start?.special && { special: set.start.special }),
});

/** @type {(value: string) => boolean} */
const isShared = (value) => value !== "row"; // a separate scale for each row is not a common scale

// URLSearchParams -> view. Anything unknown or out of range becomes the default; never throws.
/** @type {(params: URLSearchParams, set: Panels) => PanelsView} */
export function parseTogether(params, set) {
  /** @type {(name: string) => string} */
  const last = (name) => params.getAll(name).at(-1) ?? ""; // the last value of a repeated parameter, as on the server
  const view = /** @type {PanelsView} */ ({ pin: null, diff: null });
  for (const [name, first] of Object.entries(startOf(set))) {
    view[/** @type {Setting} */ (name)] = PATTERNS[name].test(last(name)) && isShared(last(name)) ? last(name) : first;
  }
  const count = set.panels.length;
  const [, first, second] = /^(\d{1,2})-(\d{1,2})$/.exec(last("diff") || set.start?.diff || "") || [];
  if (first !== undefined && +first !== +second && +first < count && +second < count) view.diff = [+first, +second];
  const at = /^\d{1,2}$/.test(last("at")) ? +last("at") : 0;
  const [whole, query, key] = /^(?:q(\d{1,4}))?(?:k(\d{1,4}))?$/.exec(last("pin")) || [];
  if (whole && at < count) {
    const pin = { at, query: query === undefined ? null : +query, key: key === undefined ? null : +key };
    const reading = readingOf(set, at);
    if ((pin.query ?? 0) < reading.n && (pin.key ?? 0) < keysOf(reading).n) view.pin = pin;
  }
  return view;
}

// view -> the URL parameters that differ from the defaults (null: remove it from the URL). Panels that open with a
// difference state when it is closed.
/** @type {(view: PanelsView, set: Opening) => Record<string, string | null>} */
export function encodeTogether(view, set) {
  const fields = /** @type {Record<string, string | null>} */ ({});
  const first = startOf(set);
  for (const name of /** @type {Setting[]} */ (Object.keys(first)))
    fields[name] = view[name] === first[name] ? null : (view[name] ?? null);
  fields.diff = view.diff ? view.diff.join("-") : set.start?.diff ? "none" : null;
  fields.pin = pinName(view.pin);
  fields.at = view.pin && view.pin.at ? String(view.pin.at) : null;
  return fields;
}

// ---- Changes of the compared heads --------------------------------------------------------------------------

// The place of panel number `panel` after a change; null if it was removed.
/** @type {(edit: Edit, panel: number) => number | null} */
export function placeAfter({ action, index, to = index }, panel) {
  if (action === "remove") return panel === index ? null : panel - (panel > index ? 1 : 0);
  if (action === "duplicate") return panel + (panel > index ? 1 : 0);
  if (action !== "move") return panel;
  if (panel === index) return to;
  return panel + (panel > index ? -1 : 0) + (panel - (panel > index ? 1 : 0) >= to ? 1 : 0);
}

// The view after a change of the compared heads: panel numbers in it follow the panels.
/** @type {(edit: Edit, view: PanelsView) => PanelsView} */
export function viewAfter(edit, view) {
  const [first, second] = (view.diff ?? []).map((panel) => placeAfter(edit, panel));
  const at = view.pin && placeAfter(edit, view.pin.at ?? 0);
  return {
    ...view,
    diff: typeof first === "number" && typeof second === "number" ? [first, second] : null,
    pin: view.pin && at !== null ? { ...view.pin, at } : null,
  };
}

// How the panels open after a change of the compared heads, so that the server is told of the change and of the address
// at once: two whose readings correspond open with their difference.
/** @type {(edit: Edit, set: Panels) => Opening} */
export function openingAfter(edit, set) {
  if (!set.editable) return set;
  const places = set.panels.map(({ reading }, panel) => ({ reading, place: placeAfter(edit, panel) }));
  const readings = places.filter(({ place }) => place !== null).map(({ reading }) => reading);
  if (edit.action === "duplicate") readings.push(set.panels[edit.index].reading);
  const isPair = readings.length === 2 && set.compared[readings[0]][readings[1]] !== null;
  return {
    readings: readings.map((reading) => set.readings[reading]),
    start: { ...set.start, diff: isPair ? "0-1" : "" },
  };
}

// ---- What corresponds ---------------------------------------------------------------------------------------

/** @type {(axis: TypedAxis, view: Settings) => Unit[]} */
export const unitsOf = (axis, view) => units(/** @type {Reading} */ (axis), { ...view, side: "all" }).rows;
/** @type {(a: TypedAxis, b: TypedAxis) => boolean} */
export const sameText = (a, b) => a.text === b.text && a.pair === b.pair;

// For each unit of reading i the corresponding units of reading j: [first, how many], or null if there are none. They
// are the same typed characters if both read the same text; otherwise the word that `aligned` gives, and for a word cut
// into the same pieces the same piece.
/** @type {(set: Sides, i: number, j: number, ours: Unit[], theirs: Unit[]) => ([number, number] | null)[]} */
export function counterparts(set, i, j, ours, theirs) {
  if (i === j) return ours.map((_, unit) => [unit, 1]);
  const where = new Map(); // token of j -> unit of j
  theirs.forEach((unit, place) => unit.tokens.forEach((token) => where.set(token, place)));
  const [a, b] = [set.readings[i], set.readings[j]];
  const tokensFor = sameText(a, b) ? bySpan(a, b, set.aligned[i][j]) : byWord(a, b, set.aligned[i][j]);
  return ours.map((unit) => {
    const places = tokensFor(unit)
      .map((token) => where.get(token))
      .filter((place) => place !== undefined);
    return places.length ? [Math.min(...places), new Set(places).size] : null;
  });
}

/** @type {(a: TypedAxis, b: TypedAxis, aligned: (number | null)[]) => (unit: Unit) => number[]} */
function bySpan(a, b, aligned) {
  return ({ tokens, segment }) => {
    const typed = tokens.flatMap((t) => (a.spans[t] ? [a.spans[t]] : []));
    if (!typed.length) return b.groups[aligned[a.wordOf[tokens[0]]] ?? -1] || [];
    const [start, end] = [Math.min(...typed.map((s) => s[0])), Math.max(...typed.map((s) => s[1]))];
    /** @type {(span: [number, number] | null, t: number) => boolean} */
    const meets = (span, t) => !!span && b.segments[t] === segment && span[0] < end && start < span[1];
    return b.spans.flatMap((span, t) => (meets(span, t) ? [t] : []));
  };
}

/** @type {(a: TypedAxis, b: TypedAxis, aligned: (number | null)[]) => (unit: Unit) => number[]} */
function byWord(a, b, aligned) {
  return ({ tokens }) => {
    const word = a.wordOf[tokens[0]];
    const [ours, theirs] = [a.groups[word], b.groups[aligned[word] ?? -1] || []];
    const whole = tokens.length === ours.length || !cutAlike(a, b, ours, theirs);
    return whole ? theirs : [theirs[ours.indexOf(tokens[0])]];
  };
}

/** @type {(a: TypedAxis, b: TypedAxis, ours: number[], theirs: number[]) => boolean} */
const cutAlike = (a, b, ours, theirs) =>
  ours.length === theirs.length && ours.every((t, at) => alike(a.tokens[t], b.tokens[theirs[at]]));
/** @type {(a: string, b: string) => boolean} */
const alike = (a, b) => a === b || a.toLowerCase() === b.toLowerCase();

// Two panels by everything in which they differ, as `told_apart` of figures/difference.py: [{name, more}]; `more` is
// empty if the names of the heads differ.
/** @type {(set: Panels, pair: [number, number]) => { name: string, more: string }[]} */
export function toldApart(set, pair) {
  const [i, j] = pair.map((panel) => set.panels[panel].reading);
  const differing = [whoseModels(set, i, j), whoseWords(set, i, j), history(set, i, j)];
  const phrases = differing.filter(([one, other]) => one !== other);
  return pair.map((panel, at) => ({
    name: nameOf(set, panel).name,
    more: phrases.map((words) => words[at]).join(" "),
  }));
}

/** @type {(set: Panels, i: number, j: number) => [string, string]} */
function whoseModels(set, i, j) {
  const [a, b] = [set.readings[i], set.readings[j]];
  const [one, other] = [a, b].map(({ label }) => `of ${label}`);
  return one === other ? [modelAt(a), modelAt(b)] : [one, other];
}

/** @type {(reading: Reading) => string} */
const modelAt = ({ label, revision }) => `of ${label} (${revision || "no revision"})`;

/** @type {(set: Panels, i: number, j: number) => [string, string]} */
function history(set, i, j) {
  const [one, other] = [i, j].map((reading) => set.readings[reading].steps || "as read");
  return [one, other];
}

// If the rows give the same answer, that of the columns.
/** @type {(set: Panels, i: number, j: number) => [string, string]} */
function whoseWords(set, i, j) {
  const [rows, cols] = [set, sideOf(set, "cols")].map((side) => [only(side, i, j), only(side, j, i)]);
  return /** @type {[string, string]} */ (rows[0] === rows[1] ? cols : rows);
}

/** @type {(set: Sides, i: number, j: number) => string} */
function only(set, i, j) {
  const { words, text } = set.readings[i];
  const unmatched = i === j ? [] : words.filter((_, word) => (set.aligned[i][j][word] ?? null) === null);
  return unmatched.length && unmatched.length <= 3 ? `with “${unmatched.join(" ")}”` : `of “${text}”`;
}

// Whether two sentences have most words in common, so that the differing words can be shown in both.
/** @type {(set: Sides, i: number, j: number) => boolean} */
export function areAlike(set, i, j) {
  const [ours, theirs] = [
    [i, j],
    [j, i],
  ].map(([a, b]) => set.aligned[a][b].map((word) => (word ?? null) !== null));
  return [ours, theirs].every((matches) => matches.filter((same) => !same).length <= Math.min(8, matches.length / 2));
}

// For each unit of reading i its one partner in reading j, including replaced words, so that the matrices can be
// subtracted: {partner: [unit]}, or {ours, theirs}: the units without one.
/** @type {(set: Sides, i: number, j: number, ours: Unit[], theirs: Unit[], view: Settings) => Partners} */
export function partners(set, i, j, ours, theirs, view) {
  const [a, b] = [set.readings[i], set.readings[j]];
  const place = i === j ? a.groups.map((_, word) => word) : set.place[i][j];
  const where = new Map();
  theirs.forEach((unit, at) => where.set(unit.tokens.join(), at));
  const partner = ours.map(({ tokens }) => {
    const word = a.wordOf[tokens[0]];
    const other = b.groups[place[word] ?? -1];
    if (!other) return null;
    if (view.unit === "words") return where.get(other.join()) ?? null;
    return cutTheSame(a, b, a.groups[word], other)
      ? (where.get(String(other[a.groups[word].indexOf(tokens[0])])) ?? null)
      : null;
  });
  const taken = new Set(partner);
  if (!taken.has(null) && taken.size === ours.length && ours.length === theirs.length) return { partner };
  return {
    ours: ours.filter((_, unit) => partner[unit] === null || partner.indexOf(partner[unit]) !== unit),
    theirs: theirs.filter((_, unit) => !taken.has(unit)),
  };
}

// Whether the pieces of two words can be subtracted: equally many, and with the same characters if the words are the
// same.
/** @type {(a: TypedAxis, b: TypedAxis, ours: number[], theirs: number[]) => boolean} */
function cutTheSame(a, b, ours, theirs) {
  if (ours.length !== theirs.length) return false;
  if (sameText(a, b)) return ours.every((t, at) => String(a.spans[t]) === String(b.spans[theirs[at]]));
  /** @type {(reading: TypedAxis, tokens: number[]) => string} */
  const word = (reading, tokens) => reading.words[reading.wordOf[tokens[0]]];
  return !alike(word(a, ours), word(b, theirs)) || cutAlike(a, b, ours, theirs) || !!a.special[ours[0]];
}

// ---- One scale ----------------------------------------------------------------------------------------------

// The largest weight of all parts: the end of the common scale "0 to the largest shown".
/** @type {(parts: (Block | null)[]) => number} */
export const topOf = (parts) => parts.reduce((top, part) => Math.max(top, part?.max ?? 0), 0);
/** @type {(part: Block, scale: string, top: number) => Uint8ClampedArray} */
export const sharedShades = (part, scale, top) => shades({ ...part, max: top }, scale);

// ---- What differs -------------------------------------------------------------------------------------------

const REMEDIES = [{ special: "hide" }, { unit: "words" }, { unit: "words", special: "hide" }];

// Second minus first of two panels: {rows, cols, partner, d, R, C, top, first, second}. Rows and columns contain both
// words if they differ: "tired / wide". If they do not correspond: {ours, theirs, remedy}, the units concerned, and the
// change of the view that would help, if any.
/** @type {(set: Panels, view: Settings, pair: [number, number]) => Difference | Refusal} */
export function difference(set, view, [p, q]) {
  const [i, j] = [set.panels[p].reading, set.panels[q].reading];
  const [a, b] = [set.readings[i], set.readings[j]];
  if (!a.keys !== !b.keys) return { ours: [], theirs: [], remedy: null, isMixed: true };
  const down = paired(set, i, j, view);
  const across = set.columns ? paired(set.columns, i, j, view) : down;
  if (!down.partner || !across.partner) {
    const remedy = REMEDIES.find((change) => corresponds(set, i, j, { ...view, ...change })) ?? null;
    const { ours = [], theirs = [] } = down.partner ? across : down;
    return { ours, theirs, remedy };
  }
  const first = block(a, set.panels[p].head, view, { rows: down.units, cols: across.units });
  const other = block(b, set.panels[q].head, view, { rows: down.others, cols: across.others });
  const kind = { quantity: a.quantity, signed: a.signed };
  const [rows, cols] = [joined(down, down.partner), joined(across, across.partner)];
  return { ...minus(first, other, down.partner, across.partner), rows, cols, kind };
}

// The units of two readings along one axis, and which of them correspond.
/** @type {(side: Sides, i: number, j: number, view: Settings) => Partners & { units: Unit[], others: Unit[] }} */
function paired(side, i, j, view) {
  const [ours, theirs] = [i, j].map((reading) => unitsOf(side.readings[reading], view));
  return { ...partners(side, i, j, ours, theirs, view), units: ours, others: theirs };
}

/** @type {(first: Block, other: Block, down: number[], across: number[]) => Subtraction} */
function minus(first, other, down, across) {
  const [R, C] = [down.length, across.length];
  const [d, second] = [new Float32Array(R * C), new Float32Array(R * C)];
  let top = 0;
  for (let r = 0, cell = 0; r < R; r++) {
    for (let c = 0; c < C; c++, cell++) {
      second[cell] = other.w[down[r] * C + across[c]];
      d[cell] = second[cell] - first.w[cell];
      if (Math.abs(d[cell]) > top) top = Math.abs(d[cell]);
    }
  }
  return { partner: down, d, R, C, top, first: first.w, second };
}

/** @type {(set: Panels, i: number, j: number, view: Settings) => boolean} */
const corresponds = (set, i, j, view) => [set, sideOf(set, "cols")].every((side) => !!paired(side, i, j, view).partner);
/** @type {(pairing: { units: Unit[], others: Unit[] }, partner: number[]) => Unit[]} */
const joined = ({ units: ours, others }, partner) => ours.map((unit, at) => named(unit, others[partner[at]]));
/** @type {(unit: Unit, other: Unit) => Unit} */
const named = (unit, other) =>
  unit.special || alike(unit.text, other.text) ? unit : { ...unit, text: `${unit.text} / ${other.text}` };

// Each difference as a level on the signed scale, 0…255; 128 is none. The same as `levels` in figures/difference.py.
/** @type {(difference: Subtraction) => Uint8ClampedArray} */
export function signedShades({ d, top }) {
  const out = new Uint8ClampedArray(d.length);
  for (let i = 0; i < d.length; i++) out[i] = 128 + (127 * d[i]) / (top || 1);
  return out;
}

// The cells that differ most, largest first.
/** @type {(difference: Subtraction, count: number) => number[]} */
export const largest = ({ d }, count) =>
  Array.from(d.keys())
    .filter((i) => d[i])
    .sort((a, b) => Math.abs(d[b]) - Math.abs(d[a]) || a - b)
    .slice(0, count);

// ---- Layout -------------------------------------------------------------------------------------------------

// The number of columns for `count` panels of at least `least` pixels, at most four, with as few gaps in the last row
// as possible.
/** @type {(width: number, count: number, least: number, gap: number) => number} */
export function columns(width, count, least, gap) {
  const fit = Math.max(1, Math.min(4, count, Math.floor((width + gap) / (least + gap))));
  return Math.max(1, Math.ceil(count / Math.ceil(count / fit)));
}
