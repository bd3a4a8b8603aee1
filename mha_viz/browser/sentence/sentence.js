// The sentence component: the text in large type, examples, an optional second sentence, and the choice of the model.
import { make } from "../dom.js";
import { forgetSentences, rememberSentence, loadSentences } from "../memory.js";
import { mountComponent, queueMessages } from "../mount.js";
import { ArcField } from "./arched.js";
import {
  TypedField,
  makeExample,
  growField,
  listHistory,
  offerModels,
  makePage,
  makeQuietButton,
  showExamples,
  showIntro,
  showPair,
  showHistory,
} from "./fields.js";
/** @import { TypedSentence } from "../memory.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */
/** @import { Arcs } from "./arched.js" */
/** @import { Example, SentenceData } from "./fields.js" */

const sharedGlobals = /** @type {{ mhaVizArcs?: Arcs }} */ (globalThis); // set by the explorer, perhaps earlier

class Sentence {
  #data = /** @type {Partial<SentenceData>} */ ({});
  #send;
  #page = makePage({
    read: () => this.#read(),
    typed: (area) => this.#onTyped(area),
    pair: () => this.#togglePair(),
    history: () => this.#toggle(this.#page.historyList, showHistory, showExamples),
    examples: () => this.#toggle(this.#page.exampleList, showExamples, showHistory),
    choose: () => this.#choose(),
    model: (name) => this.#send("model", name),
  });
  #arcField = new ArcField(this.#page.text);
  #fields = { text: new TypedField(this.#page.text, "text"), pair: new TypedField(this.#page.pair) };

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#send = send;
    this.#page.field.replaceWith(this.#arcField.box);
    this.#page.captionSlot.replaceWith(this.#arcField.caption);
    root.replaceChildren(this.#page.all);
    this.#drawHistory();
    this.#onArcs();
    document.addEventListener("mha-arcs", this.#onArcs);
    window.addEventListener("popstate", this.#onHistory);
  }

  stop() {
    document.removeEventListener("mha-arcs", this.#onArcs);
    window.removeEventListener("popstate", this.#onHistory);
  }

  #onArcs = () => sharedGlobals.mhaVizArcs && this.#arcField.setArcs(sharedGlobals.mhaVizArcs);

  #onHistory = () => {
    for (const field of Object.values(this.#fields)) {
      field.discardUnanswered();
      growField(field.area);
    }
    this.#updateReadButton();
  };

  // ---- Data from the server: typed text stays; a field changes only if the server's value does -----------------

  /** @type {(data: SentenceData) => void} */
  show(data) {
    const [page, previous] = [this.#page, this.#data];
    /** @type {(name: keyof SentenceData) => boolean} */
    const hasChanged = (name) => JSON.stringify(data[name]) !== JSON.stringify(previous[name]);
    for (const name of /** @type {const} */ (["text", "pair"])) {
      if (!hasChanged(name)) continue;
      this.#fields[name].receive(data[name]);
      growField(this.#fields[name].area);
    }
    if (data.arched || hasChanged("text") || hasChanged("pair")) this.#arcField.show(data.arched);
    if (hasChanged("pair")) showPair(page, data.pair !== "");
    if (hasChanged("models") || hasChanged("model") || hasChanged("open")) offerModels(page, data);
    if (hasChanged("examples"))
      page.exampleList.replaceChildren(...data.examples.map((example, i) => this.#makeExampleButton(example, i)));
    if (hasChanged("intro")) showIntro(page, data.intro);
    page.all.classList.toggle("plain", data.plain);
    if (["look", "answer", "opens"].some((name) => hasChanged(/** @type {keyof SentenceData} */ (name))))
      this.#drawLook(data);
    if (hasChanged("text")) showExamples(page, !data.text.trim()); // an empty page offers examples
    this.#data = data;
    this.#updateReadButton();
  }

  // Show a hint and, if another head is open, a button to the head that the hint names. In class mode, show the answer,
  // which the arcs would reveal while it is hidden.
  /** @type {(data: SentenceData) => void} */
  #drawLook({ look, answer, opens }) {
    const openButton =
      opens && makeQuietButton({ onclick: () => this.#send("example", opens.index) }, `Open ${opens.head}`);
    const ontoggle = () => this.#arcField.hide(!answerBox[0]?.open);
    const answerBox = answer ? [make("details", { ontoggle }, make("summary", {}, "Answer"), answer)] : [];
    this.#page.look.replaceChildren(look, ...(openButton ? [" ", openButton] : []), ...answerBox);
    this.#page.look.hidden = !look;
    this.#arcField.hide(answerBox.length > 0);
  }

  /** @type {(example: Example, index: number) => HTMLElement} */
  #makeExampleButton(example, index) {
    return makeExample(example, () => {
      this.#closeExamples();
      this.#send("example", index);
    });
  }

  // ---- User actions -----------------------------------------------------------------------------------------------

  /** @type {(area: HTMLTextAreaElement) => void} */
  #onTyped(area) {
    this.#fields.text.saveDraft();
    growField(area);
    this.#arcField.draw();
    this.#updateReadButton();
  }

  #togglePair() {
    const page = this.#page;
    showPair(page, page.pairRow.hidden);
    if (!page.pairRow.hidden) page.pair.focus();
    this.#updateReadButton();
  }

  // Open or close one list; close the other one.
  /** @type {(list: HTMLElement, show: typeof showHistory, showOther: typeof showHistory) => void} */
  #toggle(list, show, showOther) {
    showOther(this.#page, false);
    show(this.#page, Boolean(list.hidden));
    if (!list.hidden) list.querySelector("button")?.focus();
  }

  #closeExamples() {
    showExamples(this.#page, false);
    this.#page.examples.focus();
  }

  /** @type {() => TypedSentence} */
  #getTypedSentence() {
    const { text, pair, pairRow } = this.#page;
    return { text: text.value, pair: pairRow.hidden ? "" : pair.value };
  }

  #hasChanged() {
    const { text, pair } = this.#fields;
    const previousPair = this.#page.pairRow.hidden ? this.#data.pair : pair.confirmed;
    return text.value !== text.confirmed || this.#getTypedSentence().pair !== previousPair;
  }

  #read() {
    if (this.#hasChanged()) rememberSentence(this.#getTypedSentence());
    this.#drawHistory();
    Object.values(this.#fields).forEach((field) => field.markSent());
    this.#send("read", this.#getTypedSentence());
  }

  #drawHistory() {
    const clear = () => {
      forgetSentences();
      showHistory(this.#page, false);
      this.#drawHistory();
      this.#page.text.focus();
    };
    listHistory(this.#page, loadSentences(), (sentence) => this.#reopen(sentence), clear);
  }

  // Read a sentence of the history as if it were typed again.
  /** @type {(sentence: TypedSentence) => void} */
  #reopen({ text, pair }) {
    const page = this.#page;
    [page.text.value, page.pair.value] = [text, pair];
    showPair(page, pair !== "");
    showHistory(page, false);
    page.history.focus();
    growField(page.text);
    this.#read();
  }

  // Show the read button while there is something to read.
  #updateReadButton() {
    const { readButton, examples } = this.#page;
    const isRead = !this.#hasChanged();
    if (isRead && readButton.matches(":focus")) examples.focus();
    readButton.hidden = isRead;
  }

  #choose() {
    const { modelField, model } = this.#page;
    modelField.hidden = model.value !== "?";
    if (model.value === "?") modelField.focus();
    else this.#send("model", model.value);
  }
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-sentence", (root, send) => new Sentence(root, queueMessages(send)));
}
