// Edits of the compared heads are sent one at a time, and answered by the next panels.
import assert from "node:assert/strict";
import test from "node:test";
import { Comparison } from "../../mha_viz/browser/compare/comparison.js";

const VIEW = { as: "heatmap", unit: "words", special: "keep", links: "all", scale: "fixed", pin: null, diff: [0, 2] };
const READING = { n: 3, heads: 2, model: "m", text: "t", pair: "" };

// Make a set of panels, one for each head, of the same reading.
const makeSet = (...heads) => ({
  editable: true,
  panels: heads.map((head) => ({ reading: 0, head, name: "" })),
  readings: [READING],
  compared: [["words"]],
});

function makeComparison() {
  const seen = { sent: [], said: [], changed: 0, focused: [] };
  const stage = { view: VIEW, discardUnsent: () => {}, readAddress: () => "", change: () => seen.changed++ };
  const comparison = new Comparison(
    (name, value) => seen.sent.push([name, value]),
    stage,
    (words) => seen.said.push(words),
  );
  const panel = (number) => ({
    tools: { querySelector: (selector) => ({ focus: () => seen.focused.push([number, selector]) }) },
    rename: { focus: () => seen.focused.push([number, "rename"]) },
  });
  return { comparison, seen, stage, panels: [0, 1, 2, 3].map(panel) };
}

test("an edit is refused until the previous one is answered; the answer restores view and focus", () => {
  const { comparison, seen, stage, panels } = makeComparison();
  comparison.edit(makeSet(0, 1, 3), { action: "remove", index: 1 });
  comparison.edit(makeSet(0, 1, 3), { action: "remove", index: 0 });
  assert.equal(seen.sent.length, 1);
  const [name, change] = seen.sent[0];
  assert.deepEqual([name, change.action, change.index, change.head, change.model], ["edit", "remove", 1, "L0H1", "m"]);
  const next = makeSet(0, 3);
  assert.equal(comparison.getView(makeSet(0)), undefined);
  assert.deepEqual(comparison.getView(next).diff, [0, 1]);
  stage.view = { ...VIEW, diff: null };
  comparison.finishEdit(next, panels);
  assert.deepEqual(seen.focused, [[1, '[data-tool="remove"]']]);
  assert.deepEqual(seen.said, ["Removed. The Back button restores it."]);
  comparison.finishEdit(next, panels);
  assert.equal(seen.focused.length, 1);
  comparison.edit(next, { action: "duplicate", index: 0 });
  assert.equal(seen.sent.length, 2);
});

test("the focus follows a moved panel", () => {
  const { comparison, seen, panels } = makeComparison();
  comparison.edit(makeSet(0, 1, 2), { action: "move", index: 2, to: 1 });
  comparison.finishEdit(makeSet(0, 2, 1), panels);
  assert.deepEqual([seen.focused, seen.said], [[[1, '[data-tool="left"]']], ["Moved to place 2."]]);
});

test("opening a head or adding it to My heads leaves the panels unchanged", () => {
  const { comparison, seen } = makeComparison();
  comparison.edit(makeSet(0, 1), { action: "open", index: 0 });
  comparison.edit(makeSet(0, 1), { action: "pin", index: 0 });
  assert.deepEqual([seen.sent.length, seen.said], [2, ["Added to My heads."]]);
  assert.equal(comparison.getView(makeSet(0, 1)), undefined);
});
