// A text field in which the user types while the server reads.
import assert from "node:assert/strict";
import test from "node:test";
import { TypedField, growField } from "../../mha_viz/browser/sentence/fields.js";

const field = (value = "") => new TypedField({ value });

test("an answer keeps newer typing, even if it contains only the beginning of the sent text", () => {
  const typed = field("The cat sat.");
  typed.markSent();
  typed.area.value = "The cat sat. And";
  typed.receive("The cat");
  assert.deepEqual([typed.value, typed.confirmed], ["The cat sat. And", "The cat sat."]);
  typed.receive("An example.");
  assert.deepEqual([typed.value, typed.confirmed], ["An example.", "An example."]);
});

test("characters that an address cannot contain are compared as the server reads them", () => {
  const typed = field("a\0b\ud800");
  typed.markSent();
  typed.receive("a\ufffdb\ufffd");
  assert.equal(typed.value, "a\0b\ud800");
});

test("an empty text from elsewhere clears the field; the answer to an empty text does not", () => {
  const typed = field("a");
  typed.markSent();
  typed.receive("");
  assert.equal(typed.value, "");
  typed.markSent();
  typed.area.value = "b";
  typed.receive("");
  assert.equal(typed.value, "b");
});

test("Back before the answer restores the last confirmed text", () => {
  const typed = field();
  typed.receive("old");
  typed.area.value = "new";
  typed.discardUnanswered();
  assert.equal(typed.value, "new");
  typed.markSent();
  typed.discardUnanswered();
  assert.equal(typed.value, "old");
  typed.area.value = "newer";
  typed.discardUnanswered();
  assert.equal(typed.value, "newer");
});

test("a draft appears in the same field of the next page, until another text arrives", () => {
  const makeField = () => new TypedField({ value: "" }, "text");
  const first = makeField();
  first.receive("old");
  first.area.value = "old and new";
  first.saveDraft();
  const next = makeField();
  next.receive("old");
  assert.deepEqual([next.value, next.confirmed], ["old and new", "old"]);
  const ofAnotherText = makeField();
  ofAnotherText.receive("another");
  assert.equal(ofAnotherText.value, "another");
  next.markSent();
  next.receive("old and new");
  const last = makeField();
  last.receive("old and new");
  assert.equal(last.value, "old and new");
  const previous = makeField();
  previous.receive("old");
  assert.equal(previous.value, "old");
});

// A text area like Firefox's: it ignores fractions of a pixel while its height is "auto", and then adds a scroll bar,
// which makes the text narrower.
class Area {
  value = "The animal";
  dataset = {};
  style = {};
  get text() {
    const lines = this.style.height === "auto" && this.style.overflow !== "hidden" ? 3 : 2;
    return 41.2 * lines + 48;
  }
  get clientHeight() {
    return this.style.height === "auto" ? Math.floor(this.text) : parseFloat(this.style.height) - 2;
  }
  get offsetHeight() {
    return this.clientHeight + 2;
  }
  get scrollHeight() {
    return Math.max(this.clientHeight, this.style.height === "auto" ? 0 : Math.ceil(this.text));
  }
}

test("a field is as high as its text, including fractions of a pixel, without a scroll bar", () => {
  globalThis.CSS = { supports: () => false };
  const area = new Area();
  growField(area);
  assert.equal(area.clientHeight, 131); // 2 × 41.2 + 48 = 130.4
  assert.equal(area.style.overflow, "");
});
