// Recorded steps as frames: which two are between a moment of playing, and the numbers between them.

// Bytes of a base64 text.
/** @type {(text: string) => Uint8Array} */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// A moment counted in frames after `elapsed` milliseconds of playing; it ends on the last frame.
/** @type {(from: number, elapsed: number, pace: number, count: number) => number} */
export const momentAfter = (from, elapsed, pace, count) => Math.min(count - 1, from + Math.max(0, elapsed) / pace);

// Where playing begins: where the slider stands, or at the first frame once it has come to the last.
/** @type {(at: number, count: number) => number} */
export const playFrom = (at, count) => (at >= count - 1 ? 0 : at);

// The cells of a moment, `size` of them for each frame: between two frames each changes evenly.
/** @type {(cells: Uint8Array, size: number, moment: number) => Uint8ClampedArray} */
export function blended(cells, size, moment) {
  const first = Math.floor(moment);
  const share = moment - first;
  const before = cells.subarray(first * size, (first + 1) * size);
  const after = share ? cells.subarray((first + 1) * size, (first + 2) * size) : before;
  return Uint8ClampedArray.from(before, (value, i) => value + (after[i] - value) * share);
}

// The shade, 0 to 255, of a value between `low` and `high`.
/** @type {(value: number, low: number, high: number) => number} */
export const shadeOf = (value, low, high) => Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low))));

// Black or white, whichever reads better on a colour of the palette.
/** @type {(colour: number) => string} */
export const inkOn = (colour) =>
  0.299 * (colour & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * ((colour >> 16) & 255) > 140 ? "#000" : "#fff";

/** @type {(colour: number) => string} */
export const cssColour = (colour) => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
