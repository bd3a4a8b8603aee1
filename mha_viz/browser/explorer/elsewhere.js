// Show other sentences in which the open head plays its role, and one in which it fails, each with its arc.
import { drawArc } from "../arcs.js";
import { enableRoving, setTabStop } from "../controls.js";
import { make, makeSvg } from "../dom.js";
import { getHeadColour } from "./heads.js";
/** @import { Stores } from "./explorer.js" */
/** @import { Case } from "./roles.js" */

const TITLE = "Other sentences";
const MAX_DEPTH = 14; // of an arc, pixels

export class OtherSentences {
  #list = make("div", { class: "cases", role: "toolbar", "aria-label": TITLE });
  box = make("section", { class: "elsewhere" }, make("h3", {}, TITLE), this.#list);
  #drawnKey = "";
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
    enableRoving(this.#list);
    new ResizeObserver(() => this.#drawArcs()).observe(this.#list);
    void document.fonts?.ready.then(() => this.#drawArcs());
  }

  draw() {
    const { data, stage, look } = this.#stores;
    const { head, cases } = data.otherCases;
    const isOfHead = head === stage.view.head;
    this.box.hidden = !cases.length || !!data.ablation;
    this.box.style.visibility = isOfHead ? "" : "hidden"; // keep its room until the next head is read
    const key = JSON.stringify([data.otherCases, look.theme]);
    if (this.box.hidden || !isOfHead || key === this.#drawnKey) return;
    this.#drawnKey = key;
    this.#list.style.setProperty("--colour", getHeadColour(look, data.reading, head));
    this.#list.replaceChildren(...cases.map((sentence, i) => this.#makeItem(sentence, i)));
    setTabStop(this.#list);
    this.#drawArcs();
  }

  /** @type {(sentence: Case, number: number) => HTMLElement} */
  #makeItem({ words, from, to, weight, right }, number) {
    const { stage } = this.#stores;
    const title = `${right ? "Right" : "Wrong"}, weight ${weight.toFixed(2)}. Open this sentence`;
    const onclick = () => stage.send("elsewhere", number);
    const parts = words.map((word, i) => make("bdi", i === from || i === to ? { class: "end" } : {}, word));
    const spacedParts = parts.flatMap((part, i) => (i ? [" ", part] : [part]));
    const lines = makeSvg("svg", { "aria-hidden": "true" });
    const mark = right ? [] : [make("span", { class: "soft" }, "wrong")];
    const text = make("span", { translate: "no" }, ...spacedParts);
    return make("button", { type: "button", title, onclick }, text, ...mark, lines);
  }

  // Draw arcs at the current positions of the words.
  #drawArcs() {
    const { cases } = this.#stores.data.otherCases;
    [...this.#list.children].forEach((button, i) => {
      const words = [...button.querySelectorAll("bdi")];
      const sentence = cases[i];
      if (!sentence || !words[sentence.from] || !words[sentence.to]) return;
      const { left, top, width } = button.getBoundingClientRect();
      const [from, to] = [sentence.from, sentence.to].map((index) => {
        const box = words[index].getBoundingClientRect();
        return { x: box.x + box.width / 2 - left, y: Math.round(box.bottom - top) };
      });
      const arcs = drawArc(from, to, sentence.weight, "var(--colour)", MAX_DEPTH, { left: 0, right: width });
      button.lastElementChild?.replaceChildren(...arcs);
      button.lastElementChild?.classList.toggle("wrong", !sentence.right);
    });
  }
}
