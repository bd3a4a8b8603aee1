// Draw the matrix of one head: rows are queries, columns are keys, the first row is at the top.
import { computeDivergingShades, fitCanvas, measureWidest, writeText } from "./ink.js";
import { computeHeatmapLayout, isWithin } from "./layouts.js";
/** @import { Axes, Block, Unit } from "./geometry.js" */
/** @import { HeatmapLayout, Span } from "./layouts.js" */
/** @import { ShownHead } from "./links.js" */
/** @import { Look } from "./stage.js" */
/** @import { Settings } from "./view.js" */

/**
 * The data of a heatmap; for a difference also its largest number, because signs are marked.
 *
 * @typedef {Pick<ShownHead, "shade" | "picture" | "largest"> & { block: Block }} HeatmapData
 */

/** @typedef {Axes & { head: HeatmapData, focus: Span | null, marked?: boolean[] | null, view?: Settings }} HeatScene */

const MAX_LABEL = 96; // maximum width of labels, pixels
const MIN_MARKED = 4; // smallest cell with room for a minus or an outline, pixels
const MIN_FRAMED = 6; // smallest cell with a frame, which would hide smaller cells, pixels
const [FRAME, HALO, TICK] = [1.5, 3.5, 4]; // pixels: a frame, the halo around it, and a tick beside small cells
export const EDGE = 2; // pixels beyond the last row and column, for half of the frame around them
const FAINT_SHARE = 0.1; // of the largest difference; smaller ones need no minus: their colour is hardly visible
const DARK_SHARE = 0.52; // of the largest difference; such a cell is closer to the ink than to the paper

/** @type {(rows: Unit[], cols: Unit[], look: Look) => number} */
export const measureHeatmapLabel = (rows, cols, look) =>
  Math.min(MAX_LABEL, measureWidest(rows, cols, look.textFont(13)) + 12);

/** @type {(cell: number, minSize?: number) => number} */
export const computeLabelSize = (cell, minSize = 0) => Math.max(minSize, cell < 10 ? 9 : 10, Math.min(13, cell - 1));
// Return the interval at which labels are written, which is above 1 if cells are smaller than letters. Keep in step
// with `compute_label_step` in figures/layout/heatmap.py.
/** @type {(cell: number, minSize?: number) => number} */
export const computeLabelStep = (cell, minSize) => Math.ceil(computeLabelSize(cell, minSize) / cell);
// Say which labels are left out: "Every 2nd token is labelled."; return "" if all are shown.
/** @type {(cell: number | undefined, minSize?: number) => string} */
export function describeLabelStep(cell, minSize) {
  const step = cell ? computeLabelStep(cell, minSize) : 1;
  const ending = { 2: "nd", 3: "rd" }[step] ?? "th";
  return step === 1 ? "" : `Every ${step}${ending} token is labelled.`;
}

// Choose which of `total` rows or columns are labelled: every `step`-th; focused ones replace those close to them.
/** @type {(total: number, step: number, focusedIndex: number | null, count?: number) => Set<number>} */
export function chooseLabelled(total, step, focusedIndex, count = 1) {
  const focusedIndices = focusedIndex === null ? [] : Array.from({ length: count }, (_, k) => focusedIndex + k);
  const regularIndices = Array.from({ length: Math.ceil(total / step) }, (_, k) => k * step);
  return new Set([
    ...focusedIndices,
    ...regularIndices.filter((i) => focusedIndices.every((k) => Math.abs(i - k) >= step)),
  ]);
}

// scene: {rows, cols, head: {block, shade}, focus: {row, col, rows?, cols?}|null}. Drawings of equal size share
// `look.labelWidth` and `look.maxUnits`, the number of rows and columns to leave room for. `look.labelHeight` is set
// if it differs from the width.
/** @type {(canvas: HTMLCanvasElement, scene: HeatScene, look: Look) => HeatmapLayout} */
export function drawHeatmap(canvas, scene, look) {
  const { rows, cols } = scene;
  const labelWidth = look.labelWidth ?? measureHeatmapLabel(rows, cols, look);
  const maxUnits = look.maxUnits ?? 0;
  const layout = computeHeatmapLayout(
    look.width - EDGE,
    Math.max(maxUnits, rows.length),
    Math.max(maxUnits, cols.length),
    look.height - EDGE,
    labelWidth,
    look.labelHeight,
    look.maxCell,
  );
  const context = fitCanvas(canvas, Math.max(layout.width + EDGE, 40), Math.max(layout.height + EDGE, 40));
  if (!rows.length || !cols.length) return layout;
  drawCells(context, scene, look, layout);
  drawMinuses(context, scene, look, layout);
  if (scene.marked) outlineCells(context, scene.marked, scene, look, layout);
  drawFocus(context, scene, look, layout);
  // Maps beside another one with the same words have no room for labels.
  if (layout.left) drawAxis(context, scene, look, layout, true);
  if (layout.top) drawAxis(context, scene, look, layout, false);
  return layout;
}

// Draw only the focus, on a canvas above a drawing without focus, so that moving the pointer redraws no cells. Labels
// near a focused one become paler; cells do not, because their colour is their number.
/**
 * @type {(canvas: HTMLCanvasElement, scene: HeatScene & { focus: Span }, look: Look, layout: HeatmapLayout) =>
 *   void}
 */
export function drawHeatmapFocus(canvas, scene, look, layout) {
  const context = fitCanvas(canvas, layout.width + EDGE, layout.height + EDGE);
  const axes = [true, false].filter((isRow) => (isRow ? scene.focus.row : scene.focus.col) !== null);
  context.fillStyle = look.paper;
  for (const isRow of axes) {
    if (isRow) context.fillRect(0, layout.top, layout.left - 1, layout.height - layout.top);
    else context.fillRect(layout.left, 0, layout.width - layout.left, layout.top - 1);
  }
  drawFocus(context, scene, look, layout);
  for (const isRow of axes) drawAxis(context, scene, look, layout, isRow);
}

/** @type {(context: CanvasRenderingContext2D, scene: HeatScene, look: Look, layout: HeatmapLayout) => void} */
function drawCells(context, { head }, look, { left, top, cell }) {
  const { R, C } = head.block;
  head.picture ??= makePicture(head, look); // one pixel per cell, made once
  context.imageSmoothingEnabled = false;
  context.drawImage(head.picture, left, top, C * cell, R * cell);
  if (cell < 10) return;
  context.fillStyle = look.paper; // hairlines between cells
  for (let c = 1; c < C; c++) context.fillRect(left + c * cell - 0.5, top, 1, R * cell);
  for (let r = 1; r < R; r++) context.fillRect(left, top + r * cell - 0.5, C * cell, 1);
}

// In the grey theme, draw a minus in every cell that is clearly below 0, for a difference or another signed quantity,
// because both ends of the scale look alike.
/** @type {(context: CanvasRenderingContext2D, scene: HeatScene, look: Look, layout: HeatmapLayout) => void} */
function drawMinuses(context, { head: { block, largest = block.signed ? block.max : 0 } }, look, { left, top, cell }) {
  if (!look.hasMinus || !largest || cell < MIN_MARKED) return;
  const height = Math.max(1, cell * 0.1);
  block.w.forEach((d, i) => {
    if (d > -FAINT_SHARE * largest) return;
    const [r, c] = [Math.floor(i / block.C), i % block.C];
    context.fillStyle = d < -DARK_SHARE * largest ? look.paper : look.ink;
    context.fillRect(left + (c + 0.25) * cell, top + (r + 0.5) * cell - height / 2, cell * 0.5, height);
  });
}

// Draw an outline around each marked cell, thin around small ones. Skip the smallest cells, which it would hide.
/**
 * @type {(context: CanvasRenderingContext2D, marked: boolean[], scene: HeatScene, look: Look, layout: HeatmapLayout) =>
 *   void}
 */
function outlineCells(context, marked, { head: { block } }, look, { left, top, cell }) {
  if (cell < MIN_MARKED) return;
  const inset = cell < MIN_FRAMED ? 0.5 : HALO / 2;
  context.strokeStyle = look.accent;
  context.lineWidth = 1;
  marked.forEach((isMarked, i) => {
    if (!isMarked) return;
    const [x, y] = [left + (i % block.C) * cell + inset, top + Math.floor(i / block.C) * cell + inset];
    if (cell < MIN_FRAMED) context.strokeRect(x, y, cell - 1, cell - 1);
    else drawFrame(context, look, x, y, cell - HALO, cell - HALO);
  });
}

// Draw a frame that is visible on cells of every colour.
/** @type {(context: CanvasRenderingContext2D, look: Look, ...box: [number, number, number, number]) => void} */
function drawFrame(context, look, ...box) {
  for (const [colour, width] of /** @type {const} */ ([
    [look.paper, HALO],
    [look.accent, FRAME],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(...box);
  }
}

/** @type {(head: HeatmapData, look: Look) => OffscreenCanvas} */
function makePicture({ block, shade }, look) {
  const { R, C } = block;
  const [colours, levels] = block.signed
    ? [look.signedColours, computeDivergingShades(block, shade)]
    : [look.colours, shade];
  const image = new ImageData(C, R);
  const target = new Uint32Array(image.data.buffer);
  for (let i = 0; i < R * C; i++) target[i] = colours[levels[i]];
  const pixels = new OffscreenCanvas(C, R);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (pixels.getContext("2d"));
  context.putImageData(image, 0, 0);
  return pixels;
}

// Draw a frame around the focus; for cells that a frame would hide, a tick beside their row and above their column.
/** @type {(context: CanvasRenderingContext2D, scene: HeatScene, look: Look, layout: HeatmapLayout) => void} */
function drawFocus(context, { focus, head: { block } }, look, { left, top, cell }) {
  if (!focus) return;
  const { row, col, rows = 1, cols = 1 } = focus;
  const [x, width] = col === null ? [left, block.C * cell] : [left + col * cell, cols * cell];
  const [y, height] = row === null ? [top, block.R * cell] : [top + row * cell, rows * cell];
  if (cell >= MIN_FRAMED) return drawFrame(context, look, x, y, width, height);
  context.fillStyle = look.accent;
  if (row !== null) context.fillRect(left - TICK - 1, y, TICK, height);
  if (col !== null) context.fillRect(x, top - TICK - 1, width, TICK);
}

/**
 * @type {(context: CanvasRenderingContext2D, scene: HeatScene, look: Look, layout: HeatmapLayout,
 *   isRow: boolean) => void}
 */
export function drawAxis(context, scene, look, layout, isRow) {
  const units = isRow ? scene.rows : scene.cols;
  const focusedIndex = scene.focus ? (isRow ? scene.focus.row : scene.focus.col) : null;
  const count = (scene.focus && (isRow ? scene.focus.rows : scene.focus.cols)) || 1;
  const size = computeLabelSize(layout.cell, look.minLabelSize);
  const step = computeLabelStep(layout.cell, look.minLabelSize);
  const labelledIndices = chooseLabelled(units.length, step, focusedIndex, count);
  units.forEach((unit, i) => {
    const isFocused = isWithin(i, focusedIndex, count);
    if (!isFocused && !labelledIndices.has(i)) return;
    context.font = look.textFont(size, isFocused ? 600 : 400);
    const isPale = unit.special || focusedIndex !== null; // labels near a focused one are paler, but still legible
    context.fillStyle = isFocused ? look.accent : isPale ? look.muted : look.ink;
    const position = (isRow ? layout.top : layout.left) + (i + 0.5) * layout.cell;
    context.save();
    if (isRow) context.translate(layout.left - 6, position);
    else {
      context.translate(position, layout.top - 6);
      context.rotate(-Math.PI / 2);
    }
    const width = writeText(context, unit.text, 0, 0, MAX_LABEL - 6, isRow ? "right" : "left", layout.cell);
    if (unit.written) context.fillRect(isRow ? -width : 0, size * 0.6, width, 1);
    context.restore();
    if (step === 1) return;
    context.fillStyle = look.muted; // a tick from the label to its row or column
    if (isRow) context.fillRect(layout.left - 5, position - 0.5, 4, 1);
    else context.fillRect(position - 0.5, layout.top - 5, 1, 4);
  });
}
