// The word under the pointer: the tokens at a point of a chart, and the positions of their bands.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bandBox, tokensAt } from "../../mha_viz/browser/pointed/pointed.js";

const meta = { tokens: [0, 4, 9], axes: ["x", "y"] };

test("a cell names its query and its key, a bar its token", () => {
  const cell = { xaxis: { _id: "x" }, yaxis: { _id: "y" }, x: 2, y: 1 };
  assert.deepEqual(tokensAt(meta, cell), [9, 4]);
  const bar = { xaxis: { _id: "x2" }, yaxis: { _id: "y2" }, x: 1, y: 0.3 };
  assert.deepEqual(tokensAt({ ...meta, axes: ["x", "x2"] }, bar), [4]);
});

test("a chart that names no tokens has none", () => {
  assert.deepEqual(tokensAt(undefined, { x: 0, y: 0 }), []);
});

test("a band is as long as the axis across it", () => {
  const c2p = (value) => 10 * (value + 0.5);
  const layout = {
    xaxis2: { _offset: 100, c2p, anchor: "y2" },
    yaxis2: { _offset: 30, _length: 200, anchor: "x2", c2p: (value) => 200 - c2p(value), _length2: 0 },
  };
  assert.deepEqual(bandBox(layout, "x2", 1), { left: 110, top: 30, width: 10, height: 200 });
  const down = bandBox({ ...layout, xaxis2: { ...layout.xaxis2, _length: 300 } }, "y2", 1);
  assert.deepEqual(down, { left: 100, top: 30 + 180, width: 300, height: 10 });
});
