// What the page says about hidden tokens, as captions of figures do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeHidden } from "../../mha_viz/browser/words.js";

const describe = (special, fields) => {
  const reading = { segments: [0, 0], ...fields };
  return describeHidden({ block: { hidden: [0.2, 0.4] } }, { rows: [] }, null, { special, side: "all" }, reading);
};

test("only rows that were rescaled are said to be", () => {
  const [gone, goes] = ["went to hidden tokens before rescaling.", "goes to hidden tokens."];
  const [shares, norms, signed] = [{}, { quantity: "norm" }, { quantity: "gradient", signed: true }];
  for (const [special, fields, outcome] of [
    ["rescale", shares, gone],
    ["rescale", norms, gone],
    ["rescale", signed, goes],
    ["hide", shares, goes],
    ["keep", { ...shares, hidden: [[0]] }, gone],
    ["keep", { ...norms, hidden: [[0]] }, goes],
    ["keep", { ...signed, hidden: [[0]] }, goes],
  ])
    assert.equal(describe(special, fields), `30.0% of this head’s attention ${outcome}`);
});
