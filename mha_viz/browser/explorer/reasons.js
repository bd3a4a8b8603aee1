// Describe in one line why a head links two tokens and which words it then writes.
import { make, isolateText } from "../dom.js";
/** @import { Children } from "../dom.js" */
/** @import { Axes, Unit } from "../geometry.js" */
/** @import { Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { Reasons } from "../reasons/store.js" */

const MIN_WEIGHT = 0.01; // the smallest weight that is explained

/** @typedef {{ row: number, col: number }} Cell */

// Return the focused link or, for a focused token, its strongest drawn link; null if its weight is below 1 %.
/** @type {(head: ShownHead, axes: Axes, focus: Spot) => Cell | null} */
export function findExplainedLink({ block, chosen }, { rows, cols }, { row, col }) {
  const { w, C } = block;
  let best = null;
  let bestWeight = MIN_WEIGHT;
  for (let r = row ?? 0; r <= (row ?? rows.length - 1); r++)
    for (let c = col ?? 0; c <= (col ?? cols.length - 1); c++) {
      const cell = r * C + c;
      if (w[cell] < bestWeight || (best && w[cell] === bestWeight)) continue;
      if ((row === null || col === null) && chosen && !chosen[cell]) continue;
      bestWeight = w[cell];
      best = { row: r, col: c };
    }
  return best;
}

// Return the strongest link between the tokens of two units. `matrix`: [query, key], with n keys.
/** @type {(from: Unit, to: Unit, matrix: Float32Array, n: number) => [number, number]} */
export function findStrongestTokens(from, to, matrix, n) {
  const pairs = from.tokens.flatMap((query) => to.tokens.map((key) => /** @type {[number, number]} */ ([query, key])));
  return pairs.reduce((best, pair) => (matrix[pair[0] * n + pair[1]] > matrix[best[0] * n + best[1]] ? pair : best));
}

// Describe why a query attends to a key, and what the key's vector writes; [] if neither is known.
/** @type {(reasons: Reasons, from: string, to: string, query: number, key: number) => Children} */
export function describeReasons({ groups, codes, words }, from, to, query, key) {
  const n = words?.length ?? Math.sqrt(codes?.length ?? 0);
  const code = codes?.[query * n + key] ?? 0;
  const reasons = [code & 15, code >> 4].filter(Boolean).map((number) => groups[number - 1]);
  const written = words?.[key] ?? [];
  /** @type {Children[]} */
  const clauses = [
    reasons.length ? [`found by ${reasons.join(" and ")}`] : [],
    written.length ? ["writes ", ...written.flatMap((word, i) => [i ? ", " : "", quote(word)])] : [],
  ];
  const [first, ...rest] = clauses.filter((clause) => clause.length);
  return first ? [quote(from), " → ", quote(to), ": ", ...first, ...rest.flatMap((clause) => ["; ", ...clause])] : [];
}

/** @type {(text: string) => HTMLElement} */
const quote = (text) => make("i", {}, isolateText(text));
