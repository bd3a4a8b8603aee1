// Formulas in names that are read aloud.
import assert from "node:assert/strict";
import test from "node:test";
import { spellOut } from "../../mha_viz/browser/scheme/scheme.js";

test("formulas in names are replaced by words", () => {
  assert.equal(spellOut("Without the division by $\\sqrt{d_k}$"), "Without the division by the square root of d_k");
  assert.equal(spellOut("$d_{\\text{model}}$"), "d_model");
  assert.equal(spellOut("Help for $d_{\\text{model}}$ and $W_Q$"), "Help for d_model and W_Q");
  assert.equal(spellOut("$\\frac{q k^\\top}{\\sqrt{d_k}}$"), "q k transposed divided by the square root of d_k");
  assert.equal(spellOut("$4 \\, d_{\\text{model}}^2$"), "4 d_model^2");
});

test("names without a formula are unchanged", () => {
  for (const name of ["tokens n", "costs $5", "C:\\texts", "from \\$5 to \\$6", ""]) assert.equal(spellOut(name), name);
});
