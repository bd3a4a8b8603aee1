// What heads do in this text, in sentences: what a pronoun refers to, then what is unusual. Each opens its head with
// the word held that shows it.
import { make, typedText } from "../dom.js";
/** @import { Pin } from "../geometry.js" */
/** @import { Stores } from "./explorer.js" */

/**
 * One finding; every second part of its `words` is quoted from the text. Those that are not unusual come first.
 *
 * @typedef {{ head: number, words: string[], pin: Pin, isUnusual: boolean }} Finding
 */

const UNUSUAL = "Unusual here:"; // beside the read-out of a head, which gives its strongest link
const NAME = /(L\d+H\d+)/;
const PLACE = /L(\d+)H(\d+)/;

export class Findings {
  box = make("p", { class: "findings", role: "group", "aria-label": "Findings in this text" });
  #drawn = /** @type {Finding[] | null} */ (null);
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  draw() {
    const { unusual, mode } = this.#stores.read;
    this.box.hidden = !unusual.length || !!mode; // heads that are off have a sentence of their own
    if (this.#drawn === unusual) return;
    this.#drawn = unusual;
    const first = unusual.findIndex(({ isUnusual }) => isUnusual);
    const sentences = unusual.map((finding) => this.#sentence(finding));
    if (first >= 0) sentences.splice(first, 0, make("span", { class: "soft" }, UNUSUAL));
    this.box.replaceChildren(...sentences);
  }

  /** @type {(finding: Finding) => HTMLElement} */
  #sentence({ head, words, pin }) {
    const { stage, heads } = this.#stores;
    const parts = words.flatMap((part, i) => (i % 2 ? [make("i", {}, typedText(part))] : named(part)));
    const onclick = () => {
      heads.open(head);
      stage.change({ on: [head], pin });
    };
    return make("button", { type: "button", onclick }, ...parts);
  }
}

// Text with the names of heads in it set apart, and explained.
/** @type {(text: string) => (string | HTMLElement)[]} */
const named = (text) =>
  text
    .split(NAME)
    .map((part) => (NAME.test(part) ? make("b", { title: part.replace(PLACE, "Layer $1, head $2") }, part) : part));
