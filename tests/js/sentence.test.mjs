// A field in which a person types while the server reads.
import assert from "node:assert/strict";
import test from "node:test";
import { TypedField, growField } from "../../mha_viz/browser/sentence/fields.js";

const field = (value = "") => new TypedField({ value });

test("the answer to what was sent leaves what is typed meanwhile, even if the link holds only its beginning", () => {
  const typed = field("The cat sat.");
  typed.send();
  typed.area.value = "The cat sat. And";
  typed.take("The cat");
  assert.deepEqual([typed.value, typed.taken], ["The cat sat. And", "The cat sat."]);
  typed.take("An example.");
  assert.deepEqual([typed.value, typed.taken], ["An example.", "An example."]);
});

test("what cannot be written in an address is compared as the server reads it", () => {
  const typed = field("a\0b\ud800");
  typed.send();
  typed.take("a\ufffdb\ufffd");
  assert.equal(typed.value, "a\0b\ud800");
});

test("an empty text from elsewhere empties the field; one that was sent empty is answered", () => {
  const typed = field("a");
  typed.send();
  typed.take("");
  assert.equal(typed.value, "");
  typed.send();
  typed.area.value = "b";
  typed.take("");
  assert.equal(typed.value, "b");
});

test("Back before the answer restores what the server knows", () => {
  const typed = field();
  typed.take("old");
  typed.area.value = "new";
  typed.takeBack();
  assert.equal(typed.value, "new");
  typed.send();
  typed.takeBack();
  assert.equal(typed.value, "old");
  typed.area.value = "newer";
  typed.takeBack();
  assert.equal(typed.value, "newer");
});

test("what was typed and not read yet is in the same field of the next page, until another text is read", () => {
  const page = () => new TypedField({ value: "" }, "text");
  const here = page();
  here.take("old");
  here.area.value = "old and new";
  here.keep();
  const there = page();
  there.take("old");
  assert.deepEqual([there.value, there.taken], ["old and new", "old"]);
  const ofAnotherText = page();
  ofAnotherText.take("another");
  assert.equal(ofAnotherText.value, "another");
  there.send();
  there.take("old and new");
  const last = page();
  last.take("old and new");
  assert.equal(last.value, "old and new");
  const back = page();
  back.take("old");
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
