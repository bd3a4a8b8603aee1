// Draw the stages of a head: closed, as a small picture of its numbers; open, with names, values and words.
import { make, isolateText } from "../dom.js";
import { makePalette } from "../ink.js";
import { formatDecimal } from "../numerals.js";
/** @import { Children } from "../dom.js" */
/** @import { Send } from "../mount.js" */

/**
 * A vector: shades of its numbers, −100 to 100.
 *
 * @typedef {{ name: string, value: string, cells: number[] }} Vector
 */

/** @typedef {{ name: string, number: number, value: string }} Bar */
/** @typedef {{ towards: string[], away: string[] }} Written words that a vector makes more or less probable */
/** @typedef {{ key: Written, share: string, whole: Written, head: string, is_embedding: boolean }} Words */

/**
 * The numbers of all stages (app/inside/picture.py). `moved`: the values times their shares, and their sum; `layer`:
 * the shares of heads; `written`: the words that the head writes, or why there are none.
 *
 * @typedef {{
 *   names: string[],
 *   x: Vector[],
 *   projected: Vector[],
 *   products: Vector[],
 *   score: { sum: string, scaled: string, scale: string, is_masked: boolean, why: Bar[], above: string },
 *   shares: { token: number, name: string, weight: number }[],
 *   moved: Vector[],
 *   layer: Bar[],
 *   written: Words | string,
 *   answer: Bar[],
 *   signed: string[],
 * }} Picture
 */

// Draw the closed form of a stage.
/** @type {(stage: string, picture: Picture) => Children} */
export function drawThumbnail(stage, picture) {
  const vectors = VECTORS[stage]?.(picture);
  if (vectors) return vectors.map((vector) => drawCells(vector, picture.signed));
  if (stage === "share") return [drawColumns(picture.shares.map(({ weight }) => weight))];
  if (stage === "join") return [drawColumns(picture.layer.map(({ number }) => number))];
  const words = typeof picture.written === "string" ? [] : picture.written.key.towards;
  return words.slice(0, 4).map((word) => make("span", {}, isolateText(word)));
}

const ONE_COLUMN_BARS = 6; // more bars than this stand in two columns

/** @type {Record<string, (picture: Picture) => Vector[]>} */
const VECTORS = {
  x: ({ x }) => x,
  project: ({ projected }) => projected,
  score: ({ products }) => products,
  moved: ({ moved }) => moved,
};

// Draw the open form of a stage.
/** @type {(stage: string, picture: Picture, send: Send) => Children} */
export function drawDetail(stage, picture, send) {
  const vectors = VECTORS[stage]?.(picture).map((vector) => drawVector(vector, picture.signed)) ?? [];
  return [...vectors, ...(DETAILS[stage]?.(picture, send) ?? [])];
}

/** @type {Record<string, (picture: Picture, send: Send) => Children>} */
const DETAILS = {
  project: () => [makeNote("Three matrices of this head’s own make q, k and v from x.")],
  score: ({ score }) => [
    make("p", { class: "sum" }, `${score.sum} ${score.scale} = `, make("b", {}, score.scaled)),
    ...(score.is_masked ? [makeNote("Masked: −∞ before softmax.")] : []),
    ...(score.why.length
      ? [makeNote(`Above the mean over keys: ${score.above}, by part of the key:`), drawBars(score.why)]
      : []),
  ],
  share: ({ shares }, send) => [drawShares(shares, send)],
  moved: ({ names }) => [makeNote("Each v, times its share; the sum goes to “", isolateText(names[0]), "”.")],
  // Where what the layer adds is not a sum over heads, because another norm follows, heads write no words.
  join: ({ layer, names, written }) => [
    makeNote(
      `Share of each head in ${typeof written === "string" ? "W_O’s output for" : "what the layer adds to"} “`,
      isolateText(names[0]),
      "”:",
    ),
    drawBars(layer),
  ],
  writes: ({ written, names, answer }) => [
    ...(typeof written === "string"
      ? [makeNote(written)]
      : [
          drawWords(["From “", isolateText(names[1]), `”, ${written.share} of what the layer adds`], written.key),
          drawWords([`From all keys, ${written.head}`], written.whole),
          ...(written.is_embedding ? [makeNote("Compared with the input embeddings.")] : []),
        ]),
    ...(answer.length
      ? [makeNote("The model’s answer → without this head (later parts change it, too):"), drawBars(answer)]
      : []),
  ],
};

/** @type {(...words: Children) => HTMLElement} */
const makeNote = (...words) => make("p", { class: "note" }, ...words);

/** @type {(vector: Vector, signed: string[]) => HTMLElement} */
function drawVector(vector, signed) {
  const cells = drawCells(vector, signed);
  cells.setAttribute("role", "img");
  cells.setAttribute("aria-label", `${vector.name}: ${vector.cells.length} numbers`);
  const value = make("output", {}, vector.value);
  return make("div", { class: "vector" }, make("span", {}, isolateText(vector.name)), cells, value);
}

// Draw a vector as a row of pixels, orange above zero and blue below.
/** @type {(vector: Vector, signed: string[]) => HTMLCanvasElement} */
function drawCells({ cells }, signed) {
  const canvas = make("canvas", { width: cells.length, height: 1 });
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const [colours, image] = [makePalette(signed), context.createImageData(cells.length, 1)];
  const pixels = new Uint32Array(image.data.buffer);
  cells.forEach((cell, i) => (pixels[i] = colours[computeShade(cell)]));
  context.putImageData(image, 0, 0);
  return canvas;
}

// Return the shade of a number from −100 to 100, from 0 to 255.
/** @type {(cell: number) => number} */
export const computeShade = (cell) => Math.round(127.5 + 1.275 * Math.max(-100, Math.min(100, cell)));

/** @type {(values: number[]) => HTMLElement} */
function drawColumns(values) {
  const largest = Math.max(...values.map(Math.abs), 1e-9);
  const columns = values.map((value) => {
    const column = make("i", { class: value < 0 ? "below" : "" });
    column.style.height = `${(100 * Math.abs(value)) / largest}%`;
    return column;
  });
  return make("div", { class: "columns" }, ...columns);
}

/** @type {(bars: Bar[]) => HTMLElement} */
function drawBars(bars) {
  const largest = Math.max(...bars.map(({ number }) => Math.abs(number)), 1e-9);
  const many = bars.length > ONE_COLUMN_BARS ? " many" : "";
  return make("div", { class: `bars${many}` }, ...bars.map((bar) => drawBar(bar, largest)));
}

/** @type {(bar: Bar, largest: number) => HTMLElement} */
function drawBar({ name, number, value }, largest) {
  const line = make("i", { class: number < 0 ? "below" : "" });
  line.style.width = `${(100 * Math.abs(number)) / largest}%`;
  return make(
    "p",
    {},
    make("span", {}, isolateText(name)),
    make("span", { class: "track" }, line),
    make("output", {}, value),
  );
}

// Draw the share of each key; a click chooses the key.
/** @type {(shares: Picture["shares"], send: Send) => HTMLElement} */
function drawShares(shares, send) {
  const largest = Math.max(...shares.map(({ weight }) => weight), 1e-9);
  const bars = shares.map(({ token, name, weight }) => {
    const bar = drawBar({ name: "", number: weight, value: `${formatDecimal(100 * weight, 1)}%` }, largest);
    bar.firstElementChild?.append(isolateText(name));
    return make("button", { type: "button", class: "key", onclick: () => send("key", token) }, ...bar.childNodes);
  });
  return make("div", { class: `bars${bars.length > ONE_COLUMN_BARS ? " many" : ""}` }, ...bars);
}

/** @type {(title: Children, written: Written) => HTMLElement} */
function drawWords(title, { towards, away }) {
  /** @type {(sign: string, words: string[]) => HTMLElement} */
  const makeLine = (sign, words) =>
    make("p", { class: sign === "+" ? "towards" : "away" }, make("b", {}, `${sign} `), isolateText(words.join(", ")));
  const lines = towards.length ? [makeLine("+", towards), makeLine("−", away)] : [makeNote("nothing")];
  return make("div", { class: "words" }, makeNote(...title), ...lines);
}
