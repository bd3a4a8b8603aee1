// Read rows of a matrix: the visible part of a row, and its largest numbers.
/** @import { Unit } from "./geometry.js" */

/**
 * A row of a matrix, or a sum of rows.
 *
 * @typedef {Float32Array | Float64Array} Row
 */

/**
 * The tokens of all columns in sequence, and the end of each column in it; `run`: whether each column is one token, and
 * they are consecutive.
 *
 * @typedef {{ tokens: Uint16Array, ends: Uint16Array, run: boolean }} Columns
 */

// Return the largest absolute value.
/** @type {(w: Float32Array) => number} */
export function findGreatest(w) {
  let [least, most] = [0, 0];
  for (let i = 0; i < w.length; i++) {
    if (w[i] > most) most = w[i];
    else if (w[i] < least) least = w[i];
  }
  return Math.max(most, -least);
}

/** @type {WeakMap<Unit[], Columns>} */
const piecesListed = new WeakMap(); // cached by list of columns
/** @type {(cols: Unit[]) => Columns} */
export function listPieces(cols) {
  if (!piecesListed.has(cols)) {
    let end = 0;
    const tokens = Uint16Array.from(cols.flatMap((unit) => unit.tokens));
    const ends = Uint16Array.from(cols, (unit) => (end += unit.tokens.length));
    const run = tokens.length === ends.length && tokens.every((token, i) => token === tokens[0] + i);
    piecesListed.set(cols, { tokens, ends, run });
  }
  return /** @type {Columns} */ (piecesListed.get(cols));
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
export function sumShown(row, begin, { tokens, ends }, signed) {
  let visibleSum = 0;
  for (let c = 0, i = 0; c < ends.length; c++) {
    let sum = 0;
    for (; i < ends[c]; i++) sum += signed ? Math.abs(row[begin + tokens[i]]) : row[begin + tokens[i]];
    visibleSum += sum;
  }
  return visibleSum;
}

// Visit every row of a view: the row of its token, or the sum over its tokens. Its m numbers start at `begin`.
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

// Return the indices of the largest numbers, at most `count`, largest first; of equal numbers the first.
/** @type {(row: Float32Array, count: number) => number[]} */
export function findHeaviest(row, count) {
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
