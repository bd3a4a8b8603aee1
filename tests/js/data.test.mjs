// The explorer's data over several messages.
import assert from "node:assert/strict";
import test from "node:test";
import { ReadingData, hasArcs } from "../../mha_viz/browser/explorer/data.js";
import { makePacket } from "./readings.mjs";

// Make the bytes of a reading of one token with these heads; its only weight is 1.
function makeBytes(full, fields = {}) {
  const axis = { n: 1, tokens: ["a"], segments: [0], special: [0], groups: [[0]], words: ["a"] };
  const header = { key: "k", of: "t", model: "m", layers: 1, heads: 100, full, ...axis, ...fields };
  const scales = new Float32Array(2 * full.length).fill(1 / 65535);
  return makePacket(header, scales, new Uint16Array(full.length).fill(65535));
}

const ROLES = {
  kinds: {},
  on: [],
  measured: true,
  roles: [],
  tour: "",
  opened: 0,
  quiet: true,
  elsewhere: { head: 0, cases: [] },
};

test("a new reading replaces the last one; equal tokens are recognized", () => {
  const data = new ReadingData();
  assert.deepEqual(
    data.receive(makeBytes([0]), null, () => []),
    {
      isSameReading: false,
      hasSameTokens: false,
      isNewTourStep: false,
      isViewReplaced: false,
    },
  );
  const next = data.receive(makeBytes([1], { key: "other" }), null, () => []);
  assert.deepEqual([next.isSameReading, next.hasSameTokens, data.reading.key], [false, true, "other"]);
  assert.deepEqual([...data.reading.matrices.keys()], [1]);
  assert.equal(data.receive(makeBytes([1], { of: "another text", key: "third" }), null, () => []).hasSameTokens, false);
});

test("matrices of the same reading are added; the oldest are dropped, except for open heads", () => {
  const data = new ReadingData();
  data.receive(makeBytes([0, 1, 2]), null, () => []);
  const size = { n: 1000, special: [0] }; // so large that only 24 fit
  Object.assign(data.reading, size);
  const more = Array.from({ length: 30 }, (_, i) => 10 + i);
  const { isSameReading } = data.receive(makeBytes(more), null, () => [1]);
  assert.ok(isSameReading);
  assert.equal(data.reading.matrices.size, 24);
  assert.ok(data.reading.matrices.has(1) && !data.reading.matrices.has(0));
});

test("a tour step, a head opened by the server and a hidden answer each replace the view once", () => {
  const data = new ReadingData();
  const receive = (fields) => data.receive(makeBytes([0]), { ...ROLES, ...fields }, () => []);
  receive({});
  assert.ok(data.roles.measured && data.quiet);
  const step = receive({ tour: "1" });
  assert.deepEqual([step.isNewTourStep, step.isViewReplaced], [true, true]);
  const same = receive({ tour: "1" });
  assert.deepEqual([same.isNewTourStep, same.isViewReplaced], [false, false]);
  const opened = receive({ tour: "1", opened: 1 });
  assert.deepEqual([opened.isNewTourStep, opened.isViewReplaced], [false, true]);
  const shown = receive({ tour: "1", opened: 1, quiet: false });
  const hidden = receive({ tour: "1", opened: 1 });
  assert.deepEqual(
    [shown.isViewReplaced, hidden.isViewReplaced, receive({ tour: "1", opened: 1 }).isViewReplaced],
    [true, true, false],
  );
});

test("a sentence has arcs only for attention weights from a text to itself, in the app", () => {
  const units = (...tokens) => tokens.map((token) => ({ tokens: [token] }));
  const [first, second] = [units(0, 1), units(2, 3)];
  const canHaveArcs = ({ rows = first, cols = first, isStandalone = false, ...reading } = {}) =>
    hasArcs({ visible: { axes: { rows, cols } }, data: { reading }, isStandalone });
  assert.ok(canHaveArcs());
  assert.ok(canHaveArcs({ rows: second, cols: second }));
  assert.ok(!canHaveArcs({ cols: second }), "from the first text of a pair to the second");
  assert.ok(!canHaveArcs({ keys: {} }), "from a target to a source of the same length");
  assert.ok(!canHaveArcs({ cols: first.slice(1) }));
  assert.ok(!canHaveArcs({ quantity: "norm" }));
  assert.ok(!canHaveArcs({ isStandalone: true }));
  const long = units(...Array.from({ length: 65 }, (_, i) => i));
  assert.ok(!canHaveArcs({ rows: long, cols: long }));
});
