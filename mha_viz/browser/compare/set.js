// Panels to compare, as figures/panels.py packs them: their readings, and which of their words correspond.
import { keysOf, mapName, paperMapName, unpack } from "../reading.js";
/** @import { Axis, Reading, Themes, TypedAxis } from "../reading.js" */

/**
 * The texts of rows, or of columns, of all readings of some panels, and which of their words stand for each other.
 *
 * @typedef {{ readings: TypedAxis[], aligned: (number | null)[][][], place: (number | null)[][][] }} Sides
 */

/**
 * Panels to compare (figures/panels.py).
 *
 * @typedef {object} PanelsFields
 * @property {Sides} [columns]
 * @property {string} key
 * @property {boolean} editable
 * @property {{ reading: number, head: number, name: string, source?: number }[]} panels
 * @property {Reading[]} readings
 * @property {number[]} sizes
 * @property {(string | null)[][]} compared
 * @property {(number | null)[][]} divergence
 * @property {Themes} themes
 * @property {{ diff: string, special?: string }} [start]
 */
/** @typedef {Omit<Sides, "readings"> & PanelsFields} Panels */

/**
 * What the settings depend on with which panels open.
 *
 * @typedef {Pick<Panels, "readings" | "start">} Opening
 */

// Bytes of figures/panels.py -> its header, with each reading unpacked and its words' numbers by token.
/** @type {(bytes: Uint8Array) => Panels} */
export function unpackPanels(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const set = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let from = 4 + length;
  set.readings = set.sizes.map((/** @type {number} */ size) => {
    const reading = unpack(bytes.subarray(from, from + size));
    from += size;
    for (const axis of [reading, reading.keys]) if (axis) axis.wordOf = wordsByToken(axis);
    return reading;
  });
  if (set.columns) Object.assign(set.columns, { readings: set.readings.map(keysOf) });
  return set;
}

/** @type {(axis: Axis) => number[]} */
function wordsByToken({ groups }) {
  /** @type {number[]} */
  const words = [];
  groups.forEach((tokens, word) => tokens.forEach((token) => (words[token] = word)));
  return words;
}

// The correspondence of rows, or of columns; readings of one text have the same units.
/** @type {(set: Panels, side: "rows" | "cols") => Sides} */
export const sideOf = (set, side) => (side === "cols" && set.columns) || set;

/** @type {(set: Panels, panel: number) => Reading} */
export const readingOf = (set, panel) => set.readings[set.panels[panel].reading];

/** @type {(set: Panels, panel: number) => { name: string, paper: string }} */
export const nameOf = (set, panel) => {
  const [reading, { head }] = [readingOf(set, panel), set.panels[panel]];
  return { name: mapName(reading, head), paper: paperMapName(reading, head) };
};
