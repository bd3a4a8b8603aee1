// The picture of a head: the steps of its stages, the formulas, and the shades of vectors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { groupSteps, splitSubscripts } from "../../mha_viz/browser/block/block.js";
import { computeShade } from "../../mha_viz/browser/block/stages.js";

const step = (name, stage, inside) => ({ name, stage, inside });

test("steps are grouped by stage, in order", () => {
  const found = groupSteps(
    [step("x", "x", false), step("qk", "score", true), step("mask", "score", true), step("concat", "join", false)],
    { x: "x", score: "Score", join: "W_O" },
  );
  assert.deepEqual(
    found.map(({ label, inside, steps }) => [label, inside, steps.map(({ name }) => name)]),
    [
      ["x", false, ["x"]],
      ["Score", true, ["qk", "mask"]],
      ["W_O", false, ["concat"]],
    ],
  );
  assert.deepEqual(groupSteps([], {}), []);
});

test("zero has the middle shade, the largest number the last one", () => {
  assert.deepEqual([-100, 0, 100, 300].map(computeShade), [0, 128, 255, 255]);
});

test("text after an underscore becomes a subscript", () => {
  assert.deepEqual(splitSubscripts("W_Q  W_K"), ["W", "Q", "  W", "K", ""]);
  assert.deepEqual(splitSubscripts("÷ √d_k"), ["÷ √d", "k", ""]);
  assert.deepEqual(splitSubscripts("16 × 384"), ["16 × 384"]);
});
