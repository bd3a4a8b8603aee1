// The curve of a training as its slider: what was measured at each recorded step, the moment in view, and dots on it.
import { make } from "../dom.js";
import { svg } from "../svg.js";
/** @import { PlayerCurves, PlayerLine } from "./player.js" */

/** @typedef {{ root: HTMLElement, draw: (moment: number) => void }} Scrubber */

/** @type {(slider: HTMLInputElement, curves: PlayerCurves) => Scrubber} */
export function scrubberOf(slider, curves) {
  const last = curves.lines[0].values.length - 1;
  const seen = svg("rect", { y: 0, height: 1, width: 0, class: "seen" });
  const lines = curves.lines.map((line) => svg("polyline", { points: pointsOf(line.values), ...lookOf(line) }));
  const chart = svg(
    "svg",
    { viewBox: `0 0 ${last} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
    seen,
    ...lines,
  );
  const clear = curves.lines.filter((line) => !line.faint);
  const dots = clear.map((line) => {
    const dot = make("i", { class: "dot", "aria-hidden": "true" });
    dot.style.background = line.colour;
    return dot;
  });
  const root = make("div", { class: "scrubber" }, make("div", { class: "chart" }, chart, ...dots), slider);
  /** @type {(moment: number) => void} */
  const draw = (moment) => {
    seen.setAttribute("width", String(moment));
    dots.forEach((dot, i) => {
      dot.style.left = `${(100 * moment) / last}%`;
      dot.style.top = `${100 * (1 - valueAt(clear[i].values, moment))}%`;
    });
  };
  return { root, draw };
}

// Of a moment between two recorded steps: between their values.
/** @type {(values: number[], moment: number) => number} */
export function valueAt(values, moment) {
  const first = Math.floor(moment);
  return values[first] + ((values[first + 1] ?? values[first]) - values[first]) * (moment - first);
}

/** @type {(values: number[]) => string} */
const pointsOf = (values) => values.map((value, i) => `${i},${1 - value}`).join(" ");

/** @type {(line: PlayerLine) => Record<string, string>} */
const lookOf = ({ colour, faint }) => ({
  fill: "none",
  stroke: colour,
  "vector-effect": "non-scaling-stroke",
  "stroke-width": faint ? "1" : "2.5",
  opacity: faint ? "0.45" : "1",
});
