// What every page needs of a script: charts in the colours of the page, keys that reach what scrolls sideways, stay
// with what they operate and choose squares of charts, a navigation that says which page is open, names in words, a
// legend that stays open, the way to what a link leads to, and links in tables and maps that open a head's card
// without loading the page again.
import { mounted } from "../mount.js";
import { Arrival } from "./arrival.js";
import { Keyboard } from "./keyboard.js";
import { Legend } from "./legend.js";
import { HeadLinks } from "./links.js";
import { nameCurrent } from "./navigation.js";
import { speakFormulas } from "./spoken.js";
import { layButtons } from "./squares.js";
import { Theme } from "./theme.js";
import { mark, wideBoxes } from "./wide.js";
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */

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
    this.#ends = [keyboard.watch(), legend.watch(), links.watch((wanted) => this.#open(wanted)), theme.watch()];
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
