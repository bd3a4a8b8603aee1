// A reading in the format of figures/layout/packet.py: the tokens of both axes, and the matrices of the heads.
import { isOfLayers } from "./view.js";
/** @import { Link } from "./geometry.js" */

/** @typedef {{ starts: number[], special: number[] }} Bins pooled tokens: their first ones */
/** @typedef {{ label: string, help: string, unit: string, values: (number | null)[] }} Metric */

/**
 * Data for rows or columns: the tokens of a text and its words. `groups`: the tokens of each word.
 *
 * @typedef {object} Axis
 * @property {number} n
 * @property {string[]} tokens
 * @property {number[]} segments
 * @property {number[]} special
 * @property {number[][]} groups
 * @property {string[]} words
 * @property {number} [written] the first token that the model wrote
 */

/**
 * An axis of panels: also has the typed text, the position of each token in it, and its words by token.
 *
 * @typedef {Axis & { text: string, pair: string, spans: ([number, number] | null)[], wordOf: number[] }} TypedAxis
 */

/** @typedef {{ ramp: string[], signed: string[], heads: string[], dashes: number[][], has_minus?: boolean }} Theme */
/** @typedef {{ light: Theme, dark: Theme, grey?: Theme }} Themes */

/**
 * A reading (figures/layout/packet.py): the rows, and `keys`, the columns if they belong to another text. `request`:
 * further data that the server needs to read it again.
 *
 * @typedef {object} ReadingFields
 * @property {TypedAxis} [keys]
 * @property {boolean} [coarse] levels of one byte
 * @property {Record<string, string>} [request] the texts given to an encoder–decoder; or the heads that are off,
 *   how, and the text that their outputs are from
 * @property {string} [quantity]
 * @property {string} [numbers] what the numbers are called, unless they are the weights that the model computed
 * @property {boolean} [signed]
 * @property {number[][]} [hidden] [head in `full`][query]: the share hidden before rescaling
 * @property {string} key identifies the reading
 * @property {string} of identifies its text
 * @property {string} model the name by which the server loads the model
 * @property {string} cited the name of the model in citations, with its revision
 * @property {string} label the name of the model in titles
 * @property {string} revision the revision in words
 * @property {string} steps
 * @property {number} layers
 * @property {number} heads
 * @property {number} together the maximum number of heads drawn together
 * @property {number[]} full the heads whose matrices were sent
 * @property {{ layers: number[], heads: number[] }} [drawn] the layers and heads of the grid, if not all
 * @property {[number, number][]} [in_model] [layer, head] of each map in the model, if only some heads were kept
 * @property {number[]} [layer_numbers] the numbers of the layers in the model, if the reading has only some of them
 * @property {Metric[]} metrics
 * @property {Themes} themes
 * @property {{ head?: string | null, pin?: string | null }} [start]
 * @property {Bins & { keys?: Bins }} [bins]
 * @property {Uint8Array} [thumbs] pooled weights of all heads
 * @property {Map<number, Float32Array>} matrices
 * @property {Link & { words: boolean, weights: number[] }} [link]
 */
/** @typedef {TypedAxis & ReadingFields} Reading */

// Unpack the bytes of a reading (figures/layout/packet.py): header fields, matrices by head number, pooled thumbnails.
/** @type {(bytes: Uint8Array) => Reading} */
export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const reading = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const body = bytes.slice(4 + length).buffer;
  const { n, full } = reading;
  const { n: m, special } = getKeys(reading);
  const scales = new Float32Array(body, 0, 2 * n * full.length);
  const Levels = reading.coarse ? Uint8Array : Uint16Array;
  const levels = new Levels(body, scales.byteLength, n * m * full.length);
  const zero = reading.signed ? 2 ** (8 * Levels.BYTES_PER_ELEMENT - 1) : 0; // the middle level
  const weights = new Float32Array(levels.length);
  decode(levels, scales, special, zero, weights);
  const size = n * m;
  reading.matrices = new Map(
    full.map((/** @type {number} */ head, /** @type {number} */ i) => [
      head,
      weights.subarray(size * i, size * (i + 1)),
    ]),
  );
  if (reading.bins) reading.thumbs = new Uint8Array(body, scales.byteLength + levels.byteLength);
  return reading;
}

// Return the columns: {n, tokens, segments, special, groups, words}. They equal the rows unless there is another text.
/** @type {(reading: Reading) => TypedAxis} */
export const getKeys = (reading) => reading.keys ?? reading;

// Decode levels into weights [row * m + key], with m keys. Each row has one scale for ordinary keys and one for special
// ones.
/**
 * @type {(levels: Uint8Array | Uint16Array, scales: Float32Array, special: number[], zero: number,
 *   weights: Float32Array) => void}
 */
function decode(levels, scales, special, zero, weights) {
  const m = special.length;
  const specials = [...special.keys()].filter((k) => special[k]);
  for (let i = 0, row = 0; i < levels.length; row++) {
    const [ordinaryScale, specialScale, begin] = [scales[2 * row], scales[2 * row + 1], i];
    for (const end = begin + m; i < end; i++) weights[i] = (levels[i] - zero) * ordinaryScale;
    for (const k of specials) weights[begin + k] = (levels[begin + k] - zero) * specialScale;
  }
}

// Return the numbers of the layers and heads that the grid draws.
/** @type {(reading: Reading) => { layers: number[], heads: number[] }} */
export const getGrid = ({ drawn, layers, heads }) => drawn ?? { layers: makeRange(layers), heads: makeRange(heads) };
/** @type {(count: number) => number[]} */
const makeRange = (count) => Array.from({ length: count }, (_, i) => i);

// Return the row and the column of a head in the grid.
/** @type {(reading: Reading, head: number) => [number, number]} */
export function getGridPlace(reading, head) {
  const { layers, heads } = getGrid(reading);
  return [layers.indexOf(Math.floor(head / reading.heads)), heads.indexOf(head % reading.heads)];
}

// Return the name of a head for an address. `formatMapName` is for the page.
/** @type {(reading: Reading, index: number) => string} */
export const formatHead = (reading, index) => `L${getNumbers(reading, index).join("H")}`;

// Return the layer and head numbers of a map, by its place in the reading and `layer_numbers`.
/** @type {(reading: Reading, index: number) => [number, number]} */
function getNumbers({ layer_numbers: layers, heads }, index) {
  const row = Math.floor(index / heads);
  return [layers?.[row] ?? row, index % heads];
}

// Return the layer and head numbers of a map in the model. They differ from `getNumbers` if only some heads were kept.
/** @type {(reading: Reading, index: number) => [number, number]} */
export const getModelNumbers = (reading, index) => reading.in_model?.[index] ?? getNumbers(reading, index);

// Whether only some heads were kept, whose maps are drawn side by side rather than in rows of layers.
/** @type {(reading: Reading) => boolean} */
export const hasKeptHeads = (reading) => !!reading.in_model && !isOfLayers(reading);

// Return the displayed name of a map: "L3H1" for a head, "layer 5" for rollout.
/** @type {(reading: Reading, index: number) => string} */
export const formatMapName = (reading, index) =>
  isOfLayers(reading) ? `layer ${getModelNumbers(reading, index)[0]}` : `L${getModelNumbers(reading, index).join("H")}`;

// Return the name of a map counted from 1, as in papers: "4-2", "6".
/** @type {(reading: Reading, index: number) => string} */
export const formatPaperName = (reading, index) =>
  getModelNumbers(reading, index)
    .slice(0, isOfLayers(reading) ? 1 : 2)
    .map((number) => number + 1)
    .join("-");

// Whether the head of a map was switched off in this reading. Its pattern is computed all the same.
/** @type {(reading: Reading, index: number) => boolean} */
export const isSwitchedOff = (reading, index) =>
  !isOfLayers(reading) && (reading.request?.off ?? "").split(".").includes(formatMapName(reading, index));
