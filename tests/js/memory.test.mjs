// What a browser stores from earlier visits, and that it can be deleted.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { forgetSentences, rememberSentence, loadSentences } from "../../mha_viz/browser/memory.js";

const stored = new Map();

beforeEach(() => {
  stored.clear();
  const localStorage = {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => stored.set(name, value),
    removeItem: (name) => stored.delete(name),
  };
  globalThis.window = /** @type {any} */ ({ localStorage });
});

const typed = (text, pair = "") => ({ text, pair });

test("the last sentence comes first, and none comes twice", () => {
  for (const text of ["one", "two", "one"]) rememberSentence(typed(text));
  assert.deepEqual(loadSentences(), [typed("one"), typed("two")]);
  rememberSentence(typed("one", "and"));
  assert.deepEqual(loadSentences()[0], typed("one", "and"));
});

test("twenty sentences are kept, none that is empty or very long", () => {
  for (let i = 0; i < 30; i++) rememberSentence(typed(`sentence ${i}`));
  rememberSentence(typed("  "));
  rememberSentence(typed("a".repeat(2001)));
  assert.equal(loadSentences().length, 20);
  assert.equal(loadSentences()[0].text, "sentence 29");
});

test("what was forgotten is gone from the storage", () => {
  rememberSentence(typed("one"));
  forgetSentences();
  assert.deepEqual(loadSentences(), []);
  assert.equal(stored.size, 0);
});

test("a storage that was spoilt or is refused counts as empty", () => {
  for (const value of ["{", "7", '[1, null, {"text": 2}]']) {
    stored.set("mha_viz.sentences", value);
    assert.deepEqual(loadSentences(), []);
  }
  globalThis.window = /** @type {any} */ ({
    get localStorage() {
      throw new Error("refused");
    },
  });
  rememberSentence(typed("one"));
  forgetSentences();
  assert.deepEqual(loadSentences(), []);
});
