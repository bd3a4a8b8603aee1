// The heads of the open layer as switches: each is drawn in the links or not.
import { make } from "../dom.js";
import { gridOf, mapName } from "../reading.js";
import { drawn, headColour, layerOf } from "./heads.js";
/** @import { ReadingView } from "../geometry.js" */
/** @import { Stores } from "./explorer.js" */

const LINES = ["solid", "dashed", "dotted", "dash-dotted"]; // the same as the dashes in figures/theme.py

export class HeadBar {
  #bar = make("div", { class: "heads", role: "group", "aria-label": "Heads of this layer in the link diagram" });
  box = make("div", { class: "switches" }, make("span", { class: "soft" }, "Heads of this layer"), this.#bar);
  #stores;
  #refuse;

  /** @param {Stores} stores @param {(words: string) => void} refuse */
  constructor(stores, refuse) {
    this.#stores = stores;
    this.#refuse = refuse;
  }

  draw() {
    const { heads: count } = this.#stores.read.reading;
    while (this.#bar.children.length > count) this.#bar.lastChild?.remove();
    for (let i = this.#bar.children.length; i < count; i++) this.#bar.append(this.#switch(i));
    /** @type {NodeListOf<HTMLElement>} */ (this.#bar.querySelectorAll("button")).forEach((button, i) =>
      this.#draw(button, i),
    );
  }

  /** @type {(button: HTMLElement, i: number) => void} */
  #draw(button, i) {
    const { read, stage, look } = this.#stores;
    const { reading } = read;
    const { view } = stage;
    const head = this.#headAt(i);
    button.hidden = !gridOf(reading).heads.includes(i);
    const place = drawn(view).indexOf(head);
    const line = view.on.length > 1 && place >= 0 ? place % look.dashes.length : null;
    button.setAttribute("aria-pressed", String(place >= 0));
    button.style.setProperty("--colour", headColour(look, reading, i));
    if (line === null) delete button.dataset.line;
    else button.dataset.line = String(line);
    const how = line === null ? "" : `, ${LINES[line]} lines`;
    button.title = `${mapName(reading, head)}${how}: click shows or hides it, double click shows it alone`;
    button.setAttribute("aria-label", `Head ${i} of this layer in the link diagram${how}`);
  }

  /** @type {(i: number) => number} */
  #headAt(i) {
    const { read, stage } = this.#stores;
    return layerOf(read.reading, stage.view.head) * read.reading.heads + i;
  }

  /** @type {(i: number) => HTMLElement} */
  #switch(i) {
    const { stage, heads } = this.#stores;
    const button = make("button", { type: "button", textContent: String(i) });
    /** @type {ReadingView | null} */
    let before = null; // the view before the first click of a double click, which must not remove the heads
    button.onclick = (event) => {
      if (event.detail > 1) return;
      before = stage.view;
      const refusal = heads.toggle(this.#headAt(i));
      if (refusal) this.#refuse(refusal);
    };
    button.ondblclick = () => heads.showAlone(this.#headAt(i), before);
    return button;
  }
}
