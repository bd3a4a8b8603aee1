// Interpolate recorded steps: find the two frames around a moment of playback, and the numbers between them.

// Decode base64 to bytes.
/** @type {(text: string) => Uint8Array} */
export const decodeBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const PACE = { all: 6000, least: 40, most: 1200, removed: 600 }; // milliseconds: see below

// Return the milliseconds from each frame to the next, with `size` cells each. They are in proportion to the change of
// the cells, so that something is always moving, and sum to about PACE.all. If the set of heads that are `off` changes,
// they are PACE.removed.
/** @type {(cells: Uint8Array, size: number, off: boolean[][] | null) => number[]} */
export function computePaces(cells, size, off) {
  const count = Math.max(0, Math.floor(cells.length / size) - 1);
  const changes = Array.from({ length: count }, (_, i) => {
    let change = 0;
    for (let cell = i * size; cell < (i + 1) * size; cell++) change += Math.abs(cells[cell + size] - cells[cell]);
    return change;
  });
  const total = changes.reduce((sum, change) => sum + change, 0) || 1;
  return changes.map((change, i) =>
    off && off[i].join() !== off[i + 1].join()
      ? PACE.removed
      : Math.min(PACE.most, Math.max(PACE.least, (PACE.all * change) / total)),
  );
}

// Return the moment, counted in frames, after `elapsed` milliseconds of playback; it ends on the last frame.
/** @type {(from: number, elapsed: number, paces: number[]) => number} */
export function computeMoment(from, elapsed, paces) {
  let left = Math.max(0, elapsed);
  for (let at = from; at < paces.length; at++) {
    if (left < paces[at]) return at + left / paces[at];
    left -= paces[at];
  }
  return paces.length;
}

// Return the start of playback: the slider's position, or the first frame if the slider is at the last.
/** @type {(at: number, count: number) => number} */
export const chooseStart = (at, count) => (at >= count - 1 ? 0 : at);

// Return the cells of a moment, with `size` cells per frame, interpolated linearly between two frames.
/** @type {(cells: Uint8Array, size: number, moment: number) => Uint8ClampedArray} */
export function blendFrames(cells, size, moment) {
  const first = Math.floor(moment);
  const share = moment - first;
  const before = cells.subarray(first * size, (first + 1) * size);
  const after = share ? cells.subarray((first + 1) * size, (first + 2) * size) : before;
  return Uint8ClampedArray.from(before, (value, i) => value + (after[i] - value) * share);
}

// Return the shade, 0 to 255, of a value between `low` and `high`.
/** @type {(value: number, low: number, high: number) => number} */
export const computeShade = (value, low, high) =>
  Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low))));

// Choose black or white, whichever is easier to read on a colour of the palette.
/** @type {(colour: number) => string} */
export const chooseInk = (colour) =>
  0.299 * (colour & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * ((colour >> 16) & 255) > 140 ? "#000" : "#fff";

/** @type {(colour: number) => string} */
export const formatColour = (colour) => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
