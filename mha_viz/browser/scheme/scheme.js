// What every page needs of a script: charts in the colours of the page, keys that reach what scrolls sideways, stay
// with what they operate, choose squares of charts and lead through a lesson, a navigation that says which page is
// open, names in words, a legend that stays open, the way to what a link leads to, and links in tables and maps that
// open a head's card without loading the page again.
import { isDark } from "../ink.js";
import { mounted } from "../mount.js";
import { Arrival } from "./arrival.js";
import { Keyboard, Legend } from "./keyboard.js";
import { watchLesson } from "./lesson.js";
import { HeadLinks } from "./links.js";
import { mark, nameCurrent, wideBoxes } from "./navigation.js";
import { layButtons } from "./squares.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

// ---- Charts in the colours of the page ----------------------------------------------------------------------

// The server is told when the page has turned light or dark.

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

class Theme {
  #left = 1; // how often the server may still be told, so that telling ends
  #timers = /** @type {ReturnType<typeof setTimeout>[]} */ ([]);
  #tell = () => {};

  // Returns what ends the watch.
  watch() {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const onTurn = () => {
      this.#left = LOOKS.length;
      this.#lookSoon();
    };
    media.addEventListener("change", onTurn);
    return () => {
      media.removeEventListener("change", onTurn);
      this.#timers.forEach(clearTimeout);
    };
  }

  // `type` is the page's colour scheme as the server knows it, "" if it does not: then only a turn is told.
  /** @type {(root: Element, type: string, send: Send) => void} */
  show(root, type, send) {
    this.#tell = () => {
      const now = isDark(root) ? "dark" : "light";
      if (now === type || this.#left === 0) return;
      this.#left -= 1;
      send("turned", now);
    };
    this.#timers.forEach(clearTimeout);
    if (type) this.#lookSoon(); // the page may have turned before this was here
  }

  #lookSoon() {
    this.#timers.forEach(clearTimeout);
    this.#timers = LOOKS.map((wait) => setTimeout(() => this.#tell(), wait));
  }
}

// ---- Formulas in words --------------------------------------------------------------------------------------

// What is set as a formula has a name in words: Streamlit gives the accessible name of a control as it was written, and
// TeX cannot be read aloud.

const FORMULA = /(?<!\\)\$((?:\\[^$]|[^$\\])+)\$/g; // no escaped sign, which is one of money
/** @type {[RegExp, string][]} */
const WORDS = [
  [/\\(?:text|mathrm|mathbf)\{([^{}]*)\}/g, "$1"],
  [/\\sqrt\{((?:[^{}]|\{[^{}]*\})*)\}/g, "the square root of $1"],
  [/\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}/g, "$1 divided by $2"],
  [/\^\{?\\top\}?/g, " transposed"],
  [/\\cdot|\\times/g, " times "],
  [/\\lambda/g, "λ"],
  [/\\[ ,;!]/g, " "],
  [/[{}\\]/g, ""],
  [/\s+/g, " "],
];

// "Without the division by $\sqrt{d_k}$" -> "Without the division by the square root of d_k".
/** @type {(label: string) => string} */
export const inWords = (label) =>
  label.replace(FORMULA, (_, tex) =>
    WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), tex).trim(),
  );

// Gives every control below `root` whose name has a formula one in words.
/** @type {(root: ParentNode) => void} */
function speakFormulas(root) {
  for (const control of root.querySelectorAll('[aria-label*="$"]')) {
    const label = control.getAttribute("aria-label") ?? "";
    const words = inWords(label);
    if (words !== label) control.setAttribute("aria-label", words);
  }
}

// ---- The page -----------------------------------------------------------------------------------------------

// They outlive the component, which Streamlit makes anew on another page.
const [arrival, keyboard, legend] = [new Arrival(), new Keyboard(), new Legend()];
const [links, theme] = [new HeadLinks(), new Theme()];

/** @typedef {{ type: string, page: number }} SchemeData */

class Scheme {
  #page = 0; // the number of the open page
  #frame = 0;
  #changes = new MutationObserver(() => this.#lookSoon());
  #sizes = new ResizeObserver(() => this.#lookSoon());
  #root;
  #send;
  #ends;

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#send = send;
    this.#changes.observe(document.body, { childList: true, subtree: true });
    this.#ends = [
      keyboard.watch(),
      legend.watch(),
      links.watch((wanted) => this.#open(wanted)),
      theme.watch(),
      watchLesson(),
    ];
  }

  /** @type {(data: SchemeData) => void} */
  show({ page, type }) {
    this.#page = page;
    theme.show(this.#root, type, this.#send);
    this.#sizes.disconnect(); // of what is no longer on the page
    this.#lookSoon();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#changes.disconnect();
    this.#sizes.disconnect();
    this.#ends.forEach((end) => end());
  }

  /** @type {(wanted: Record<string, string>) => void} */
  #open(wanted) {
    this.#send("linked", wanted);
    this.#lookSoon();
  }

  #lookSoon() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#look());
  }

  #look() {
    nameCurrent(this.#page);
    legend.restore();
    keyboard.restore();
    speakFormulas(document);
    layButtons();
    links.arrive();
    arrival.arrive();
    for (const box of wideBoxes()) {
      mark(box);
      box.onscroll = () => this.#lookSoon();
      [box, ...box.children].forEach((element) => this.#sizes.observe(element));
    }
  }
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-scheme", (root, send) => new Scheme(root, send));
}
