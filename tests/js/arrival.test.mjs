// Link targets are scrolled into view and kept there; a link is followed once.
import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { LinkFollower, bringIntoView } from "../../mha_viz/browser/scheme/arrival.js";
import { HeadLinks } from "../../mha_viz/browser/scheme/links.js";

const actions = []; // the name of an element alone: it was scrolled into view
let elements = {}; // by the first part of their selector
let observers = []; // active observers

beforeEach(() => {
  actions.length = 0;
  elements = {};
  observers = [];
  globalThis.window = new EventTarget();
  globalThis.location = { pathname: "/about", search: "" };
  globalThis.document = Object.assign(new EventTarget(), {
    querySelector: (selector) => elements[selector.split(" ")[0]] ?? null,
  });
});

mock.timers.enable({ apis: ["setTimeout"] });
globalThis.ResizeObserver = class {
  constructor(onResize) {
    this.onResize = onResize;
  }
  observe() {
    observers.push(this);
  }
  disconnect() {
    observers = observers.filter((observer) => observer !== this);
  }
};
const makeElement = (name) => ({
  isConnected: true,
  focus: () => actions.push(`focus on ${name}`),
  scrollIntoView: () => actions.push(name),
});
const link = (search = "") => ({ search, click: () => actions.push("followed") });

test("a link target stays in view until the user acts or it is removed", () => {
  for (const end of [
    () => document.dispatchEvent(new Event("keydown")),
    () => window.dispatchEvent(new Event("popstate")),
    (element) => (element.isConnected = false),
  ]) {
    actions.length = 0;
    const card = makeElement("a card");
    bringIntoView(card);
    observers.forEach((observer) => observer.onResize());
    assert.deepEqual(actions, ["focus on a card", "a card", "a card"]);
    end(card);
    observers.forEach((observer) => observer.onResize());
    assert.equal(actions.length, 3);
    assert.deepEqual(observers, []);
  }
});

test("a link target stays in view until the page's run ends", () => {
  elements[".stApp[data-test-script-state=running]"] = "the page";
  bringIntoView(makeElement("a card"));
  mock.timers.tick(60_000);
  assert.equal(observers.length, 1);
  elements = {};
  mock.timers.tick(60_000);
  assert.deepEqual(observers, []);
});

test("each link from the server is followed once", () => {
  const follower = new LinkFollower();
  elements[".st-key-leaving"] = link();
  follower.follow();
  follower.follow();
  assert.deepEqual(actions, ["followed"]);
  elements[".st-key-leaving"] = link();
  follower.follow();
  assert.deepEqual(actions, ["followed", "followed"]);
});

test("lost link parameters are restored once, unless the user acts first", () => {
  globalThis.PopStateEvent = Event;
  globalThis.history = { state: 7, replaceState: (state, _, search) => actions.push(`${state} ${search}`) };
  window.addEventListener("popstate", () => actions.push("read"));
  for (const [linkSearch, currentSearch, hasUserActed, expected] of [
    ["?head=L3H1", "", false, ["followed", "7 ?head=L3H1", "read"]],
    ["?head=L3H1", "?head=L3H1", false, ["followed"]],
    ["?head=L3H1", "?head=L1H1", false, ["followed"]], // the page has other parameters by now
    ["?head=L3H1", "", true, ["followed"]],
    ["", "", false, ["followed"]],
  ]) {
    actions.length = 0;
    globalThis.location = { pathname: "/about", search: "" };
    globalThis.document.body = globalThis.document.activeElement = { closest: () => null };
    const follower = new LinkFollower();
    elements[".st-key-leaving"] = link(linkSearch);
    follower.follow();
    elements = {};
    follower.follow(); // still on the previous page
    if (hasUserActed) document.dispatchEvent(new Event("keydown"));
    globalThis.location = { pathname: "/", search: currentSearch };
    follower.follow();
    follower.follow();
    assert.deepEqual(actions, expected);
  }
});

test("after following a link, the focus moves to the heading, unless the user acts first", () => {
  const follower = new LinkFollower();
  document.body = document.activeElement = {};
  elements[".st-key-leaving"] = link();
  elements["h1.mha-heading"] = makeElement("the heading");
  follower.follow();
  delete elements[".st-key-leaving"];
  follower.follow();
  assert.deepEqual(actions, ["followed"], "still on the previous page");
  globalThis.location = { pathname: "/" };
  follower.follow();
  document.activeElement = { closest: () => null }; // an element below the navigation has the focus
  follower.follow();
  assert.deepEqual(actions, ["followed", "focus on the heading"]);
  document.activeElement = { closest: (/** @type {string} */ part) => (part === ".st-key-mast" ? {} : null) };
  follower.follow();
  assert.deepEqual(actions.splice(2), ["focus on the heading"], "the search field stays from page to page");
  document.activeElement = document.body;
  document.dispatchEvent(new Event("pointerdown"));
  follower.follow();
  assert.equal(actions.length, 2);
});

test("a click on a table row scrolls to the new card, not to the previous one", () => {
  globalThis.HTMLAnchorElement = class {};
  globalThis.Element = class {
    closest = (/** @type {string} */ part) => (part === "[data-testid=stDataFrame]" ? this : null);
  };
  const links = new HeadLinks();
  links.watch(() => {});
  elements[".st-key-head_card"] = { ...makeElement("the old card"), textContent: "L0H2 (1-3)" };
  const click = new Event("click");
  Object.defineProperty(click, "target", { value: new Element() });
  document.dispatchEvent(click);
  links.focusTarget();
  assert.deepEqual(actions, []);
  elements[".st-key-head_card"] = { ...makeElement("its card"), textContent: "L0H3 (1-4)" };
  links.focusTarget();
  assert.deepEqual(actions, ["focus on its card", "its card"]);
});

test("a requested card gets the focus however late it appears, unless the user acts first", () => {
  globalThis.Element = globalThis.HTMLAnchorElement = class {
    search = "?head=L0H2";
    hash = "";
    closest = () => this;
    matches = () => false;
  };
  const links = new HeadLinks();
  links.watch(() => {});
  const [showCard, click] = [
    () => (elements[".st-key-head_card"] = { ...makeElement("its card"), textContent: "L0H2 (1-3)" }),
    () => {
      elements = {};
      actions.length = 0;
      const event = Object.assign(new Event("click"), { ctrlKey: false });
      Object.defineProperty(event, "target", { value: new Element() });
      document.dispatchEvent(event);
    },
  ];
  click();
  mock.timers.tick(60_000);
  links.focusTarget();
  assert.deepEqual(actions, []);
  showCard();
  links.focusTarget();
  assert.deepEqual(actions, ["focus on its card", "its card"]);
  click();
  document.dispatchEvent(new Event("wheel"));
  showCard();
  links.focusTarget();
  assert.deepEqual(actions, []);
});
