// Make the page elements of the sentence component, and its text fields. `actions` has the callbacks for user actions.
import { closeOnEscape, make } from "../dom.js";
/** @import { Actions } from "../controls.js" */
/** @import { Parts } from "../dom.js" */
/** @import { TypedSentence } from "../memory.js" */

/** @typedef {{ text: string, pair: string, look: string }} Example */

/**
 * @typedef {object} SentenceData
 * @property {string} text
 * @property {string} pair
 * @property {string} look what to look for in the example
 * @property {string} answer
 * @property {string} intro
 * @property {boolean} plain whether this is class mode
 * @property {{ index: number, head: string } | null} opens the example and its head, unless that is open
 * @property {string} model
 * @property {string} label the name of the model on the page
 * @property {{ name: string, label: string }[]} models
 * @property {boolean} open whether the user may name another model
 * @property {Example[]} examples
 * @property {boolean} arched whether arcs may be drawn
 */
const READ_LABEL = "Show attention ↵";

/** @type {(actions: Actions) => Parts} */
export function makePage(actions) {
  const p = /** @type {Parts} */ ({});
  makeFields(p, actions);
  makeExamples(p, actions);
  makeHistory(p, actions);
  makeModelMenu(p, actions);
  p.look = make("div", { class: "look", hidden: true });
  p.field = make("div", { class: "field" });
  const model = make("label", { class: "model" }, make("span", { class: "soft" }, "Model"), p.model);
  p.intro = make("p", { class: "intro", hidden: true });
  p.captionSlot = make("span", { class: "space" });
  const strip = [p.examples, p.history, p.addPair, p.readButton, p.captionSlot, model, p.modelField];
  p.all = make(
    "div",
    { class: "sentence" },
    p.intro,
    p.field,
    p.pairRow,
    make("div", { class: "strip" }, ...strip),
    p.exampleList,
    p.historyList,
    p.look,
  );
  return p;
}

/** @type {(properties: object, text: string) => HTMLElement} */
export const makeQuietButton = (properties, text) =>
  make("button", { type: "button", class: "quiet", ...properties }, text);

/** @type {(p: Parts, actions: Actions) => void} */
function makeFields(p, actions) {
  p.text = makeField("Sentence", "Type a sentence and press Enter", actions);
  p.pair = makeField("Second sentence", "A second sentence, read after [SEP]", actions);
  p.pair.className = "second";
  p.pairRow = make("div", { class: "pair field", hidden: true }, p.pair);
  p.readButton = make("button", { type: "button", class: "read", hidden: true, onclick: actions.read }, READ_LABEL);
  p.addPair = makeQuietButton({ "aria-expanded": false, onclick: actions.pair }, "+ Second sentence");
}

/** @type {(label: string, placeholder: string, actions: Actions) => HTMLTextAreaElement} */
function makeField(label, placeholder, actions) {
  /** @type {(event: KeyboardEvent) => void} */
  const onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    actions.read();
  };
  /** @type {(event: InputEvent) => void} */
  const oninput = (event) => actions.typed(event.target);
  const properties = { rows: 1, spellcheck: false, dir: "auto", placeholder, onkeydown, oninput };
  const area = make("textarea", { ...properties, "aria-label": label });
  // As in a browser's address bar, the first click selects the whole text and the next one places the cursor.
  const selectAll = () => area.selectionStart === area.selectionEnd && area.select();
  area.onpointerdown = () => {
    area.onclick = area.matches(":focus") ? null : selectAll;
  };
  watchSize(area);
  return area;
}

/** @type {(p: Parts, actions: Actions) => void} */
function makeExamples(p, actions) {
  p.examples = makeQuietButton({ "aria-expanded": false, onclick: actions.examples }, "Examples");
  p.examples.classList.add("examples");
  p.exampleList = make("ul", { hidden: true });
  closeOnEscape(
    p.examples,
    p.exampleList,
    () => !p.exampleList.hidden,
    () => showExamples(p, false),
  );
}

// Make the button and list of sentences typed earlier in this browser.
/** @type {(p: Parts, actions: Actions) => void} */
function makeHistory(p, actions) {
  const title = "Sentences you typed; only this browser remembers them";
  p.history = makeQuietButton({ title, "aria-expanded": false, hidden: true, onclick: actions.history }, "History");
  p.historyList = make("ul", { hidden: true });
  closeOnEscape(
    p.history,
    p.historyList,
    () => !p.historyList.hidden,
    () => showHistory(p, false),
  );
}

// List the sentences typed earlier, with a button to forget them.
/** @type {(p: Parts, typed: TypedSentence[], open: (typed: TypedSentence) => void, clear: () => void) => void} */
export function listHistory(p, typed, open, clear) {
  /** @type {(sentence: TypedSentence) => HTMLElement} */
  const makeItem = (sentence) => makeExample({ ...sentence, look: "" }, () => open(sentence));
  const forget = make("li", {}, make("button", { type: "button", class: "soft", onclick: clear }, "Clear history"));
  p.historyList.replaceChildren(...typed.map(makeItem), forget);
  p.history.hidden = !typed.length;
}

/** @type {(p: Parts, isOpen: boolean) => void} */
export function showHistory(p, isOpen) {
  p.historyList.hidden = !isOpen;
  p.history.setAttribute("aria-expanded", isOpen);
}

/** @type {(example: Example, onclick: () => void) => HTMLElement} */
export function makeExample({ text, pair, look }, onclick) {
  const pairText = pair ? [make("span", { class: "and" }, " / "), make("bdi", {}, pair)] : [];
  const texts = make("span", { class: "what" }, make("bdi", {}, text), ...pairText);
  return make("li", {}, make("button", { type: "button", onclick }, texts, make("span", { class: "soft" }, look)));
}

/** @type {(p: Parts, actions: Actions) => void} */
function makeModelMenu(p, actions) {
  p.model = make("select", { onchange: actions.choose, "aria-label": "Model" });
  /** @type {(event: KeyboardEvent) => void} */
  const onkeydown = (event) => {
    const name = /** @type {HTMLInputElement} */ (event.target).value.trim();
    if (event.key === "Enter" && name) actions.model(name);
  };
  const text = { placeholder: "Hub id or folder, then Enter", "aria-label": "Another model: Hub id or folder" };
  p.modelField = make("input", { type: "text", hidden: true, maxLength: 300, ...text, onkeydown });
}

const HEAD = "attention head";
const MEANING =
  "A part of the model that decides what share of its attention each word gives to every word: darker is more";

// Show the introduction: the first sentence that a visitor reads.
/** @type {(p: Parts, intro: string) => void} */
export function showIntro(p, intro) {
  const parts = intro.split(HEAD).flatMap((part, i) => (i ? [make("abbr", { title: MEANING }, HEAD), part] : [part]));
  p.intro.replaceChildren(...parts);
  p.intro.hidden = !intro;
}

// Offer the models of the list, the chosen one even if it is not in the list, and a field to name another.
/** @type {(p: Parts, data: SentenceData) => void} */
export function offerModels(p, data) {
  const { models, model, open } = data;
  /** @type {(value: string, textContent: string) => HTMLOptionElement} */
  const option = (value, textContent) => make("option", { value, textContent });
  const isListed = models.some(({ name }) => name === model);
  p.model.replaceChildren(
    ...models.map(({ name, label }) => option(name, label)),
    ...(isListed ? [] : [option(model, data.label)]),
    ...(open ? [option("?", "Another model…")] : []),
  );
  p.model.value = model;
  p.modelField.hidden = true;
}

// Grow the field with its text; longer texts get smaller letters. Browsers that support `field-sizing` grow it by
// themselves.
/** @type {(area: HTMLTextAreaElement) => void} */
export function growField(area) {
  const length = area.value.length;
  area.dataset.length = length > 400 ? "text" : length > 120 ? "paragraph" : "sentence";
  if (CSS.supports("field-sizing", "content")) return;
  Object.assign(area.style, { height: "auto", overflow: "hidden" }); // a scroll bar would take room from the text
  const height = area.scrollHeight + area.offsetHeight - area.clientHeight; // includes the borders
  area.style.height = `${height}px`;
  if (area.scrollHeight > area.clientHeight) area.style.height = `${height + 1}px`; // Firefox rounds 89.4 px down to 89
  area.style.overflow = "";
}

// Grow the field again when its width or font changes.
/** @type {(area: HTMLTextAreaElement) => void} */
function watchSize(area) {
  let width = 0;
  new ResizeObserver(() => {
    if (area.clientWidth === width) return;
    width = area.clientWidth;
    requestAnimationFrame(() => growField(area)); // resizing inside the observer would be reported as a loop
  }).observe(area);
  void document.fonts?.ready.then(() => growField(area));
}

/** @type {(p: Parts, isOpen: boolean) => void} */
export function showPair(p, isOpen) {
  p.pairRow.hidden = !isOpen;
  p.addPair.textContent = isOpen ? "− Second sentence" : "+ Second sentence";
  p.addPair.setAttribute("aria-expanded", isOpen);
}

/** @type {(p: Parts, isOpen: boolean) => void} */
export function showExamples(p, isOpen) {
  p.exampleList.hidden = !isOpen;
  p.examples.setAttribute("aria-expanded", isOpen);
}

// ---- Text being typed ---------------------------------------------------------------------------------------

// A field in which the user types while the server reads: it keeps the last text sent and the server's last answer.

/** @type {(text: string) => string} */
const normalize = (text) => text.toWellFormed().replaceAll("\0", "\ufffd");

/** @type {Map<string, { confirmed: string | undefined, value: string }>} */
const drafts = new Map(); // text typed but not read yet; another page has other fields

export class TypedField {
  #sent = /** @type {string | null} */ (null); // the last text sent that is still unanswered
  confirmed = /** @type {string | undefined} */ (undefined); // the field's text when the server last answered

  #name;

  /** @param {HTMLTextAreaElement} area @param {string} name shared with the same field on other pages */
  constructor(area, name = "") {
    this.area = area;
    this.#name = name;
  }

  // Remember the typed text for the same field of another page.
  saveDraft() {
    if (this.#name) drafts.set(this.#name, { confirmed: this.confirmed, value: this.area.value });
  }

  get value() {
    return this.area.value;
  }

  // The answer to a text sent from here does not change the field: the link may contain only the beginning of the text,
  // and the user may still be typing. A text from elsewhere (an example, the Back button) replaces it.
  /** @type {(text: string) => void} */
  receive(text) {
    const draft = drafts.get(this.#name);
    const sentText = this.#sent;
    const isAnswer = sentText !== null && normalize(sentText).startsWith(text) && (text !== "" || sentText === "");
    const isNew = this.confirmed === undefined;
    this.confirmed = isAnswer ? sentText : text;
    if (!isAnswer) this.area.value = isNew && draft?.confirmed === text ? draft.value : text;
    if (!isNew && !isAnswer) drafts.delete(this.#name); // another text has arrived
    this.#sent = null;
  }

  markSent() {
    drafts.delete(this.#name);
    this.#sent = this.area.value;
  }

  // Restore the text after Back or Forward: its answer may never come, because for the server nothing has changed.
  discardUnanswered() {
    if (this.#sent === null) return;
    this.area.value = this.confirmed ?? "";
    this.#sent = null;
  }
}
