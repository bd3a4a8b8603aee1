// Compare every two heads at one recorded step: a square of cells, and a legend that explains their values.
import { make } from "../dom.js";
import { formatDecimal } from "../numerals.js";
import { formatColour, chooseInk, computeShade } from "./frames.js";
/** @import { Palettes, PlayerData, PlayerHead, PlayerMatrix } from "./player.js" */

/** @typedef {{ root: HTMLElement, draw: (step: number, colours: Palettes) => void }} MatricesView */

const MAX_NUMBERED = 8; // up to this many heads, cells have room for a number

/** @type {(data: PlayerData, say: (text: string) => void) => MatricesView} */
export function makeMatrices(data, say) {
  const views = data.matrices.map((matrix) => makeMatrix(matrix, data.heads, say));
  const root = make("div", { class: "matrices" }, ...views.map((view) => view.root));
  return { root, draw: (step, colours) => views.forEach((view) => view.draw(step, colours)) };
}

/** @type {(matrix: PlayerMatrix, heads: PlayerHead[], say: (text: string) => void) => MatricesView} */
function makeMatrix(matrix, heads, say) {
  const count = heads.length;
  const hasNumbers = count <= MAX_NUMBERED;
  const cells = Array.from({ length: count * count }, () => make("span", { class: "cell" }));
  const names = () =>
    heads.map((head, i) => make("span", { class: "name" }, hasNumbers || i % 4 === 0 ? head.name : ""));
  const [columnNames, rowNames] = [names(), names()];
  const square = make("div", { class: "square", role: "img" }, make("span"), ...columnNames);
  square.style.setProperty("--count", String(count));
  rowNames.forEach((name, row) => square.append(name, ...cells.slice(row * count, (row + 1) * count)));
  const legend = make("div", { class: "legend" });
  const root = make("figure", {}, make("figcaption", {}, matrix.title), square, legend);
  const current = { step: 0 };
  square.addEventListener("pointermove", (event) => {
    const i = cells.indexOf(/** @type {HTMLElement} */ (event.target));
    if (i < 0) return;
    const [a, b] = [heads[Math.floor(i / count)].name, heads[i % count].name];
    say(`${a} and ${b}: ${formatDecimal(matrix.values[current.step][i], 3)}`);
  });
  square.addEventListener("pointerleave", () => say(""));
  /** @type {(step: number, colours: Palettes) => void} */
  const draw = (step, colours) => {
    current.step = step;
    const shades = colours[matrix.colours];
    cells.forEach((cell, i) => paintCell(cell, matrix.values[step][i], matrix, shades, hasNumbers));
    square.setAttribute(
      "aria-label",
      `${matrix.title}: ${matrix.legend.map(([v, words]) => `${v} ${words}`).join(", ")}`,
    );
    legend.replaceChildren(...matrix.legend.map(([value, words]) => makeLegendEntry(value, words, matrix, shades)));
  };
  return { root, draw };
}

/**
 * @type {(cell: HTMLElement, value: number, matrix: PlayerMatrix, shades: Uint32Array, hasNumber: boolean) => void}
 */
function paintCell(cell, value, matrix, shades, hasNumber) {
  const colour = shades[computeShade(value, matrix.low, matrix.high)];
  cell.style.background = formatColour(colour);
  cell.style.color = chooseInk(colour);
  cell.textContent = hasNumber ? formatDecimal(value, 2) : "";
}

/** @type {(value: number, words: string, matrix: PlayerMatrix, shades: Uint32Array) => HTMLElement} */
function makeLegendEntry(value, words, matrix, shades) {
  const swatch = make("i", { "aria-hidden": "true" });
  swatch.style.background = formatColour(shades[computeShade(value, matrix.low, matrix.high)]);
  return make("span", {}, swatch, `${String(value).replace("-", "−")} = ${words}`);
}
