// The map of a head's steps: the groups of steps, and the formulas.
import assert from "node:assert/strict";
import { test } from "node:test";
import { groups, subscripts } from "../../mha_viz/browser/block/block.js";

const step = (name, inside) => ({ name, inside });

test("steps inside a head stand together, the others alone and in order", () => {
  const found = groups([
    step("x", false),
    step("linear", false),
    step("qk", true),
    step("softmax", true),
    step("concat", false),
  ]);
  assert.deepEqual(
    found.map((group) => [group.inside, group.steps.map((one) => one.name)]),
    [
      [false, ["x"]],
      [false, ["linear"]],
      [true, ["qk", "softmax"]],
      [false, ["concat"]],
    ],
  );
  assert.deepEqual(groups([]), []);
});

test("what follows an underscore is a subscript", () => {
  assert.deepEqual(subscripts("W_Q  W_K"), ["W", "Q", "  W", "K", ""]);
  assert.deepEqual(subscripts("÷ √d_k"), ["÷ √d", "k", ""]);
  assert.deepEqual(subscripts("16 × 384"), ["16 × 384"]);
});
