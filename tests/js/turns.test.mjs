// On a first visit, heads are shown in turn until the user acts.
import assert from "node:assert/strict";
import test from "node:test";

let visits = 0;
const TURNS = [9, 7, 4].map((head) => ({ head, pin: { query: head, key: null } }));

// Make a first visit at an address, with a reading of the `full` heads. `shown` and `queries` record its effects.
async function visit({ address = "", full = [4, 9, 7], reducesMotion = false, stored = new Map() } = {}) {
  const module = `../../mha_viz/browser/explorer/first_visit.js?${(visits += 1)}`; // loaded again for each visit
  const { FirstVisit } = await import(module);
  globalThis.document = new EventTarget();
  const shown = [];
  const queries = [];
  const history = { state: null, replaceState: (_, __, query) => queries.push(query) };
  const localStorage = { getItem: (name) => stored.get(name), setItem: (name, value) => stored.set(name, value) };
  globalThis.window = { matchMedia: () => ({ matches: reducesMotion }), history, localStorage: stored && localStorage };
  const stage = {
    view: { head: 4, on: [4], pin: null },
    readAddress: () => address,
    drawing: { draw: () => shown.push(stage.view.head) },
  };
  const reading = { layers: 1, heads: 12, n: 20, matrices: new Map(full.map((head) => [head, null])) };
  const heads = { cursor: 4 };
  const firstVisit = new FirstVisit({ stage, heads, data: { showcaseHeads: TURNS, reading }, isStandalone: false });
  return { firstVisit, stage, heads, shown, queries };
}

test("heads are shown in turn; the first user action ends it and writes the view to the address", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, stage, heads, shown, queries } = await visit();
  firstVisit.begin();
  firstVisit.begin(); // as when the page is redrawn
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4]);
  mock.timers.tick(3000);
  assert.deepEqual(stage.view, { head: 9, on: [9], pin: { query: 9, key: null } });
  assert.deepEqual(queries, []);
  document.dispatchEvent(new Event("wheel"));
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4, 9]);
  assert.deepEqual(queries, ["?head=L0H9&pin=q9"]);
  assert.equal(heads.cursor, 9);
});

test("the address is unchanged while the first head is shown", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, queries } = await visit();
  firstVisit.begin();
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(queries, []);
});

for (const [why, options] of Object.entries({
  "the address has parameters": { address: "?head=L0H4" },
  "the user prefers reduced motion": { reducesMotion: true },
  "only one head is complete": { full: [9] },
})) {
  test(`heads do not change if ${why}`, async ({ mock }) => {
    mock.timers.enable({ apis: ["setInterval"] });
    const { firstVisit, shown } = await visit(options);
    firstVisit.begin();
    mock.timers.tick(9000);
    assert.deepEqual(shown, []);
  });
}

for (const [where, options] of Object.entries({
  "while heads were shown in turn": {},
  "on a page opened by a link": { address: "?head=L0H4" },
})) {
  test(`a user who acted ${where} sees no change of heads on the next visit`, async ({ mock }) => {
    mock.timers.enable({ apis: ["setInterval"] });
    const stored = new Map();
    const { firstVisit } = await visit({ ...options, stored });
    firstVisit.begin();
    document.dispatchEvent(new Event("scroll"));
    const again = await visit({ stored });
    again.firstVisit.begin();
    mock.timers.tick(9000);
    assert.deepEqual(again.shown, []);
  });
}

test("if storage is refused, every visit is like the first", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, shown } = await visit({ stored: null });
  firstVisit.begin();
  mock.timers.tick(3000);
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9]);
});
