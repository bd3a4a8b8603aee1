// The sentence component: the text in large type, its examples, its second sentence and the model that reads it.
import { make } from "../dom.js";
import { forgetSentences, rememberSentence, typedSentences } from "../memory.js";
import { mounted } from "../mount.js";
import { queued } from "../post.js";
import {
  exampleOf,
  grow,
  listPast,
  offerModels,
  page,
  quietButton,
  showExamples,
  showIntro,
  showPair,
  showPast,
} from "./fields.js";
import { Arched } from "./arched.js";
import { TypedField } from "./typed.js";
/** @import { Actions } from "../controls.js" */
/** @import { Parts } from "../dom.js" */
/** @import { Typed } from "../memory.js" */
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */
/** @import { Bows } from "./arched.js" */
/** @import { Example, SentenceData } from "./fields.js" */

/**
 * @typedef {{ send: Send, part: Parts, arched: Arched, typed: Record<"text" | "pair", TypedField>, last:
 *   Partial<SentenceData> }} SentenceApp
 */

const onPage = /** @type {{ mhaVizBows?: Bows }} */ (globalThis); // by the explorer, which may have been drawn before

/** @type {(root: HTMLElement, send: Send) => { show: (data: SentenceData) => void, stop: () => void }} */
export function sentence(root, send) {
  const app = /** @type {SentenceApp} */ ({ send, last: {} });
  app.part = page(actions(app));
  app.arched = new Arched(app.part.text);
  app.part.field.replaceWith(app.arched.box);
  app.typed = { text: new TypedField(app.part.text, "text"), pair: new TypedField(app.part.pair) };
  root.replaceChildren(app.part.all);
  drawPast(app);
  const onBows = () => onPage.mhaVizBows && app.arched.take(onPage.mhaVizBows);
  const onHistory = () => takeBack(app);
  onBows();
  document.addEventListener("mha-bows", onBows);
  window.addEventListener("popstate", onHistory);
  const stop = () => {
    document.removeEventListener("mha-bows", onBows);
    window.removeEventListener("popstate", onHistory);
  };
  return { show: (data) => drawSentence(app, data), stop };
}

/** @type {(app: SentenceApp) => Actions} */
const actions = (app) => ({
  read: () => read(app),
  typed: (area) => {
    app.typed.text.keep();
    grow(area);
    app.arched.draw();
    follow(app);
  },
  pair: () => {
    const { part } = app;
    showPair(part, part.pairRow.hidden);
    if (!part.pairRow.hidden) part.pair.focus();
    follow(app);
  },
  history: () => {
    const { part } = app;
    showExamples(part, false);
    showPast(part, part.past.hidden);
    if (!part.past.hidden) part.past.querySelector("button")?.focus();
  },
  examples: () => {
    const { part } = app;
    showPast(part, false);
    showExamples(part, part.list.hidden);
    if (!part.list.hidden) part.list.querySelector("button")?.focus();
  },
  close: () => {
    showExamples(app.part, false);
    app.part.examples.focus();
  },
  choose: () => choose(app),
  model: (name) => app.send("model", name),
});

// ---- Data from the server: what the user typed stays; a field changes only if the server's own value does ----

/** @type {(app: SentenceApp, data: SentenceData) => void} */
function drawSentence(app, data) {
  const { part, last } = app;
  /** @type {(name: keyof SentenceData) => boolean} */
  const isOther = (name) => JSON.stringify(data[name]) !== JSON.stringify(last[name]);
  for (const name of /** @type {const} */ (["text", "pair"])) {
    if (!isOther(name)) continue;
    app.typed[name].take(data[name]);
    grow(app.typed[name].area);
  }
  if (data.arched || isOther("text") || isOther("pair")) app.arched.show(data.arched);
  if (isOther("pair")) showPair(part, data.pair !== "");
  if (isOther("models") || isOther("model") || isOther("open")) offerModels(part, data);
  if (isOther("examples")) part.list.replaceChildren(...data.examples.map((example, i) => offered(app, example, i)));
  if (isOther("intro")) showIntro(part, data.intro);
  part.all.classList.toggle("plain", data.plain);
  drawLook(app, data);
  if (isOther("text")) showExamples(part, !data.text.trim()); // an empty page offers its examples
  app.last = data;
  follow(app);
}

// What to look for and, if another head is open, a button to the head that the text names; for a class, the answer.
/** @type {(app: SentenceApp, data: SentenceData) => void} */
function drawLook({ part, send }, { look, answer, opens }) {
  const way = opens && [" ", quietButton({ onclick: () => send("example", opens.index) }, `Open ${opens.head}`)];
  const hidden = answer && [make("details", {}, make("summary", {}, "Answer"), answer)];
  part.look.replaceChildren(look, ...(way ?? []), ...(hidden || []));
  part.look.hidden = !look;
}

/** @type {(app: SentenceApp, example: Example, index: number) => HTMLElement} */
function offered({ part, send }, example, index) {
  return exampleOf(example, () => {
    showExamples(part, false);
    part.examples.focus();
    send("example", index);
  });
}

/** @type {(app: SentenceApp) => void} */
function takeBack(app) {
  for (const field of Object.values(app.typed)) {
    field.takeBack();
    grow(field.area);
  }
  follow(app);
}

// ---- User actions -------------------------------------------------------------------------------------------

/** @type {(part: Parts) => { text: string, pair: string }} */
const typed = ({ text, pair, pairRow }) => ({ text: text.value, pair: pairRow.hidden ? "" : pair.value });

/** @type {(app: SentenceApp) => boolean} */
function hasChanged({ part, last, typed: { text, pair } }) {
  const before = part.pairRow.hidden ? last.pair : pair.taken;
  return text.value !== text.taken || typed(part).pair !== before;
}

/** @type {(app: SentenceApp) => void} */
function read(app) {
  const { part, send } = app;
  if (hasChanged(app)) rememberSentence(typed(part));
  drawPast(app);
  Object.values(app.typed).forEach((field) => field.send());
  send("read", typed(part));
}

/** @type {(app: SentenceApp) => void} */
function drawPast(app) {
  const { part } = app;
  const clear = () => {
    forgetSentences();
    showPast(part, false);
    drawPast(app);
    part.text.focus();
  };
  listPast(part, typedSentences(), (one) => reopen(app, one), clear);
}

// Reads a sentence of the history as if it were typed again.
/** @type {(app: SentenceApp, one: Typed) => void} */
function reopen(app, { text, pair }) {
  const { part } = app;
  [part.text.value, part.pair.value] = [text, pair];
  showPair(part, pair !== "");
  showPast(part, false);
  part.history.focus();
  grow(part.text);
  read(app);
}

// The button to read is there as long as something is to be read.
/** @type {(app: SentenceApp) => void} */
function follow(app) {
  const { part } = app;
  const isRead = !hasChanged(app);
  if (isRead && part.read.matches(":focus")) part.examples.focus();
  part.read.hidden = isRead;
}

/** @type {(app: SentenceApp) => void} */
function choose({ part, send }) {
  part.other.hidden = part.model.value !== "?";
  if (part.model.value === "?") part.other.focus();
  else send("model", part.model.value);
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-sentence", (root, send) => sentence(root, queued(send)));
}
