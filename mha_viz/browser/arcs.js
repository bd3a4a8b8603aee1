// Draw arcs under the words of a text.
import { makeSvg } from "./dom.js";

/** @typedef {{ x: number, y: number }} WordAnchor the middle of a word's lower edge */

const MIN_DEPTH = 9; // pixels of the shallowest arc
export const DEPTH_SHARE = 0.75; // the depth that an arc reaches, as a share of the depth of its control points

// Draw an arc below a line, deeper for longer distances. An arc to another line is drawn as two parts, one below each
// line, so that it crosses no words.
/**
 * @type {(from: WordAnchor, to: WordAnchor, weight: number, colour: string, maxDepth: number,
 *   ends: { left: number, right: number }) => SVGElement[]}
 */
export function drawArc(from, to, weight, colour, maxDepth, { left, right }) {
  const style = { pathLength: 1, stroke: colour, "stroke-width": 1 + 4 * weight, opacity: 0.3 + 0.7 * weight };
  /** @type {(distance: number) => number} */
  const computeDepth = (distance) =>
    Math.min(maxDepth, MIN_DEPTH + (maxDepth - MIN_DEPTH) * Math.sqrt(Math.abs(distance) / (right - left)));
  if (from.y === to.y) {
    const controlY = from.y + computeDepth(to.x - from.x);
    return [
      makeSvg("path", {
        d: `M${from.x} ${from.y}C${from.x} ${controlY} ${to.x} ${controlY} ${to.x} ${to.y + 2}`,
        ...style,
      }),
    ];
  }
  const [exit, entry] = from.y < to.y ? [right, left] : [left, right];
  /** @type {(word: WordAnchor, edge: number) => number} */
  const computeLevel = (word, edge) => word.y + DEPTH_SHARE * computeDepth(2 * (edge - word.x));
  const [first, last] = [computeLevel(from, exit), computeLevel(to, entry)];
  const begin = `M${from.x} ${from.y}C${from.x} ${first} ${(from.x + exit) / 2} ${first} ${exit} ${first}`;
  const end = `M${entry} ${last}C${(to.x + entry) / 2} ${last} ${to.x} ${last} ${to.x} ${to.y + 2}`;
  return [makeSvg("path", { d: begin, ...style }), makeSvg("path", { d: end, ...style })];
}
