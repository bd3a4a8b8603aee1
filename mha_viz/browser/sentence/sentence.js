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
  #part = makePage({
    read: () => this.#read(),
    typed: (area) => this.#onTyped(area),
    pair: () => this.#togglePair(),
    history: () => this.#toggle(this.#part.past, showHistory, showExamples),
    examples: () => this.#toggle(this.#part.list, showExamples, showHistory),
    choose: () => this.#choose(),
    model: (name) => this.#send("model", name),
  });
  #arcField = new ArcField(this.#part.text);
  #fields = { text: new TypedField(this.#part.text, "text"), pair: new TypedField(this.#part.pair) };

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#send = send;
    this.#part.field.replaceWith(this.#arcField.box);
    this.#part.space.replaceWith(this.#arcField.caption);
    root.replaceChildren(this.#part.all);
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
    const [part, last] = [this.#part, this.#data];
    /** @type {(name: keyof SentenceData) => boolean} */
    const hasChanged = (name) => JSON.stringify(data[name]) !== JSON.stringify(last[name]);
    for (const name of /** @type {const} */ (["text", "pair"])) {
      if (!hasChanged(name)) continue;
      this.#fields[name].receive(data[name]);
      growField(this.#fields[name].area);
    }
    if (data.arched || hasChanged("text") || hasChanged("pair")) this.#arcField.show(data.arched);
    if (hasChanged("pair")) showPair(part, data.pair !== "");
    if (hasChanged("models") || hasChanged("model") || hasChanged("open")) offerModels(part, data);
    if (hasChanged("examples"))
      part.list.replaceChildren(...data.examples.map((example, i) => this.#makeExampleButton(example, i)));
    if (hasChanged("intro")) showIntro(part, data.intro);
    part.all.classList.toggle("plain", data.plain);
    if (["look", "answer", "opens"].some((name) => hasChanged(/** @type {keyof SentenceData} */ (name))))
      this.#drawLook(data);
    if (hasChanged("text")) showExamples(part, !data.text.trim()); // an empty page offers examples
    this.#data = data;
    this.#updateReadButton();
  }

  // Show a hint and, if another head is open, a button to the head that the hint names. In class mode, show the answer,
  // which the arcs would reveal while it is hidden.
  /** @type {(data: SentenceData) => void} */
  #drawLook({ look, answer, opens }) {
    const open = opens && makeQuietButton({ onclick: () => this.#send("example", opens.index) }, `Open ${opens.head}`);
    const ontoggle = () => this.#arcField.hide(!answerBox[0]?.open);
    const answerBox = answer ? [make("details", { ontoggle }, make("summary", {}, "Answer"), answer)] : [];
    this.#part.look.replaceChildren(look, ...(open ? [" ", open] : []), ...answerBox);
    this.#part.look.hidden = !look;
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
    const parts = this.#part;
    showPair(parts, parts.pairRow.hidden);
    if (!parts.pairRow.hidden) parts.pair.focus();
    this.#updateReadButton();
  }

  // Open or close one list; close the other one.
  /** @type {(list: HTMLElement, show: typeof showHistory, showOther: typeof showHistory) => void} */
  #toggle(list, show, showOther) {
    showOther(this.#part, false);
    show(this.#part, Boolean(list.hidden));
    if (!list.hidden) list.querySelector("button")?.focus();
  }

  #closeExamples() {
    showExamples(this.#part, false);
    this.#part.examples.focus();
  }

  /** @type {() => TypedSentence} */
  #readTyped() {
    const { text, pair, pairRow } = this.#part;
    return { text: text.value, pair: pairRow.hidden ? "" : pair.value };
  }

  #hasChanged() {
    const { text, pair } = this.#fields;
    const previousPair = this.#part.pairRow.hidden ? this.#data.pair : pair.confirmed;
    return text.value !== text.confirmed || this.#readTyped().pair !== previousPair;
  }

  #read() {
    if (this.#hasChanged()) rememberSentence(this.#readTyped());
    this.#drawHistory();
    Object.values(this.#fields).forEach((field) => field.markSent());
    this.#send("read", this.#readTyped());
  }

  #drawHistory() {
    const clear = () => {
      forgetSentences();
      showHistory(this.#part, false);
      this.#drawHistory();
      this.#part.text.focus();
    };
    listHistory(this.#part, loadSentences(), (sentence) => this.#reopen(sentence), clear);
  }

  // Read a sentence of the history as if it were typed again.
  /** @type {(sentence: TypedSentence) => void} */
  #reopen({ text, pair }) {
    const part = this.#part;
    [part.text.value, part.pair.value] = [text, pair];
    showPair(part, pair !== "");
    showHistory(part, false);
    part.history.focus();
    growField(part.text);
    this.#read();
  }

  // Show the read button while there is something to read.
  #updateReadButton() {
    const { read, examples } = this.#part;
    const isRead = !this.#hasChanged();
    if (isRead && read.matches(":focus")) examples.focus();
    read.hidden = isRead;
  }

  #choose() {
    const { other, model } = this.#part;
    other.hidden = model.value !== "?";
    if (model.value === "?") other.focus();
    else this.#send("model", model.value);
  }
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-sentence", (root, send) => new Sentence(root, queueMessages(send)));
}
