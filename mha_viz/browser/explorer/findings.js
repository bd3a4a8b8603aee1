// What is unusual in this text, in sentences: each opens its head with the word held that shows it.
import { make, typedText } from "../dom.js";
/** @import { Pin } from "../geometry.js" */
/** @import { Stores } from "./explorer.js" */

/**
 * One finding; every second part of its `words` is quoted from the text.
 *
 * @typedef {{ head: number, words: string[], pin: Pin }} Finding
 */

const NAME = /(L\d+H\d+)/;
const PLACE = /L(\d+)H(\d+)/;

export class Findings {
  box = make("p", { class: "findings", role: "group", "aria-label": "What is unusual here" });
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
    this.box.replaceChildren(...unusual.map((finding) => this.#sentence(finding)));
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
