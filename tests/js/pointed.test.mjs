// The word under the pointer: the tokens at a point of a chart, and the positions of their bands.
import assert from "node:assert/strict";
import { test } from "node:test";
import { computeBand } from "../../mha_viz/browser/plotly.js";
import { findTokens, showReason } from "../../mha_viz/browser/pointed/pointed.js";
import { listSquares } from "../../mha_viz/browser/scheme/squares.js";

const meta = { tokens: [0, 4, 9], axes: ["x", "y"] };

test("a cell has a query and a key, a bar one token", () => {
  const cell = { xaxis: { _id: "x" }, yaxis: { _id: "y" }, x: 2, y: 1 };
  assert.deepEqual(findTokens(meta, cell), [9, 4]);
  const bar = { xaxis: { _id: "x2" }, yaxis: { _id: "y2" }, x: 1, y: 0.3 };
  assert.deepEqual(findTokens({ ...meta, axes: ["x", "x2"] }, bar), [4]);
});

test("a point of a chart without token data has no tokens", () => {
  assert.deepEqual(findTokens(undefined, { x: 0, y: 0 }), []);
});

test("a band is as long as the other axis", () => {
  const area = { x: 100, y: 30, width: 300, height: 200 };
  assert.deepEqual(computeBand(area, "x2", [-0.5, 29.5], 1), { left: 110, top: 30, width: 10, height: 200 });
  assert.deepEqual(computeBand(area, "y2", [-0.5, 19.5], 1), { left: 100, top: 30 + 180, width: 300, height: 10 });
  const { top } = computeBand(area, "y2", [19.5, -0.5], 1); // the first row on top
  assert.ok(Math.abs(top - 40) < 1e-9);
});

test("the reason for the hovered key is shown or, by default, for the pinned one", () => {
  const reasons = [
    { dataset: { key: "2" }, hidden: true },
    { dataset: { key: "5", pinned: "" }, hidden: false },
  ];
  showReason(reasons, new Set([2, 5]));
  assert.deepEqual(
    reasons.map(({ hidden }) => hidden),
    [false, true],
  );
  showReason(reasons, new Set([9]));
  assert.deepEqual(
    reasons.map(({ hidden }) => hidden),
    [true, false],
  );
  showReason(reasons, new Set());
  assert.deepEqual(
    reasons.map(({ hidden }) => hidden),
    [true, false],
  );
});

test("a square has the name and number of its head, and whether it is framed", () => {
  const numbers = {
    x: [0, 1],
    y: [1, 1],
    customdata: ["L1H0", "L1H1"],
    hovertext: ["<b>L1H0</b><br>45%", "<b>L1H1</b>"],
  };
  const frame = { x0: 0.53, x1: 1.47, y0: 0.55, y1: 1.45 };
  const [first, second] = listSquares([{ z: [[]] }, numbers], [frame]);
  assert.deepEqual([first.label, first.isFramed, first.traceIndex, first.index], ["L1H0, 45%", false, 1, 0]);
  assert.deepEqual([second.label, second.isFramed, second.index], ["L1H1", true, 1]);
  assert.deepEqual(listSquares([{ z: [[]] }]), []);
});
