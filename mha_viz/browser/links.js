// Token links: queries on the left, keys on the right, one line per weight, whose opacity is the shade of the weight.
import { fit, widest, write } from "./ink.js";
import { linksLayout, spanWeight, within } from "./layouts.js";
import { number } from "./numerals.js";
import { isShare } from "./view.js";
/** @import { Axes, Unit, WholeBlock } from "./geometry.js" */
/** @import { Cells, LinksLayout, Span } from "./layouts.js" */
/** @import { Look } from "./stage.js" */

/**
 * @typedef {object} ShownHead
 * @property {number} head
 * @property {WholeBlock} part
 * @property {Uint8ClampedArray} shade
 * @property {Uint8Array | null} mask
 * @property {string} colour
 * @property {number[]} dash
 * @property {string} [below]
 * @property {number} [largest]
 * @property {OffscreenCanvas} [picture]
 */

/** @typedef {Axes & { heads: ShownHead[], focus: Span | null, quiet?: boolean }} LinkScene */

/** @typedef {{ head: ShownHead, weight: number, from: number, to: number }} Link from one height to another, pixels */

const TEXT = 16; // pixels of the largest letters, which hints may make much wider than those of 15
const BESIDE = 4; // pixels between the lines of two heads that link the same tokens
const SEEN = 16; // pixels of a line between its number and the word that it reaches
// Links above a weight, the strongest of a text; those above another one in any case where no other number stands.
const NUMBERED = { least: 0.1, sure: 0.25, most: 100, tokens: 128 };
const WRITTEN = 3; // the most heads whose weights are written beside a word
const CURVE = 16; // steps along a curve: a number may be on each, from the query on
const LEVELS = 24; // the number of line strengths; all lines of one strength are one stroke

/** @type {(rows: Unit[], cols: Unit[], look: Look) => number} */
export const linksLabel = (rows, cols, look) =>
  Math.max(widest(rows, cols, look.textFont(15)) + 8, widest(rows, cols, look.textFont(TEXT)) + 1);

// scene: {rows, cols, heads: [{head, colour, dash, part, mask, shade}], focus: {row, col, rows?, cols?}|null, quiet: no
// numbers, which would give an answer away}. Drawings of equal size share `look.label` and `look.most`, the room for
// labels and the number of tokens.
/** @type {(canvas: HTMLCanvasElement, scene: LinkScene, look: Look, scroll: number) => LinksLayout} */
export function drawLinks(canvas, scene, look, scroll) {
  const label = look.label ?? linksLabel(scene.rows, scene.cols, look);
  const most = look.most ?? 0;
  const layout = linksLayout(
    look.width,
    Math.max(most, scene.rows.length),
    Math.max(most, scene.cols.length),
    look.height,
    label,
    look.tallest,
  );
  const visible = Math.min(layout.height, look.height);
  const context = fit(canvas, look.width, visible);
  context.translate(0, -scroll);
  const band = [scroll - layout.rowHeight, scroll + visible + layout.rowHeight];
  const [shifts, ends] = [shiftsOf(scene.heads.length, layout), endsOf(scene, layout)];
  scene.heads.forEach((head, place) => strokes(context, scene, head, layout, band, shifts[place], ends));
  tokens(context, scene, layout, look, band);
  if (!scene.focus && !scene.quiet) numbers(context, placedNumbers(scene, layout, shifts), layout, look, band);
  return layout;
}

// How far up or down the lines of each head are moved, so that equal links of two heads are drawn side by side.
/** @type {(heads: number, layout: LinksLayout) => number[]} */
function shiftsOf(heads, layout) {
  const step = Math.min(BESIDE, layout.rowHeight / 2 / heads);
  return Array.from({ length: heads }, (_, place) => (place - (heads - 1) / 2) * step);
}

// From where to where lines are curved: beside the words where numbers stand they are straight, so that each number is
// on its line and on no other one.
/** @type {(scene: LinkScene, layout: LinksLayout) => [number, number]} */
function endsOf({ focus, heads }, layout) {
  const { left, right } = layout;
  const beside = SEEN + Math.min(WRITTEN, heads.length) * (heads.length ? weightWidth(heads[0], layout) : 0);
  if (!focus || beside > (right - left) / 2 || (focus.row === null) === (focus.col === null)) return [left, right];
  return focus.row === null ? [left + beside, right] : [left, right - beside];
}

/**
 * @type {(context: CanvasRenderingContext2D, scene: LinkScene, head: ShownHead, layout: LinksLayout, band:
 *   number[], shift: number, ends: [number, number]) => void}
 */
function strokes(context, { focus }, { part, mask, shade, colour, dash, below: negative }, layout, band, shift, ends) {
  const [begin, end] = ends;
  const [above, below] = band;
  /** @type {(Path2D | null)[]} */
  const paths = new Array(2 * LEVELS + 1).fill(null);
  const { C } = part;
  /** @type {(i: number) => number} */
  const mid = (i) => (i + 0.5) * layout.rowHeight + shift;
  const bend = (end - begin) * 0.42;
  for (let i = mask?.indexOf(1) ?? -1; i >= 0; i = mask?.indexOf(1, i + 1) ?? -1) {
    const [r, c] = [Math.floor(i / C), i % C];
    if (focus && focus.row !== null && !within(r, focus.row, focus.rows)) continue;
    if (focus && focus.col !== null && !within(c, focus.col, focus.cols)) continue;
    const level = Math.round((shade[i] / 255) * LEVELS);
    if (!level) continue;
    const [y1, y2] = [mid(r), mid(c)];
    if (Math.max(y1, y2) < above || Math.min(y1, y2) > below) continue;
    const path = (paths[level + (negative && part.w[i] < 0 ? LEVELS : 0)] ??= new Path2D());
    straight(path, layout.left, y1, begin);
    path.moveTo(begin, y1);
    path.bezierCurveTo(begin + bend, y1, end - bend, y2, end, y2);
    straight(path, end, y2, layout.right);
  }
  context.setLineDash(dash);
  paths.forEach((path, place) => {
    if (!path) return;
    const level = place > LEVELS ? place - LEVELS : place;
    context.strokeStyle = place > LEVELS ? (negative ?? colour) : colour;
    context.globalAlpha = level / LEVELS;
    context.lineWidth = 1 + (2.5 * level) / LEVELS;
    context.stroke(path);
  });
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** @type {(path: Path2D, x: number, y: number, end: number) => void} */
function straight(path, x, y, end) {
  if (x === end) return;
  path.moveTo(x, y);
  path.bezierCurveTo(x, y, end, y, end, y);
}

/**
 * @type {(context: CanvasRenderingContext2D, scene: LinkScene, layout: LinksLayout, look: Look, band: number[]) =>
 *   void}
 */
function tokens(context, scene, layout, look, [above, below]) {
  const size = Math.max(10, Math.min(TEXT, layout.rowHeight - 6));
  const { focus } = scene;
  /** @type {(list: Unit[], isQuery: boolean) => void} */
  const side = (list, isQuery) =>
    list.forEach((unit, i) => {
      const y = (i + 0.5) * layout.rowHeight;
      if (y < above || y > below) return;
      const focused = focus && (isQuery ? focus.row : focus.col);
      const other = focus && (isQuery ? focus.col : focus.row);
      const held = focus && within(i, focused, isQuery ? focus.rows : focus.cols);
      const reached = focus && focused === null && other !== null; // the weights are written on this side
      const linked = reached && scene.heads.some((h) => weightAt(h, isQuery, i, focus).shown);
      const strong = !focus || held || linked || (focused === null && other === null);
      context.fillStyle = held ? look.accent : unit.special || !strong ? look.muted : look.ink;
      context.font = look.textFont(size, held ? 600 : 400);
      const x = isQuery ? layout.left - 8 : layout.right + 8;
      write(context, unit.text, x, y, layout.column, isQuery ? "right" : "left", layout.rowHeight);
      if (linked) weights(context, { ...scene, focus }, isQuery, i, y, layout, look);
    });
  side(scene.rows, true);
  side(scene.cols, false);
}

/** @type {(head: ShownHead, isQuery: boolean, i: number, focus: Span) => { weight: number, shown: boolean }} */
function weightAt({ part, mask, shade }, isQuery, i, focus) {
  const ofQuery = { row: i, col: focus.col ?? 0, cols: focus.cols };
  /** @type {Cells} */
  const link = isQuery ? ofQuery : { row: focus.row ?? 0, rows: focus.rows, col: i };
  const { row, rows = 1, col, cols = 1 } = link;
  let shown = false;
  for (let r = row; r < row + rows; r++)
    for (let at = r * part.C + col; at < r * part.C + col + cols; at++) shown ||= !!mask?.[at] && shade[at] > 2;
  return { weight: spanWeight(part, link), shown };
}

// The links whose weights are written where nothing is held, strongest first: none of a long text.
/** @type {(scene: LinkScene, layout: LinksLayout, shifts: number[]) => Link[]} */
function numberedLinks({ rows, cols, heads }, { rowHeight }, shifts) {
  if (Math.max(rows.length, cols.length) > NUMBERED.tokens) return [];
  /** @type {(i: number, place: number) => number} */
  const mid = (i, place) => (i + 0.5) * rowHeight + shifts[place];
  /** @type {(head: ShownHead, place: number) => Link[]} */
  const above = (head, place) => {
    const { part, mask, shade } = head;
    const { w, C } = part;
    if (!isShare(part)) return [];
    const some = Array.from(w.keys()).filter((i) => w[i] > Math.fround(NUMBERED.least) && mask?.[i] && shade[i] > 5);
    return some.map((i) => ({ head, weight: w[i], from: mid(Math.floor(i / C), place), to: mid(i % C, place) }));
  };
  return heads.flatMap(above).sort((a, b) => b.weight - a.weight);
}

/** @typedef {{ x: number, y: number, text: string }} LinkNumber */

/** @type {WeakMap<ShownHead, { heads: ShownHead[], key: string, numbers: LinkNumber[] }>} */
const placed = new WeakMap(); // of the drawings that begin with a head, the last

// The numbers and their places: computed once for the same heads in the same layout, and not again when the drawing is
// scrolled or let go, because it takes ten times as long as all lines of a long text.
/** @type {(scene: LinkScene, layout: LinksLayout, shifts: number[]) => LinkNumber[]} */
function placedNumbers(scene, layout, shifts) {
  const { heads } = scene;
  const [last, key] = [heads.length ? placed.get(heads[0]) : undefined, JSON.stringify(layout)];
  const isSame = last?.key === key && last.heads.length === heads.length;
  if (last && isSame && heads.every((head, i) => head === last.heads[i])) return last.numbers;
  const now = placeNumbers(numberedLinks(scene, layout, shifts), layout);
  if (heads.length) placed.set(heads[0], { heads: [...heads], key, numbers: now });
  return now;
}

// How many lines of more than half its weight a number would cover at a place; `enough`: counted no further. The links
// are in the order of their weights.
/** @type {(links: Link[], link: Link, place: Place, half: number, enough: number) => number} */
function covered(links, link, { before, at, after }, half, enough) {
  const y = downTo(link, at);
  let count = 0;
  for (const other of links) {
    if (other.weight <= link.weight / 2 || count >= enough) break;
    if (other === link) continue;
    const [begins, ends] = [downTo(other, before), downTo(other, after)];
    if (Math.min(begins, ends) < y + half && Math.max(begins, ends) > y - half) count++;
  }
  return count;
}

// Each number breaks its line at the first place from the query on where it covers no number and the fewest other lines
// of more than half its weight. Where it would cover one, it is left out, unless its link is strong or the strongest.
/** @type {(links: Link[], layout: LinksLayout) => LinkNumber[]} */
function placeNumbers(links, layout) {
  const wide = numberWidth(layout);
  const half = numberSize(layout) * 0.7;
  const places = placesOf(layout, wide);
  /** @type {LinkNumber[]} */
  const taken = [];
  for (const link of links.slice(0, NUMBERED.most)) {
    /** @type {(place: Place) => boolean} */
    const isFree = ({ x, at }) =>
      taken.every((one) => Math.abs(one.x - x) >= wide || Math.abs(one.y - downTo(link, at)) >= 2 * half);
    let [best, fewest] = [/** @type {Place | null} */ (null), Infinity];
    for (const place of places) {
      if (!fewest) break;
      const count = isFree(place) ? covered(links, link, place, half, fewest) : fewest;
      if (count < fewest) [best, fewest] = [place, count];
    }
    const isSure = link === links[0] || link.weight >= NUMBERED.sure;
    if (best && (isSure || !fewest))
      taken.push({ x: best.x, y: downTo(link, best.at), text: number(link.weight, link.head.part) });
  }
  return taken;
}

/**
 * @type {(context: CanvasRenderingContext2D, list: LinkNumber[], layout: LinksLayout, look: Look, band: number[]) =>
 *   void}
 */
function numbers(context, list, layout, look, [above, below]) {
  for (const { x, y, text } of list) {
    if (y > above && y < below) chip(context, text, x, y, numberWidth(layout), numberSize(layout), look);
  }
}

/** @type {(link: Link, share: number) => number} */
const downTo = ({ from, to }, share) => from + (to - from) * share;

/**
 * @typedef {{ x: number, before: number, at: number, after: number }} Place how far down its curve a number begins, is
 *   and ends, as shares
 */

// Where the middle of a number may be: whole steps along a curve, which all curves have at the same x, because the bend
// of all is 0.42.
/** @type {(layout: LinksLayout, wide: number) => Place[]} */
function placesOf({ left, right }, wide) {
  const steps = Array.from({ length: CURVE + 1 }, (_, i) => i / CURVE);
  const xs = steps.map((t) => left + (right - left) * t * (1.26 - t * (0.78 - 0.52 * t)));
  /** @type {(t: number) => number} */
  const down = (t) => t * t * (3 - 2 * t);
  const reach = wide / 2;
  return xs.flatMap((x, i) => {
    if (x - reach < left + SEEN / 2 || x + reach > right - SEEN) return [];
    const before = xs.findLastIndex((other) => other <= x - reach);
    const after = xs.findIndex((other) => other >= x + reach);
    return [{ x, before: down(steps[before]), at: down(steps[i]), after: down(steps[after]) }];
  });
}

/** @type {(layout: LinksLayout) => number} */
const numberWidth = (layout) => numberSize(layout) * 3.2;
/** @type {(layout: LinksLayout) => number} */
const numberSize = ({ rowHeight }) => Math.max(9, Math.min(12, rowHeight - 6));

/** @type {(head: ShownHead, layout: LinksLayout) => number} */
const weightWidth = ({ part }, layout) => numberSize(layout) * (isShare(part) ? 3.2 : 7.2);

// A number on a chip, opaque, so that no line shows through.
/**
 * @type {(context: CanvasRenderingContext2D, text: string, x: number, y: number, wide: number, size: number, look:
 *   Look) => void}
 */
function chip(context, text, x, y, wide, size, look) {
  context.fillStyle = look.paper;
  context.fillRect(x - wide / 2, y - size * 0.7, wide, size * 1.4);
  context.font = look.numberFont(size);
  context.fillStyle = look.ink;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, x, y + 0.5);
}

// Exact weights beside the linked tokens, on a chip near the end of the lines: one number per head, three at most, over
// the colours of their heads if there are several.
/**
 * @type {(context: CanvasRenderingContext2D, scene: LinkScene & { focus: Span }, isQuery: boolean, i: number, y:
 *   number, layout: LinksLayout, look: Look) => void}
 */
function weights(context, scene, isQuery, i, y, layout, look) {
  const size = numberSize(layout);
  const wide = weightWidth(scene.heads[0], layout);
  scene.heads.slice(0, WRITTEN).forEach((head, slot) => {
    const { weight, shown } = weightAt(head, isQuery, i, scene.focus);
    if (!shown) return;
    const x = isQuery ? layout.left + SEEN + (slot + 0.5) * wide : layout.right - SEEN - (slot + 0.5) * wide;
    chip(context, number(weight, head.part), x, y, wide + 4, size, look);
    if (scene.heads.length === 1) return;
    context.fillStyle = head.colour;
    context.fillRect(x - wide * 0.45, y + size * 0.6, wide * 0.9, 2);
  });
}
