// Descriptions of heads that are drawn although they are switched off, and the table of a large matrix.
import assert from "node:assert/strict";
import test from "node:test";
import { describeOff, makeTables } from "../../mha_viz/browser/words.js";

const reading = (fields = {}) => ({ layers: 2, heads: 4, request: { off: "L0H1.L1H2.L1H3", how: "zero" }, ...fields });

test("only drawn heads that are off are described", () => {
  assert.equal(describeOff(reading(), [1]), "L0H1 is off: this pattern is computed, its output is not used.");
  assert.equal(describeOff(reading(), [0, 5]), "");
  const two = "L1H2 and L1H3 are off: their patterns are computed, their outputs are not used.";
  assert.equal(describeOff(reading(), [4, 6, 7]), two);
});

test("heads are named by their numbers in the model; maps of layers are not described", () => {
  assert.match(describeOff(reading({ heads: 1, in_model: [[1, 2]] }), [0]), /^L1H2 is off/);
  assert.equal(describeOff(reading({ quantity: "rollout" }), [1]), "");
  assert.equal(describeOff(reading({ request: undefined }), [1]), "");
  assert.equal(describeOff(reading({ request: { off: "" } }), [0]), "");
});

test("a large matrix lists its largest numbers, however small they are", () => {
  globalThis.document = {
    createElement: () => ({
      children: [],
      setAttribute() {},
      append(...children) {
        this.children.push(...children);
      },
    }),
  };
  const n = 50;
  const units = Array.from({ length: n }, (_, i) => ({ text: `w${i}`, tokens: [i] }));
  const block = { w: new Float32Array(n * n).fill(0.02), R: n, C: n };
  const [table, note] = makeTables({ head: 0, block }, { rows: units, cols: units }, reading(), { unit: "pieces" });
  const [, , body] = table.children;
  assert.equal(body.children.length, 300);
  assert.match(note.children.join(""), /^The 300 largest of 2500 numbers/);
});
