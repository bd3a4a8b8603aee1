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
import { makeRandom, matrix, makePacket } from "./made.mjs";

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

// Make panels as unpackPanels returns them: one for each [reading number, head].
function setOf(readings, panels, { aligned = {}, place = aligned } = {}) {
  const table = (of) => readings.map((_, i) => readings.map((__, j) => of[`${i}-${j}`] ?? null));
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
const tired = () => makeReading([["it"], ["was"], ["tired"]]);
const wide = () => makeReading([["it"], ["was"], ["wide"]]);
const twins = (
  panels = [
    [0, 0],
    [1, 0],
  ],
) =>
  setOf([tired(), wide()], panels, {
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
    ].forEach(([part, at]) => bytes.set(part, shift + at));
    const set = unpackPanels(bytes.subarray(shift));
    assert.deepEqual(
      set.readings.map((r) => [...r.matrices]),
      [[[0, Float32Array.of(1.5)]], [[4, Float32Array.of(2)]]],
    );
  }
});

test("a panel is named after its head", () => {
  const set = setOf([tired()], [[0, 4]]);
  assert.deepEqual(namePanel(set, 0), { name: "L1H1", paper: "2-2" });
});

test("a rollout panel is named after its layer; its address names the map", () => {
  const set = setOf([{ ...tired(), heads: 1, quantity: "rollout" }], [[0, 1]]);
  assert.deepEqual(namePanel(set, 0), { name: "layer 1", paper: "2" });
});

// ---- The address ------------------------------------------------------------------------------------------

test("an empty address gives the defaults, and defaults are left out of the address", () => {
  const set = twins();
  assert.deepEqual(parsePanelsView(query(""), set), view());
  assert.deepEqual(new Set(Object.values(encodePanelsView(view(), set))), new Set([null]));
  for (const name of ["unit", "special", "links", "scale"])
    assert.equal(START[name], getDefaults("explorer")[name], "as the explorer's");
});

test("a long text initially shows the strongest links on one scale", () => {
  const set = setOf(
    [tired(), makeReading(Array.from({ length: 40 }, () => ["it"]))],
    [
      [0, 0],
      [1, 0],
    ],
  );
  const first = { special: "hide", links: "top3", scale: "head" };
  assert.deepEqual(parsePanelsView(query(""), set), view(first));
  assert.deepEqual(parsePanelsView(query("scale=row"), set).scale, "head");
  const { special, links, scale } = encodePanelsView(view(), set);
  assert.deepEqual([special, links, scale], ["keep", "all", "fixed"], "all that is shown is in the address");
  assert.deepEqual(new Set(Object.values(encodePanelsView(view(first), set))), new Set([null]));
});

test("panels can open with a difference; the address says when it is closed", () => {
  const set = { ...twins(), start: { diff: "0-1" } };
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
  const set = setOf(
    [tired(), wide()],
    [
      [0, 0],
      [1, 0],
      [0, 5],
      [1, 2],
    ],
  );
  const random = makeRandom(7);
  const of = (list) => list[Math.floor(random() * list.length)];
  for (let i = 0; i < 300; i++) {
    const made = view({
      as: of(["heatmap", "links"]),
      unit: of(["words", "pieces"]),
      special: of(["keep", "hide", "rescale"]),
      links: of(["all", "top3", "top10", "min0.05", "mass0.90"]),
      scale: of(["fixed", "head", "log"]),
      diff: of([null, [0, 1], [3, 2]]),
      pin: of([null, { at: 0, query: 1, key: null }, { at: 3, query: 0, key: 4 }]),
    });
    const said = Object.entries(encodePanelsView(made, set)).filter(([, value]) => value !== null);
    assert.deepEqual(parsePanelsView(query(said), set), made);
  }
});

test("invalid values in the address are ignored", () => {
  const set = twins();
  for (const odd of [
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
    assert.deepEqual(parsePanelsView(query(odd), set), view(), odd);
  assert.deepEqual(
    parsePanelsView(query("as=links&as=heatmap&diff=0-1&diff=1-0"), set),
    view({ diff: [1, 0] }),
    "the last of several",
  );
});

test("a pin without a panel belongs to the first one", () => {
  assert.deepEqual(parsePanelsView(query("pin=q2k1"), twins()).pin, { at: 0, query: 2, key: 1 });
  assert.equal(encodePanelsView(view({ pin: { at: 0, query: 2, key: 1 } }), twins()).at, null);
});

// ---- Changes of the compared heads ------------------------------------------------------------------------

test("panel numbers are updated after every kind of edit", () => {
  const after = (edit, list) => {
    const rest = [...list];
    if (edit.action === "remove") rest.splice(edit.index, 1);
    if (edit.action === "duplicate") rest.splice(edit.index + 1, 0, "copy");
    if (edit.action === "move") rest.splice(edit.to, 0, ...rest.splice(edit.index, 1));
    return rest;
  };
  const list = ["a", "b", "c", "d", "e"];
  for (const action of ["remove", "duplicate", "move", "rename"]) {
    for (let index = 0; index < 5; index++) {
      for (let to = 0; to < 5; to++) {
        const moved = after({ action, index, to }, list);
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

test("an edit contains the address with which the panels open after it", () => {
  const long = makeReading(Array.from({ length: 40 }, () => ["it"]));
  const set = (...readings) => ({
    ...setOf(
      [tired(), wide(), long],
      readings.map((reading) => [reading, 0]),
    ),
    editable: true,
    compared: [
      ["pieces", "words", null],
      ["words", "pieces", null],
      [null, null, "pieces"],
    ],
  });
  const told = (panels, action, index, fields = {}) =>
    encodePanelsView(view(fields), updateOpening({ action, index, to: 0 }, panels));
  assert.equal(told(set(0, 1), "remove", 0).diff, null, "one panel has no difference that could be closed");
  assert.equal(told(set(0), "duplicate", 0).diff, "none");
  assert.equal(told(set(0, 1), "duplicate", 0).diff, null);
  assert.equal(told(set(0, 1), "move", 1).diff, "none");
  assert.equal(told(set(0, 1, 1), "remove", 2).diff, "none");
  assert.equal(told(set(0, 1, 2), "remove", 0).diff, null, "these cannot be subtracted");
  const strongest = { special: "hide", links: "top3", scale: "head" };
  const { special, links, scale } = told(set(0, 2), "remove", 1, strongest);
  assert.deepEqual({ special, links, scale }, strongest, "without the long text these are no longer the defaults");
  assert.equal(told(set(0, 2), "remove", 0, strongest).special, null);
  const made = { ...set(0, 1), editable: false, start: { diff: "0-1" } };
  assert.equal(told(made, "pin", 0).diff, "none", "to add a panel to the compared heads leaves these as they are");
});

// ---- What corresponds -------------------------------------------------------------------------------------

const met = (set, i, j, v) => {
  const [ours, theirs] = [i, j].map((k) => computeTextUnits(set.readings[k], v));
  return findCounterparts(set, i, j, ours, theirs).map((found, at) => [
    ours[at].text,
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
  const set = setOf(
    [one, other],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": makeRange(4), "1-0": makeRange(4) } },
  );
  assert.deepEqual(met(set, 0, 1, view({ unit: "pieces" })), [
    ["[CLS]", ["<s>"]],
    ["didn", ["did", "n't"]],
    ["'", ["n't"]],
    ["t", ["n't"]],
    ["sleep", ["sl", "eep"]],
    ["[SEP]", ["</s>"]],
  ]);
  assert.deepEqual(met(set, 1, 0, view({ unit: "pieces" }))[2], ["n't", ["didn", "'", "t"]]);
  assert.deepEqual(met(set, 0, 1, view())[1], ["didn't", ["didn't"]]);
  assert.deepEqual(met(set, 0, 1, view({ special: "hide" })), [
    ["didn't", ["didn't"]],
    ["sleep", ["sleep"]],
  ]);
});

test("a special token that the other reading lacks has no counterpart", () => {
  const bare = makeReading([["it"]], { special: [null, null] });
  const set = setOf(
    [makeReading([["it"]]), bare],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [null, 0, null], "1-0": [1] } },
  );
  assert.deepEqual(met(set, 0, 1, view()), [
    ["[CLS]", null],
    ["it", ["it"]],
    ["[SEP]", null],
  ]);
});

test("two texts: equal words correspond, token by token if split alike; other words do not", () => {
  const one = makeReading([["ti", "red"], ["dogs"], ["bark", "ed"]]);
  const other = makeReading([["Ti", "red"], ["cats"], ["bar", "k", "ed"]]);
  const set = setOf(
    [one, other],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [0, 1, null, 3, 4], "1-0": [0, 1, null, 3, 4] } },
  );
  assert.deepEqual(met(set, 0, 1, view({ unit: "pieces" })), [
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
  const parts = [0.2, 0.5].map((max) => ({ w: Float32Array.of(max, 0), R: 1, C: 2, max }));
  assert.equal(findLargestWeight(parts), 0.5);
  assert.deepEqual(
    parts.map((part) => computeSharedShades(part, "head", findLargestWeight(parts))[0]),
    [102, 255],
  );
  assert.deepEqual(
    parts.map((part) => computeSharedShades(part, "fixed", findLargestWeight(parts))[0]),
    [51, 128],
  );
  assert.deepEqual(
    ["fixed", "head", "log"].map((scale) => describeScale(scale, 0.6773)),
    ["0 to 1", "0 to 0.677", "0.001 to 1, logarithmic"],
  );
});

// ---- What differs -----------------------------------------------------------------------------------------

test("two heads of one reading are subtracted cell by cell", () => {
  const set = setOf(
    [tired()],
    [
      [0, 0],
      [0, 1],
    ],
  );
  const found = subtract(set, view(), [0, 1]);
  const [first, second] = [matrix(5, 0), matrix(5, 1)];
  assert.deepEqual([...found.d], [...second.map((w, i) => w - first[i])]);
  assert.deepEqual(texts(found.rows), ["[CLS]", "it", "was", "tired", "[SEP]"]);
  assert.equal(found.top, Math.max(...found.d.map(Math.abs)));
  assert.deepEqual(
    subtract(set, view(), [1, 0]).d,
    found.d.map((x) => -x),
  );
});

test("replaced words are labelled with both words", () => {
  for (const unit of ["words", "pieces"]) {
    assert.deepEqual(texts(subtract(twins(), view({ unit }), [0, 1]).rows), [
      "[CLS]",
      "it",
      "was",
      "tired / wide",
      "[SEP]",
    ]);
  }
});

test("a refusal names the unmatched rows and a remedy", () => {
  const longer = setOf(
    [tired(), makeReading([["it"], ["was"], ["too"], ["tired"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [0, 1, 2, 4, 5], "1-0": [0, 1, 2, null, 3, 4] } },
  );
  const added = subtract(longer, view(), [0, 1]);
  assert.deepEqual([texts(added.ours), texts(added.theirs), added.remedy], [[], ["too"], null]);

  const bare = setOf(
    [tired(), makeReading([["it"], ["was"], ["tired"]], { special: [null, null] })],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": [null, 0, 1, 2, null], "1-0": [1, 2, 3] } },
  );
  assert.deepEqual(subtract(bare, view(), [0, 1]).remedy, { special: "hide" });
  assert.deepEqual(texts(subtract(bare, view({ special: "hide" }), [0, 1]).rows), ["it", "was", "tired"]);

  const cut = setOf(
    [tired(), makeReading([["it"], ["was"], ["ti", "red"]])],
    [
      [0, 0],
      [1, 0],
    ],
    { aligned: { "0-1": makeRange(5), "1-0": makeRange(5) } },
  );
  const pieces = subtract(cut, view({ unit: "pieces" }), [0, 1]);
  assert.deepEqual(
    [texts(pieces.ours), texts(pieces.theirs), pieces.remedy],
    [["tired"], ["ti", "red"], { unit: "words" }],
  );
  assert.ok(subtract(cut, view(), [0, 1]).partner);
});

test("words that another tokenizer joins cannot be subtracted", () => {
  const set = setOf(
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
  const set = setOf(
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
  const made = { d: Float32Array.of(0, -0.5, 0.25, 0.5), top: 0.5 };
  assert.deepEqual([...computeSignedShades(made)], [128, 1, 192, 255]);
  assert.deepEqual([...computeSignedShades({ d: new Float32Array(2), top: 0 })], [128, 128]);
  assert.deepEqual(findLargestCells(made, 2), [1, 3]);
  assert.deepEqual(findLargestCells(made, 9), [1, 3, 2], "and nothing that is the same");
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
  const [raw, done] = [makeReading([["cats"]]), { ...makeReading([["cats"]]), steps: "by words, special hidden" }];
  const same = { "0-1": [0, 1, 2], "1-0": [0, 1, 2] };
  const set = setOf([raw, done], [[0, 1], [1, 1]], { aligned: same }); // prettier-ignore
  assert.deepEqual(
    distinguishPanels(set, [0, 1]).map(({ more }) => more),
    ["as read", "by words, special hidden"],
  );
  assert.deepEqual(
    distinguishPanels(setOf([raw], [[0, 1], [0, 1]]), [0, 1]).map(({ more }) => more), // prettier-ignore
    ["", ""],
  );
});

test("panels that differ in model or revision are distinguished by it", () => {
  const same = { "0-1": [0, 1, 2], "1-0": [0, 1, 2] };
  const apart = (fields, heads = [1, 1]) => {
    const readings = [makeReading([["cats"]]), { ...makeReading([["cats"]]), ...fields }];
    const panels = heads.map((head, number) => [number, head]);
    return distinguishPanels(setOf(readings, panels, { aligned: same }), [0, 1]);
  };
  const more = (fields) => apart(fields).map((one) => one.more);
  assert.deepEqual(more({ revision: "untrained, seed 0" }), ["of m (no revision)", "of m (untrained, seed 0)"]);
  assert.deepEqual(more({ label: "other" }), ["of m", "of other"]);
  assert.deepEqual(more({ label: "n", steps: "by words" }), ["of m as read", "of n by words"]);
  const heads = apart({ label: "n" }, [1, 2]).map((panel) => `${panel.name} ${panel.more}`);
  assert.deepEqual(heads, ["L0H1 of m", "L0H2 of n"]);
});
