// What a link leads to comes into sight and stays there; a link to follow is followed once.
import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { Arrival, bringTo } from "../../mha_viz/browser/scheme/arrival.js";

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

test("what a link leads to comes into sight and stays there, until a person acts or it goes", () => {
  for (const end of [
    () => document.dispatchEvent(new Event("keydown")),
    () => window.dispatchEvent(new Event("popstate")),
    (one) => (one.isConnected = false),
  ]) {
    done.length = 0;
    const one = title("a card");
    bringTo(one);
    sizes.forEach((size) => size.onResize());
    assert.deepEqual(done, ["keyboard on a card", "a card", "a card"]);
    end(one);
    sizes.forEach((size) => size.onResize());
    assert.equal(done.length, 3);
    assert.deepEqual(sizes, []);
  }
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
