// Palettes, painting of one picture, and cutting of texts.
import assert from "node:assert/strict";
import test from "node:test";
import {
  cutText,
  computeDivergingShades,
  matchCellsToPixels,
  paint,
  makePalette,
  getTypedPart,
  writeText,
} from "../../mha_viz/browser/ink.js";

const rgba = (word) => [word & 255, (word >> 8) & 255, (word >> 16) & 255, word >>> 24];

test("a palette interpolates its stops and is opaque", () => {
  const colours = makePalette(["#000000", "#102030", "#ffffff"]);
  assert.equal(colours.length, 256);
  assert.deepEqual(rgba(colours[0]), [0, 0, 0, 255]);
  assert.deepEqual(rgba(colours[255]), [255, 255, 255, 255]);
  assert.ok(rgba(colours[127]).every((v, i) => Math.abs(v - [16, 32, 48, 255][i]) <= 2));
});

const LEVELS = Uint32Array.from({ length: 256 }, (_, i) => i); // each colour is its shade

function paintInto(target, stride, offset, w, [R, C], size, signed = false) {
  const block = { w: Float32Array.from(w), R, C, signed };
  const shading = { factors: new Float64Array(R).fill(1), shade: (level) => level };
  paint(block, shading, [matchCellsToPixels(R, size), matchCellsToPixels(C, size)], LEVELS, target, stride, offset);
  return [...target];
}

const paintLevels = (levels, R, C, size) => paintInto(new Uint32Array(size * size), size, 0, levels, [R, C], size);

test("a few cells fill the picture with hard edges", () => {
  assert.deepEqual(
    paintLevels([10, 20, 30, 40], 2, 2, 4),
    [10, 10, 20, 20, 10, 10, 20, 20, 30, 30, 40, 40, 30, 30, 40, 40],
  );
});

test("if cells share a pixel, it shows the strongest one", () => {
  const cells = Array(64 * 64).fill(0);
  cells[37 * 64 + 11] = 255;
  const picture = paintLevels(cells, 64, 64, 8);
  assert.equal(picture.filter((v) => v === 255).length, 1);
  assert.equal(picture[4 * 8 + 1], 255);
});

test("rows are multiplied by their factors before cells share pixels", () => {
  const shading = { factors: Float64Array.of(1, 100), shade: (level) => level };
  const block = { w: Float32Array.of(9, 8, 1, 2), R: 2, C: 2 };
  const target = new Uint32Array(1);
  paint(block, shading, [matchCellsToPixels(2, 1), matchCellsToPixels(2, 1)], LEVELS, target, 1, 0);
  assert.equal(target[0], 200);
});

test("cells can share pixels in one direction only", () => {
  assert.deepEqual(paintLevels([1, 9, 2, 3, 4, 5, 8, 6], 1, 8, 2), [9, 8, 9, 8]);
  assert.deepEqual(paintLevels([1, 9, 2, 3, 4, 5, 8, 6], 8, 1, 2), [9, 9, 8, 8]);
});

test("every pixel is painted at any size", () => {
  for (const [R, C] of [
    [1, 1],
    [3, 7],
    [14, 14],
    [100, 3],
  ]) {
    for (const size of [1, 5, 17, 26]) assert.ok(paintLevels(Array(R * C).fill(7), R, C, size).every((v) => v === 7));
  }
});

test("a picture is painted at its offset in a larger one", () => {
  const target = paintInto(new Uint32Array(6 * 5), 6, 2 * 6 + 3, [7], [1, 1], 2);
  const painted = [...target.keys()].filter((i) => target[i]);
  assert.deepEqual(painted, [15, 16, 21, 22]);
});

// Make a context whose letters are ten pixels wide, and which counts its measurements.
function ruler() {
  return {
    font: "10px test",
    measured: 0,
    measureText(text) {
      this.measured += 1;
      return { width: 10 * Array.from(text).length };
    },
  };
}

test("text is cut to the width, ellipsis included, between whole characters", () => {
  assert.equal(cutText(ruler(), "short", 50), "short");
  assert.equal(cutText(ruler(), "shorter", 50), "shor…");
  assert.equal(cutText(ruler(), "😀😀😀😀", 30), "😀😀…");
  assert.equal(cutText(ruler(), "narrow", 5), "…");
});

test("a token of thousands of letters is cut with few measurements", () => {
  const context = ruler();
  assert.equal(cutText(context, "a".repeat(8000), 60), "aaaaa…");
  assert.ok(context.measured < 20, `measured ${context.measured} times`);
});

test("signed numbers have shades on both sides of the middle", () => {
  const block = { w: Float32Array.from([1, -1, 0, -0.5]), R: 2, C: 2 };
  assert.deepEqual([...computeDivergingShades(block, Uint8ClampedArray.from([255, 255, 0, 128]))], [255, 1, 128, 64]);
});

test("if signed cells share a pixel, it shows the one farthest from zero", () => {
  const [shade] = paintInto(new Uint32Array(1), 1, 0, [0, -251, 145, 0], [2, 2], 1, true);
  assert.equal(shade, 3);
});

// Return [text, font, y] of each line that `writeText` draws; letters are 1 pixel wide.
function listLines(text, room) {
  const lines = [];
  const context = {
    font: "600 14px serif",
    measureText: (words) => ({ width: words.length }),
    fillText: (words, x, y) => lines.push([words.slice(1, -1), context.font, y]),
  };
  writeText(context, text, 0, 50, 99, "left", room);
  assert.equal(context.font, "600 14px serif");
  return lines;
}

test("a word that was read as [UNK] is written below that if there is room, otherwise after it", () => {
  assert.deepEqual(listLines("dog", 20), [["dog", "600 14px serif", 50]]);
  assert.deepEqual(listLines("[UNK] zebra", 17), [["[UNK] zebra", "600 14px serif", 50]]);
  assert.deepEqual(listLines("[UNK] zebra", 20), [
    ["[UNK]", "600 10px serif", 46],
    ["zebra", "600 8px serif", 55],
  ]);
  assert.deepEqual(
    listLines("[UNK] zebra", 100).map(([, font]) => font),
    ["600 14px serif", "600 11.200000000000001px serif"],
  );
  assert.deepEqual(["dog", "[UNK]", "[UNK] zebra"].map(getTypedPart), ["dog", "[UNK]", "zebra"]);
});
