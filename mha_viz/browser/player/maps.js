// The map of every head at one moment of training: cells on a canvas, signs and words over it.
import { make } from "../dom.js";
import { blended, bytesOf } from "./frames.js";
import { svg } from "./svg.js";

const SIGN = 0.34; // of a cell: half the side of a square, or the radius of a circle

/** @type {(data: PlayerData, say: (text: string) => void) => MapsView} */
export function mapsOf(data, say) {
  const n = data.words.length;
  const cells = bytesOf(data.maps);
  const canvases = data.heads.map((head) => canvasOf(head, n));
  const view = { moment: 0 };
  const figures = data.heads.map((head, h) => figureOf(data, head, canvases[h]));
  const root = make("div", { class: "maps" }, ...figures);
  root.style.setProperty("--columns", String(data.columns));
  root.addEventListener("pointermove", (event) => {
    const h = canvases.indexOf(/** @type {HTMLCanvasElement} */ (event.target));
    if (h < 0) return;
    const [row, column] = [event.offsetY, event.offsetX].map((v) => Math.floor((v / canvases[h].clientWidth) * n));
    if (Math.min(row, column) < 0 || Math.max(row, column) >= n) return;
    const now = blended(cells, data.heads.length * n * n, view.moment);
    const weight = (now[(h * n + row) * n + column] / 255).toFixed(2);
    say(`${data.heads[h].name}: “${data.words[row]}” gives ${weight} to “${data.words[column]}”`);
  });
  root.addEventListener("pointerleave", () => say(""));
  /** @type {(moment: number, colours: Uint32Array) => void} */
  const draw = (moment, colours) => {
    view.moment = moment;
    const now = blended(cells, data.heads.length * n * n, moment);
    canvases.forEach((canvas, h) => paintCells(canvas, now.subarray(h * n * n, (h + 1) * n * n), colours, n));
  };
  return { root, draw };
}

/** @type {(head: PlayerHead, n: number) => HTMLCanvasElement} */
function canvasOf(head, n) {
  return make("canvas", { width: n, height: n, role: "img", "aria-label": `Where ${head.name} looks` });
}

/** @type {(canvas: HTMLCanvasElement, shades: Uint8ClampedArray, colours: Uint32Array, n: number) => void} */
function paintCells(canvas, shades, colours, n) {
  const picture = new ImageData(n, n);
  new Uint32Array(picture.data.buffer).set(Array.from(shades, (shade) => colours[shade]));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.putImageData(picture, 0, 0);
}

/** @type {(data: PlayerData, head: PlayerHead, canvas: HTMLCanvasElement) => HTMLElement} */
function figureOf(data, head, canvas) {
  const n = data.words.length;
  const box = make("div", { class: "map" }, canvas, signs(data.marks, n));
  const words = () => data.words.map((word) => make("span", {}, make("bdi", {}, word)));
  const rows = make("div", { class: "rows", "aria-hidden": "true" }, ...words());
  const columns = make("div", { class: "columns", "aria-hidden": "true" }, ...words());
  const title = make("figcaption", {}, head.name);
  title.style.setProperty("--own", head.colour);
  const named = data.columns <= 4;
  return make("figure", { class: named ? "named" : "" }, title, ...(named ? [rows, box, columns] : [box]));
}

// Open signs that leave the shade of their cell to be seen: circles for the first relation, then squares, diamonds.
/** @type {(marks: PlayerMark[], n: number) => SVGElement} */
function signs(marks, n) {
  const drawn = marks.flatMap(({ places, colour }, relation) =>
    places.flatMap((key, query) => (key < 0 ? [] : [sign(relation, key + 0.5, query + 0.5, colour)])),
  );
  return svg("svg", { viewBox: `0 0 ${n} ${n}`, "aria-hidden": "true" }, ...drawn);
}

/** @type {(relation: number, x: number, y: number, colour: string) => SVGElement} */
export function sign(relation, x, y, colour) {
  const line = { fill: "none", stroke: colour, "stroke-width": 0.13 };
  if (relation === 0) return svg("circle", { cx: x, cy: y, r: SIGN, ...line });
  /** @type {Record<string, string>} */
  const turn = relation === 2 ? { transform: `rotate(45 ${x} ${y}) ` } : {};
  const [side, half] = relation === 2 ? [SIGN * 1.5, SIGN * 0.75] : [SIGN * 2.4, SIGN * 1.2];
  return svg("rect", { x: x - half, y: y - half, width: side, height: side, ...turn, ...line });
}
