// The heads of a first visit take turns until somebody acts.
import assert from "node:assert/strict";
import test from "node:test";

let visits = 0;
const TURNS = [9, 7, 4].map((head) => ({ head, pin: { query: head, key: null } }));

// The stores of an explorer at this address, whose reading has these heads in full, and what its stage was told.
async function visit({ address = "", full = [4, 9, 7], still = false, stored = new Map() } = {}) {
  const { FirstVisit } = await import(`../../mha_viz/browser/explorer/first_visit.js?${(visits += 1)}`); // loaded anew
  globalThis.document = new EventTarget();
  const shown = [];
  const told = [];
  const history = { state: null, replaceState: (_, __, query) => told.push(query) };
  const localStorage = { getItem: (name) => stored.get(name), setItem: (name, value) => stored.set(name, value) };
  globalThis.window = { matchMedia: () => ({ matches: still }), history, localStorage: stored && localStorage };
  const stage = {
    view: { head: 4, on: [4], pin: null },
    readAddress: () => address,
    drawing: { draw: () => shown.push(stage.view.head) },
  };
  const reading = { layers: 1, heads: 12, n: 20, matrices: new Map(full.map((head) => [head, null])) };
  const heads = { cursor: 4 };
  const firstVisit = new FirstVisit({ stage, heads, data: { turns: TURNS, reading }, isAlone: false });
  return { firstVisit, stage, heads, shown, told };
}

test("each head is shown in turn; the first act ends it, and the address says what stays", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, stage, heads, shown, told } = await visit();
  firstVisit.begin();
  firstVisit.begin(); // the page was drawn again
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4]);
  mock.timers.tick(3000);
  assert.deepEqual(stage.view, { head: 9, on: [9], pin: { query: 9, key: null } });
  assert.deepEqual(told, []);
  document.dispatchEvent(new Event("wheel"));
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9, 7, 4, 9]);
  assert.deepEqual(told, ["?head=L0H9&pin=q9"]);
  assert.equal(heads.cursor, 9);
});

test("the address stays if the turns have not left the first head", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, told } = await visit();
  firstVisit.begin();
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(told, []);
});

for (const [why, options] of Object.entries({
  "the address asks for something": { address: "?head=L0H4" },
  "the system asks for less motion": { still: true },
  "only one head can be shown": { full: [9] },
})) {
  test(`no turns if ${why}`, async ({ mock }) => {
    mock.timers.enable({ apis: ["setInterval"] });
    const { firstVisit, shown } = await visit(options);
    firstVisit.begin();
    mock.timers.tick(9000);
    assert.deepEqual(shown, []);
  });
}

for (const [where, options] of Object.entries({
  "during the turns": {},
  "on a page of a link": { address: "?head=L0H4" },
})) {
  test(`who has acted ${where} finds the page still when it is loaded again`, async ({ mock }) => {
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

test("where storage is refused, the turns come and end as in a first visit", async ({ mock }) => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { firstVisit, shown } = await visit({ stored: null });
  firstVisit.begin();
  mock.timers.tick(3000);
  document.dispatchEvent(new Event("keydown"));
  mock.timers.tick(9000);
  assert.deepEqual(shown, [9]);
});
