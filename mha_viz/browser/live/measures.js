// Compute the measures of analysis/metrics.py for each head, for texts that are read in the browser. Measures that are
// missing here are not shown on live pages.

/** @typedef {{ n: number, special: number[], marks: boolean[] }} Keys */

// Return the mean weight of ordinary queries to the key `offset` places after them.
/** @type {(matrix: Float32Array, keys: Keys, offset: number) => number | null} */
function computeMeanAtOffset(matrix, { n, special }, offset) {
  let [sum, rows] = [0, 0];
  for (let i = Math.max(0, -offset); i < Math.min(n, n - offset); i++)
    if (!special[i]) {
      sum += matrix[i * n + i + offset];
      rows++;
    }
  return rows ? sum / rows : null;
}

// Return the mean over rows of the total weight to the keys that are counted.
/** @type {(matrix: Float32Array, keys: Keys, isCounted: (key: number) => boolean) => number} */
function computeMeanOnKeys(matrix, { n }, isCounted) {
  let sum = 0;
  for (let key = 0; key < n; key++) if (isCounted(key)) for (let i = key; i < matrix.length; i += n) sum += matrix[i];
  return sum / n;
}

/** @type {(matrix: Float32Array, keys: Keys) => number} */
function computeEntropy(matrix, { n }) {
  let nats = 0;
  for (const weight of matrix) if (weight > 0) nats -= weight * Math.log(weight);
  return nats / n;
}

/** @type {Record<string, (matrix: Float32Array, keys: Keys) => number | null>} */
export const MEASURES = {
  previous: (matrix, keys) => computeMeanAtOffset(matrix, keys, -1),
  following: (matrix, keys) => computeMeanAtOffset(matrix, keys, 1),
  same: (matrix, keys) => computeMeanAtOffset(matrix, keys, 0),
  cls: (matrix, keys) => computeMeanOnKeys(matrix, keys, (key) => key === 0 && !!keys.special[key]),
  sep: (matrix, keys) => computeMeanOnKeys(matrix, keys, (key) => key > 0 && !!keys.special[key]),
  punctuation: (matrix, keys) => computeMeanOnKeys(matrix, keys, (key) => keys.marks[key]),
  entropy: computeEntropy,
};
