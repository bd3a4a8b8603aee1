// Draw the backward flow of the gradient: the same ∂L/∂out meets another slice of W_O in every head.
import { makeSvg } from "../dom.js";
import { formatDecimal, formatSmall } from "../numerals.js";
/** @import { Flow, PlayerData, PlayerHead } from "./player.js" */

/** @typedef {{ root: SVGElement, draw: (step: number) => void }} FlowView */

const [WIDTH, TOP] = [760, 58];

/** @type {(data: PlayerData, flow: Flow) => FlowView} */
export function makeFlow(data, flow) {
  const rowHeight = data.heads.length <= 8 ? 34 : 20;
  const height = TOP + rowHeight * data.heads.length;
  const root = makeSvg("svg", { class: "flow", viewBox: `0 0 ${WIDTH} ${height + 8}`, role: "img" });
  root.append(
    ...makeFixedParts(height),
    ...data.heads.flatMap((head, h) => makeSlices(head, TOP + h * rowHeight, rowHeight)),
  );
  const rows = data.heads.map((head, h) => makeRow(head, TOP + h * rowHeight, rowHeight));
  root.append(...rows.flatMap(({ arrow, norm, cosine }) => [arrow, norm, cosine]));
  const largest = Math.max(...flow.norms.flat());
  /** @type {(step: number) => void} */
  const draw = (step) => {
    rows.forEach(({ arrow, norm, cosine }, h) => {
      const [gradientNorm, gradientCosine] = [flow.norms[step][h], flow.cosines[step][h]];
      arrow.setAttribute("stroke-width", String(computeThickness(gradientNorm, largest, rowHeight)));
      norm.textContent = formatSignificant(gradientNorm);
      cosine.textContent = formatDecimal(gradientCosine, 2);
    });
    root.setAttribute("aria-label", describeFlow(data, flow, step));
  };
  return { root, draw };
}

// Format two significant digits, or only the order of magnitude: gradients shrink by orders of magnitude while a layer
// learns.
/** @type {(value: number) => string} */
export const formatSignificant = (value) =>
  value < 0.001 ? formatSmall(value) : value < 10 ? value.toPrecision(2) : formatDecimal(value, 0);

// Return the thickness of an arrow, in proportion to the square root of the norm, so that small ones are visible.
/** @type {(norm: number, largest: number, rowHeight: number) => number} */
export const computeThickness = (norm, largest, rowHeight) =>
  largest ? 0.75 + (rowHeight - 14) * Math.sqrt(norm / largest) : 0.75;

/** @type {(data: PlayerData, flow: Flow, step: number) => string} */
function describeFlow(data, flow, step) {
  const norms = data.heads.map(({ name }, h) => `${name} ${formatSignificant(flow.norms[step][h])}`);
  return `Gradient of the loss on its way back through W_O to each head. Norms: ${norms.join(", ")}`;
}

/** @type {(height: number) => SVGElement[]} */
function makeFixedParts(height) {
  const middle = (TOP + height) / 2;
  /** @type {(x: number, first: string, second: string) => SVGElement[]} */
  const heading = (x, first, second) => [
    makeFormula({ x, y: 16, class: "title" }, first),
    makeSvg("text", { x, y: 34, class: "soft" }, second),
  ];
  return [
    ...heading(0, "loss", ""),
    ...heading(70, "∂L/∂out", "shared by all heads"),
    ...heading(214, "× W_O", "one slice per head"),
    ...heading(344, "concatenation", "its slices"),
    ...heading(462, "→ W_Q, W_K, W_V", "of each head"),
    ...heading(610, "norm", "of the gradient"),
    ...heading(700, "cosine", "with H0"),
    makeSvg("path", { d: `M 8 ${middle} H 66`, class: "back" }),
    makeSvg("rect", { x: 70, y: TOP, width: 16, height: height - TOP, class: "shared" }),
  ];
}

// Set the indices of W_Q, W_K, W_V and W_O as subscripts.
/** @type {(attributes: Record<string, string | number>, text: string) => SVGElement} */
function makeFormula(attributes, text) {
  const [first, ...parts] = text.split(/_([QKVO])/);
  return makeSvg("text", attributes, first, ...parts.map((part, i) => (i % 2 ? makeBaseline(part) : makeIndex(part))));
}

/** @type {(index: string) => SVGElement} */
const makeIndex = (index) => makeSvg("tspan", { dy: 4, "font-size": "75%" }, index);

/** @type {(text: string) => SVGElement} */
const makeBaseline = (text) => makeSvg("tspan", { dy: -4 }, text);

/** @type {(head: PlayerHead, y: number, rowHeight: number) => SVGElement[]} */
function makeSlices(head, y, rowHeight) {
  /** @type {(x: number, width: number) => SVGElement} */
  const slice = (x, width) => makeSvg("rect", { x, y: y + 2, width, height: rowHeight - 4, fill: head.colour, rx: 2 });
  const middle = y + rowHeight / 2;
  return [
    makeSvg("path", { d: `M 90 ${middle} H 208`, class: "back" }),
    slice(214, 62),
    makeSvg("path", { d: `M 280 ${middle} H 338`, class: "back" }),
    slice(344, 16),
  ];
}

/** @type {(head: PlayerHead, y: number, rowHeight: number) => Record<"arrow" | "norm" | "cosine", SVGElement>} */
function makeRow(head, y, rowHeight) {
  const middle = y + rowHeight / 2;
  /** @type {(x: number) => SVGElement} */
  const text = (x) => makeSvg("text", { x, y: middle + 5, class: "number" });
  const arrow = makeSvg("path", { d: `M 364 ${middle} H 590`, stroke: head.colour, class: "arrow" });
  const name = makeSvg("title", {}, `To W_Q, W_K and W_V of ${head.name}`);
  arrow.append(name);
  return { arrow, norm: text(610), cosine: text(700) };
}
