// Numbers and positions of the drawing.
import assert from "node:assert/strict";
import test from "node:test";
import {
  computeBlock,
  chooseLinks,
  encodeView,
  parseHead,
  isPair,
  parseLinkRule,
  computeMean,
  parseView,
  formatPin,
  poolBlock,
  listPooledUnits,
  rankHeads,
  computeShades,
  computeUnits,
} from "../../mha_viz/browser/geometry.js";
import { makeLinks } from "../../mha_viz/browser/links.js";
import {
  findGridCell,
  computeGridLayout,
  findHeatmapCell,
  computeHeatmapLayout,
  computeLinksLayout,
} from "../../mha_viz/browser/layouts.js";
import { drawAxis, chooseLabelled, describeLabelStep } from "../../mha_viz/browser/heatmap.js";
import {
  formatDivergence,
  formatNats,
  formatNumber,
  formatPercent,
  formatSigned,
} from "../../mha_viz/browser/numerals.js";
import { makeRandom, matrix, makePacket, reading } from "./readings.mjs";
import { formatHead, formatMapName, formatPaperName, unpack } from "../../mha_viz/browser/reading.js";
import { getDefaults } from "../../mha_viz/browser/view.js";

const DEFAULTS = getDefaults("explorer");
const view = (fields = {}) => ({ ...DEFAULTS, ...fields });
const query = (fields) => new URLSearchParams(fields);
const near = (a, b, tolerance = 1e-4) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not ${b}`);
const makeBlock = (rows) => {
  const w = Float32Array.from(rows.flat());
  return { w, R: rows.length, C: rows[0].length, max: Math.max(...w) };
};

// ---- Bytes ------------------------------------------------------------------------------------------------

test("a packet is unpacked at any offset of a buffer", () => {
  const header = { n: 2, layers: 1, heads: 2, full: [0, 1], tokens: ["ü", "x"], special: [1, 0] };
  const scales = Float32Array.of(2, 0.5, 4, 1, 0.25, 1, 0.5, 0.125); // head 0: two rows of ordinary, special; head 1
  const bytes = makePacket(header, scales, Uint16Array.of(1, 2, 3, 4, 5, 6, 7, 65535));
  for (const shift of [0, 1, 2, 3]) {
    const buffer = new Uint8Array(bytes.length + shift);
    buffer.set(bytes, shift);
    const read = unpack(buffer.subarray(shift));
    assert.deepEqual(read.tokens, ["ü", "x"]);
    assert.deepEqual([...read.matrices.get(0)], [0.5, 4, 3, 16]);
    assert.deepEqual([...read.matrices.get(1)], [5, 1.5, 0.875, 32767.5]);
    assert.equal(read.thumbs, undefined);
  }
});

test("thumbnails follow the matrices", () => {
  const header = { n: 1, layers: 1, heads: 2, full: [1], special: [0], bins: { starts: [0], special: [false] } };
  const read = unpack(makePacket(header, Float32Array.of(1, 1), Uint16Array.of(9), Uint8Array.of(100, 200)));
  assert.deepEqual([...read.matrices.keys()], [1]);
  assert.deepEqual([...read.thumbs], [100, 200]);
});

// ---- Names ------------------------------------------------------------------------------------------------

test("heads are counted from 0, and from 1 as in papers", () => {
  const r = reading({ layers: 24, heads: 16 });
  assert.equal(formatHead(r, 0), "L0H0");
  assert.equal(formatHead(r, 383), "L23H15");
  assert.equal(formatPaperName(r, 0), "1-1");
  assert.equal(formatPaperName(r, 383), "24-16");
  for (let head = 0; head < 384; head++) assert.equal(parseHead(formatHead(r, head), r), head);
});

test("layers keep the model's numbers in a reading of only some layers", () => {
  const r = reading({ layers: 2, heads: 2, layer_numbers: [3, 7], start: {} });
  assert.deepEqual([formatHead(r, 3), formatMapName(r, 3), formatPaperName(r, 3)], ["L7H1", "L7H1", "8-2"]);
  assert.deepEqual([parseHead("L7H1", r), parseHead("L1H1", r), parseHead("L8H0", r)], [3, null, null]);
  const opened = parseView(query({ head: "L7H0", on: "1" }), r);
  assert.deepEqual([opened.head, opened.on], [2, [2, 3]]);
  const { head, on } = encodeView(opened, r);
  assert.deepEqual([head, on], ["L7H0", "1"]);
  assert.equal(encodeView(parseView(query({}), r), r).head, null);
});

test("a map is named after its head or, for rollout, its layer", () => {
  const r = reading({ layers: 6, heads: 2 });
  assert.deepEqual([formatMapName(r, 7), formatPaperName(r, 7)], ["L3H1", "4-2"]);
  const rollout = reading({ layers: 6, heads: 1, quantity: "rollout" });
  assert.deepEqual([formatMapName(rollout, 5), formatPaperName(rollout, 5)], ["layer 5", "6"]);
  assert.equal(formatHead(rollout, 5), "L5H0"); // in an address
  const someLayers = {
    ...rollout,
    layers: 2,
    in_model: [
      [2, 0],
      [5, 0],
    ],
  };
  assert.deepEqual([formatMapName(someLayers, 1), formatPaperName(someLayers, 1)], ["layer 5", "6"]);
  const someHeads = {
    ...someLayers,
    layers: 1,
    heads: 2,
    quantity: "weight",
    in_model: [
      [3, 1],
      [0, 2],
    ],
  };
  const names = [formatMapName(someHeads, 0), formatPaperName(someHeads, 1), formatHead(someHeads, 1)];
  assert.deepEqual(names, ["L3H1", "1-3", "L0H1"]);
});

test("the name of a missing head is not parsed", () => {
  const r = reading({ layers: 2, heads: 3 });
  for (const name of ["L2H0", "L0H3", "L-1H0", "L0", "", null, undefined, "L0H0 ", "L1e1H0", "L٣H١"])
    assert.equal(parseHead(name, r), null);
  assert.equal(parseHead("l1h2", r), 5);
});

test("weights have three decimals, and small ones are not written as zero", () => {
  assert.deepEqual([0, 0.0004, 0.0005, 0.12345, 1].map(formatNumber), ["0.000", "<.001", "0.001", "0.123", "1.000"]);
});

test("differences have a minus sign, shares one decimal and no space, entropies their unit", () => {
  assert.deepEqual([-0.25, 0.25].map(formatSigned), ["−0.250", "+0.250"]);
  assert.deepEqual([0, 0.0123, 0.62, 1].map(formatPercent), ["0.0%", "1.2%", "62.0%", "100.0%"]);
  assert.equal(formatNats(2, 2), "2.00 nats");
  assert.deepEqual([0, Math.LN2 / 8, Math.LN2].map(formatDivergence), ["0.0%", "12.5%", "100.0%"]);
});

// ---- The view in the URL ----------------------------------------------------------------------------------

test("an empty address gives the initial view", () => {
  const r = reading({ start: { head: "L1H2", pin: "q3" } });
  const shown = parseView(query(""), r);
  assert.deepEqual(shown, { ...DEFAULTS, head: 5, on: [5], pin: { query: 3, key: null }, link: null });
  assert.deepEqual(new Set(Object.values(encodeView(shown, r))), new Set([null]));
});

test("the initial pin is dropped if the address names a head", () => {
  const r = reading({ start: { head: "L1H2", pin: "q3" } });
  assert.equal(parseView(query({ head: "L0H1" }), r).pin, null);
  assert.deepEqual(parseView(query({ head: "L0H1", pin: "k2" }), r).pin, { query: null, key: 2 });
});

test("every possible view survives a round trip through the address", () => {
  const random = makeRandom(1);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const token = () => Math.floor(random() * 7);
  for (let i = 0; i < 2000; i++) {
    const r = reading({
      layers: 3,
      heads: 4,
      pair: true,
      start: pick([{ head: "L1H2", pin: "q3" }, { head: "L0H0", pin: null }, {}]),
    });
    const head = Math.floor(random() * 12);
    const others = [0, 1, 2, 3]
      .filter(() => random() < 0.3)
      .map((h) => head - (head % 4) + h)
      .filter((h) => h !== head);
    const shown = {
      unit: pick(["words", "pieces"]),
      special: pick(["keep", "hide", "rescale"]),
      links: pick(["all", "top1", "top10", "min0.05", "mass0.99"]),
      scale: pick(["fixed", "head", "row", "log"]),
      side: pick(["all", "aa", "ab", "ba", "bb"]),
      shown: pick(["weight", "norm", "rollout"]),
      head,
      on: [head, ...others],
      pin: pick([null, { query: token(), key: null }, { query: null, key: token() }, { query: token(), key: token() }]),
      link: pick([null, { query: token(), key: token() }]),
    };
    const address = Object.entries(encodeView(shown, r)).filter(([, value]) => value !== null);
    assert.deepEqual(parseView(query(address), r), shown, JSON.stringify(address));
  }
});

test("the initial view without its pin survives a round trip through the address", () => {
  const r = reading({ start: { head: "L1H2", pin: "q3" } });
  const unpinned = { ...parseView(query(""), r), pin: null };
  const address = Object.entries(encodeView(unpinned, r)).filter(([, value]) => value !== null);
  assert.deepEqual(parseView(query(address), r), unpinned);
});

test("garbage becomes the default and never throws", () => {
  const r = reading();
  const start = parseView(query(""), r);
  const garbage = [
    "",
    " ",
    "-1",
    "NaN",
    "1e9",
    "∞",
    "<script>",
    "__proto__",
    "null",
    "undefined",
    "L9999H0",
    "q",
    "k",
    "q99999",
    "99-99",
    "1-",
    "\u0000",
    "\ud800",
    "٣",
    "a".repeat(5000),
    "top0",
    "top11",
    "min1.0",
    "mass7.0",
    "0.5",
  ];
  for (const name of ["head", "pin", "link", "unit", "special", "links", "scale", "side", "on", "__proto__", "x"]) {
    for (const value of garbage) assert.deepEqual(parseView(query([[name, value]]), r), start, `${name}=${value}`);
  }
});

test("only other heads of the opened head's layer are added to it, without duplicates", () => {
  const r = reading({ layers: 2, heads: 3 });
  assert.deepEqual(parseView(query({ head: "L1H0", on: "2.2.0.7.x.1.-1" }), r).on, [3, 5, 4]);
});

test("a pin has a query, a key or both", () => {
  const r = reading();
  for (const [name, pin] of [
    ["q3", { query: 3, key: null }],
    ["k0", { query: null, key: 0 }],
    ["q3k0", { query: 3, key: 0 }],
  ]) {
    assert.deepEqual(parseView(query({ pin: name }), r).pin, pin);
    assert.equal(formatPin(pin), name);
  }
  assert.equal(formatPin(null), null);
  for (const name of ["q5", "k5", "q0k5", "k0q0"]) assert.equal(parseView(query({ pin: name }), r).pin, null);
});

// ---- Units and blocks ---------------------------------------------------------------------------------------

test("units are words or subwords, with or without special tokens, of one side of a pair", () => {
  const r = reading({ pair: true });
  const texts = (fields) =>
    Object.values(computeUnits(r, view(fields))).map((list) => list.map((u) => u.text).join(" "));
  assert.deepEqual(texts({}), Array(2).fill("[CLS] didn't it [SEP] so [SEP]"));
  assert.deepEqual(texts({ unit: "pieces" })[0], "[CLS] did n't it [SEP] so [SEP]");
  assert.deepEqual(texts({ special: "hide" })[0], "didn't it so");
  assert.deepEqual(texts({ special: "rescale", side: "ab" }), ["didn't it", "so"]);
  assert.deepEqual(texts({ side: "ba" }), ["so [SEP]", "[CLS] didn't it [SEP]"]);
  assert.deepEqual(computeUnits(r, view()).rows[1], { text: "didn't", tokens: [1, 2], special: false, segment: 0 });
});

test("generated tokens are marked, except special ones", () => {
  const marked = ({ rows, cols }) =>
    [rows, cols].map((list) => list.map((u) => u.text + (u.written ? "_" : "")).join(" "));
  const r = { ...reading(), written: 3 };
  assert.deepEqual(marked(computeUnits(r, view())), Array(2).fill("[CLS] didn't it_ [SEP]"));
  assert.deepEqual(marked(computeUnits(r, view({ unit: "pieces" })))[0], "[CLS] did n't it_ [SEP]");
});

test("the side of a pair is ignored for a single sentence", () => {
  const r = reading();
  assert.equal(isPair(r), false);
  assert.equal(computeUnits(r, view({ side: "bb" })).rows.length, 4);
  assert.equal(isPair(reading({ pair: true })), true);
});

test("weights to a word are summed over its tokens, weights from a word averaged", () => {
  const r = reading({ layers: 1, heads: 1 });
  r.matrices.set(
    0,
    Float32Array.from(
      [
        [0, 8, 0, 0, 0],
        [1, 1, 2, 4, 0],
        [3, 1, 2, 0, 2],
        [0, 0, 0, 8, 0],
        [8, 0, 0, 0, 0],
      ]
        .flat()
        .map((w) => w / 8),
    ),
  );
  const { w, R, C, hidden, max } = computeBlock(r, 0, view());
  assert.deepEqual([R, C], [4, 4]);
  [0, 1, 0, 0, /**/ 0.25, 0.375, 0.25, 0.125, /**/ 0, 0, 1, 0, /**/ 1, 0, 0, 0].forEach((expected, i) =>
    near(w[i], expected),
  );
  hidden.forEach((share) => near(share, 0, 1e-6));
  near(max, 1);
});

test("hidden tokens: other weights unchanged with the hidden share, or rescaled", () => {
  const r = reading({ layers: 1, heads: 1 });
  const raw = r.matrices.get(0);
  for (const special of ["hide", "rescale"]) {
    const { w, hidden, R, C } = computeBlock(r, 0, view({ unit: "pieces", special }));
    assert.deepEqual([R, C], [3, 3]);
    for (let row = 0; row < 3; row++) {
      const ordinary = [1, 2, 3].map((k) => raw[(row + 1) * 5 + k]);
      const sum = ordinary.reduce((a, b) => a + b, 0);
      near(hidden[row], 1 - sum);
      ordinary.forEach((expected, c) => near(w[row * C + c], special === "hide" ? expected : expected / sum));
    }
  }
});

test("a text of only special tokens gives empty blocks", () => {
  const r = reading({ special: [1, 1, 1, 1, 1] });
  const { R, C, max, w } = computeBlock(r, 0, view({ special: "rescale" }));
  assert.deepEqual([R, C, max, w.length], [0, 0, 0, 0]);
  assert.deepEqual(computeMean([]), 0);
  assert.equal(computeShades({ w, R, C, max }, "row").length, 0);
  assert.equal(chooseLinks({ w, R, C }, "top3").length, 0);
});

test("pooled thumbnails can hide special rows and show one side of a pair", () => {
  const r = reading({
    layers: 1,
    heads: 2,
    pair: true,
    bins: { starts: [0, 1, 4, 5, 6], special: [true, false, true, false, true] },
  });
  r.thumbs = Uint8Array.from({ length: 50 }, (_, i) => i * 5);
  const pool = (head, fields) => poolBlock(r, head, listPooledUnits(r, view(fields)));
  const all = pool(1, {});
  assert.deepEqual([all.R, all.C], [5, 5]);
  near(all.w[0], (125 / 255) ** 2, 1e-6);
  const ordinary = pool(1, { special: "hide" });
  assert.deepEqual([ordinary.R, ordinary.C], [2, 2]);
  near(ordinary.w[1], (((25 + 8) * 5) / 255) ** 2, 1e-6);
  near(ordinary.max, Math.max(...ordinary.w), 1e-6);
  const across = pool(0, { side: "ab" });
  assert.deepEqual([across.R, across.C], [3, 2]);
  near(across.w[0], ((3 * 5) / 255) ** 2, 1e-6);
});

// ---- Links and shades ---------------------------------------------------------------------------------------

const WEIGHTS = makeBlock([
  [0.5, 0.25, 0.125, 0.125],
  [0.25, 0.25, 0.25, 0.25],
  [0, 0, 0, 1],
]);

test("the links setting is parsed into a mode and a value", () => {
  assert.deepEqual(parseLinkRule("all"), { mode: "all", value: 0 });
  assert.deepEqual(parseLinkRule("top10"), { mode: "top", value: 10 });
  assert.deepEqual(parseLinkRule("min0.05"), { mode: "min", value: 0.05 });
  assert.deepEqual(parseLinkRule("mass0.9"), { mode: "mass", value: 0.9 });
});

test("which links are drawn", () => {
  const rows = (links) => [0, 1, 2].map((r) => [...chooseLinks(WEIGHTS, links).subarray(4 * r, 4 * r + 4)].join(""));
  assert.deepEqual(rows("all"), ["1111", "1111", "1111"]);
  assert.deepEqual(rows("top1"), ["1000", "1000", "0001"]); // ties: the first
  assert.deepEqual(rows("top2"), ["1100", "1100", "1001"]);
  assert.deepEqual(rows("top10"), ["1111", "1111", "1111"]);
  assert.deepEqual(rows("min0.25"), ["1100", "1111", "0001"]);
  assert.deepEqual(rows("mass0.50"), ["1000", "1100", "0001"]);
  assert.deepEqual(rows("mass0.60"), ["1100", "1110", "0001"]);
  assert.deepEqual(rows("mass0.99"), ["1111", "1111", "0001"]);
});

test("cumulative mass selects the fewest keys that reach the share", () => {
  const random = makeRandom(2);
  for (let i = 0; i < 300; i++) {
    const raw = Array.from({ length: 9 }, () => random() ** 4);
    const total = raw.reduce((a, b) => a + b, 0);
    const row = raw.map((w) => w / total);
    const goal = Math.ceil(random() * 98) / 100;
    const mask = chooseLinks(makeBlock([row]), `mass${goal.toFixed(2)}`);
    const drawn = row.filter((_, c) => mask[c]);
    const heavy = [...row].sort((a, b) => b - a).slice(0, drawn.length);
    assert.deepEqual(
      drawn.sort((a, b) => b - a),
      heavy,
    );
    assert.ok(drawn.reduce((a, b) => a + b, 0) >= goal - 1e-6);
    assert.ok(drawn.length === 1 || heavy.slice(0, -1).reduce((a, b) => a + b, 0) < goal + 1e-6);
  }
});

test("shades on four scales", () => {
  const rows = (scale) =>
    [0, 1, 2].map((r) =>
      [
        ...computeShades(
          makeBlock([
            [0.5, 0.25, 0, 0.001],
            [0.1, 0.1, 0.1, 0.1],
            [0, 0, 0, 0],
          ]),
          scale,
        ),
      ].slice(4 * r, 4 * r + 4),
    );
  assert.deepEqual(rows("fixed"), [
    [128, 64, 0, 0],
    [26, 26, 26, 26],
    [0, 0, 0, 0],
  ]);
  assert.deepEqual(rows("head"), [
    [255, 128, 0, 1],
    [51, 51, 51, 51],
    [0, 0, 0, 0],
  ]);
  assert.deepEqual(rows("row"), [
    [255, 128, 0, 1],
    [255, 255, 255, 255],
    [0, 0, 0, 0],
  ]);
  assert.deepEqual(rows("log"), [
    [229, 204, 0, 0],
    [170, 170, 170, 170],
    [0, 0, 0, 0],
  ]);
  assert.equal(computeShades(makeBlock([[1]]), "log")[0], 255);
  assert.equal(computeShades(makeBlock([[1.0001]]), "fixed")[0], 255);
});

test("shades increase with weights", () => {
  const values = Array.from({ length: 500 }, (_, i) => i / 499);
  for (const scale of ["fixed", "head", "row", "log"]) {
    const levels = computeShades(makeBlock([values]), scale);
    for (let i = 1; i < levels.length; i++) assert.ok(levels[i] >= levels[i - 1], scale);
    assert.equal(levels[0], 0);
    assert.equal(levels[499], 255);
  }
});

// ---- The ranking --------------------------------------------------------------------------------------------

test("heads are ranked by the link between two words or two subwords", () => {
  const r = reading({ layers: 1, heads: 3 });
  for (const [head, weight] of [
    [0, 100],
    [1, 300],
    [2, 200],
  ]) {
    const cells = new Float32Array(25);
    cells[1 * 5 + 3] = weight / 1000;
    cells[2 * 5 + 3] = weight / 500;
    r.matrices.set(head, cells);
  }
  const words = rankHeads(r, view({ link: { query: 2, key: 3 } }));
  assert.deepEqual(
    words.map((x) => x.head),
    [1, 2, 0],
  );
  near(words[0].weight, (0.3 + 0.6) / 2, 1e-6);
  near(rankHeads(r, view({ unit: "pieces", link: { query: 1, key: 3 } }))[0].weight, 0.3, 1e-6);
});

test("the server's ranking is used for its own link only", () => {
  const r = reading({
    layers: 1,
    heads: 3,
    bins: { starts: [0], special: [false] },
    link: { query: 3, key: 1, words: true, weights: [0.1, 0.3, 0.2] },
  });
  r.matrices.delete(2); // not every head is here
  assert.deepEqual(
    rankHeads(r, view({ link: { query: 3, key: 1 } })).map((x) => x.head),
    [1, 2, 0],
  );
  assert.equal(rankHeads(r, view({ unit: "pieces", link: { query: 3, key: 1 } })), null);
  assert.equal(rankHeads(r, view({ link: { query: 1, key: 3 } })), null);
});

// ---- Layouts ------------------------------------------------------------------------------------------------

const GRIDS = [
  [6, 12],
  [12, 12],
  [24, 16],
];

test("if the width allows it, heads have at least 45 pixels, however high the grid becomes", () => {
  for (const [layers, heads] of GRIDS) {
    const grid = computeGridLayout(30 + 45 * heads, layers, heads, 420);
    assert.equal(grid.step, 45);
    assert.equal(grid.width, 30 + 45 * heads);
    assert.equal(computeGridLayout(430, layers, heads, 420).width <= 430, true);
  }
  assert.equal(computeGridLayout(2000, 6, 12, 10000).step, 80);
  assert.equal(computeGridLayout(490, 2, 4, 10000, 112).step, 112, "a grid of few heads can have larger ones");
  // A grid that is high enough already does not scroll.
  assert.equal(computeGridLayout(2000, 6, 12, 22 + 6 * 60).step, 60);
});

test("on a narrow screen, pictures stay readable and the grid becomes wider", () => {
  for (const [layers, heads] of GRIDS) {
    const grid = computeGridLayout(200, layers, heads, 10000);
    assert.ok(grid.size >= 17);
    assert.equal(grid.width, 30 + heads * grid.step);
  }
});

test("a point on a picture finds its head, a point on a label none", () => {
  for (const [layers, heads] of GRIDS) {
    const grid = computeGridLayout(430, layers, heads, 600);
    for (let head = 0; head < layers * heads; head++) {
      const [x, y] = [grid.left + (head % heads) * grid.step, grid.top + Math.floor(head / heads) * grid.step];
      assert.equal(findGridCell(grid, layers, heads, x, y), head);
      assert.equal(findGridCell(grid, layers, heads, x + grid.size - 0.01, y + grid.size - 0.01), head);
    }
    for (const [x, y] of [
      [0, 0],
      [grid.left - 1, 50],
      [50, grid.top - 1],
      [grid.width + 1, 50],
      [50, grid.height + 1],
    ]) {
      assert.equal(findGridCell(grid, layers, heads, x, y), null);
    }
  }
});

test("token links: both columns inside the width, rows readable at any length", () => {
  for (const [width, n, label] of [
    [300, 16, 60],
    [300, 512, 300],
    [560, 64, 120],
    [900, 1, 10],
  ]) {
    const links = computeLinksLayout(width, n, n, 560, label);
    assert.ok(links.left > 0 && links.left < links.right && links.right < width);
    assert.ok(links.rowHeight >= 17 && links.rowHeight <= 34);
    assert.equal(links.height, links.rowHeight * n);
  }
  assert.equal(computeLinksLayout(500, 3, 10, 560, 60).height, computeLinksLayout(500, 10, 3, 560, 60).height);
  assert.equal(computeLinksLayout(500, 5, 5, 560, 60, 50).rowHeight, 50, "the maximum row height can be raised");
});

test("heatmap: a point on a cell finds it, a point on a label none", () => {
  for (const n of [1, 4, 14, 40, 128, 512]) {
    const heat = computeHeatmapLayout(560, n, n, 560, 80);
    assert.ok(heat.cell >= 2 && heat.cell <= 44);
    assert.equal(heat.width, heat.left + n * heat.cell);
    for (const i of [0, Math.floor(n / 2), n - 1]) {
      const at = (index) => heat.left + (index + 0.5) * heat.cell;
      assert.deepEqual(findHeatmapCell(heat, n, n, at(i), at(n - 1 - i)), { row: n - 1 - i, col: i });
    }
    assert.equal(findHeatmapCell(heat, n, n, heat.left - 1, heat.top + 1), null);
    assert.equal(findHeatmapCell(heat, n, n, heat.width + 1, heat.top + 1), null);
  }
});

test("heatmap: up to 200 tokens fit a panel, a larger one scrolls instead of blurring", () => {
  for (const n of [4, 14, 40, 100, 200]) {
    const heat = computeHeatmapLayout(560, n, n, 560, 80);
    assert.ok(heat.width <= 560 && heat.height <= 560, `${n}: ${heat.width} × ${heat.height}`);
  }
  assert.equal(computeHeatmapLayout(560, 512, 512, 560, 80).cell, 2);
  assert.equal(computeHeatmapLayout(900, 12, 12, 730, 56).cell, 44);
  assert.equal(computeHeatmapLayout(900, 12, 12, 730, 56, 56, 64).cell, 56, "the maximum cell size can be raised");
});

test("each row of the test matrix sums to 1", () => {
  for (let q = 0; q < 7; q++)
    near(
      matrix(7, 3)
        .subarray(7 * q, 7 * q + 7)
        .reduce((a, b) => a + b, 0),
      1,
    );
});

test("heatmap: if labels are crowded, every third token has one, and so do focused tokens", () => {
  const labelled = (focused, count) => [...chooseLabelled(13, 3, focused, count)].sort((a, b) => a - b);
  assert.deepEqual(labelled(null), [0, 3, 6, 9, 12]);
  assert.deepEqual(labelled(4, 1), [0, 4, 9, 12]);
  assert.deepEqual(labelled(10, 2), [0, 3, 6, 10, 11]);
  assert.deepEqual([8, 4, 3, 2, undefined].map(describeLabelStep), [
    "Every 2nd token is labelled.",
    "Every 3rd token is labelled.",
    "Every 3rd token is labelled.",
    "Every 5th token is labelled.",
    "",
  ]);
});

test("heatmap: labels have ticks only if some are left out", () => {
  for (const [cell, step] of [
    [4, 3],
    [20, 1],
  ]) {
    const drawn = { texts: [], ticks: [] };
    const context = {
      ...Object.fromEntries(["save", "restore", "translate", "rotate"].map((name) => [name, () => {}])),
      measureText: () => ({ width: 1 }),
      fillText: (text) => drawn.texts.push(text),
      fillRect: (x, y, width, height) => drawn.ticks.push([x, y, width, height]),
    };
    const units = Array.from({ length: 9 }, (_, i) => ({ text: `t${i}`, special: false }));
    const layout = { cell, left: 40, top: 30, width: 40 + 9 * cell, height: 30 + 9 * cell };
    const look = { textFont: () => "", muted: "", ink: "", accent: "" };
    drawAxis(context, { rows: units, cols: units, focus: null }, look, layout, true);
    assert.equal(drawn.texts.length, Math.ceil(9 / step));
    const middles = [0, 3, 6].map((i) => [35, 30 + (i + 0.5) * cell - 0.5, 4, 1]);
    assert.deepEqual(drawn.ticks, step > 1 ? middles : []);
  }
});

test("links: for many words, only the strongest links between words are drawn, on one scale", () => {
  const names = ["[CLS]", ...Array.from({ length: 25 }, (_, i) => `w${i}`)];
  const units = names.map((text, i) => ({ text, tokens: [i], special: i === 0, segment: 0 }));
  const n = names.length;
  const w = Float32Array.from({ length: n * n }, (_, i) => (i % n ? ((i * 37) % 101) / 250 : 0.5));
  const block = { w, R: n, C: n, max: 0.5 };
  for (const rule of ["all", "top3", "min0.10", "mass0.70"])
    for (const scale of ["fixed", "head", "row", "log"]) {
      const [{ lines, ink }] = makeLinks([block], { rows: units, cols: units }, rule, scale);
      const drawnCells = Array.from(lines.keys()).filter((i) => lines[i]);
      assert.equal(drawnCells.length, 20);
      assert.ok(drawnCells.every((i) => i % n && i >= n));
      const sorted = Array.from(w.keys()).sort((a, b) => w[a] - w[b]);
      assert.ok(sorted.every((at, i) => !i || ink[at] >= ink[sorted[i - 1]]));
      if (rule === "all") {
        const wordCells = Array.from(w.keys()).filter((i) => i % n && i >= n);
        const strongest = wordCells.sort((a, b) => w[b] - w[a]).slice(0, 20);
        assert.equal(Math.min(...drawnCells.map((i) => w[i])), Math.min(...strongest.map((i) => w[i])));
      }
    }
});
