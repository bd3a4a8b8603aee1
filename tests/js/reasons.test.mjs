// Explanations of links: the choice of the link, the sentence, and the questions to the server.
import assert from "node:assert/strict";
import test from "node:test";
import { findExplainedLink, describeReasons, findStrongestTokens } from "../../mha_viz/browser/explorer/reasons.js";
import { CHANGE_EVENT, openReasonStore, parseReasons } from "../../mha_viz/browser/reasons/store.js";

const GROUPS = ["word", "position", "earlier heads", "feed-forward", "constants"];

// A document whose elements have only children and text.
globalThis.document = Object.assign(new EventTarget(), {
  createElement: () => ({
    children: [],
    append(...children) {
      this.children.push(...children);
    },
  }),
});
const textOf = (part) => (typeof part === "string" ? part : part.children.map(textOf).join(""));
const describe = (reasons, query, key) => describeReasons(reasons, "it", "animal", query, key).map(textOf).join("");

// [query, key]: the number of a group, from 1, plus 16 times that of a second one
const encoded = btoa(String.fromCharCode(0, 3 + 16 * 1, 2, 0));
const words = [["a", "b", "c"], ["beast", "breed", "pup"]]; // prettier-ignore

test("the sentence gives the reasons of a link and the words that its key writes", () => {
  const reasons = parseReasons({ groups: GROUPS, codes: encoded, words });
  assert.equal(describe(reasons, 0, 1), "it → animal: found by earlier heads and word; writes beast, breed, pup");
  assert.equal(describe(reasons, 1, 0), "it → animal: found by position; writes a, b, c");
  assert.equal(describe(reasons, 0, 0), "it → animal: writes a, b, c");
});

test("a missing half of the sentence is left out; if both are missing, there is no sentence", () => {
  assert.equal(
    describe(parseReasons({ groups: GROUPS, codes: null, words }), 1, 1),
    "it → animal: writes beast, breed, pup",
  );
  const withoutWords = parseReasons({ groups: GROUPS, codes: encoded, words: null });
  assert.equal(describe(withoutWords, 0, 1), "it → animal: found by earlier heads and word");
  assert.equal(describe(withoutWords, 0, 0), "");
  assert.equal(describe(parseReasons({ groups: GROUPS, codes: null, words: null }), 0, 1), "");
});

test("the explained link is the focused cell or the strongest drawn link of a token, if at least 1 %", () => {
  const unit = (text, ...tokens) => ({ text, tokens });
  const axes = { rows: [unit("a", 0), unit("b", 1)], cols: [unit("a", 0), unit("b", 1)] };
  const head = { block: { w: new Float32Array([0.9, 0.1, 0.995, 0.005]), R: 2, C: 2 } };
  assert.deepEqual(findExplainedLink(head, axes, { row: 0, col: 1 }), { row: 0, col: 1 });
  assert.equal(findExplainedLink(head, axes, { row: 1, col: 1 }), null);
  assert.deepEqual(findExplainedLink(head, axes, { row: 0, col: null }), { row: 0, col: 0 });
  assert.deepEqual(findExplainedLink(head, axes, { row: null, col: 1 }), { row: 0, col: 1 });
  const chosen = new Uint8Array([0, 1, 1, 0]);
  assert.deepEqual(findExplainedLink({ ...head, chosen }, axes, { row: 0, col: null }), { row: 0, col: 1 });
  assert.deepEqual(findExplainedLink({ ...head, chosen }, axes, { row: 0, col: 0 }), { row: 0, col: 0 });
});

test("for words of several tokens, the strongest link between tokens is explained", () => {
  const matrix = new Float32Array([0, 0, 1, 0, 0.2, 0.8, 0.3, 0.6, 0.1]);
  assert.deepEqual(findStrongestTokens({ tokens: [1, 2] }, { tokens: [0, 1] }, matrix, 3), [2, 1]);
});

test("a question is sent once, and again if it is not answered; answers are announced", ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const store = openReasonStore();
  assert.equal(openReasonStore(), store);
  const questions = [];
  let announcements = 0;
  document.addEventListener(CHANGE_EVENT, () => (announcements += 1));
  assert.equal(store.find("k", "L0H0", 0), null);
  const ask = ({ key, head }) => questions.push(`${key} ${head}`);
  store.open(ask);
  assert.equal(announcements, 1, "the server can answer now");
  store.find("k", "L0H0", 10);
  store.find("k", "L0H0", 20);
  assert.deepEqual(questions, ["k L0H0"]);
  store.find("k", "L0H1", 30);
  store.find("k", "L0H1", 30_000);
  assert.deepEqual(questions.slice(1), ["k L0H1", "k L0H1"]);
  const reasons = parseReasons({ groups: GROUPS, codes: null, words: null });
  store.put("k", "L0H1", reasons);
  store.put("k", "L0H1", reasons);
  assert.equal(announcements, 2);
  assert.equal(store.find("k", "L0H1", 60_000), reasons);
  mock.timers.tick(5000);
  assert.equal(announcements, 2, "already answered");
  store.find("k", "L0H3", 70_000);
  mock.timers.tick(5000);
  assert.equal(announcements, 3, "unanswered: the question may be asked again");
  questions.pop();
  store.close(ask);
  store.find("k", "L0H2", 90_000);
  assert.equal(questions.length, 3);
});
