// The recipe of a head: its rules in words, and the cells that a rule predicts.
import assert from "node:assert/strict";
import test from "node:test";
import { findCells, writeRemark, describeRecipe } from "../../mha_viz/browser/explorer/recipe.js";

const rules = [
  { name: "[CLS]", says: "[CLS]", kind: "special", needs: "", cells: "" },
  {
    name: "the token after",
    says: "the token after",
    kind: "position",
    needs: "",
    cells: btoa(String.fromCharCode(0b01000101, 0b00000000)),
  },
  { name: "2 tokens after", says: "2 tokens after", kind: "position", needs: "", cells: "" },
  { name: "nouns", says: "nouns", kind: "grammar", needs: "parts of speech", cells: "" },
];
const heads = [
  {
    parts: [
      [1, 0.5],
      [0, 0.2],
      [2, 0.1],
    ],
    explained: 0.8,
    interval: [0.78, 0.83],
    isEven: false,
  },
  { parts: [[3, 0.7]], explained: 0.7, interval: null, isEven: true },
];
const recipes = { on: "A, scored on B", colours: { position: 0 }, rules, heads, here: [0.75, 0.7], annotated: false };

test("cells are decoded from bits; a unit combines the cells of its tokens", () => {
  // [query, key] of three tokens: 0 → 1, 1 → 2, and 2 → 1
  const token = (i) => ({ tokens: [i] });
  const tokens = [0, 1, 2].map(token);
  const marked = [false, true, false, false, false, true, false, true, false];
  assert.deepEqual(findCells(rules[1], 3, { rows: tokens, cols: tokens }), marked);
  const words = [token(0), { tokens: [1, 2] }];
  assert.deepEqual(findCells(rules[1], 3, { rows: words, cols: words }), [false, true, false, true]);
  assert.equal(findCells(rules[0], 3, { rows: tokens, cols: tokens }), null);
});

test("the remark mentions skipped rules, the description nearly even heads", () => {
  assert.equal(writeRemark(recipes, 0), "Measured on A, scored on B: described, not explained.");
  assert.match(writeRemark(recipes, 1), /needs annotation: left out here/);
  assert.doesNotMatch(writeRemark({ ...recipes, here: null }, 1), /annotat/);
  assert.doesNotMatch(writeRemark({ ...recipes, annotated: true }, 1), /annotat/);
  assert.equal(
    describeRecipe(recipes, 0),
    "On average it attends 50% to the token after, 20% to [CLS]; no rule explains 20% [17%, 22%]. ",
  );
  assert.match(describeRecipe(recipes, 1), /^On average it attends evenly/);
});
