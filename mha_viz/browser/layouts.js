// Compute the positions of elements in a drawing, in pixels, and the spot at a point.
/** @import { Block } from "./geometry.js" */

/**
 * A hovered or pinned row, column or cell, in units. `at`: the panel of these units, by default the first.
 *
 * @typedef {{ at?: number } & ({ row: number; col: number } | { row: number; col: null } | { row: null; col: number })}
 *   Spot
 */

/**
 * A spot mapped to another panel: several units may correspond to one.
 *
 * @typedef {Spot & { rows?: number; cols?: number }} Span
 */

/**
 * A cell, or the cells of a link if several units correspond to one.
 *
 * @typedef {{ row: number, rows?: number, col: number, cols?: number }} Cells
 */

/**
 * @typedef {object} GridLayout
 * @property {number} left
 * @property {number} top
 * @property {number} step
 * @property {number} size
 * @property {number} width
 * @property {number} height
 */

/** @typedef {{ cell: number, left: number, top: number, width: number, height: number }} HeatmapLayout */

/**
 * @typedef {object} LinksLayout
 * @property {number} rowHeight
 * @property {number} left
 * @property {number} right
 * @property {number} labelWidth
 * @property {number} width
 * @property {number} height
 * @property {number} numberSize font size of numbers
 * @property {number} numberWidth
 * @property {number} maxNumbers maximum count of numbers after a token
 */

const STEP = { min: 20, minToFit: 45, max: 80 }; // pixels of a head; a grid scrolls if it is too high at `minToFit`

// Lay out the grid of all heads: layers down, heads across. `step` is the distance between cells, `size` a cell's side;
// see STEP for the limits.
/**
 * @type {(width: number, layers: number, heads: number, height: number, maxStep?: number, minToFit?: number) =>
 *   GridLayout}
 */
export function computeGridLayout(width, layers, heads, height, maxStep = STEP.max, minToFit = STEP.minToFit) {
  const [left, top] = [30, 22];
  const fit = Math.min((width - left) / heads, Math.max(minToFit, (height - top) / layers));
  const step = Math.max(STEP.min, Math.min(maxStep, Math.floor(fit)));
  const gap = step >= 30 ? 4 : 3;
  return { left, top, step, size: step - gap, width: left + heads * step, height: top + layers * step };
}

/** @type {(layout: GridLayout, layers: number, heads: number, x: number, y: number) => number | null} */
export function findGridCell({ left, top, step }, layers, heads, x, y) {
  const [layer, head] = [Math.floor((y - top) / step), Math.floor((x - left) / step)];
  return layer >= 0 && layer < layers && head >= 0 && head < heads ? layer * heads + head : null;
}

/** @type {[number, number]} */
const ONE_NUMBER = [3.2, 1];

// Lay out a link diagram: queries in a left column, keys in a right one, `rowHeight` apart.
// `numbers`: the width of a number, relative to the height of its letters, and how many may follow a token.
/**
 * @type {(width: number, R: number, C: number, height: number, label: number, maxRowHeight?: number,
 *   numbers?: [number, number]) => LinksLayout}
 */
export function computeLinksLayout(width, R, C, height, label, maxRowHeight = 34, numbers = ONE_NUMBER) {
  const rowHeight = Math.max(17, Math.min(maxRowHeight, Math.floor(height / Math.max(R, C))));
  const numberSize = Math.max(9, Math.min(12, rowHeight - 6));
  const [numberWidth, maxNumbers] = [numbers[0] * numberSize, numbers[1]];
  const numbersWidth = Math.ceil(numberWidth * maxNumbers) + 6;
  const labelWidth = Math.max(40, Math.min(label, Math.floor(width * 0.38) - numbersWidth));
  const right = width - numbersWidth - labelWidth - 8;
  const totalHeight = rowHeight * Math.max(R, C);
  return {
    rowHeight,
    left: labelWidth + 8,
    right,
    labelWidth,
    width,
    height: totalHeight,
    numberSize,
    numberWidth,
    maxNumbers,
  };
}

// Lay out a heatmap: square cells of at least 2 pixels with labels above and beside them. Long texts scroll rather than
// blur.
/**
 * @type {(width: number, R: number, C: number, height: number, labelWidth: number, labelHeight?: number,
 *   maxCell?: number) => HeatmapLayout}
 */
export function computeHeatmapLayout(width, R, C, height, labelWidth, labelHeight = labelWidth, maxCell = 44) {
  const fittingSize = Math.max(2, Math.min(maxCell, (width - labelWidth) / C, (height - labelHeight) / R));
  const cell = fittingSize >= 4 ? Math.floor(fittingSize) : Math.floor(fittingSize * 2) / 2;
  return { cell, left: labelWidth, top: labelHeight, width: labelWidth + cell * C, height: labelHeight + cell * R };
}

/** @type {(layout: HeatmapLayout, R: number, C: number, x: number, y: number) => Spot | null} */
export function findHeatmapCell({ cell, left, top }, R, C, x, y) {
  const [row, col] = [Math.floor((y - top) / cell), Math.floor((x - left) / cell)];
  return row >= 0 && row < R && col >= 0 && col < C ? { row, col } : null;
}

// Return the spot at a point of a heatmap: a cell, a label (its whole row or column), or null.
/** @type {(layout: HeatmapLayout, R: number, C: number, x: number, y: number) => Spot | null} */
export function findHeatmapSpot(layout, R, C, x, y) {
  const { cell, left, top } = layout;
  const [row, col] = [Math.floor((y - top) / cell), Math.floor((x - left) / cell)];
  if (x < left && row >= 0 && row < R) return { row, col: null };
  if (y < top && col >= 0 && col < C) return { row: null, col };
  return findHeatmapCell(layout, R, C, x, y);
}

// Return the spot at a point of a link diagram: a query on the left, a key on the right, or null.
/** @type {(layout: LinksLayout, R: number, C: number, x: number, y: number) => Spot | null} */
export function findLinksSpot({ rowHeight, left, right }, R, C, x, y) {
  const i = Math.floor(y / rowHeight);
  if (x < left + 40) return i >= 0 && i < R ? { row: i, col: null } : null;
  if (x > right - 40) return i >= 0 && i < C ? { row: null, col: i } : null;
  return null;
}

// ---- Focus: {row, col}, either may be null; `rows` and `cols` are their counts, by default 1 ---------

// Whether `i` is one of `count` indices from `first` on.
/** @type {(i: number, first: number | null, count?: number) => boolean} */
export const isWithin = (i, first, count = 1) => first !== null && i >= first && i < first + count;

// Return the weight of a focused link: the sum over several columns, the mean over several rows.
/** @type {(block: Block, span: Cells) => number} */
export function computeSpanWeight({ w, C }, { row, rows = 1, col, cols = 1 }) {
  let sum = 0;
  for (let r = row; r < row + rows; r++) for (let c = col; c < col + cols; c++) sum += w[r * C + c];
  return sum / rows;
}
