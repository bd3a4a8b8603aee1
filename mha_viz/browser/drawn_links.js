// Which links of the heads of a diagram are drawn, and with how much ink.
import { chosen, shades } from "./geometry.js";
import { isShare } from "./view.js";
/** @import { Axes, Block, ShownBlock } from "./geometry.js" */

const CROWDED = { words: 25, links: 20 }; // from so many words on, so many links are drawn where nothing is held

// Whether so many words are shown that all their links together could not be told apart.
/** @type {(axes: Axes) => boolean} */
const isCrowded = ({ rows, cols }) =>
  [rows, cols].some((list) => list.filter(({ special }) => !special).length >= CROWDED.words);

// The words for a diagram that draws only the strongest links; empty if it draws all.
/** @type {(axes: Axes, unit: string) => string} */
export const fewLinks = (axes, unit) =>
  isCrowded(axes) ? `the ${CROWDED.links} strongest links between ${unit === "words" ? unit : "tokens"}` : "";

// The scale of links: one for all lines of a figure, because a scale for each row would give a weak link the ink of a
// strong one.
/** @type {(scale: string) => string} */
export const linkScale = (scale) => (scale === "row" ? "head" : scale);

const NUMBERED = 0.05; // smaller shares, or smaller parts of the largest of other numbers, are not written

/**
 * The links of a head in a diagram: `chosen`, those that the view's rule leaves, which a held word shows; `lines`,
 * those that are drawn where nothing is held; `ink`, their shades on the scale of the diagram; `least`, the smallest
 * weight that is written.
 *
 * @typedef {{ chosen: Uint8Array, lines: Uint8Array, ink: Uint8ClampedArray, least: number }} HeadLinks
 */

// The links of heads that are drawn together; `top`: the end of a scale that other diagrams share.
/** @type {(parts: ShownBlock[], axes: Axes, links: string, scale: string, top?: number) => HeadLinks[]} */
export function linksOf(parts, axes, links, scale, top = Math.max(0, ...parts.map(({ max }) => max))) {
  const drawn = drawnLinks(parts, links, axes);
  return parts.map((part, i) => ({
    chosen: chosen(part, links),
    lines: drawn[i],
    ink: shades({ ...part, max: top }, linkScale(scale)),
    least: Math.fround(NUMBERED * (isShare(part) ? 1 : part.max)),
  }));
}

// Which links of heads in one diagram are drawn where nothing is held: those that the rule of the view leaves; of many
// words the strongest of those between words. The rule is then one about words, too: most heads give a special token so
// much that the heaviest key of every word is [CLS] or [SEP].
/** @type {(parts: Block[], links: string, axes: Axes) => Uint8Array[]} */
function drawnLinks(parts, links, axes) {
  if (!isCrowded(axes)) return parts.map((part) => chosen(part, links));
  /** @type {{ head: number, at: number, size: number }[]} */
  let best = [];
  parts.forEach((part, head) => {
    const { C } = part;
    const w = part.w.map((weight, at) =>
      axes.rows[Math.floor(at / C)].special || axes.cols[at % C].special ? 0 : Math.abs(weight),
    );
    const rule = chosen({ ...part, w }, links);
    for (let at = rule.indexOf(1); at >= 0; at = rule.indexOf(1, at + 1)) {
      const size = w[at];
      if (!size || (best.length === CROWDED.links && size <= best[best.length - 1].size)) continue;
      best = [...best, { head, at, size }].sort((a, b) => b.size - a.size).slice(0, CROWDED.links);
    }
  });
  const drawn = parts.map(({ R, C }) => new Uint8Array(R * C));
  for (const { head, at } of best) drawn[head][at] = 1;
  return drawn;
}
