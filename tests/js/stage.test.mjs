// The stage of interactive drawings: pointer, pin, keys, address, size and theme.
import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { Stage, getArrowStep, moveSpot, readLook, revealRow, isSameSpot } from "../../mha_viz/browser/stage.js";

const PAGE = { "--st-background-color": "#14171a", "--st-text-color": "#ebe8e2" };
const frames = [];

beforeEach(() => {
  frames.length = 0;
  delete globalThis.mhaVizQueue;
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  Object.assign(globalThis, {
    document: new EventTarget(),
    window: new EventTarget(),
    requestAnimationFrame: (draw) => frames.push(draw),
    cancelAnimationFrame: (number) => delete frames[number - 1],
    getComputedStyle: ({ style }) => ({ color: style.color, getPropertyValue: (name) => style[name] ?? "" }),
  });
});

const draw = () => frames.splice(0).forEach((frame) => frame());
const dispatch = (target, type, fields = {}) => target.dispatchEvent(Object.assign(new Event(type), fields));

// Make a stage with a drawing of 3 × 4 cells that records its calls.
function makeStage({ address = "", isReady = true } = {}) {
  const seen = { drawn: 0, focused: [], sent: [], address };
  const drawing = {
    isReady: () => isReady,
    parse: (params) => ({ unit: params.get("unit") ?? "words", pin: null }),
    onAdopt: () => {},
    makeMessage: (view) => ({ unit: view.unit, pin: view.pin }),
    findPinnedSpot: () => stage.view.pin,
    makePin: ({ row, col }) => ({ row, col }),
    draw: () => seen.drawn++,
    drawFocus: (now) => seen.focused.push([stage.getFocus(), now]),
  };
  const stage = new Stage(
    (name, value) => seen.sent.push([name, value]),
    () => seen.address,
    drawing,
  );
  stage.adopt();
  return { stage, seen };
}

// Listen to a canvas whose events name their spots. `key` presses a key; it returns how many defaults were prevented.
function listen(stage, { isHeatmap = true, R = 3, C = 4 } = {}) {
  const canvas = {};
  const moves = [];
  const getKeyContext = () => ({
    from: stage.getFocus(),
    isHeatmap,
    R,
    C,
    start: {},
    onMove: (spot) => moves.push(spot),
  });
  stage.listenTo(canvas, (event) => event.spot, getKeyContext);
  const key = (name, fields = {}) => {
    const event = { key: name, prevented: 0, preventDefault: () => event.prevented++, ...fields };
    canvas.onkeydown(event);
    return event.prevented;
  };
  return { canvas, moves, key };
}

// ---- The focus ----------------------------------------------------------------------------------------------

test("the focus is the hovered spot or, by default, the pinned one", () => {
  const { stage, seen } = makeStage();
  assert.equal(stage.getFocus(), null);
  stage.togglePin({ row: 1, col: 2 });
  assert.deepEqual(stage.getFocus(), { row: 1, col: 2 });
  stage.hover({ row: 0, col: null });
  assert.deepEqual(stage.getFocus(), { row: 0, col: null });
  stage.hover(null);
  assert.deepEqual(stage.getFocus(), { row: 1, col: 2 });
  assert.deepEqual(
    seen.focused.map(([spot]) => spot),
    [
      { row: 0, col: null },
      { row: 1, col: 2 },
    ],
  );
});

test("a pinned spot is unpinned only by pressing it again", () => {
  const { stage } = makeStage();
  stage.togglePin({ row: 1, col: 2 });
  stage.togglePin({ row: 1, col: null });
  assert.deepEqual(stage.view.pin, { row: 1, col: null });
  stage.togglePin(null);
  assert.deepEqual(stage.view.pin, { row: 1, col: null });
  stage.togglePin({ row: 1, col: null });
  assert.equal(stage.view.pin, null);
});

test("moving the pointer within a spot redraws nothing", () => {
  const { stage, seen } = makeStage();
  stage.hover(null);
  stage.hover({ row: 1, col: 2 });
  stage.hover({ row: 1, col: 2 });
  assert.equal(seen.focused.length, 1);
});

test("spots are equal if panel, row and column are", () => {
  assert.ok(isSameSpot(null, null));
  assert.ok(isSameSpot({ row: 1, col: null }, { row: 1, col: null }));
  assert.ok(!isSameSpot({ row: 1, col: null }, null));
  assert.ok(!isSameSpot({ row: 1, col: null }, { row: null, col: 1 }));
  assert.ok(!isSameSpot({ at: 0, row: 1, col: 1 }, { at: 1, row: 1, col: 1 }));
});

test("only changes that affect the rows clear the hovered spot", () => {
  const { stage } = makeStage();
  for (const [fields, expected] of [
    [{ scale: "log" }, { row: 1, col: 2 }],
    [{ unit: "pieces" }, null],
    [{ special: "hide" }, null],
    [{ side: "ab" }, null],
  ]) {
    stage.hover({ row: 1, col: 2 });
    stage.change(fields);
    assert.deepEqual(stage.hovered, expected);
  }
});

// ---- Keys -----------------------------------------------------------------------------------------------------

test("arrow keys move between cells of a heatmap and stop at its edges", () => {
  const walk = (spot, step) => moveSpot(spot, step, true, 3, 4);
  assert.deepEqual(walk({ at: 2, row: 1, col: 1 }, [-1, 0]), { at: 2, row: 0, col: 1 });
  assert.deepEqual(walk({ row: 0, col: 3 }, [-1, 0]), { row: 0, col: 3 });
  assert.deepEqual(walk({ row: 2, col: 3 }, [1, 0]), { row: 2, col: 3 });
  assert.deepEqual(walk({ row: 2, col: 3 }, [0, 1]), { row: 2, col: 3 });
  assert.deepEqual(walk({ row: null, col: 2 }, [0, -1]), { row: 0, col: 1 });
});

test("arrow keys move within a column of tokens and between the two columns", () => {
  const walk = (spot, step) => moveSpot(spot, step, false, 3, 4);
  assert.deepEqual(walk({ row: 1, col: null }, [1, 0]), { row: 2, col: null });
  assert.deepEqual(walk({ row: 2, col: null }, [1, 0]), { row: 2, col: null });
  assert.deepEqual(walk({ row: null, col: 2 }, [1, 0]), { row: null, col: 3 });
  assert.deepEqual(walk({ row: 1, col: null }, [0, 1]), { row: null, col: 1 });
  assert.deepEqual(walk({ row: null, col: 3 }, [0, -1]), { row: 2, col: null });
  assert.deepEqual(walk({ row: 1, col: null }, [0, -1]), { row: 1, col: null });
});

test("Home and End go to the ends of a row or of a column of tokens, with Ctrl to the corners", () => {
  const press = (key, isHeat, spot, ctrlKey = false) => moveSpot(spot, getArrowStep({ key, ctrlKey }), isHeat, 3, 4);
  assert.deepEqual(press("End", true, { row: 1, col: 1 }), { row: 1, col: 3 });
  assert.deepEqual(press("Home", true, { row: 1, col: 2 }), { row: 1, col: 0 });
  assert.deepEqual(press("End", true, { row: 1, col: 1 }, true), { row: 2, col: 3 });
  assert.deepEqual(press("Home", true, { row: 1, col: 2 }, true), { row: 0, col: 0 });
  assert.deepEqual(press("End", false, { row: 0, col: null }), { row: 2, col: null });
  assert.deepEqual(press("Home", false, { row: null, col: 3 }, true), { row: null, col: 0 });
  assert.equal(getArrowStep({ key: "ArrowUp", ctrlKey: true }), undefined);
  assert.equal(getArrowStep({ key: "Home", altKey: true }), undefined); // the browser's own
});

test("keys move, pin and unpin", () => {
  const { stage, seen } = makeStage();
  const { key, moves } = listen(stage);
  assert.equal(key("ArrowDown"), 1);
  assert.equal(key("ArrowRight"), 1);
  assert.deepEqual(moves, [
    { row: 1, col: 0 },
    { row: 1, col: 1 },
  ]);
  assert.deepEqual(seen.focused.at(-1), [{ row: 1, col: 1 }, true]);
  assert.equal(key("Enter"), 1);
  assert.deepEqual(stage.view.pin, { row: 1, col: 1 });
  key(" ");
  assert.equal(stage.view.pin, null);
});

test("keys start at the first cell or, in links, at the first query", () => {
  for (const [isHeatmap, first] of [
    [true, { row: 0, col: 0 }],
    [false, { row: 0, col: null }],
  ]) {
    const { stage } = makeStage();
    listen(stage, { isHeatmap }).key("Enter");
    assert.deepEqual(stage.view.pin, first);
  }
});

test("other keys, browser shortcuts and empty drawings are ignored", () => {
  const { stage, seen } = makeStage();
  const { key } = listen(stage);
  assert.equal(key("x") + key("Tab"), 0);
  for (const modifier of ["altKey", "ctrlKey", "metaKey"]) assert.equal(key("ArrowLeft", { [modifier]: true }), 0);
  assert.equal(listen(stage, { R: 0 }).key("Enter"), 0);
  assert.equal(listen(stage, { C: 0 }).key("ArrowDown"), 0);
  assert.deepEqual([stage.hovered, stage.view.pin, seen.focused], [null, null, []]);
});

test("the pointer hovers over, presses and leaves spots", () => {
  const { stage } = makeStage();
  const { canvas } = listen(stage);
  canvas.onpointermove({ spot: { row: 1, col: 2 } });
  assert.deepEqual(stage.hovered, { row: 1, col: 2 });
  canvas.onclick({ spot: { row: 1, col: 2 } });
  canvas.onpointerleave();
  assert.deepEqual([stage.hovered, stage.view.pin], [null, { row: 1, col: 2 }]);
  canvas.onpointermove({ spot: { row: 0, col: 0 } });
  canvas.onblur();
  assert.equal(stage.hovered, null);
});

test("Escape clears the hovered and the pinned spot, except in text fields", () => {
  const { stage, seen } = makeStage();
  const escape = (isText) =>
    dispatch(document, "keydown", { key: "Escape", composedPath: () => [{ matches: () => isText }] });
  stage.togglePin({ row: 1, col: 2 });
  stage.hover({ row: 0, col: 0 });
  escape(true);
  assert.deepEqual(
    [stage.hovered, stage.view.pin],
    [
      { row: 0, col: 0 },
      { row: 1, col: 2 },
    ],
  );
  escape(false);
  assert.equal(stage.getFocus(), null);
  stage.hover({ row: 0, col: 0 });
  const { drawn } = seen;
  escape(false);
  assert.deepEqual(seen.focused.at(-1), [null, true]);
  assert.equal(seen.drawn, drawn, "nothing was pinned: only the focus is drawn");
});

// ---- The address, the size --------------------------------------------------------------------------------------

test("quick changes are sent once, after the last one", () => {
  const { stage, seen } = makeStage();
  stage.change({ unit: "pieces" });
  mock.timers.tick(50);
  stage.change({ pin: { row: 1, col: 1 } });
  mock.timers.tick(79);
  assert.deepEqual([seen.sent.length, seen.drawn], [0, 2], "drawn at once");
  mock.timers.tick(1);
  assert.deepEqual(seen.sent, [["view", { unit: "pieces", pin: { row: 1, col: 1 } }]]);
  stage.change({ unit: "words" }, 300);
  mock.timers.tick(299);
  assert.equal(seen.sent.length, 1);
});

test("Back adopts the address and discards unsent changes", () => {
  const { stage, seen } = makeStage();
  stage.change({ unit: "words", pin: { row: 1, col: 1 } });
  stage.hover({ row: 0, col: 0 });
  seen.address = "?unit=pieces";
  dispatch(window, "popstate");
  assert.deepEqual([stage.view, stage.hovered], [{ unit: "pieces", pin: null }, null]);
  mock.timers.tick(1000);
  assert.deepEqual([seen.sent, seen.drawn], [[], 2]);
});

test("another drawing of the same text keeps unsent changes", () => {
  const { stage, seen } = makeStage({ address: "?unit=words" });
  stage.change({ unit: "pieces", pin: { row: 1, col: 1 } });
  mock.timers.tick(79);
  stage.adopt(undefined, true);
  assert.deepEqual(stage.view, { unit: "pieces", pin: { row: 1, col: 1 } });
  mock.timers.tick(80);
  assert.deepEqual(seen.sent, [["view", { unit: "pieces", pin: { row: 1, col: 1 } }]]);
  stage.adopt(undefined, true); // sent and answered: the address is right
  assert.deepEqual(stage.view, { unit: "words", pin: null });
});

test("an unanswered change is repeated if the address lacks it", () => {
  const { stage, seen } = makeStage({ address: "?unit=words" });
  stage.change({ unit: "pieces" });
  mock.timers.tick(80);
  globalThis.mhaVizQueue = { waiting: new Map(), sent: "view", turn: 1 };
  stage.adopt(undefined, true);
  assert.equal(stage.view.unit, "pieces");
  mock.timers.tick(80);
  assert.equal(seen.sent.length, 2);
  seen.address = "?unit=pieces";
  stage.adopt(undefined, true);
  mock.timers.tick(1000);
  assert.deepEqual([stage.view.unit, seen.sent.length], ["pieces", 2]);
});

test("a given view is adopted without reading the address", () => {
  const { stage } = makeStage({ address: "?unit=pieces" });
  stage.adopt({ unit: "words", pin: null });
  assert.equal(stage.view.unit, "words");
});

test("several resize events cause one redraw", () => {
  const { seen } = makeStage();
  for (let i = 0; i < 5; i++) dispatch(window, "resize");
  draw();
  assert.equal(seen.drawn, 1);
});

test("Escape and Back do nothing before data arrive", () => {
  const { stage, seen } = makeStage({ isReady: false });
  stage.view = null;
  dispatch(document, "keydown", { key: "Escape", composedPath: () => [{}] });
  dispatch(window, "popstate");
  assert.deepEqual([stage.view, seen.drawn, seen.focused], [null, 0, []]);
});

test("a stopped stage ignores events and sends nothing", () => {
  const { stage, seen } = makeStage();
  stage.change({ unit: "pieces" });
  dispatch(window, "resize");
  stage.stop();
  dispatch(window, "popstate");
  dispatch(window, "resize");
  dispatch(document, "keydown", { key: "Escape", composedPath: () => [{}] });
  draw();
  mock.timers.tick(1000);
  assert.deepEqual([seen.sent, seen.drawn, seen.focused], [[], 1, []]);
});

test("a box scrolls no further than necessary to show a row", () => {
  for (const [y, from, to] of [
    [100, 50, 50],
    [30, 50, 30],
    [240, 50, 80],
  ]) {
    const box = { scrollTop: from, clientHeight: 200 };
    revealRow(box, y);
    assert.equal(box.scrollTop, to);
  }
});

// ---- The theme --------------------------------------------------------------------------------------------------

const THEMES = {
  light: { ramp: ["#ffffff", "#000000"], signed: ["#0000ff", "#ff0000"], heads: ["#111111"] },
  dark: { ramp: ["#000000", "#ffffff"], signed: ["#00ffff", "#ffff00"], heads: ["#eeeeee"] },
};

test("forced colours are used for text and backgrounds", () => {
  window.matchMedia = () => ({ matches: true });
  const look = {};
  readLook(look, { style: { ...PAGE } }, THEMES, { style: { color: "CanvasText" } });
  assert.deepEqual([look.ink, look.paper], ["CanvasText", "Canvas"]);
  delete window.matchMedia;
});

test("colours follow the page; palettes are computed once per theme", () => {
  const look = {};
  const root = { style: { ...PAGE } };
  const quiet = { style: { color: "grey" } };
  readLook(look, root, THEMES, quiet);
  assert.deepEqual([look.heads, look.ink, look.muted, look.accent], [["#eeeeee"], "#ebe8e2", "grey", "#ebe8e2"]);
  const { colours } = look;
  assert.equal(colours[255], 0xffffffff);
  readLook(look, root, structuredClone(THEMES), quiet);
  assert.equal(look.colours, colours);
  root.style["--st-background-color"] = "#fffefb";
  readLook(look, root, THEMES, quiet);
  assert.deepEqual([look.heads, look.colours[255]], [["#111111"], 0xff000000]);
  assert.equal(look.signedColours[255], 0xff0000ff);
  assert.equal(look.textFont(13, 600), "600 13px sans-serif");
});
