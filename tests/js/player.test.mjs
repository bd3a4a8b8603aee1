// Playing a training run: timing, interpolation between recorded steps, layout of maps, and formatting of numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrangeMaps } from "../../mha_viz/browser/player/arranged.js";
import { formatSignificant, computeThickness } from "../../mha_viz/browser/player/flow.js";
import {
  blendFrames,
  decodeBytes,
  formatColour,
  chooseInk,
  computeMoment,
  computeDurations,
  chooseStart,
  computeShade,
} from "../../mha_viz/browser/player/frames.js";
import { formatDecimal } from "../../mha_viz/browser/numerals.js";
import { findExample } from "../../mha_viz/browser/player/sentence.js";

test("numbers have a minus sign and no negative zero", () => {
  assert.equal(formatDecimal(-0.061, 2), "−0.06");
  assert.equal(formatDecimal(-0.004, 2), "0.00");
  assert.equal(formatDecimal(0.5, 3), "0.500");
  assert.equal(formatDecimal(-0.4, 0), "0");
});

test("cells are interpolated linearly between recorded steps", () => {
  const cells = decodeBytes(btoa(String.fromCharCode(0, 100, 200, 50)));
  assert.deepEqual([...blendFrames(cells, 2, 0)], [0, 100]);
  assert.deepEqual([...blendFrames(cells, 2, 0.5)], [100, 75]);
  assert.deepEqual([...blendFrames(cells, 2, 1)], [200, 50]);
});

test("playback takes the duration of each step and ends on the last one", () => {
  const durations = [100, 400, 200];
  assert.equal(computeMoment(0, 300, durations), 1.5);
  assert.equal(computeMoment(1, 500, durations), 2.5);
  assert.equal(computeMoment(1, 1e9, durations), 3);
  assert.equal(computeMoment(2, -3, durations), 2);
  assert.equal(computeMoment(3, 5, durations), 3);
});

test("durations follow the change of the maps within limits, with a fixed one for a removed head", () => {
  const cells = Uint8Array.from([0, 0, 0, 0, 10, 0, 20, 0, 20, 70, 20, 70]); // changes: 0, 10, 10, 70, 0
  assert.deepEqual(computeDurations(cells, 2, null), [40, (6000 * 10) / 90, (6000 * 10) / 90, 1200, 40]);
  const off = [[false], [false], [false], [false], [false], [true]];
  assert.equal(computeDurations(cells, 2, off)[4], 600);
  assert.deepEqual(computeDurations(cells.subarray(0, 2), 2, null), [], "nothing to play");
  assert.deepEqual(computeDurations(new Uint8Array(4), 2, null), [40], "nothing changes");
});

test("Play starts at the slider, or from the beginning if the slider is at the end", () => {
  assert.equal(chooseStart(3, 10), 3);
  assert.equal(chooseStart(9, 10), 0);
  assert.equal(chooseStart(0, 1), 0);
});

test("shades are clipped to the range from low to high", () => {
  assert.deepEqual(
    [-1, 0, 1, 7].map((value) => computeShade(value, -1, 1)),
    [0, 128, 255, 255],
  );
  assert.equal(formatColour(0xff332211), "rgb(17 34 51)");
  assert.deepEqual([chooseInk(0xffffffff), chooseInk(0xff000000)], ["#000", "#fff"]);
});

test("norms have two digits, and larger ones thicker arrows", () => {
  assert.deepEqual(
    [0, 1.2e-7, 0.00123, 0.03, 1.26, 123.4].map(formatSignificant),
    ["0", "1 · 10⁻⁷", "0.0012", "0.030", "1.3", "123"].map((text) => text.replaceAll(" ", "\u00a0")),
  );
  assert.ok(computeThickness(1, 4, 34) > computeThickness(0.1, 4, 34));
  assert.equal(computeThickness(4, 4, 34), 20.75);
  assert.equal(computeThickness(0, 0, 34), 0.75);
});

const room = (width, height) => ({ width, height, sentenceHeight: 70, label: 30, caption: 40, gap: 14 });
const mapsOf = (count, isBare = false, rows = 0) => ({ count, rows, words: 12, isBare });

test("maps are as large as possible in the window, with the sentence beside them if there is room", () => {
  const four = arrangeMaps(mapsOf(4), room(1362, 600));
  assert.deepEqual([four.columns, four.isAside, four.hasRows], [4, false, true]);
  const two = arrangeMaps(mapsOf(2), room(1362, 600));
  assert.deepEqual([two.columns, two.isAside], [2, true]);
  assert.ok(two.cell * 12 + 70 > 480);
  assert.equal(arrangeMaps(mapsOf(2), room(1362, 660)).isAside, true, "instead of leaving a tenth of the width empty");
  const eight = arrangeMaps(mapsOf(8), room(1362, 600));
  assert.deepEqual([eight.columns, eight.isAside], [4, true]);
  assert.deepEqual(arrangeMaps(mapsOf(8), room(1202, 330)).columns, 8);
});

test("two runs have one row of maps each, in every window", () => {
  for (const space of [room(1244, 600), room(1084, 440), { ...room(360, 400), gap: 6 }])
    assert.equal(arrangeMaps(mapsOf(8, false, 2), space).columns, 4);
});

test("maps share or lose their words before they exceed the window, and scroll only if it is too low", () => {
  const low = arrangeMaps(mapsOf(8), { ...room(1202, 480), label: 52 });
  assert.deepEqual([low.hasRows, low.hasColumns, low.cell >= 12], [true, null, true]);
  const lower = arrangeMaps(mapsOf(8), { ...room(1202, 330), label: 52 });
  assert.deepEqual([lower.hasRows, lower.isAside], [false, false], "words would have less than 11 pixels");
  const phone = { ...room(360, 480), gap: 6 };
  assert.deepEqual(
    [arrangeMaps(mapsOf(4), phone).columns, arrangeMaps(mapsOf(4), phone).hasRows === false],
    [2, false],
  );
  assert.deepEqual([arrangeMaps(mapsOf(8), phone).columns, arrangeMaps(mapsOf(8), phone).hasRows], [4, false]);
  const lowest = arrangeMaps(mapsOf(4), room(642, 20));
  assert.ok(lowest.hasRows !== false && lowest.cell >= 9);
  assert.deepEqual(arrangeMaps(mapsOf(4, true), phone).columns, 4);
});

test("the example is the first word that has, with the words it must name, three letters", () => {
  const words = ["g▲", "t▲", "t■", "d■", "a■"];
  const previous = { places: [-1, 0, 1, 2, 3] };
  const alike = { places: [1, 0, 3, 2, 2] };
  assert.equal(findExample(words, [previous, alike]), 4, "d■ has one word for both, a■ has d and t");
  assert.equal(findExample(words.slice(0, 4), [previous, alike]), -1);
  assert.equal(findExample(words, [previous]), -1, "there is only one sign");
  assert.equal(findExample(words, []), -1);
  assert.equal(findExample([...words, "dog"], [previous, alike]), -1, "a word is not a letter with a symbol");
});
