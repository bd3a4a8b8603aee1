// Colours and canvas helpers shared by the drawings.
/** @import { Block, Shading, Unit } from "./geometry.js" */
/** @import { Look } from "./stage.js" */

/** @type {(hex: string) => number[]} */
const parseChannels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// Interpolate a ramp into 256 shades, as little-endian RGBA words for ImageData.
/** @type {(stops: readonly string[]) => Uint32Array} */
export function makePalette(stops) {
  const shades = new Uint32Array(256);
  const colours = stops.map(parseChannels);
  for (let i = 0; i < 256; i++) {
    const position = (i / 255) * (stops.length - 1);
    const [low, high] = [colours[Math.floor(position)], colours[Math.ceil(position)]];
    const [r, g, b] = low.map((v, k) => Math.round(v + (high[k] - v) * (position - Math.floor(position))));
    shades[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return shades;
}

// Whether the page's background is dark. This works with user-defined themes, too.
/** @type {(element: Element) => boolean} */
export function isDark(element) {
  const background = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  const hex = /^#[0-9a-f]{6}/i.exec(background.replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3"));
  const [r, g, b] = hex ? parseChannels(hex[0]) : (background.match(/\d+/g) || [255, 255, 255]).map(Number);
  return 0.3 * r + 0.59 * g + 0.11 * b < 128;
}

// Return the screen pixels per CSS pixel of a canvas, including the zoom of its part of the page.
/** @type {(canvas: HTMLCanvasElement) => number} */
export const getResolution = (canvas) => (window.devicePixelRatio || 1) * (canvas.currentCSSZoom || 1);

// Return the colours of positive and of negative numbers.
/** @type {(look: Look) => { colour: string, negativeColour: string }} */
export const getSignColours = ({ signed }) => ({ colour: signed[signed.length - 2], negativeColour: signed[1] });

// Fit a canvas to CSS pixels at the screen's resolution; return its cleared context, in CSS pixels.
/** @type {(canvas: HTMLCanvasElement, width: number, height: number) => CanvasRenderingContext2D} */
export function fitCanvas(canvas, width, height) {
  const ratio = getResolution(canvas);
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Return the shades of signed numbers on a scale that diverges from 128. Keep in step with
// `colour_cells` in figures/layout/view.py.
/** @type {(block: { w: ArrayLike<number> }, shade: Uint8ClampedArray) => Uint8ClampedArray} */
export const computeDivergingShades = ({ w }, shade) =>
  shade.map((level, i) => 128 + Math.sign(w[i]) * Math.floor((level * 127) / 255 + 0.5));

let products = new Float64Array(0); // values before they are coloured; reused by the next call

// Paint a block as a square of pixels into `target`; `cellPixels` maps rows and columns to pixels. If there is room, a
// pixel shows the nearest cell; if cells share a pixel, it shows the one farthest from zero.
/**
 * @type {(block: Block, shading: Shading, cellPixels: CellPixels[], colours: Uint32Array, target: Uint32Array,
 *   stride: number, offset: number) => void}
 */
export function paint({ w, C, signed }, { factors, shade }, [rows, columns], colours, target, stride, offset) {
  const { size } = rows;
  if (products.length === size * size) products.fill(0);
  else products = new Float64Array(size * size);
  for (let j = 0; j < rows.cells.length; j++) {
    const [row, line, factor] = [rows.cells[j] * C, rows.pixels[j] * size, factors[rows.cells[j]]];
    for (let i = 0; i < columns.cells.length; i++) {
      const product = w[row + columns.cells[i]] * factor;
      const pixel = line + columns.pixels[i];
      if (Math.abs(product) > Math.abs(products[pixel])) products[pixel] = product;
    }
  }
  const sizes = new Uint8ClampedArray(size * size); // rounds and clips values
  for (let i = 0; i < sizes.length; i++) sizes[i] = shade(Math.abs(products[i]));
  const shades = signed ? computeDivergingShades({ w: products }, sizes) : sizes;
  for (let y = 0, i = 0; y < size; y++)
    for (let pixel = offset + y * stride, end = pixel + size; pixel < end; pixel++, i++)
      target[pixel] = colours[shades[i]];
}

/**
 * Pairs of cells and pixels along a side of `size` pixels: one cell per pixel if there is room, otherwise every cell
 * once.
 *
 * @typedef {{ size: number, cells: Int32Array, pixels: Int32Array }} CellPixels
 */

/** @type {(cells: number, size: number) => CellPixels} */
export function matchCellsToPixels(cells, size) {
  const count = Math.max(cells, size);
  const pairs = { size, cells: new Int32Array(count), pixels: new Int32Array(count) };
  for (let x = 0, i = 0; x < size; x++) {
    const first = Math.floor((x * cells) / size);
    const end = Math.max(Math.floor(((x + 1) * cells) / size), first + 1);
    for (let cell = first; cell < end; cell++, i++) [pairs.cells[i], pairs.pixels[i]] = [cell, x];
  }
  return pairs;
}

const widthCache = new Map(); // text widths by font
/** @type {(context: CanvasRenderingContext2D, text: string) => number} */
function measureWidth(context, text) {
  const key = `${context.font}|${text}`;
  let width = widthCache.get(key);
  if (width === undefined) {
    if (widthCache.size > 4000) widthCache.clear();
    widthCache.set(key, (width = context.measureText(text).width));
  }
  return width;
}

const cutCache = new Map();
// Cut a text to a width, with an ellipsis; results are cached.
/** @type {(context: CanvasRenderingContext2D, text: string, width: number) => string} */
export function cutText(context, text, width) {
  const key = `${context.font}|${width}|${text}`;
  let cut = cutCache.get(key);
  if (cut === undefined) {
    cut = text;
    if (measureWidth(context, text) > width) {
      const letters = Array.from(text);
      /** @type {(count: number) => string} */
      const shorten = (count) => letters.slice(0, count).join("") + "…";
      let [fittingCount, excessCount] = [0, letters.length]; // a token may be thousands of letters long
      while (excessCount - fittingCount > 1) {
        const middle = (fittingCount + excessCount) >> 1;
        if (context.measureText(shorten(middle)).width > width) excessCount = middle;
        else fittingCount = middle;
      }
      cut = shorten(fittingCount);
    }
    if (cutCache.size > 4000) cutCache.clear();
    cutCache.set(key, cut);
  }
  return cut;
}

const UNKNOWN = "[UNK]"; // the model reads this in place of a word for which the tokenizer has no token
const TWO_LINE_HEIGHT = 18; // minimum pixels of a row or column with room for two lines

// Return the typed part of a word in a packet: for a word that was read as [UNK], the part after it.
/** @type {(name: string) => string} */
export const getTypedPart = (name) => (name.startsWith(`${UNKNOWN} `) ? name.slice(UNKNOWN.length + 1) : name);

// Write isolated left-to-right text in any script; return its width. A word that was read as [UNK] is written below
// that, if `lineHeight` has room for two lines.
/**
 * @type {(context: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, align:
 *   CanvasTextAlign, lineHeight?: number) => number}
 */
export function writeText(context, text, x, y, width, align, lineHeight = 0) {
  context.textAlign = align;
  context.textBaseline = "middle";
  const typed = getTypedPart(text);
  /** @type {(words: string, lineY: number) => number} */
  const writeLine = (words, lineY) => {
    const cut = cutText(context, words, width);
    context.fillText(`\u2068${cut}\u2069`, x, lineY);
    return measureWidth(context, cut);
  };
  if (typed === text || lineHeight < TWO_LINE_HEIGHT) return writeLine(text, y);
  const { font } = context;
  const size = parseFloat(/([\d.]+)px/.exec(font)?.[1] ?? "0");
  const first = Math.min(size, lineHeight / 2);
  const second = 0.8 * first;
  context.font = font.replace(/[\d.]+px/, `${first}px`);
  const above = writeLine(UNKNOWN, y - second / 2);
  context.font = font.replace(/[\d.]+px/, `${second}px`);
  const below = writeLine(typed, y + first / 2);
  context.font = font;
  return Math.max(above, below);
}

const widestCache = new WeakMap(); // by list of rows
// Return the width of the widest text among rows and columns.
/** @type {(rows: Unit[], cols: Unit[], font: string) => number} */
export function measureWidest(rows, cols, font) {
  const byFont = widestCache.get(rows) || {};
  if (byFont[font] === undefined) {
    const texts = new Set([...rows, ...cols].map((unit) => unit.text.slice(0, 40)));
    byFont[font] = Math.ceil(Math.max(0, ...measureWidths([...texts], font)));
    widestCache.set(rows, byFont);
  }
  return byFont[font];
}

const MAX_MEASURED = 16; // of many texts, measure only this many, chosen by the total width of their letters
/** @type {OffscreenCanvasRenderingContext2D | null} */
let ruler = null;
/** @type {(texts: string[], font: string) => number[]} */
function measureWidths(texts, font) {
  const pen = (ruler ??= /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(1, 1).getContext("2d")));
  pen.font = font;
  const width = (/** @type {string} */ text) => pen.measureText(text).width;
  if (texts.length <= MAX_MEASURED) return texts.map(width);
  const letters = new Map(Array.from(new Set(texts.join("")), (letter) => [letter, width(letter)]));
  const sums = texts.map((text) => Array.from(text).reduce((sum, letter) => sum + (letters.get(letter) ?? 0), 0));
  const order = Array.from(texts.keys()).sort((a, b) => sums[b] - sums[a]);
  return order.slice(0, MAX_MEASURED).map((i) => width(texts[i]));
}
