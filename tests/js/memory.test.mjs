// Sentences stored in the browser, and their deletion.
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

const sentence = (text, pair = "") => ({ text, pair });

test("the latest sentence comes first, without duplicates", () => {
  for (const text of ["one", "two", "one"]) rememberSentence(sentence(text));
  assert.deepEqual(loadSentences(), [sentence("one"), sentence("two")]);
  rememberSentence(sentence("one", "and"));
  assert.deepEqual(loadSentences()[0], sentence("one", "and"));
});

test("at most twenty sentences are stored, and no empty or very long ones", () => {
  for (let i = 0; i < 30; i++) rememberSentence(sentence(`sentence ${i}`));
  rememberSentence(sentence("  "));
  rememberSentence(sentence("a".repeat(2001)));
  assert.equal(loadSentences().length, 20);
  assert.equal(loadSentences()[0].text, "sentence 29");
});

test("forgotten sentences are deleted from the storage", () => {
  rememberSentence(sentence("one"));
  forgetSentences();
  assert.deepEqual(loadSentences(), []);
  assert.equal(stored.size, 0);
});

test("corrupt or refused storage counts as empty", () => {
  for (const value of ["{", "7", '[1, null, {"text": 2}]']) {
    stored.set("mha_viz.sentences", value);
    assert.deepEqual(loadSentences(), []);
  }
  globalThis.window = /** @type {any} */ ({
    get localStorage() {
      throw new Error("refused");
    },
  });
  rememberSentence(sentence("one"));
  forgetSentences();
  assert.deepEqual(loadSentences(), []);
});
