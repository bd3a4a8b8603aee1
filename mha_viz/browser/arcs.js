// Draw arcs under the words of a text.
import { makeSvg } from "./dom.js";

/** @typedef {{ x: number, y: number }} Place the middle of a word's lower edge */

const SHALLOW = 9; // pixels of the shallowest arc
export const LOW = 0.75; // the depth that an arc reaches, as a share of the depth of its control points

// Draw an arc below a line, deeper for longer distances. An arc to another line is drawn as two parts, one below each
// line, so that it crosses no words.
/**
 * @type {(from: Place, to: Place, weight: number, colour: string, deepest: number, ends: { left: number, right: number
 *   }) => SVGElement[]}
 */
export function drawArc(from, to, weight, colour, deepest, { left, right }) {
  const look = { pathLength: 1, stroke: colour, "stroke-width": 1 + 4 * weight, opacity: 0.3 + 0.7 * weight };
  /** @type {(wide: number) => number} */
  const deep = (wide) => Math.min(deepest, SHALLOW + (deepest - SHALLOW) * Math.sqrt(Math.abs(wide) / (right - left)));
  if (from.y === to.y) {
    const down = from.y + deep(to.x - from.x);
    return [
      makeSvg("path", { d: `M${from.x} ${from.y}C${from.x} ${down} ${to.x} ${down} ${to.x} ${to.y + 2}`, ...look }),
    ];
  }
  const [out, into] = from.y < to.y ? [right, left] : [left, right];
  /** @type {(word: Place, edge: number) => number} */
  const level = (word, edge) => word.y + LOW * deep(2 * (edge - word.x));
  const [first, last] = [level(from, out), level(to, into)];
  const begin = `M${from.x} ${from.y}C${from.x} ${first} ${(from.x + out) / 2} ${first} ${out} ${first}`;
  const end = `M${into} ${last}C${(to.x + into) / 2} ${last} ${to.x} ${last} ${to.x} ${to.y + 2}`;
  return [makeSvg("path", { d: begin, ...look }), makeSvg("path", { d: end, ...look })];
}
