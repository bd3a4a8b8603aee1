// What a link leads to comes into sight and stays there; a link to follow is followed once.
import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { LinkFollower, bringIntoView } from "../../mha_viz/browser/scheme/arrival.js";
import { HeadLinks } from "../../mha_viz/browser/scheme/links.js";

const done = [];
let drawn = {}; // what is on the page, by the beginning of its selector
let sizes = []; // the page's sizes that are watched

beforeEach(() => {
  done.length = 0;
  drawn = {};
  sizes = [];
  globalThis.window = new EventTarget();
  globalThis.location = { pathname: "/about", search: "" };
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
  focus: () => done.push(`keyboard on ${name}`),
  scrollIntoView: () => done.push(name),
});
const link = (search = "") => ({ search, click: () => done.push("followed") });

test("what a link leads to comes into sight and stays there, until a person acts or it goes", () => {
  for (const end of [
    () => document.dispatchEvent(new Event("keydown")),
    () => window.dispatchEvent(new Event("popstate")),
    (one) => (one.isConnected = false),
  ]) {
    done.length = 0;
    const one = title("a card");
    bringIntoView(one);
    sizes.forEach((size) => size.onResize());
    assert.deepEqual(done, ["keyboard on a card", "a card", "a card"]);
    end(one);
    sizes.forEach((size) => size.onResize());
    assert.equal(done.length, 3);
    assert.deepEqual(sizes, []);
  }
});

test("what a link leads to stays in sight for as long as the page's run takes", () => {
  drawn[".stApp[data-test-script-state=running]"] = "the page";
  bringIntoView(title("a card"));
  mock.timers.tick(60_000);
  assert.equal(sizes.length, 1);
  drawn = {};
  mock.timers.tick(60_000);
  assert.deepEqual(sizes, []);
});

test("a link that the server asks to follow is followed once, another one anew", () => {
  const arrival = new LinkFollower();
  drawn[".st-key-leaving"] = link();
  arrival.follow();
  arrival.follow();
  assert.deepEqual(done, ["followed"]);
  drawn[".st-key-leaving"] = link();
  arrival.follow();
  assert.deepEqual(done, ["followed", "followed"]);
});

test("a page that was opened without the parameters of its link gets them, once, until a person acts", () => {
  globalThis.PopStateEvent = Event;
  globalThis.history = { state: 7, replaceState: (state, _, search) => done.push(`${state} ${search}`) };
  window.addEventListener("popstate", () => done.push("read"));
  for (const [asked, come, isActed, expected] of [
    ["?head=L3H1", "", false, ["followed", "7 ?head=L3H1", "read"]],
    ["?head=L3H1", "?head=L3H1", false, ["followed"]],
    ["?head=L3H1", "?head=L1H1", false, ["followed"]], // the page has others by now
    ["?head=L3H1", "", true, ["followed"]],
    ["", "", false, ["followed"]],
  ]) {
    done.length = 0;
    globalThis.location = { pathname: "/about", search: "" };
    globalThis.document.body = globalThis.document.activeElement = { closest: () => null };
    const arrival = new LinkFollower();
    drawn[".st-key-leaving"] = link(asked);
    arrival.follow();
    drawn = {};
    arrival.follow(); // still on the page before
    if (isActed) document.dispatchEvent(new Event("keydown"));
    globalThis.location = { pathname: "/", search: come };
    arrival.follow();
    arrival.follow();
    assert.deepEqual(done, expected);
  }
});

test("on the page that a link leads to the keyboard goes on at the heading, until a person acts", () => {
  const arrival = new LinkFollower();
  document.body = document.activeElement = {};
  drawn[".st-key-leaving"] = link();
  drawn["h1.mha-heading"] = title("the heading");
  arrival.follow();
  delete drawn[".st-key-leaving"];
  arrival.follow();
  assert.deepEqual(done, ["followed"], "still on the page before");
  globalThis.location = { pathname: "/" };
  arrival.follow();
  document.activeElement = { closest: () => null }; // something below the navigation has the keyboard
  arrival.follow();
  assert.deepEqual(done, ["followed", "keyboard on the heading"]);
  document.activeElement = { closest: (/** @type {string} */ part) => (part === ".st-key-mast" ? {} : null) };
  arrival.follow();
  assert.deepEqual(done.splice(2), ["keyboard on the heading"], "the search field stays from page to page");
  document.activeElement = document.body;
  document.dispatchEvent(new Event("pointerdown"));
  arrival.follow();
  assert.equal(done.length, 2);
});

test("a row of all numbers brings the card that opens, but not the one that is open", () => {
  globalThis.HTMLAnchorElement = class {};
  globalThis.Element = class {
    closest = (/** @type {string} */ part) => (part === "[data-testid=stDataFrame]" ? this : null);
  };
  const links = new HeadLinks();
  links.watch(() => {});
  drawn[".st-key-head_card"] = { ...title("the old card"), textContent: "L0H2 (1-3)" };
  const click = new Event("click");
  Object.defineProperty(click, "target", { value: new Element() });
  document.dispatchEvent(click);
  links.arrive();
  assert.deepEqual(done, []);
  drawn[".st-key-head_card"] = { ...title("its card"), textContent: "L0H3 (1-4)" };
  links.arrive();
  assert.deepEqual(done, ["keyboard on its card", "its card"]);
});

test("the card that a click asks for takes the keyboard however late it comes, unless a person acts before", () => {
  globalThis.Element = globalThis.HTMLAnchorElement = class {
    search = "?head=L0H2";
    hash = "";
    closest = () => this;
    matches = () => false;
  };
  const links = new HeadLinks();
  links.watch(() => {});
  const [appears, ask] = [
    () => (drawn[".st-key-head_card"] = { ...title("its card"), textContent: "L0H2 (1-3)" }),
    () => {
      drawn = {};
      done.length = 0;
      const click = Object.assign(new Event("click"), { ctrlKey: false });
      Object.defineProperty(click, "target", { value: new Element() });
      document.dispatchEvent(click);
    },
  ];
  ask();
  mock.timers.tick(60_000);
  links.arrive();
  assert.deepEqual(done, []);
  appears();
  links.arrive();
  assert.deepEqual(done, ["keyboard on its card", "its card"]);
  ask();
  document.dispatchEvent(new Event("wheel"));
  appears();
  links.arrive();
  assert.deepEqual(done, []);
});
