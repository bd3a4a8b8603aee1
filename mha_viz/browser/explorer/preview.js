// The numbers and roles of the head that is pointed at in the grid, beside the grid.
import { make } from "../dom.js";
import { keysOf, mapName, paperMapName } from "../reading.js";
import { percent } from "../numerals.js";
import { Chips } from "./chips.js";
import { drawBar, largest, measured } from "./heads.js";
import { UNEXPLAINED, lineOf, remarkOf, rowsOf } from "./recipe.js";
/** @import { Metric, Reading } from "../reading.js" */
/** @import { Stores } from "./explorer.js" */

const NUMBERS = "Numbers for this head";
const LEAST = 0.05; // shares below it are not named
/** @type {Record<string, string>} */
const PLACES = {
  "previous token": "on the token before",
  "next token": "on the next token",
  "same token": "on the token itself",
};

export class Preview {
  #name = make("p", { class: "name" });
  #sum = make("summary", { title: "What simple rules say of this head, over a corpus and, in brackets, in this text" });
  #heading = make("p", { class: "soft" }, NUMBERS);
  #numbers = make("dl");
  #rules = make("dl", { class: "rules" });
  #remark = make("p", { class: "soft" });
  #more = make("details", { class: "more" }, this.#sum, this.#rules, this.#remark, this.#heading, this.#numbers);
  #rest = make("button", { type: "button", title: "Draw what the rules do not explain", onclick: () => this.#turn() });
  #drawn = ""; // what the line and the rules were made from: they stay under the pointer
  #stores;
  #chips;

  /** @param {Stores} stores @param {HTMLElement} ask which heads link two words */
  constructor(stores, ask) {
    this.#stores = stores;
    this.#chips = new Chips("role_here", stores);
    this.#more.append(ask);
    this.box = make("div", { class: "preview" }, this.#name, this.#chips.box, this.#more);
  }

  /** @type {(head: number) => void} */
  draw(head) {
    const { read, stage, heads } = this.#stores;
    const { reading } = read;
    const isOpen = head === stage.view.head;
    const hint = isOpen ? " open" : heads.hovered === null ? " Enter opens it" : " click to open";
    const name = make("b", {}, mapName(reading, head));
    this.#name.replaceChildren(name, ` (${paperMapName(reading, head)})`, make("span", { class: "soft" }, hint));
    this.#chips.box.hidden = isOpen; // they are already shown beside its name
    this.#chips.draw(head);
    this.#drawRecipe(head);
    this.#name.hidden = isOpen && heads.hovered === null;
    this.#numbers.replaceChildren(...reading.metrics.map((metric) => this.#numberOf(metric, head)));
  }

  // The recipe of a head or, where it has none, its two largest numbers.
  /** @type {(head: number) => void} */
  #drawRecipe(head) {
    const { read, look, heads, stage } = this.#stores;
    const { reading } = read;
    const recipes = read.mode ? null : read.recipes; // as its bar in the grid
    const isSaid = heads.roles(head).length > 0; // by its roles, beside its name
    this.#rest.setAttribute("aria-pressed", String(stage.view.shown === UNEXPLAINED));
    const key = JSON.stringify([
      reading.key,
      look.theme,
      head,
      !!read.mode,
      isSaid,
      recipes?.heads[head],
      recipes?.here?.[head],
    ]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#remark.hidden = this.#rules.hidden = !recipes;
    this.#heading.hidden = !recipes || isSaid; // the line above says it
    if (!recipes) {
      this.#sum.textContent = (!read.mode && summed(reading, head)) || NUMBERS;
      return;
    }
    /** @type {(rule: number | null) => void} */
    const point = (rule) => heads.point(head, rule);
    this.#sum.replaceChildren(...(isSaid ? [NUMBERS] : lineOf(recipes, head, look.heads, point)));
    this.#rules.replaceChildren(...rowsOf(recipes, head, look.heads, point, this.#rest));
    this.#remark.textContent = remarkOf(recipes, head);
  }

  // Weights, or what the recipe leaves of them.
  #turn() {
    const { stage } = this.#stores;
    stage.change({ shown: stage.view.shown === UNEXPLAINED ? "weight" : UNEXPLAINED });
  }

  /** @type {(metric: Metric, head: number) => HTMLElement} */
  #numberOf(metric, head) {
    const { read, look } = this.#stores;
    const { reading } = read;
    /** @type {Record<string, number>} */
    const tops = { nats: Math.log(keysOf(reading).n), share: 1, number: largest(metric.values) };
    const bar = make("dd", { class: "bar", "aria-hidden": true });
    const line = drawBar(reading, look, bar, metric.values[head] ?? 0, tops[metric.unit]);
    const value = make("dd", {}, measured(reading, metric, head));
    const help = reading.keys && metric.values[head] === null ? "Not defined between two texts." : metric.help;
    return make("div", { title: help }, make("dt", {}, metric.label), line, value);
  }
}

// The two largest shares of a head in words, empty where a quantity has no shares.
/** @type {(reading: Reading, head: number) => string} */
function summed({ metrics }, head) {
  const shares = metrics.filter(({ unit, values }) => unit === "share" && (values[head] ?? 0) >= LEAST);
  shares.sort((a, b) => (b.values[head] ?? 0) - (a.values[head] ?? 0));
  const parts = shares
    .slice(0, 2)
    .map(({ label, values }) => `${percent(values[head] ?? 0)} ${PLACES[label] ?? label}`);
  return parts.length ? `${parts.join(", ")}.` : "";
}
