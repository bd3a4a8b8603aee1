// Read texts like a live page, for tests/live_pages.py: a JSON list of questions on stdin, answers
// on stdout. Question: {library: the path of Hugging Face's module, tokenizer, rules, texts} -> the pieces and words of
// each text; or {grouped: [{text, pieces}, …]} -> the tokens and words of each; or {weights: of one head, special,
// marks} -> its measures.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { splitCodePoints } from "../../mha_viz/browser/live/characters.js";
import { groupTokens } from "../../mha_viz/browser/live/grouping.js";
import { MEASURES } from "../../mha_viz/browser/live/measures.js";
import { Reader } from "../../mha_viz/browser/live/tokenizer.js";

async function read({ library, tokenizer, rules, texts }) {
  const { Tokenizer } = await import(pathToFileURL(library));
  const reader = new Reader(new Tokenizer(tokenizer, {}), rules);
  return texts.map((text) => {
    const typed = splitCodePoints(text);
    const { pieces, count } = reader.read(typed);
    return { ...groupTokens(typed, pieces), ids: pieces.map(({ id }) => id), count };
  });
}

function measure({ weights, special, marks }) {
  const keys = { n: special.length, special, marks };
  const measures = Object.entries(MEASURES);
  return Object.fromEntries(measures.map(([name, measure]) => [name, measure(Float32Array.from(weights), keys)]));
}

const questions = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const question of questions) {
  if (question.weights) answers.push(measure(question));
  else if (question.grouped)
    answers.push(question.grouped.map(({ text, pieces }) => groupTokens(splitCodePoints(text), pieces)));
  else answers.push(await read(question));
}
process.stdout.write(JSON.stringify(answers));
