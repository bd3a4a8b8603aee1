// The picture of a head: the formulas and the shades of vectors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { splitSubscripts } from "../../mha_viz/browser/block/block.js";
import { computeShade } from "../../mha_viz/browser/block/stages.js";

test("zero has the middle shade, and the largest number the last one", () => {
  assert.deepEqual([-100, 0, 100, 300].map(computeShade), [0, 128, 255, 255]);
});

test("what follows an underscore is a subscript", () => {
  assert.deepEqual(splitSubscripts("W_Q  W_K"), ["W", "Q", "  W", "K", ""]);
  assert.deepEqual(splitSubscripts("÷ √d_k"), ["÷ √d", "k", ""]);
  assert.deepEqual(splitSubscripts("16 × 384"), ["16 × 384"]);
});
