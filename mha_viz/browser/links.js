// Draw token links: queries on the left, keys on the right, and one line per weight. Its width and darkness show the
// weight on one scale for all lines.
import { chooseLinks, computeShades } from "./geometry.js";
import { fitCanvas, measureWidest, writeText } from "./ink.js";
import { computeLinksLayout, computeSpanWeight, isWithin } from "./layouts.js";
import { formatNumber } from "./numerals.js";
import { isShare, nameUnits } from "./view.js";
/** @import { Axes, Block, ShownBlock, Unit, BlockWithHidden } from "./geometry.js" */
/** @import { Cells, LinksLayout, Span } from "./layouts.js" */
/** @import { Look } from "./stage.js" */
/** @import { Settings } from "./view.js" */

/**
 * A head as it is drawn, with its links if they are drawn.
 *
 * @typedef {object} ShownHeadFields
 * @property {number} head
 * @property {BlockWithHidden} block
 * @property {Uint8ClampedArray} shade
 * @property {string} colour
 * @property {number[]} dash
 * @property {string} [negativeColour]
 * @property {number} [largest]
 * @property {OffscreenCanvas} [picture]
 */

/** @typedef {ShownHeadFields & Partial<HeadLinks>} ShownHead */

/** @typedef {Axes & { heads: ShownHead[], focus: Span | null, quiet?: boolean, view: Settings }} LinkScene */

const MAX_FONT_SIZE = 16; // pixels; font hinting can make letters much wider than at 15
const LINE_GAP = 4; // pixels between the lines of two heads that link the same tokens
const NUMBER_GAP = 6; // pixels between a word and the number after it
const MAX_NUMBERS = 3; // heads whose weights are shown after a word
const LEVELS = 24; // the number of line strengths; all lines of one strength are drawn as one stroke

// Return the opacity of a line of strength 0 to 1. Weak lines are darker than in proportion, since a line of the
// smallest weight that is labelled would otherwise be almost invisible.
/** @type {(strength: number) => number} */
const computeOpacity = (strength) => Math.round(1000 * strength ** 0.7) / 1000;

// Draw the scale of lines as a background: from 0 to full strength; with `negativeColour`, from full strength below 0.
/** @type {(colour: string, negativeColour?: string) => string} */
export function makeLineRamp(colour, negativeColour) {
  const stops = Array.from({ length: 9 }, (_, i) => computeOpacity(i / 8));
  /** @type {(hue: string) => (stop: number) => string} */
  const makeStop = (hue) => (stop) => `color-mix(in srgb, ${hue} ${(100 * stop).toFixed(1)}%, transparent)`;
  const negativeStops = negativeColour ? stops.slice(1).reverse().map(makeStop(negativeColour)) : [];
  return `linear-gradient(90deg, ${[...negativeStops, ...stops.map(makeStop(colour))].join()})`;
}

/** @type {(head: ShownHead, cell: number) => number} */
const getLevel = ({ ink }, cell) => Math.round(((ink?.[cell] ?? 0) / 255) * LEVELS);

/** @type {(rows: Unit[], cols: Unit[], look: Look) => number} */
export const measureLinksLabel = (rows, cols, look) =>
  Math.max(
    measureWidest(rows, cols, look.textFont(15)) + 8,
    measureWidest(rows, cols, look.textFont(MAX_FONT_SIZE)) + 1,
  );

// scene: {rows, cols, heads: [{head, colour, dash, block, chosen, lines, ink}], focus: {row, col, rows?, cols?}|null,
// quiet: hide the numbers, because they would reveal an answer}. Drawings of equal size share `look.labelWidth`
// and `look.maxUnits`, the number of tokens to leave room for.
/** @type {(canvas: HTMLCanvasElement, scene: LinkScene, look: Look, scroll: number) => LinksLayout} */
export function drawLinks(canvas, scene, look, scroll) {
  const labelWidth = look.labelWidth ?? measureLinksLabel(scene.rows, scene.cols, look);
  const maxUnits = look.maxUnits ?? 0;
  const layout = computeLinksLayout(
    look.width,
    Math.max(maxUnits, scene.rows.length),
    Math.max(maxUnits, scene.cols.length),
    look.height,
    labelWidth,
    look.maxRowHeight,
    measureNumbers(scene.heads, look.width),
  );
  const visibleHeight = Math.min(layout.height, look.height);
  const context = fitCanvas(canvas, look.width, visibleHeight);
  context.translate(0, -scroll);
  const band = [scroll - layout.rowHeight, scroll + visibleHeight + layout.rowHeight];
  const shifts = computeShifts(scene.heads.length, layout);
  scene.heads.forEach((head, index) => drawStrokes(context, scene, head, layout, band, shifts[index]));
  drawTokens(context, scene, layout, look, band);
  return layout;
}

// Return the vertical shift of each head's lines, so that equal links of two heads are drawn side by side.
/** @type {(heads: number, layout: LinksLayout) => number[]} */
function computeShifts(heads, layout) {
  const step = Math.min(LINE_GAP, layout.rowHeight / 2 / heads);
  return Array.from({ length: heads }, (_, index) => (index - (heads - 1) / 2) * step);
}

// Return the width of a number, relative to the height of its letters, and how many numbers fit after a word.
/** @type {(heads: ShownHead[], width: number) => [number, number]} */
function measureNumbers(heads, width) {
  const maxCharacters = heads.every(({ block }) => isShare(block)) ? 3.2 : 7.2;
  return [
    maxCharacters,
    Math.max(1, Math.min(MAX_NUMBERS, heads.length, Math.floor((width * 0.2) / (maxCharacters * 12)))),
  ];
}

/**
 * @type {(context: CanvasRenderingContext2D, scene: LinkScene, head: ShownHead, layout: LinksLayout, band:
 *   number[], shift: number) => void}
 */
function drawStrokes(context, { focus }, head, layout, [above, below], shift) {
  const { block, colour, dash, negativeColour } = head;
  /** @type {(Path2D | null)[]} */
  const paths = new Array(2 * LEVELS + 1).fill(null);
  const { C } = block;
  const { right, numberWidth, maxNumbers } = layout;
  // If numbers follow the queries, lines begin after the numbers.
  const left = layout.left + (focus && focus.row === null ? numberWidth * maxNumbers + NUMBER_GAP : 0);
  /** @type {(i: number) => number} */
  const computeMiddle = (i) => (i + 0.5) * layout.rowHeight + shift;
  const bend = (right - left) * 0.42;
  const mask = focus ? head.chosen : head.lines;
  for (let i = mask?.indexOf(1) ?? -1; i >= 0; i = mask?.indexOf(1, i + 1) ?? -1) {
    const [r, c] = [Math.floor(i / C), i % C];
    if (focus && focus.row !== null && !isWithin(r, focus.row, focus.rows)) continue;
    if (focus && focus.col !== null && !isWithin(c, focus.col, focus.cols)) continue;
    const level = getLevel(head, i);
    if (!level) continue;
    const [y1, y2] = [computeMiddle(r), computeMiddle(c)];
    if (Math.max(y1, y2) < above || Math.min(y1, y2) > below) continue;
    const path = (paths[level + (negativeColour && block.w[i] < 0 ? LEVELS : 0)] ??= new Path2D());
    path.moveTo(left, y1);
    path.bezierCurveTo(left + bend, y1, right - bend, y2, right, y2);
  }
  context.setLineDash(dash);
  paths.forEach((path, index) => {
    if (!path) return;
    const level = index > LEVELS ? index - LEVELS : index;
    context.strokeStyle = index > LEVELS ? (negativeColour ?? colour) : colour;
    context.globalAlpha = computeOpacity(level / LEVELS);
    context.lineWidth = 1 + (2.5 * level) / LEVELS;
    context.stroke(path);
  });
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/**
 * @type {(context: CanvasRenderingContext2D, scene: LinkScene, layout: LinksLayout, look: Look, band: number[]) =>
 *   void}
 */
function drawTokens(context, scene, layout, look, [above, below]) {
  const size = Math.max(10, Math.min(MAX_FONT_SIZE, layout.rowHeight - 6));
  const { focus } = scene;
  /** @type {(list: Unit[], isQuery: boolean) => void} */
  const drawSide = (list, isQuery) =>
    list.forEach((unit, i) => {
      const y = (i + 0.5) * layout.rowHeight;
      if (y < above || y > below) return;
      const focusedIndex = focus && (isQuery ? focus.row : focus.col);
      const otherIndex = focus && (isQuery ? focus.col : focus.row);
      const isFocused = focus && isWithin(i, focusedIndex, isQuery ? focus.rows : focus.cols);
      const isOtherSide = focus && focusedIndex === null && otherIndex !== null;
      const isLinked = isOtherSide && scene.heads.some((head) => findLink(head, isQuery, i, focus).level);
      const isStrong = !focus || isFocused || isLinked || (focusedIndex === null && otherIndex === null);
      context.fillStyle = isFocused ? look.accent : unit.special || !isStrong ? look.muted : look.ink;
      context.font = look.textFont(size, isFocused ? 600 : 400);
      const x = isQuery ? layout.left - 8 : layout.right + 8;
      const width = writeText(
        context,
        unit.text,
        x,
        y,
        layout.labelWidth,
        isQuery ? "right" : "left",
        layout.rowHeight,
      );
      if (unit.written) context.fillRect(isQuery ? x - width : x, y + size * 0.6, width, 1);
      const numbersX = (isQuery ? x : x + width) + NUMBER_GAP;
      drawNumbers(context, listNumbers(scene, isQuery, i), numbersX, y, scene, layout, look);
    });
  drawSide(scene.rows, true);
  drawSide(scene.cols, false);
}

/** @typedef {{ head: ShownHead, weight: number }} LinkNumber */

// Return the weights to show after a word: for a pinned word, one weight per head; if nothing is pinned, the weight of
// the strongest link that reaches a key.
/** @type {(scene: LinkScene, isQuery: boolean, i: number) => LinkNumber[]} */
function listNumbers({ heads, focus, quiet }, isQuery, i) {
  if (!focus) return isQuery || quiet ? [] : findStrongestTo(heads, i);
  const { row, col } = focus;
  const isReached = isQuery
    ? row === null && col !== null
    : row !== null && (col === null || isWithin(i, col, focus.cols));
  if (!isReached || (col !== null && !isQuery && i !== col)) return [];
  return heads.flatMap((head) => {
    const { weight, level } = findLink(head, isQuery, i, focus);
    return level && Math.abs(weight) >= (head.minNumbered ?? 0) ? [{ head, weight }] : [];
  });
}

/** @type {(heads: ShownHead[], key: number) => LinkNumber[]} */
function findStrongestTo(heads, key) {
  /** @type {LinkNumber | null} */
  let best = null;
  for (const head of heads) {
    const { block, lines, minNumbered = 0 } = head;
    const { w, R, C } = block;
    for (let r = 0, cell = key; r < R; r++, cell += C) {
      const size = Math.abs(w[cell]);
      if (!lines?.[cell] || size < minNumbered || !getLevel(head, cell)) continue;
      if (!best || size > Math.abs(best.weight)) best = { head, weight: w[cell] };
    }
  }
  return best ? [best] : [];
}

// Return the weight between a pinned word and word `i` of the other side, and the strength of its line, or 0 if none.
/** @type {(head: ShownHead, isQuery: boolean, i: number, focus: Span) => { weight: number, level: number }} */
function findLink(head, isQuery, i, focus) {
  const queryLink = { row: i, col: focus.col ?? 0, cols: focus.cols };
  /** @type {Cells} */
  const link = isQuery
    ? queryLink
    : { row: focus.row ?? 0, rows: focus.rows, col: i, cols: focus.col === null ? 1 : focus.cols };
  const { row, rows = 1, col, cols = 1 } = link;
  let level = 0;
  for (let r = row; r < row + rows; r++)
    for (let cell = r * head.block.C + col; cell < r * head.block.C + col + cols; cell++)
      if (head.chosen?.[cell]) level = Math.max(level, getLevel(head, cell));
  return { weight: computeSpanWeight(head.block, link), level };
}

// Write numbers after a word, on the colours of their heads if there are several.
/**
 * @type {(context: CanvasRenderingContext2D, list: LinkNumber[], x: number, y: number, scene: LinkScene,
 *   layout: LinksLayout, look: Look) => void}
 */
function drawNumbers(context, list, x, y, { heads }, { numberSize, numberWidth, maxNumbers }, look) {
  list.slice(0, maxNumbers).forEach(({ head, weight }, slot) => {
    const numberX = x + slot * numberWidth;
    context.font = look.numberFont(numberSize);
    context.fillStyle = look.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(formatNumber(weight, head.block), numberX, y + 0.5);
    if (heads.length === 1) return;
    context.fillStyle = head.colour;
    context.fillRect(numberX, y + numberSize * 0.6, numberWidth * 0.9, 2);
  });
}

// ---- Which links are drawn, and with how much ink -----------------------------------------------------------

// With this many words, draw only this many links unless a word is pinned.
export const CROWDED = { words: 25, links: 20 };

// Whether there are too many words to tell all their links apart.
/** @type {(axes: Axes) => boolean} */
const isCrowded = ({ rows, cols }) =>
  [rows, cols].some((list) => list.filter(({ special }) => !special).length >= CROWDED.words);

// Describe a diagram that draws only the strongest links; return "" if it draws all.
/** @type {(axes: Axes, unit: string) => string} */
export const describeFewLinks = (axes, unit) =>
  isCrowded(axes) ? `the ${CROWDED.links} strongest links between ${nameUnits(unit)}` : "";

// Return the scale of links. All lines of a figure share one scale, because a scale per row would draw a weak link as
// dark as a strong one.
/** @type {(scale: string) => string} */
export const chooseLinkScale = (scale) => (scale === "row" ? "head" : scale);

const MIN_NUMBERED = 0.05; // smaller shares, or smaller fractions of the largest number, are not labelled

/**
 * The links of a head in a diagram. `chosen`: the links that the view's rule keeps, shown for a pinned word; `lines`:
 * the links drawn if nothing is pinned; `ink`: their shades on the diagram's scale; `minNumbered`: the smallest
 * weight that is labelled.
 *
 * @typedef {{ chosen: Uint8Array, lines: Uint8Array, ink: Uint8ClampedArray, minNumbered: number }} HeadLinks
 */

// Choose the links of heads that are drawn together. `top`: the end of a scale shared with other diagrams.
/** @type {(blocks: ShownBlock[], axes: Axes, links: string, scale: string, top?: number) => HeadLinks[]} */
export function makeLinks(blocks, axes, links, scale, top = Math.max(0, ...blocks.map(({ max }) => max))) {
  const drawnLinks = chooseDrawnLinks(blocks, links, axes);
  return blocks.map((block, i) => ({
    chosen: chooseLinks(block, links),
    lines: drawnLinks[i],
    ink: computeShades({ ...block, max: top }, chooseLinkScale(scale)),
    minNumbered: Math.fround(MIN_NUMBERED * (isShare(block) ? 1 : block.max)),
  }));
}

// Choose the links of each head that are drawn if nothing is pinned: those that the view's rule keeps; if there are
// many words, the strongest links between words. The rule then applies to words only, because most heads give special
// tokens so much weight that the largest key of every word is [CLS] or [SEP].
/** @type {(blocks: Block[], links: string, axes: Axes) => Uint8Array[]} */
function chooseDrawnLinks(blocks, links, axes) {
  if (!isCrowded(axes)) return blocks.map((block) => chooseLinks(block, links));
  /** @type {{ head: number, cell: number, size: number }[]} */
  let best = [];
  blocks.forEach((block, head) => {
    const { C } = block;
    const w = block.w.map((weight, cell) =>
      axes.rows[Math.floor(cell / C)].special || axes.cols[cell % C].special ? 0 : Math.abs(weight),
    );
    const rule = chooseLinks({ ...block, w }, links);
    for (let cell = rule.indexOf(1); cell >= 0; cell = rule.indexOf(1, cell + 1)) {
      const size = w[cell];
      if (!size || (best.length === CROWDED.links && size <= best[best.length - 1].size)) continue;
      best = [...best, { head, cell, size }].sort((a, b) => b.size - a.size).slice(0, CROWDED.links);
    }
  });
  const drawnLinks = blocks.map(({ R, C }) => new Uint8Array(R * C));
  for (const { head, cell } of best) drawnLinks[head][cell] = 1;
  return drawnLinks;
}
