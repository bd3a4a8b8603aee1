// A field in which a person types while the server reads.
import assert from "node:assert/strict";
import test from "node:test";
import { TypedField, growField } from "../../mha_viz/browser/sentence/fields.js";

const field = (value = "") => new TypedField({ value });

test("the answer to what was sent leaves what is typed meanwhile, even if the link holds only its beginning", () => {
  const typed = field("The cat sat.");
  typed.markSent();
  typed.area.value = "The cat sat. And";
  typed.receive("The cat");
  assert.deepEqual([typed.value, typed.confirmed], ["The cat sat. And", "The cat sat."]);
  typed.receive("An example.");
  assert.deepEqual([typed.value, typed.confirmed], ["An example.", "An example."]);
});

test("what cannot be written in an address is compared as the server reads it", () => {
  const typed = field("a\0b\ud800");
  typed.markSent();
  typed.receive("a\ufffdb\ufffd");
  assert.equal(typed.value, "a\0b\ud800");
});

test("an empty text from elsewhere empties the field; one that was sent empty is answered", () => {
  const typed = field("a");
  typed.markSent();
  typed.receive("");
  assert.equal(typed.value, "");
  typed.markSent();
  typed.area.value = "b";
  typed.receive("");
  assert.equal(typed.value, "b");
});

test("Back before the answer restores what the server knows", () => {
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

test("what was typed and not read yet is in the same field of the next page, until another text is read", () => {
  const page = () => new TypedField({ value: "" }, "text");
  const here = page();
  here.receive("old");
  here.area.value = "old and new";
  here.saveDraft();
  const there = page();
  there.receive("old");
  assert.deepEqual([there.value, there.confirmed], ["old and new", "old"]);
  const ofAnotherText = page();
  ofAnotherText.receive("another");
  assert.equal(ofAnotherText.value, "another");
  there.markSent();
  there.receive("old and new");
  const last = page();
  last.receive("old and new");
  assert.equal(last.value, "old and new");
  const back = page();
  back.receive("old");
  assert.equal(back.value, "old");
});

// As Firefox has it: parts of a pixel are not counted while the height is free, and then a scroll bar makes the text
// narrower.
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

test("a field is as high as its text, with parts of a pixel and without what a scroll bar would need", () => {
  globalThis.CSS = { supports: () => false };
  const area = new Area();
  growField(area);
  assert.equal(area.clientHeight, 131); // 2 × 41.2 + 48 = 130.4
  assert.equal(area.style.overflow, "");
});
