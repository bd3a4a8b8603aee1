// The findings of a first visit take turns until somebody acts.
import assert from "node:assert/strict";
import test from "node:test";
import { Turns } from "../../mha_viz/browser/explorer/turns.js";

const FINDINGS = [4, 9, 7].map((head) => ({ head, words: [], pin: { query: head, key: null } }));

// The stores of an explorer at this address, whose reading has these heads in full, and what its stage was told.
function visit({ address = "", full = [4, 9, 7], still = false } = {}) {
  globalThis.document = new EventTarget();
  globalThis.window = { matchMedia: () => ({ matches: still }) };
  const shown = [];
  const told = [];
  const stage = {
    view: { head: 4, on: [4], pin: null },
    locate: () => address,
    change: (fields, delay) => told.push([fields, delay > 80]),
    drawing: { draw: () => shown.push(stage.view.head) },
  };
  const reading = { matrices: new Map(full.map((head) => [head, null])) };
  const turns = new Turns({ stage, read: { unusual: FINDINGS, reading }, isAlone: false });
  return { turns, stage, shown, told };
}

test("each finding is shown in turn; the first act ends it, and the server is told what stays", ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { turns, stage, shown, told } = visit();
  turns.begin();
  turns.begin(); // the page was drawn again
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4]);
  mock.timers.tick(3000);
  assert.deepEqual(stage.view, { head: 9, on: [9], pin: { query: 9, key: null } });
  assert.deepEqual(told, []);
  document.dispatchEvent(new Event("wheel"));
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4, 9]);
  assert.deepEqual(told, [[{}, true]]);
});

test("nothing is told of turns that have not left the first head", ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { turns, told } = visit();
  turns.begin();
  document.dispatchEvent(new Event("pointermove"));
  mock.timers.tick(9000);
  assert.deepEqual(told, []);
});

for (const [why, options] of Object.entries({
  "the address asks for something": { address: "?head=L0H4" },
  "the system asks for less motion": { still: true },
  "only one finding can be shown": { full: [9] },
})) {
  test(`no turns if ${why}`, ({ mock }) => {
    mock.timers.enable({ apis: ["setInterval"] });
    const { turns, shown } = visit(options);
    turns.begin();
    mock.timers.tick(9000);
    assert.deepEqual(shown, []);
  });
}
