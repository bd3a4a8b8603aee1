// Read panels like the page, for tests/page_scripts.py: a JSON list of questions on stdin, answers on stdout.
// Question: {packet: base64, ask: a key of ANSWERS, and its arguments}.
import { readFileSync } from "node:fs";
import { computeBlock } from "../../mha_viz/browser/geometry.js";
import {
  findCounterparts,
  subtract,
  encodePanelsView,
  findPinnedSpot,
  parsePanelsView,
  computeSharedShades,
  computeSignedShades,
  mapSpot,
  findLargestWeight,
  computeTextUnits,
  unpackPanels,
} from "../../mha_viz/browser/compare/together.js";
import { getKeys } from "../../mha_viz/browser/reading.js";

const VIEW = { unit: "words", special: "keep" };

function computeBlocks(set, view) {
  return set.panels.map(({ reading, head }) => {
    const [rows, cols] = [set.readings[reading], getKeys(set.readings[reading])].map((axis) =>
      computeTextUnits(axis, view),
    );
    return computeBlock(set.readings[reading], head, view, { rows, cols });
  });
}

const ANSWERS = {
  blocks: (set, { view }) =>
    computeBlocks(set, { ...VIEW, ...view }).map(({ w, R, C }) => ({ w: Array.from(w), R, C })),
  shades: (set, { view }) => {
    const blocks = computeBlocks(set, { ...VIEW, ...view });
    return blocks.map((block) => Array.from(computeSharedShades(block, view.scale, findLargestWeight(blocks))));
  },
  difference: (set, { view, of }) => {
    const difference = subtract(set, { ...VIEW, ...view }, of);
    if (!difference.partner) return { remedy: difference.remedy };
    return {
      d: Array.from(difference.d),
      rows: difference.rows.map((unit) => unit.text),
      cols: difference.cols.map((unit) => unit.text),
      shades: Array.from(computeSignedShades(difference)),
    };
  },
  counterparts: (set, { view, of: [i, j] }) => {
    const [ours, theirs] = [i, j].map((reading) => computeTextUnits(set.readings[reading], { ...VIEW, ...view }));
    return findCounterparts(set, i, j, ours, theirs).map((found, unit) => [
      ours[unit].text,
      found && theirs.slice(found[0], found[0] + found[1]).map((other) => other.text),
    ]);
  },
  // Parse an address like the page: the settings, and the pinned tokens of every panel and of the difference.
  shown: (set, { query }) => {
    const view = parsePanelsView(new URLSearchParams(query), set);
    const units = set.readings.map((reading) => computeTextUnits(reading, view));
    const diff = view.diff && subtract(set, view, view.diff);
    const columns = set.readings.map((reading) => computeTextUnits(getKeys(reading), view));
    const stores = { data: { panelSet: set, derived: { units, columns, diff, counterparts: {} } }, stage: { view } };
    const listPinned = (reading, rows, cols) => {
      const place = mapSpot(stores, reading, findPinnedSpot(stores));
      if (!place || place.missing) return [];
      return [rows[place.row], cols[place.col]].filter((unit) => unit).map((unit) => unit.text);
    };
    const { as, unit, special, links, scale } = view;
    return {
      view: { as, unit, special, links, scale },
      diff: view.diff,
      at: view.pin ? view.pin.at : 0,
      pinned: set.panels.map(({ reading }) => listPinned(reading, units[reading], columns[reading])),
      subtracted: diff?.partner ? listPinned(set.panels[view.diff[0]].reading, diff.rows, diff.cols) : null,
    };
  },
  address: (set, { query }) => encodePanelsView(parsePanelsView(new URLSearchParams(query), set), set),
};

const questions = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(
  JSON.stringify(
    questions.map((question) =>
      ANSWERS[question.ask](unpackPanels(new Uint8Array(Buffer.from(question.packet, "base64"))), question),
    ),
  ),
);
