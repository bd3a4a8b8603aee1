// The sentence: typed large, with its examples, its second sentence and the model that reads it.

import { make } from "../dom.js";
import { post } from "../post.js";

export function sentence(root, send) {
  let last = {};
  const p = build();
  root.replaceChildren(p.all);

  // What the person typed stays: fields follow the server only when the server's own value changed.
  function show(data) {
    if (data.text !== last.text) take(p.text, data.text);
    if (data.pair !== last.pair) { take(p.pair, data.pair); openPair(data.pair !== ""); }
    if (JSON.stringify(data.models) !== JSON.stringify(last.models) || data.model !== last.model || data.open !== last.open) models(data);
    if (JSON.stringify(data.examples) !== JSON.stringify(last.examples)) p.list.replaceChildren(...data.examples.map(example));
    p.look.textContent = data.look;
    p.look.hidden = !data.look;
    if (data.text !== last.text) offer(!data.text.trim()); // an empty page offers its examples
    last = data;
    follow();
  }

  // The answer to what was sent from here leaves the field alone: the link may hold only its beginning, and the
  // person may be typing on. A text from elsewhere (an example, the Back button) takes its place.
  function take(field, text) {
    const answers = field.sent !== null && plain(field.sent).startsWith(text) && (text !== "" || field.sent === "");
    field.taken = answers ? field.sent : text;
    if (!answers) field.value = text;
    field.sent = null;
    grow(field);
  }

  const plain = (text) => text.toWellFormed().replaceAll("\0", "\ufffd");

  function typed() { return { text: p.text.value, pair: p.pairRow.hidden ? "" : p.pair.value }; }
  const changed = () => p.text.value !== p.text.taken || typed().pair !== (p.pairRow.hidden ? last.pair : p.pair.taken);

  function read() {
    [p.text.sent, p.pair.sent] = [p.text.value, p.pair.value];
    send("read", typed());
  }

  function follow() {
    p.read.classList.toggle("ready", changed());
    p.read.textContent = changed() ? "Read it ↵" : "Read ↵";
  }

  function keys(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); read(); }
  }

  // Longer texts are set smaller. Browsers that know `field-sizing` grow the field by themselves.
  function grow(field) {
    const length = field.value.length;
    field.dataset.length = length > 400 ? "text" : length > 120 ? "paragraph" : "sentence";
    if (CSS.supports("field-sizing", "content")) return;
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 260)}px`;
  }

  function openPair(open) {
    p.pairRow.hidden = !open;
    p.addPair.textContent = open ? "− Second sentence" : "+ Second sentence";
    p.addPair.setAttribute("aria-expanded", open);
  }

  function offer(open) {
    p.list.hidden = !open;
    p.examples.setAttribute("aria-expanded", open);
  }

  function example({ text, pair, look }, index) {
    const button = make("button", { type: "button" }, make("span", { class: "what" }, make("bdi", {}, text), ...(pair ? [make("span", { class: "and" }, " / "), make("bdi", {}, pair)] : [])),
      make("span", { class: "soft" }, look));
    button.onclick = () => { offer(false); send("example", index); };
    return make("li", {}, button);
  }

  function models({ models, model, open }) {
    const known = models.some((m) => m.name === model);
    p.model.replaceChildren(...models.map((m) => make("option", { value: m.name, textContent: m.label })),
      ...(known ? [] : [make("option", { value: model, textContent: model })]),
      ...(open ? [make("option", { value: "?", textContent: "Another model…" })] : []));
    p.model.value = model;
    p.other.hidden = true;
  }

  function choose() {
    p.other.hidden = p.model.value !== "?";
    if (p.model.value === "?") p.other.focus();
    else send("model", p.model.value);
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(window.location.href);
      p.copied.textContent = "Copied. The link contains your text.";
    } catch {
      p.copied.textContent = "Copy the address bar: the link contains your text.";
    }
    setTimeout(() => { p.copied.textContent = ""; }, 5000);
  }

  function build() {
    const b = {};
    const field = (label, placeholder) => make("textarea", { rows: 1, spellcheck: false, dir: "auto", placeholder, "aria-label": label, onkeydown: keys, oninput: (event) => { grow(event.target); follow(); } });
    b.text = field("Sentence", "Type a sentence and press Enter");
    b.pair = field("Second sentence", "A second sentence, read after [SEP]");
    b.pair.className = "second";
    b.text.sent = b.pair.sent = null; // what was last sent to be read and not answered yet
    b.pairRow = make("div", { class: "pair", hidden: true }, b.pair);
    b.read = make("button", { type: "button", class: "read", onclick: read }, "Read ↵");
    b.examples = make("button", { type: "button", class: "quiet", "aria-expanded": false, onclick: () => {
      offer(b.list.hidden);
      if (!b.list.hidden) b.list.querySelector("button")?.focus();
    } }, "Examples");
    b.addPair = make("button", { type: "button", class: "quiet", "aria-expanded": false, onclick: () => {
      openPair(b.pairRow.hidden);
      if (!b.pairRow.hidden) b.pair.focus();
      follow();
    } }, "+ Second sentence");
    b.model = make("select", { onchange: choose, "aria-label": "Model" });
    b.other = make("input", { type: "text", hidden: true, maxLength: 300, placeholder: "Hub id or folder, then Enter", "aria-label": "Hub id or folder of another model", onkeydown: (event) => {
      if (event.key === "Enter" && event.target.value.trim()) send("model", event.target.value.trim());
    } });
    b.copy = make("button", { type: "button", class: "quiet", onclick: copy }, "Copy link");
    b.copied = make("span", { class: "soft", role: "status" });
    b.list = make("ul", { hidden: true, onkeydown: (event) => {
      if (event.key === "Escape") { offer(false); b.examples.focus(); }
    } });
    b.look = make("p", { class: "look", hidden: true });
    b.all = make("div", { class: "sentence" }, b.text, b.pairRow, make("div", { class: "strip" },
      b.read, b.examples, b.addPair, make("span", { class: "space" }), b.copied, b.copy,
      make("label", { class: "model" }, make("span", { class: "soft" }, "Read by"), b.model), b.other), b.list, b.look);
    return b;
  }

  return { show };
}

// Streamlit calls this on the same page elements at every change of the data.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-sentence");
  root.send = setTriggerValue;
  root.app ??= sentence(root, (name, value) => post(root.send, name, value));
  root.app.show(data);
}
