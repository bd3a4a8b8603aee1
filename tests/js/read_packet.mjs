// Read packets like the page, for tests/page_scripts.py: a JSON list of questions on stdin, answers on stdout.
// Question: {packet: base64, ask: a key of ANSWERS, head, view, query}.
import { readFileSync } from "node:fs";
import {
  computeBlock,
  encodeView,
  parseView,
  poolBlock,
  listPooledUnits,
  rankHeads,
  computeUnits,
} from "../../mha_viz/browser/geometry.js";
import { unpack } from "../../mha_viz/browser/reading.js";

const DEFAULT = { unit: "words", special: "keep", side: "all" };
const makePlain = (block) =>
  block && { ...block, w: Array.from(block.w), hidden: block.hidden && Array.from(block.hidden) };

function header(reading) {
  const { matrices, thumbs, ...rest } = reading;
  return { ...rest, matrices: [...matrices.keys()], thumbs: thumbs ? thumbs.length : 0 };
}

const ANSWERS = {
  header: (reading) => header(reading),
  block: (reading, { head, view }) => makePlain(computeBlock(reading, head, { ...DEFAULT, ...view })),
  pooled: (reading, { head, view }) =>
    makePlain(poolBlock(reading, head, listPooledUnits(reading, { ...DEFAULT, ...view }))),
  units: (reading, { view }) => computeUnits(reading, { ...DEFAULT, ...view }),
  ranking: (reading, { view }) => rankHeads(reading, { ...DEFAULT, ...view }),
  view: (reading, { query }) => parseView(new URLSearchParams(query), reading),
  address: (reading, { query }) => encodeView(parseView(new URLSearchParams(query), reading), reading),
};

const questions = JSON.parse(readFileSync(0, "utf8"));
const answers = questions.map((question) => {
  const reading = unpack(new Uint8Array(Buffer.from(question.packet, "base64")));
  return ANSWERS[question.ask](reading, question);
});
process.stdout.write(JSON.stringify(answers));
