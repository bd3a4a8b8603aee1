// Scripts for every page: charts in the page's colours, keyboard access to scrolling boxes and to the squares of
// charts, focus that survives redraws, keys for lessons, navigation that marks the open page, formulas read as words, a
// legend that stays open, scrolling to link targets, and links in tables and maps that open a head's card without
// reloading the page.
import { isDark } from "../ink.js";
import { mountComponent } from "../mount.js";
import { LinkFollower } from "./arrival.js";
import { Keyboard, Legend } from "./keyboard.js";
import { watchLesson } from "./lesson.js";
import { HeadLinks } from "./links.js";
import { markHiddenSides, markOpenPage, findWideBoxes } from "./navigation.js";
import { addChartOverlays } from "./squares.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

// ---- Charts in the page's colours ---------------------------------------------------------------------------

// Tell the server when the page has turned light or dark.

const DELAYS = [400, 1500, 4000]; // milliseconds between a change and the checks: a busy page takes on new colours late

class Theme {
  #reportsLeft = 1; // so that reports end even if the server never agrees
  #timers = /** @type {ReturnType<typeof setTimeout>[]} */ ([]);
  #report = () => {};

  // Return a function that stops watching.
  watch() {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const onChange = () => {
      this.#reportsLeft = DELAYS.length;
      this.#checkSoon();
    };
    media.addEventListener("change", onChange);
    return () => {
      media.removeEventListener("change", onChange);
      this.#timers.forEach(clearTimeout);
    };
  }

  // `type` is the page's colour scheme according to the server, or "" if unknown: then only a change is reported.
  /** @type {(root: Element, type: string, send: Send) => void} */
  show(root, type, send) {
    this.#report = () => {
      const scheme = isDark(root) ? "dark" : "light";
      if (scheme === type || this.#reportsLeft === 0) return;
      this.#reportsLeft -= 1;
      send("turned", scheme);
    };
    this.#timers.forEach(clearTimeout);
    if (type) this.#checkSoon(); // the page may have changed before this script loaded
  }

  #checkSoon() {
    this.#timers.forEach(clearTimeout);
    this.#timers = DELAYS.map((wait) => setTimeout(() => this.#report(), wait));
  }
}

// ---- Formulas in words --------------------------------------------------------------------------------------

// Give formulas a name in words. Streamlit uses the source text as the accessible name of a control, and TeX cannot be
// read aloud.

const FORMULA = /(?<!\\)\$((?:\\[^$]|[^$\\])+)\$/g; // escaped dollar signs mean money
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

// Replace formulas: "Without the division by $\sqrt{d_k}$" → "Without the division by the square root of d_k".
/** @type {(label: string) => string} */
export const spellOut = (label) =>
  label.replace(FORMULA, (_, tex) =>
    WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), tex).trim(),
  );

// Give a spoken name to every control below `root` whose name contains a formula.
/** @type {(root: ParentNode) => void} */
function speakFormulas(root) {
  for (const control of root.querySelectorAll('[aria-label*="$"]')) {
    const label = control.getAttribute("aria-label") ?? "";
    const words = spellOut(label);
    if (words !== label) control.setAttribute("aria-label", words);
  }
}

// ---- The page -----------------------------------------------------------------------------------------------

// These outlive the component, which Streamlit recreates on each page.
const [linkFollower, keyboard, legend] = [new LinkFollower(), new Keyboard(), new Legend()];
const [links, theme] = [new HeadLinks(), new Theme()];

/** @typedef {{ type: string, page: number }} PageData */

class PageScripts {
  #page = 0; // the number of the open page
  #frame = 0;
  #changes = new MutationObserver(() => this.#updateSoon());
  #sizes = new ResizeObserver(() => this.#updateSoon());
  #root;
  #send;
  #stopFunctions;

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#send = send;
    this.#changes.observe(document.body, { childList: true, subtree: true });
    this.#stopFunctions = [
      keyboard.watch(),
      legend.watch(),
      links.watch((parameters) => this.#open(parameters)),
      theme.watch(),
      watchLesson(),
    ];
  }

  /** @type {(data: PageData) => void} */
  show({ page, type }) {
    this.#page = page;
    theme.show(this.#root, type, this.#send);
    this.#sizes.disconnect(); // stop observing elements that have left the page
    this.#updateSoon();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#changes.disconnect();
    this.#sizes.disconnect();
    this.#stopFunctions.forEach((end) => end());
  }

  /** @type {(parameters: Record<string, string>) => void} */
  #open(parameters) {
    this.#send("linked", parameters);
    this.#updateSoon();
  }

  #updateSoon() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#update());
  }

  #update() {
    markOpenPage(this.#page);
    legend.restore();
    keyboard.restore();
    speakFormulas(document);
    addChartOverlays();
    links.focusTarget();
    linkFollower.follow();
    for (const box of findWideBoxes()) {
      markHiddenSides(box);
      box.onscroll = () => this.#updateSoon();
      [box, ...box.children].forEach((element) => this.#sizes.observe(element));
    }
  }
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-scheme", (root, send) => new PageScripts(root, send));
}
