// Interpolate recorded steps: find the two frames around a moment of playback, and the numbers between them.

// Decode base64 to bytes.
/** @type {(text: string) => Uint8Array} */
export const decodeBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const DURATION = { total: 6000, min: 40, max: 1200, removal: 600 }; // milliseconds; see computeDurations

// Return the milliseconds from each frame to the next; frames have `size` cells. Durations are in proportion to the
// change of the cells, so that something is always moving, and sum to about DURATION.total. If the set of heads that
// are `off` changes, the duration is DURATION.removal.
/** @type {(cells: Uint8Array, size: number, off: boolean[][] | null) => number[]} */
export function computeDurations(cells, size, off) {
  const count = Math.max(0, Math.floor(cells.length / size) - 1);
  const changes = Array.from({ length: count }, (_, i) => {
    let change = 0;
    for (let cell = i * size; cell < (i + 1) * size; cell++) change += Math.abs(cells[cell + size] - cells[cell]);
    return change;
  });
  const total = changes.reduce((sum, change) => sum + change, 0) || 1;
  return changes.map((change, i) =>
    off && off[i].join() !== off[i + 1].join()
      ? DURATION.removal
      : Math.min(DURATION.max, Math.max(DURATION.min, (DURATION.total * change) / total)),
  );
}

// Return the moment, counted in frames, after `elapsed` milliseconds of playback; it ends on the last frame.
/** @type {(from: number, elapsed: number, durations: number[]) => number} */
export function computeMoment(from, elapsed, durations) {
  let remaining = Math.max(0, elapsed);
  for (let step = from; step < durations.length; step++) {
    if (remaining < durations[step]) return step + remaining / durations[step];
    remaining -= durations[step];
  }
  return durations.length;
}

// Return the start of playback: the slider's position, or the first frame if the slider is at the last.
/** @type {(position: number, count: number) => number} */
export const chooseStart = (position, count) => (position >= count - 1 ? 0 : position);

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
