// Numbers in sentences: the same rules as mha_viz/numerals.py.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decimal, small } from "../../mha_viz/browser/numerals.js";

test("decimals have a minus sign, no negative zero, and separated thousands", () => {
  const written = [-0.001, -1.005, 1234567.891, 999, 0.12345678].map((value) => decimal(value, 2));
  assert.deepEqual(written, ["0.00", "−1.00", "1,234,567.89", "999.00", "0.12"]);
  assert.equal(decimal(-1024, 0), "−1,024");
  assert.equal(decimal(0.12345678, 6), "0.123457");
});

test("a small number is one digit times a power of ten", () => {
  assert.deepEqual([0, 5e-7, 4e-4].map(small), ["0", "5\u00a0·\u00a010⁻⁷", "4\u00a0·\u00a010⁻⁴"]);
});
