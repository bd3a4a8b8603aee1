// What a link leads to: it comes into sight once, unless a person acts before; a link to follow is followed once.
import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { Arrival } from "../../mha_viz/browser/scheme/arrival.js";

const done = [];
let drawn = {}; // what is on the page, by the beginning of its selector
let sizes = []; // the page's sizes that are watched

beforeEach(() => {
  done.length = 0;
  drawn = {};
  sizes = [];
  globalThis.window = new EventTarget();
  globalThis.document = Object.assign(new EventTarget(), {
    querySelector: (selector) => drawn[selector.split(" ")[0]] ?? null,
  });
});

mock.timers.enable({ apis: ["setTimeout"] });
globalThis.ResizeObserver = class {
  constructor(onResize) {
    this.onResize = onResize;
  }
  observe() {
    sizes.push(this);
  }
  disconnect() {
    sizes = sizes.filter((one) => one !== this);
  }
};
const title = (name) => ({
  isConnected: true,
  closest: () => "the page",
  focus: () => done.push(`keyboard on ${name}`),
  scrollIntoView: () => done.push(name),
});
const link = () => ({ click: () => done.push("followed") });

test("a destination is gone to once it is drawn, once on a page", () => {
  const arrival = new Arrival();
  arrival.show(3);
  arrival.arrive();
  assert.deepEqual(done, []);
  drawn[".st-key-destination"] = title("a task");
  arrival.arrive();
  arrival.show(3);
  arrival.arrive();
  assert.deepEqual(done, ["keyboard on a task", "a task"]);
  arrival.show(4);
  arrival.arrive();
  assert.equal(done.length, 4);
});

test("what is drawn later leaves the destination in sight, until a person acts or it goes", () => {
  for (const end of [
    () => document.dispatchEvent(new Event("keydown")),
    () => window.dispatchEvent(new Event("popstate")),
    (one) => (one.isConnected = false),
  ]) {
    done.length = 0;
    const arrival = new Arrival();
    arrival.show(3);
    const one = (drawn[".st-key-destination"] = title("a task"));
    arrival.arrive();
    sizes.forEach((size) => size.onResize());
    assert.deepEqual(done, ["keyboard on a task", "a task", "a task"]);
    end(one);
    sizes.forEach((size) => size.onResize());
    assert.equal(done.length, 3);
    assert.deepEqual(sizes, []);
  }
});

test("a person who acts before is not taken there", () => {
  const arrival = new Arrival();
  const end = arrival.watch();
  arrival.show(3);
  document.dispatchEvent(new Event("wheel"));
  drawn[".st-key-destination"] = title("a task");
  arrival.arrive();
  assert.deepEqual(done, []);
  arrival.show(4);
  end();
  document.dispatchEvent(new Event("wheel"));
  arrival.arrive();
  assert.deepEqual(done, ["keyboard on a task", "a task"]);
});

test("a link that the server asks to follow is followed once, another one anew", () => {
  const arrival = new Arrival();
  drawn[".st-key-leaving"] = link();
  arrival.arrive();
  arrival.arrive();
  assert.deepEqual(done, ["followed"]);
  drawn[".st-key-leaving"] = link();
  arrival.arrive();
  assert.deepEqual(done, ["followed", "followed"]);
});
