// Read rows of a matrix: the visible part of a row, and its largest numbers.
/** @import { Unit } from "./geometry.js" */

/**
 * A row of a matrix, or a sum of rows.
 *
 * @typedef {Float32Array | Float64Array} Row
 */

/**
 * The tokens of all columns in sequence, and the end of each column in it; `isConsecutive`: whether each column is one
 * token, and the tokens are consecutive.
 *
 * @typedef {{ tokens: Uint16Array, ends: Uint16Array, isConsecutive: boolean }} Columns
 */

// Return the largest absolute value.
/** @type {(w: Float32Array) => number} */
export function findLargestSize(w) {
  let [min, max] = [0, 0];
  for (let i = 0; i < w.length; i++) {
    if (w[i] > max) max = w[i];
    else if (w[i] < min) min = w[i];
  }
  return Math.max(max, -min);
}

/** @type {WeakMap<Unit[], Columns>} */
const columnsCache = new WeakMap(); // cached by list of columns
/** @type {(cols: Unit[]) => Columns} */
export function getColumns(cols) {
  if (!columnsCache.has(cols)) {
    let end = 0;
    const tokens = Uint16Array.from(cols.flatMap((unit) => unit.tokens));
    const ends = Uint16Array.from(cols, (unit) => (end += unit.tokens.length));
    const isConsecutive = tokens.length === ends.length && tokens.every((token, i) => token === tokens[0] + i);
    columnsCache.set(cols, { tokens, ends, isConsecutive });
  }
  return /** @type {Columns} */ (columnsCache.get(cols));
}

// Write the visible columns of a row, times `share`, into w at an offset; return their sum.
/**
 * @type {(row: Row, begin: number, columns: Columns, share: number, w: Float32Array, from: number) => number}
 */
export function gatherRow(row, begin, { tokens, ends }, share, w, from) {
  let visibleSum = 0;
  if (tokens.length === ends.length) {
    for (let c = 0; c < tokens.length; c++) {
      const weight = row[begin + tokens[c]];
      w[from + c] = weight * share;
      visibleSum += weight;
    }
    return visibleSum;
  }
  for (let c = 0, i = 0; c < ends.length; c++) {
    let sum = 0;
    for (; i < ends[c]; i++) sum += row[begin + tokens[i]];
    w[from + c] = sum * share;
    visibleSum += sum;
  }
  return visibleSum;
}

// Return the sum of the visible columns of a row, of absolute values if `signed`.
/** @type {(row: Row, begin: number, columns: Columns, signed: boolean) => number} */
export function sumVisible(row, begin, { tokens, ends }, signed) {
  let visibleSum = 0;
  for (let c = 0, i = 0; c < ends.length; c++) {
    let sum = 0;
    for (; i < ends[c]; i++) sum += signed ? Math.abs(row[begin + tokens[i]]) : row[begin + tokens[i]];
    visibleSum += sum;
  }
  return visibleSum;
}

// Visit every row of a view: the row of its token, or the sum over its tokens. It has m numbers from `begin` on.
/**
 * @type {(raw: Float32Array, m: number, rows: Unit[], visit: (row: Row, begin: number, pieces: number[], r:
 *   number) => void) => void}
 */
export function visitRows(raw, m, rows, visit) {
  const sums = new Float64Array(m);
  rows.forEach(({ tokens }, r) => {
    if (tokens.length === 1) return visit(raw, tokens[0] * m, tokens, r);
    sums.fill(0);
    for (const q of tokens) for (let k = 0; k < m; k++) sums[k] += raw[q * m + k];
    visit(sums, 0, tokens, r);
  });
}

// Return the indices of the `count` largest numbers, largest first; ties go to the first index.
/** @type {(row: Float32Array, count: number) => number[]} */
export function findLargest(row, count) {
  /** @type {number[]} */
  const places = [];
  for (let c = 0; c < row.length; c++) {
    if (places.length === count && !(row[c] > row[places[count - 1]])) continue;
    let position = Math.min(places.length, count - 1);
    for (; position > 0 && row[places[position - 1]] < row[c]; position--) places[position] = places[position - 1];
    places[position] = c;
  }
  return places;
}
