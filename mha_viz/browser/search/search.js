// "Find a head that …", from anywhere on the page: "/" focuses the field.
import { make } from "../dom.js";
import { mountComponent, post } from "../mount.js";
import { isShortcut } from "../shortcuts.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

const SEARCH_DELAY = 250; // milliseconds without typing before asking the server
const LABEL = "Find a head that …";

class Search {
  #data = /** @type {SearchData | null} */ (null);
  #timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  #root;
  #send;
  #field = make("input", {
    type: "search",
    placeholder: LABEL,
    "aria-label": LABEL,
    maxLength: 80,
    autocomplete: "off",
  });
  #answers = make("div", { class: "answers", role: "region", "aria-label": "Matching heads", hidden: true });
  #status = make("p", { class: "status", role: "status" });

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#send = send;
    this.#field.oninput = () => this.#handleTyping();
    this.#field.onkeydown = (/** @type {KeyboardEvent} */ event) => this.#onFieldKey(event);
    this.#field.onfocus = () => this.#data?.typed === this.#query && this.#open();
    this.#answers.onkeydown = (/** @type {KeyboardEvent} */ event) => this.#onAnswerKey(event);
    const box = make("div", { class: "box" }, this.#field, make("kbd", { "aria-hidden": "true" }, "/"));
    root.replaceChildren(make("div", { class: "search", role: "search" }, box, this.#answers, this.#status));
    document.addEventListener("keydown", this.#onKey);
    document.addEventListener("pointerdown", this.#onPress);
  }

  stop() {
    clearTimeout(this.#timer);
    document.removeEventListener("keydown", this.#onKey);
    document.removeEventListener("pointerdown", this.#onPress);
  }

  get #query() {
    return this.#field.value.trim().replace(/\s+/g, " ");
  }

  /** @type {() => HTMLElement[]} */
  #listLinks() {
    return [...this.#answers.querySelectorAll("a")];
  }

  // ---- The server's answer ----------------------------------------------------------------------------------------

  /** @type {(data: SearchData) => void} */
  show(data) {
    if (!data.typed) return; // the page was redrawn for another reason
    if (data.typed === this.#query) this.#field.removeAttribute("aria-busy");
    if (this.#answers.querySelector(":focus")) return; // do not replace an answer that has the focus
    this.#data = data;
    this.#answers.replaceChildren(...makeAnswers(data, (index) => this.#choose(index)));
    if (data.typed !== this.#query) return;
    this.#status.textContent = describeCount(data);
    this.#open();
  }

  #open() {
    this.#answers.hidden = false;
  }

  #close() {
    this.#answers.hidden = true;
    this.#status.textContent = "";
  }

  // ---- User actions -----------------------------------------------------------------------------------------------

  #handleTyping() {
    clearTimeout(this.#timer);
    if (!this.#query) this.#close();
    else this.#timer = setTimeout(() => this.#sendQuery(), SEARCH_DELAY);
  }

  #sendQuery() {
    clearTimeout(this.#timer);
    if (!this.#query) return;
    this.#field.setAttribute("aria-busy", "true");
    this.#send("query", this.#query);
  }

  /** @type {(index: number) => void} */
  #choose(index) {
    clearTimeout(this.#timer);
    this.#field.value = "";
    if (this.#answers.querySelector(":focus-visible")) this.#field.focus(); // the focused element is now hidden
    this.#close();
    post(this.#send, "open", { typed: this.#data?.typed, index });
  }

  /** @type {(event: KeyboardEvent) => void} */
  #onFieldKey(event) {
    const isOpen = !this.#answers.hidden;
    const isAnswered = isOpen && this.#data?.typed === this.#query;
    if (event.key === "Enter" && isAnswered && this.#listLinks().length) this.#choose(0);
    else if (event.key === "Enter") this.#sendQuery();
    else if (event.key === "ArrowDown" && isAnswered) this.#listLinks()[0]?.focus();
    else if (event.key === "Escape" && isOpen) this.#close();
    else if (event.key === "Escape" && this.#field.value) this.#field.value = "";
    else if (event.key === "Escape") this.#field.blur();
    else return;
    event.preventDefault();
    event.stopPropagation(); // one key press has one effect: the word stays pinned
  }

  /** @type {(event: KeyboardEvent) => void} */
  #onAnswerKey(event) {
    const links = this.#listLinks();
    const index = links.indexOf(/** @type {HTMLElement} */ (event.target));
    if (event.key === "ArrowDown") links[Math.min(index + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && index > 0) links[index - 1].focus();
    else if (event.key === "ArrowUp") this.#field.focus();
    else if (event.key === "Escape") {
      this.#field.focus();
      this.#close();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #onKey = (/** @type {KeyboardEvent} */ event) => {
    if (!isShortcut(event, "/")) return;
    event.preventDefault();
    this.#field.focus();
    this.#field.select();
  };

  #onPress = (/** @type {PointerEvent} */ event) => {
    if (!event.composedPath().includes(this.#root)) this.#close();
  };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-search", (root, send) => new Search(root, send));
}

// ---- The heads found ----------------------------------------------------------------------------------------

// List the answers in groups; each answer is a link.

/**
 * A head or stage that matches a search (app/widgets/search_field.py).
 *
 * @typedef {object} SearchAnswer
 * @property {string} name
 * @property {string} paper
 * @property {string} does
 * @property {string} score
 * @property {string} baseline
 * @property {string} rule
 * @property {string} standing
 * @property {string} href
 */

/**
 * @typedef {object} SearchData
 * @property {number} number The number of searches, which differs even if the same words are searched again.
 * @property {string} typed
 * @property {string} problem
 * @property {{ title: string, note: string, answers: SearchAnswer[] }[]} groups
 */

// `open` is called with the index of an answer among all.
/** @type {(data: SearchData, open: (index: number) => void) => HTMLElement[]} */
function makeAnswers({ groups, problem }, open) {
  let index = 0;
  const sections = groups.map(({ title, note, answers }) => {
    const links = answers.map((answer) => make("li", {}, makeLink(answer, open, index++)));
    const remark = note ? [make("p", { class: "soft" }, note)] : [];
    return make("section", {}, make("h2", {}, title), ...remark, make("ul", {}, ...links));
  });
  return problem ? [make("p", { class: "soft" }, problem), ...sections] : sections;
}

/** @type {(answer: SearchAnswer, open: (index: number) => void, index: number) => HTMLElement} */
function makeLink(answer, open, index) {
  const { name, paper, does, score, baseline, rule, standing, href } = answer;
  /** @type {(event: MouseEvent) => void} */
  const onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // opens another tab or window
    event.preventDefault();
    open(index);
  };
  const scoreNote = score ? [make("b", {}, score), `, ${rule}: ${baseline}`] : [];
  const className = /^established(, beats the rule)?$/.test(standing) ? "sure" : "";
  const standingNote = standing ? [make("i", { class: className }, standing)] : [];
  return make(
    "a",
    { href, onclick },
    make(
      "span",
      { class: "head" },
      make("b", { class: paper ? "" : "stage" }, name),
      ...(paper ? [` (${paper})`] : []),
    ),
    make("span", { class: "does" }, does),
    make("span", { class: "measured" }, ...scoreNote, ...standingNote),
  );
}

// Say how many answers there are, for screen readers.
/** @type {(data: SearchData) => string} */
function describeCount({ groups, problem }) {
  const count = groups.reduce((sum, { answers }) => sum + answers.length, 0);
  return problem || (count === 1 ? "1 match" : `${count} matches`);
}
