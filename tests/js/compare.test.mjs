// The comparison of heads: correspondence, the shared scale, differences, and the address.
import assert from "node:assert/strict";
import test from "node:test";
import { getDefaults } from "../../mha_viz/browser/view.js";
import {
  chooseColumnCount,
  findCounterparts,
  subtract,
  encodePanelsView,
  findLargestCells,
  namePanel,
  updateOpening,
  parsePanelsView,
  findPartners,
  updatePlace,
  computeSharedShades,
  computeSignedShades,
  distinguishPanels,
  findLargestWeight,
  computeTextUnits,
  unpackPanels,
  updateView,
} from "../../mha_viz/browser/compare/together.js";
import { describeScale } from "../../mha_viz/browser/words.js";
import { formatSigned } from "../../mha_viz/browser/numerals.js";
import { makeRandom, matrix, makePacket } from "./readings.mjs";

const START = getDefaults("compare");
const view = (fields = {}) => ({ ...START, pin: null, diff: null, ...fields });
const query = (fields) => new URLSearchParams(fields);
const texts = (units) => units.map((unit) => unit.text);

// Make a reading of words, each a list of its tokens, by default between "[CLS]" and "[SEP]".
function makeReading(
  words,
  { special = ["[CLS]", "[SEP]"], typed = words.map((pieces) => pieces.join("")).join(" ") } = {},
) {
  const groups = [];
  const [tokens, spans, specialFlags] = [[], [], []];
  const add = (text, span) => {
    tokens.push(text);
    spans.push(span);
    specialFlags.push(span ? 0 : 1);
  };
  const addSpecial = (text) => {
    groups.push([tokens.length]);
    add(text, null);
  };
  if (special[0]) addSpecial(special[0]);
  let position = 0;
  for (const pieces of words) {
    groups.push(pieces.map((_, i) => tokens.length + i));
    for (const piece of pieces) {
      add(piece, [position, position + piece.length]);
      position += piece.length;
    }
    position += 1;
  }
  if (special[1]) addSpecial(special[1]);
  return {
    key: typed,
    model: "m",
    label: "m",
    revision: "",
    steps: "",
    text: typed,
    pair: "",
    layers: 2,
    heads: 3,
    n: tokens.length,
    tokens,
    spans,
    special: specialFlags,
    groups,
    segments: tokens.map(() => 0),
    words: groups.map((g) => g.map((t) => tokens[t]).join("")),
    full: [0, 1, 2, 3, 4, 5],
  };
}

// Make a set as unpackPanels returns it, with a panel for each [reading number, head].
function makeSet(readings, panels, { aligned = {}, place = aligned } = {}) {
  const table = (rows) => readings.map((_, i) => readings.map((__, j) => rows[`${i}-${j}`] ?? null));
  const unpackedReadings = readings.map((reading) => {
    const wordOf = [];
    reading.groups.forEach((tokens, word) =>
      tokens.forEach((token) => {
        wordOf[token] = word;
      }),
    );
    return { ...reading, wordOf, matrices: new Map(reading.full.map((head) => [head, matrix(reading.n, head)])) };
  });
  return {
    key: "k",
    panels: panels.map(([reading, head]) => ({ reading, head, name: "" })),
    readings: unpackedReadings,
    aligned: table(aligned),
    place: table(place),
  };
}

const makeRange = (n) => Array.from({ length: n }, (_, i) => i);
const makeTiredReading = () => makeReading([["it"], ["was"], ["tired"]]);
const makeWideReading = () => makeReading([["it"], ["was"], ["wide"]]);
const makeTwoPanels = (
  panels = [
    [0, 0],
    [1, 0],
  ],
) =>
  makeSet([makeTiredReading(), makeWideReading()], panels, {
    aligned: { "0-1": [0, 1, 2, null, 4], "1-0": [0, 1, 2, null, 4] },
    place: { "0-1": makeRange(5), "1-0": makeRange(5) },
  });

// ---- Bytes ------------------------------------------------------------------------------------------------

test("consecutive readings are unpacked at any byte offset", () => {
  const one = makePacket({ n: 1, full: [0], special: [0], groups: [[0]] }, Float32Array.of(0.5, 1), Uint16Array.of(3));
  const two = makePacket({ n: 1, full: [4], special: [1], groups: [[0]] }, Float32Array.of(1, 0.25), Uint16Array.of(8));
  const header = makePacket({ sizes: [one.length, two.length], panels: [] });
  for (const shift of [0, 1, 2, 3]) {
    const bytes = new Uint8Array(shift + header.length + one.length + two.length);
    [
      [header, 0],
      [one, header.length],
      [two, header.length + one.length],
    ].forEach(([part, offset]) => bytes.set(part, shift + offset));
    const set = unpackPanels(bytes.subarray(shift));
    assert.deepEqual(
      set.readings.map((r) => [...r.matrices]),
      [[[0, Float32Array.of(1.5)]], [[4, Float32Array.of(2)]]],
    );
  }
});

test("a panel is named after its head", () => {
  const set = makeSet([makeTiredReading()], [[0, 4]]);
  assert.deepEqual(namePanel(set, 0), { name: "L1H1", paper: "2-2" });
});

test("a rollout panel is named after its layer; its address names the map", () => {
  const set = makeSet([{ ...makeTiredReading(), heads: 1, quantity: "rollout" }], [[0, 1]]);
  assert.deepEqual(namePanel(set, 0), { name: "layer 1", paper: "2" });
});

// ---- The address ------------------------------------------------------------------------------------------

test("an empty address gives the defaults, and defaults are left out of the address", () => {
  const set = makeTwoPanels();
  assert.deepEqual(parsePanelsView(query(""), set), view());
  assert.deepEqual(new Set(Object.values(encodePanelsView(view(), set))), new Set([null]));
  for (const name of ["unit", "special", "links", "scale"])
    assert.equal(START[name], getDefaults("explorer")[name], "as the explorer's");
});

test("a long text initially shows the strongest links on one scale", () => {
  const set = makeSet(
    [makeTiredReading(), makeReading(Array.from({ length: 40 }, () => ["it"]))],
    [
      [0, 0],
      [1, 0],
    ],
  );
  const initial = { special: "hide", links: "top3", scale: "head" };
  assert.deepEqual(parsePanelsView(query(""), set), view(initial));
  assert.deepEqual(parsePanelsView(query("scale=row"), set).scale, "head");
  const { special, links, scale } = encodePanelsView(view(), set);
  assert.deepEqual([special, links, scale], ["keep", "all", "fixed"], "changed settings are in the address");
  assert.deepEqual(new Set(Object.values(encodePanelsView(view(initial), set))), new Set([null]));
});

test("panels can open with a difference; the address says when it is closed", () => {
  const set = { ...makeTwoPanels(), start: { diff: "0-1" } };
  assert.deepEqual(parsePanelsView(query(""), set).diff, [0, 1]);
  assert.deepEqual(parsePanelsView(query("diff=1-0"), set).diff, [1, 0]);
  assert.equal(parsePanelsView(query("diff=none"), set).diff, null);
  assert.equal(encodePanelsView(view(), set).diff, "none");
  const setWithPin = { ...set, start: { diff: "0-1", pin: "q2" } };
  const pinned = { at: 0, query: 2, key: null };
  assert.deepEqual(parsePanelsView(query(""), setWithPin).pin, pinned);
  assert.equal(parsePanelsView(query("pin=none"), setWithPin).pin, null);
  assert.deepEqual(
    [pinned, { ...pinned, at: 1 }, null].map((pin) => encodePanelsView(view({ pin }), setWithPin).pin),
    [null, "q2", "none"],
  );
  assert.equal(encodePanelsView(view({ diff: [0, 1] }), set).diff, "0-1");
  assert.equal(
    parsePanelsView(query(""), { ...set, panels: set.panels.slice(0, 1) }).diff,
    null,
    "one panel has no difference",
  );
});

test("every possible view survives a round trip through the address", () => {
  const set = makeSet(
    [makeTiredReading(), makeWideReading()],
    [
      [0, 0],
      [1, 0],
      [0, 5],
      [1, 2],
    ],
  );
  const random = makeRandom(7);
  const pick = (list) => list[Math.floor(random() * list.length)];
  for (let i = 0; i < 300; i++) {
    const shown = view({
      as: pick(["heatmap", "links"]),
      unit: pick(["words", "pieces"]),
      special: pick(["keep", "hide", "rescale"]),
      links: pick(["all", "top3", "top10", "min0.05", "mass0.90"]),
      scale: pick(["fixed", "head", "log"]),
      diff: pick([null, [0, 1], [3, 2]]),
      pin: pick([null, { at: 0, query: 1, key: null }, { at: 3, query: 0, key: 4 }]),
    });
    const address = Object.entries(encodePanelsView(shown, set)).filter(([, value]) => value !== null);
    assert.deepEqual(parsePanelsView(query(address), set), shown);
  }
});

test("invalid values in the address are ignored", () => {
  const set = makeTwoPanels();
  for (const invalid of [
    "scale=row",
    "scale=FIXED",
    "as=graph",
    "unit=syllables",
    "special=maybe",
    "links=top11",
    "diff=0-0",
    "diff=0-2",
    "diff=1",
    "diff=a-b",
    "diff=0-1-1",
    "pin=q9999",
    "pin=q5",
    "pin=",
    "pin=k0q0",
    "pin=q0&at=2",
    "at=1",
    "at=-1",
    "diff=%F0",
    "pin=q٣",
  ])
    assert.deepEqual(parsePanelsView(query(invalid), set), view(), invalid);
  assert.deepEqual(
    parsePanelsView(query("as=links&as=heatmap&diff=0-1&diff=1-0"), set),
    view({ diff: [1, 0] }),
    "the last of several",
  );
});

test("a pin without a panel belongs to the first one", () => {
  assert.deepEqual(parsePanelsView(query("pin=q2k1"), makeTwoPanels()).pin, { at: 0, query: 2, key: 1 });
  assert.equal(encodePanelsView(view({ pin: { at: 0, query: 2, key: 1 } }), makeTwoPanels()).at, null);
});

// ---- Changes of the compared heads ------------------------------------------------------------------------

test("panel numbers are updated after every kind of edit", () => {
  const applyEdit = (edit, list) => {
    const edited = [...list];
    if (edit.action === "remove") edited.splice(edit.index, 1);
    if (edit.action === "duplicate") edited.splice(edit.index + 1, 0, "copy");
    if (edit.action === "move") edited.splice(edit.to, 0, ...edited.splice(edit.index, 1));
    return edited;
  };
  const list = ["a", "b", "c", "d", "e"];
  for (const action of ["remove", "duplicate", "move", "rename"]) {
    for (let index = 0; index < 5; index++) {
      for (let to = 0; to < 5; to++) {
        const moved = applyEdit({ action, index, to }, list);
        list.forEach((name, panel) => {
          const place = updatePlace({ action, index, to }, panel);
          assert.equal(
            place === null ? undefined : moved[place],
            place === null ? undefined : name,
            `${action} ${index} ${to} ${name}`,
          );
          assert.equal(place === null, !moved.includes(name));
        });
      }
    }
  }
});

test("the difference and the pin follow their panels, and disappear with a removed one", () => {
  const before = view({ diff: [0, 2], pin: { at: 2, query: 1, key: null } });
  assert.deepEqual(updateView({ action: "move", index: 2, to: 0 }, before), {
    ...before,
    diff: [1, 0],
    pin: { at: 0, query: 1, key: null },
  });
  assert.deepEqual(updateView({ action: "remove", index: 2 }, before), { ...before, diff: null, pin: null });
  assert.deepEqual(updateView({ action: "remove", index: 1 }, before), {
    ...before,
    diff: [0, 1],
    pin: { at: 1, query: 1, key: null },
  });
});

test("an edit contains the address of the panels that it results in", () => {
  const long = makeReading(Array.from({ length: 40 }, () => ["it"]));
  const set = (...readings) => ({
    ...makeSet(
      [makeTiredReading(), makeWideReading(), long],
      readings.map((reading) => [reading, 0]),
    ),
    editable: true,
    compared: [
      ["pieces", "words", null],
      ["words", "pieces", null],
      [null, null, "pieces"],
    ],
  });
  const encodeAfterEdit = (panels, action, index, fields = {}) =>
    encodePanelsView(view(fields), updateOpening({ action, index, to: 0 }, panels));
  assert.equal(encodeAfterEdit(set(0, 1), "remove", 0).diff, null, "one panel has no difference that could be closed");
  assert.equal(encodeAfterEdit(set(0), "duplicate", 0).diff, "none");
  assert.equal(encodeAfterEdit(set(0, 1), "duplicate", 0).diff, null);
  assert.equal(encodeAfterEdit(set(0, 1), "move", 1).diff, "none");
  assert.equal(encodeAfterEdit(set(0, 1, 1), "remove", 2).diff, "none");
  assert.equal(encodeAfterEdit(set(0, 1, 2), "remove", 0).diff, null, "these cannot be subtracted");
  const strongest = { special: "hide", links: "top3", scale: "head" };
  const { special, links, scale } = encodeAfterEdit(set(0, 2), "remove", 1, strongest);
  assert.deepEqual({ special, links, scale }, strongest, "without the long text these are no longer the defaults");
  assert.equal(encodeAfterEdit(set(0, 2), "remove", 0, strongest).special, null);
  const fixed = { ...set(0, 1), editable: false, start: { diff: "0-1" } };
  assert.equal(encodeAfterEdit(fixed, "pin", 0).diff, "none", "adding to My heads changes no panel");
});

// ---- Correspondence -------------------------------------------------------------------------------------

const listCounterparts = (set, i, j, v) => {
  const [ours, theirs] = [i, j].map((k) => computeTextUnits(set.readings[k], v));
  return findCounterparts(set, i, j, ours, theirs).map((found, index) => [
    ours[index].text,
    found && texts(theirs.slice(found[0], found[0] + found[1])),
  ]);
};

test("one text, two tokenizers: tokens correspond if they cover the same characters", () => {
  const one = makeReading([["didn", "'", "t"], ["sleep"]]);
  const other = makeReading(
    [
      ["did", "n't"],
      ["sl", "eep"],
    ],
    { special: ["<s>", "</s>"] },
  );
  const set = makeSet(
    [one, other],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": makeRange(4), "1-0": makeRange(4) } },
  );
  assert.deepEqual(listCounterparts(set, 0, 1, view({ unit: "pieces" })), [
    ["[CLS]", ["<s>"]],
    ["didn", ["did", "n't"]],
    ["'", ["n't"]],
    ["t", ["n't"]],
    ["sleep", ["sl", "eep"]],
    ["[SEP]", ["</s>"]],
  ]);
  assert.deepEqual(listCounterparts(set, 1, 0, view({ unit: "pieces" }))[2], ["n't", ["didn", "'", "t"]]);
  assert.deepEqual(listCounterparts(set, 0, 1, view())[1], ["didn't", ["didn't"]]);
  assert.deepEqual(listCounterparts(set, 0, 1, view({ special: "hide" })), [
    ["didn't", ["didn't"]],
    ["sleep", ["sleep"]],
  ]);
});

test("a special token that the other reading lacks has no counterpart", () => {
  const bare = makeReading([["it"]], { special: [null, null] });
  const set = makeSet(
    [makeReading([["it"]]), bare],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [null, 0, null], "1-0": [1] } },
  );
  assert.deepEqual(listCounterparts(set, 0, 1, view()), [
    ["[CLS]", null],
    ["it", ["it"]],
    ["[SEP]", null],
  ]);
});

test("two texts: equal words correspond, token by token if split alike; other words do not", () => {
  const one = makeReading([["ti", "red"], ["dogs"], ["bark", "ed"]]);
  const other = makeReading([["Ti", "red"], ["cats"], ["bar", "k", "ed"]]);
  const set = makeSet(
    [one, other],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [0, 1, null, 3, 4], "1-0": [0, 1, null, 3, 4] } },
  );
  assert.deepEqual(listCounterparts(set, 0, 1, view({ unit: "pieces" })), [
    ["[CLS]", ["[CLS]"]],
    ["ti", ["Ti"]],
    ["red", ["red"]],
    ["dogs", null],
    ["bark", ["bar", "k", "ed"]],
    ["ed", ["bar", "k", "ed"]],
    ["[SEP]", ["[SEP]"]],
  ]);
});

// ---- One scale --------------------------------------------------------------------------------------------

test("the shared scale ends at the largest weight of all panels", () => {
  const blocks = [0.2, 0.5].map((max) => ({ w: Float32Array.of(max, 0), R: 1, C: 2, max }));
  assert.equal(findLargestWeight(blocks), 0.5);
  assert.deepEqual(
    blocks.map((block) => computeSharedShades(block, "head", findLargestWeight(blocks))[0]),
    [102, 255],
  );
  assert.deepEqual(
    blocks.map((block) => computeSharedShades(block, "fixed", findLargestWeight(blocks))[0]),
    [51, 128],
  );
  assert.deepEqual(
    ["fixed", "head", "log"].map((scale) => describeScale(scale, 0.6773)),
    ["0 to 1", "0 to 0.677", "0.001 to 1, logarithmic"],
  );
});

// ---- Differences -----------------------------------------------------------------------------------------

test("two heads of one reading are subtracted cell by cell", () => {
  const set = makeSet(
    [makeTiredReading()],
    [
      [0, 0],
      [0, 1],
    ],
  );
  const difference = subtract(set, view(), [0, 1]);
  const [first, second] = [matrix(5, 0), matrix(5, 1)];
  assert.deepEqual([...difference.d], [...second.map((w, i) => w - first[i])]);
  assert.deepEqual(texts(difference.rows), ["[CLS]", "it", "was", "tired", "[SEP]"]);
  assert.equal(difference.top, Math.max(...difference.d.map(Math.abs)));
  assert.deepEqual(
    subtract(set, view(), [1, 0]).d,
    difference.d.map((x) => -x),
  );
});

test("replaced words are labelled with both words", () => {
  for (const unit of ["words", "pieces"]) {
    assert.deepEqual(texts(subtract(makeTwoPanels(), view({ unit }), [0, 1]).rows), [
      "[CLS]",
      "it",
      "was",
      "tired / wide",
      "[SEP]",
    ]);
  }
});

test("a refusal names the unmatched rows and a remedy", () => {
  const longer = makeSet(
    [makeTiredReading(), makeReading([["it"], ["was"], ["too"], ["tired"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [0, 1, 2, 4, 5], "1-0": [0, 1, 2, null, 3, 4] } },
  );
  const added = subtract(longer, view(), [0, 1]);
  assert.deepEqual([texts(added.ours), texts(added.theirs), added.remedy], [[], ["too"], null]);

  const bare = makeSet(
    [makeTiredReading(), makeReading([["it"], ["was"], ["tired"]], { special: [null, null] })],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [null, 0, 1, 2, null], "1-0": [1, 2, 3] } },
  );
  assert.deepEqual(subtract(bare, view(), [0, 1]).remedy, { special: "hide" });
  assert.deepEqual(texts(subtract(bare, view({ special: "hide" }), [0, 1]).rows), ["it", "was", "tired"]);

  const split = makeSet(
    [makeTiredReading(), makeReading([["it"], ["was"], ["ti", "red"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": makeRange(5), "1-0": makeRange(5) } },
  );
  const pieces = subtract(split, view({ unit: "pieces" }), [0, 1]);
  assert.deepEqual(
    [texts(pieces.ours), texts(pieces.theirs), pieces.remedy],
    [["tired"], ["ti", "red"], { unit: "words" }],
  );
  assert.ok(subtract(split, view(), [0, 1]).partner);
});

test("words that another tokenizer joins cannot be subtracted", () => {
  const set = makeSet(
    [makeReading([["did"], ["n't"]], { typed: "didn't" }), makeReading([["didn't"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [0, 1, 1, 2], "1-0": [0, 1, 3] } },
  );
  set.readings[0].spans = [null, [0, 3], [3, 6], null];
  assert.equal(subtract(set, view(), [0, 1]).partner, undefined);
  assert.equal(subtract(set, view(), [1, 0]).partner, undefined);
});

test("tokens of one text split at other characters are not subtracted", () => {
  const set = makeSet(
    [makeReading([["ti", "red"]]), makeReading([["tir", "ed"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": makeRange(3), "1-0": makeRange(3) } },
  );
  const [ours, theirs] = [0, 1].map((i) => computeTextUnits(set.readings[i], view({ unit: "pieces" })));
  assert.equal(findPartners(set, 0, 1, ours, theirs, view({ unit: "pieces" })).partner, undefined);
});

test("zero is the middle of the signed scale, the largest difference its end", () => {
  const difference = { d: Float32Array.of(0, -0.5, 0.25, 0.5), top: 0.5 };
  assert.deepEqual([...computeSignedShades(difference)], [128, 1, 192, 255]);
  assert.deepEqual([...computeSignedShades({ d: new Float32Array(2), top: 0 })], [128, 128]);
  assert.deepEqual(findLargestCells(difference, 2), [1, 3]);
  assert.deepEqual(findLargestCells(difference, 9), [1, 3, 2], "equal cells are left out");
  assert.deepEqual([-0.626, 0.1, -0.0001].map(formatSigned), ["−0.626", "+0.100", "−<.001"]);
});

// ---- Layout -----------------------------------------------------------------------------------------------

test("panels are laid out in one to four columns with the fewest gaps", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 9, 12, 16].map((count) => chooseColumnCount(1400, count, 300, 30)),
    [1, 2, 3, 4, 3, 3, 4, 3, 4, 4],
  );
  assert.equal(chooseColumnCount(350, 5, 350, 30), 1);
  assert.equal(chooseColumnCount(200, 3, 350, 30), 1);
});

test("panels that differ in their processing steps are distinguished by them", () => {
  const [raw, processed] = [makeReading([["cats"]]), { ...makeReading([["cats"]]), steps: "by words, special hidden" }];
  const aligned = { "0-1": [0, 1, 2], "1-0": [0, 1, 2] };
  const set = makeSet([raw, processed], [[0, 1], [1, 1]], { aligned }); // prettier-ignore
  assert.deepEqual(
    distinguishPanels(set, [0, 1]).map(({ more }) => more),
    ["as read", "by words, special hidden"],
  );
  assert.deepEqual(
    distinguishPanels(makeSet([raw], [[0, 1], [0, 1]]), [0, 1]).map(({ more }) => more), // prettier-ignore
    ["", ""],
  );
});

test("panels that differ in model or revision are distinguished by it", () => {
  const aligned = { "0-1": [0, 1, 2], "1-0": [0, 1, 2] };
  const distinguish = (fields, heads = [1, 1]) => {
    const readings = [makeReading([["cats"]]), { ...makeReading([["cats"]]), ...fields }];
    const panels = heads.map((head, number) => [number, head]);
    return distinguishPanels(makeSet(readings, panels, { aligned }), [0, 1]);
  };
  const describe = (fields) => distinguish(fields).map((panel) => panel.more);
  assert.deepEqual(describe({ revision: "untrained, seed 0" }), ["of m (no revision)", "of m (untrained, seed 0)"]);
  assert.deepEqual(describe({ label: "other" }), ["of m", "of other"]);
  assert.deepEqual(describe({ label: "n", steps: "by words" }), ["of m as read", "of n by words"]);
  const heads = distinguish({ label: "n" }, [1, 2]).map((panel) => `${panel.name} ${panel.more}`);
  assert.deepEqual(heads, ["L0H1 of m", "L0H2 of n"]);
});
