// Show the numbers and roles of the head hovered in the grid, and rank all heads by one link.
import { makeMenu } from "../controls.js";
import { make } from "../dom.js";
import { rankHeads, computeUnits } from "../geometry.js";
import { formatNumber } from "../numerals.js";
import { getKeys, formatMapName, formatPaperName } from "../reading.js";
import { isShare } from "../view.js";
import { drawBar, findLargest, formatMeasure } from "./heads.js";
import { UNEXPLAINED, writeRemark, makeRows } from "./recipe.js";
import { Chips } from "./roles.js";
/** @import { Axes, Link, RankedHead, Unit } from "../geometry.js" */
/** @import { Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { Metric, Reading } from "../reading.js" */
/** @import { Stores } from "./explorer.js" */

const NUMBERS = "Numbers for this head";

export class Preview {
  #name = make("p", { class: "name" });
  #numbers = make("dl");
  #rules = make("dl", { class: "rules" });
  #remark = make("p", { class: "soft" });
  #more = make("details", { class: "more" }, make("summary", {}, NUMBERS), this.#rules, this.#remark, this.#numbers);
  #remainderButton = make("button", {
    type: "button",
    title: "Show what the rules leave out",
    onclick: () => this.#toggle(),
  });
  #drawnKey = ""; // key of the line and the rules, which are not redrawn under the pointer
  #stores;
  #chips;

  /** @param {Stores} stores @param {HTMLElement} rankingBox the ranking of heads by a link */
  constructor(stores, rankingBox) {
    this.#stores = stores;
    this.#chips = new Chips("role_here", stores);
    this.#more.append(rankingBox);
    this.box = make("div", { class: "preview" }, this.#name, this.#chips.box, this.#more);
  }

  /** @type {(head: number) => void} */
  draw(head) {
    const { data, stage, heads } = this.#stores;
    const { reading } = data;
    const isOpen = head === stage.view.head;
    const hint = isOpen ? " open" : heads.hovered === null ? " Enter opens it" : " click to open";
    const name = make("b", {}, formatMapName(reading, head));
    this.#name.replaceChildren(name, ` (${formatPaperName(reading, head)})`, make("span", { class: "soft" }, hint));
    this.#chips.box.hidden = isOpen; // shown next to the head's name
    this.#chips.draw(head);
    this.#drawRecipe(head);
    this.#name.hidden = isOpen && heads.hovered === null;
    this.#numbers.replaceChildren(...reading.metrics.map((metric) => this.#makeNumber(metric, head)));
  }

  // Draw the recipe of a head, if it has one.
  /** @type {(head: number) => void} */
  #drawRecipe(head) {
    const { data, look, heads, stage } = this.#stores;
    const recipes = data.ablation ? null : data.recipes; // recipes do not apply to heads that have moved
    this.#remainderButton.setAttribute("aria-pressed", String(stage.view.shown === UNEXPLAINED));
    const key = JSON.stringify([
      data.reading.key,
      look.theme,
      head,
      !!data.ablation,
      recipes?.heads[head],
      recipes?.here?.[head],
    ]);
    if (key === this.#drawnKey) return;
    this.#drawnKey = key;
    this.#remark.hidden = this.#rules.hidden = !recipes;
    if (!recipes) return;
    /** @type {(rule: number | null) => void} */
    const markRule = (rule) => heads.markRule(head, rule);
    this.#rules.replaceChildren(...makeRows(recipes, head, look.heads, markRule, this.#remainderButton));
    this.#remark.textContent = writeRemark(recipes, head);
  }

  // Toggle between the weights and the part that the recipe leaves unexplained.
  #toggle() {
    const { stage } = this.#stores;
    stage.change({ shown: stage.view.shown === UNEXPLAINED ? "weight" : UNEXPLAINED });
  }

  /** @type {(metric: Metric, head: number) => HTMLElement} */
  #makeNumber(metric, head) {
    const { data, look } = this.#stores;
    const { reading } = data;
    /** @type {Record<string, number>} */
    const maxima = { nats: Math.log(getKeys(reading).n), share: 1, number: findLargest(metric.values) };
    const bar = make("dd", { class: "bar", "aria-hidden": true });
    const filledBar = drawBar(reading, look, bar, metric.values[head] ?? 0, maxima[metric.unit]);
    const value = make("dd", {}, formatMeasure(reading, metric, head));
    const help = reading.keys && metric.values[head] === null ? "Not defined between two texts." : metric.help;
    return make("div", { title: help }, make("dt", {}, metric.label), filledBar, value);
  }
}

// ---- Ranking heads by a link --------------------------------------------------------------------------------

const SHORT_LIST = 6; // heads shown until the user asks for all

export class Ranking {
  #query = makeMenu("from", [], () => this.#rankLink());
  #key = makeMenu("to", [], () => this.#rankLink());
  #note = make("p", { class: "soft" });
  #list = make("ol");
  #more = make("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.#toggle() });
  box = make(
    "section",
    { class: "ask" },
    make("h3", {}, "Which heads link two words?"),
    make("div", { class: "row" }, this.#query.box, make("span", { class: "arrow" }, "→"), this.#key.box),
    this.#note,
    this.#list,
    this.#more,
  );
  #menusKey = ""; // key of the words in the menus
  #showsAll = false; // whether all heads are listed, not only the first
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  // If the section is open, rank heads by the requested link or, by default, by a link of the pinned word.
  draw() {
    const details = this.box.closest("details");
    if (details) details.ontoggle = () => this.draw();
    if (details && !details.open) return;
    const { data, stage, visible, isStandalone } = this.#stores;
    const { reading } = data;
    const { view } = stage;
    const link = view.link || suggestLink(reading, visible.openHead, visible.axes, visible.findPinnedSpot());
    this.#drawMenus(link, computeUnits(reading, { ...view, special: "keep", side: "all" }));
    const ranking = link && rankHeads(reading, { ...view, link });
    this.#drawList(ranking || []);
    this.#more.hidden = !ranking;
    this.#more.textContent = this.#showsAll
      ? `Show the first ${SHORT_LIST}`
      : `Show all ${reading.layers * reading.heads}`;
    this.#note.hidden = !!ranking;
    const waitingText = isStandalone
      ? "This file contains only some heads, so they cannot be ranked."
      : "Ranking all heads…";
    this.#note.textContent = link ? waitingText : "Choose two words to rank the heads by the link between them.";
  }

  // Request the link between the words chosen in the menus, and pin it.
  #rankLink() {
    const [query, key] = [this.#query.select.value, this.#key.select.value];
    if (query === "" || key === "") return;
    const link = { query: +query, key: +key };
    this.#stores.stage.change({ link, pin: { ...link } });
  }

  #toggle() {
    this.#showsAll = !this.#showsAll;
    this.draw();
  }

  /** @type {(link: Link | null, all: Axes) => void} */
  #drawMenus(link, { rows, cols }) {
    const { data, stage } = this.#stores;
    const menusKey = JSON.stringify([data.reading.key, stage.view.unit]);
    if (this.#menusKey !== menusKey) {
      this.#menusKey = menusKey;
      fillMenu(this.#query.select, rows);
      fillMenu(this.#key.select, cols);
    }
    /** @type {(units: Unit[], token: number) => string} */
    const findUnit = (units, token) => String(units.find((unit) => unit.tokens.includes(token))?.tokens[0] ?? "");
    this.#query.set(link ? findUnit(rows, link.query) : "");
    this.#key.set(link ? findUnit(cols, link.key) : "");
  }

  /** @type {(ranking: RankedHead[]) => void} */
  #drawList(ranking) {
    const list = this.#list;
    const top = isShare(this.#stores.data.reading) ? 1 : findLargest(ranking.map(({ weight }) => weight));
    const { activeElement } = /** @type {Document | ShadowRoot} */ (list.getRootNode());
    const hasFocus = list.contains(activeElement);
    const entries = ranking.slice(0, this.#showsAll ? undefined : SHORT_LIST);
    list.replaceChildren(...entries.map((entry) => this.#makeLine(entry, top)));
    const current = /** @type {HTMLElement | null} */ (list.querySelector('[aria-current="true"]'));
    if (hasFocus) current?.focus(); // keep the focus in its place
  }

  /** @type {(entry: RankedHead, top: number) => HTMLElement} */
  #makeLine({ head, weight }, top) {
    const { data, stage, heads, look } = this.#stores;
    const { reading } = data;
    const button = make(
      "button",
      { type: "button", onclick: () => heads.open(head), "aria-current": head === stage.view.head },
      make("b", {}, formatMapName(reading, head)),
      make("span", { class: "soft" }, ` (${formatPaperName(reading, head)})`),
      drawBar(reading, look, make("i", { class: "bar" }), weight, top),
      make("span", { class: "value" }, formatNumber(weight, reading)),
    );
    return make("li", {}, button);
  }
}

/** @type {(select: HTMLSelectElement, units: Unit[]) => void} */
function fillMenu(select, units) {
  const words = units.map((unit, i) => new Option(`${i} ${unit.text}`, String(unit.tokens[0])));
  select.replaceChildren(new Option("choose…", ""), ...words);
}

// Suggest the pinned word and the ordinary word that it attends to most in the open head.
/** @type {(reading: Reading, head: ShownHead | undefined, axes: Axes, spot: Spot | null) => Link | null} */
function suggestLink(reading, head, { rows, cols }, spot) {
  if (reading.bins || !head || !spot || spot.row === null) return null;
  const { w, C } = head.block;
  const weights = cols.map((unit, i) => (unit.special ? -1 : w[spot.row * C + i]));
  const col = spot.col ?? weights.indexOf(Math.max(...weights));
  if (col < 0 || weights[col] < 0) return null; // only special tokens are left
  return { query: rows[spot.row].tokens[0], key: cols[col].tokens[0] };
}
