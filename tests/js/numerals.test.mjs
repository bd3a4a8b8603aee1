// Formatting of numbers, by the rules of mha_viz/numerals.py.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatDecimal,
  formatNumber,
  formatSigned,
  formatThreeDigits,
  formatSmall,
} from "../../mha_viz/browser/numerals.js";

test("decimals have a minus sign, no negative zero, and separated thousands", () => {
  const formatted = [-0.001, -1.005, 1234567.891, 999, 0.12345678].map((value) => formatDecimal(value, 2));
  assert.deepEqual(formatted, ["0.00", "−1.00", "1,234,567.89", "999.00", "0.12"]);
  assert.equal(formatDecimal(-1024, 0), "−1,024");
  assert.equal(formatDecimal(0.12345678, 6), "0.123457");
});

test("a small number is one digit times a power of ten", () => {
  assert.deepEqual([0, 5e-7, 4e-4].map(formatSmall), ["0", "5\u00a0·\u00a010⁻⁷", "4\u00a0·\u00a010⁻⁴"]);
});

test("numbers of any size have three significant digits", () => {
  const values = [0, 0.0010449, -0.0625, 1.125, 0.9996, -12, 123456, 2.5e-7, 4e6];
  const formatted = [
    "0",
    "0.00104",
    "−0.0625",
    "1.13",
    "1.00",
    "−12.0",
    "123,000",
    "2.50\u00a0·\u00a010⁻⁷",
    "4.00\u00a0·\u00a010⁶",
  ];
  assert.deepEqual(
    values.map((value) => formatThreeDigits(value)),
    formatted,
  );
  assert.deepEqual(
    [0.5, -0.5, 0].map((value) => formatThreeDigits(value, true)),
    ["+0.500", "−0.500", "0"],
  );
});

test("only shares have three decimals", () => {
  const [norm, gradient] = [{ quantity: "norm" }, { quantity: "gradient", signed: true }];
  const kinds = [{}, { quantity: "rollout" }, norm, gradient];
  assert.deepEqual(
    kinds.map((kind) => formatNumber(0.000123, kind)),
    ["<.001", "<.001", "0.000123", "+0.000123"],
  );
  assert.deepEqual(
    kinds.map((kind) => formatSigned(-0.000123, kind)),
    ["−<.001", "−<.001", "−0.000123", "−0.000123"],
  );
});
