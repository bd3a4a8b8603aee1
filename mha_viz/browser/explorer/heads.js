// Track which heads are open, hovered or under the keyboard cursor, describe heads, and offer the heads of the open
// layer as switches.
import { make } from "../dom.js";
import { getSignColours } from "../ink.js";
import { formatNats, formatNumber, formatPercent } from "../numerals.js";
import { getGrid, formatHead, getKeys, formatMapName } from "../reading.js";
import { isOfLayers } from "../view.js";
import { describeRecipe } from "./recipe.js";
import { describeRoles } from "./roles.js";
/** @import { ReadingView } from "../geometry.js" */
/** @import { Metric, Reading } from "../reading.js" */
/** @import { Look, Stage } from "../stage.js" */
/** @import { Stores } from "./explorer.js" */
/** @import { ReadingData } from "./data.js" */
/** @import { Role } from "./roles.js" */

/** @typedef {Stage<ReadingView>} ReadingStage */

/** @type {(reading: Reading, head: number) => number} */
const getLayer = (reading, head) => Math.floor(head / reading.heads);
/** @type {(look: Look, reading: Reading, head: number) => string} */
export const getHeadColour = (look, reading, head) => look.heads[(head % reading.heads) % look.heads.length];
// Return the heads of the link diagram in the order of their lines, the open one first, as in files.
/** @type {(view: ReadingView) => number[]} */
export const listDrawnHeads = ({ head, on }) =>
  on.includes(head) ? [head, ...on.filter((other) => other !== head)] : on;
/** @type {(look: Look, view: ReadingView, head: number) => number[]} */
export const getHeadDash = (look, view, head) => look.dashes[listDrawnHeads(view).indexOf(head) % look.dashes.length];

/** @type {(reading: Reading, metric: Metric, head: number) => string} */
export function formatMeasure(reading, metric, head) {
  const value = metric.values[head];
  if (value === null) return "–";
  if (metric.unit === "nats") return `${value.toFixed(2)} of ${formatNats(Math.log(getKeys(reading).n), 2)}`;
  return metric.unit === "share" ? formatPercent(value) : formatNumber(value, reading);
}

// Draw a bar whose length is the number's share of `top`; signed numbers have the colours of their cells.
/** @type {(reading: Reading, look: Look, bar: HTMLElement, value: number, top: number) => HTMLElement} */
export function drawBar(reading, look, bar, value, top) {
  bar.style.setProperty("--share", `${Math.min(100, (100 * Math.abs(value)) / (top || 1))}%`);
  const { colour, negativeColour } = getSignColours(look);
  if (reading.signed) bar.style.setProperty("--colour", value < 0 ? negativeColour : colour);
  return bar;
}

// Return the largest absolute value of numbers that are not shares of 1, one per head.
/** @type {(values: (number | null)[]) => number} */
export const findLargest = (values) => Math.max(...values.map((value) => Math.abs(value ?? 0)));

export class Heads {
  hovered = /** @type {number | null} */ (null); // the head under the pointer in the grid
  cursor = 0; // the head at the keyboard cursor
  markedRule = /** @type {number | null} */ (null); // the rule of the open head's recipe whose cells are marked
  kindFilter = /** @type {string | null} */ (null);
  #data;
  #stage;
  #say;
  // The last head switched off or on, its model, and whether the server has finished.
  #lastSwitch = /** @type {{ model: string, head: number, isOff: boolean, isDone: boolean } | null} */ (null);

  /** @param {ReadingData} data @param {ReadingStage} stage @param {(words: string) => void} say */
  constructor(data, stage, say) {
    this.#data = data;
    this.#stage = stage;
    this.#say = say;
  }

  // Return the roles of a head; [] while roles are hidden.
  /** @type {(head: number) => Role[]} */
  roles(head) {
    return (this.#stage.view.roles && this.#data.roles.byHead.get(head)) || [];
  }

  // Describe the roles and numbers of a head for screen readers.
  /** @type {(head: number) => string} */
  describe(head) {
    const { reading } = this.#data;
    const numbers = reading.metrics.map((metric) => `${metric.label} ${formatMeasure(reading, metric, head)}`);
    const recipe = this.#data.recipes ? describeRecipe(this.#data.recipes, head) : "";
    return describeRoles(this.roles(head)) + recipe + numbers.join(", ");
  }

  // Mark the cells that a rule of a head's recipe predicts; only cells of the open head are drawn.
  /** @type {(head: number, rule: number | null) => void} */
  markRule(head, rule) {
    this.markedRule = head === this.#stage.view.head ? rule : null;
    this.#stage.drawing.drawFocus(true);
  }

  /** @type {(head: number) => void} */
  open(head) {
    const { reading } = this.#data;
    const { on, head: previousHead } = this.#stage.view;
    const others = on.filter((other) => getLayer(reading, other) === getLayer(reading, head) && other !== previousHead);
    this.cursor = head;
    this.#stage.change({ head, on: others.length ? [...new Set([head, ...others])] : [head] });
    this.#say(`${formatMapName(reading, head)} opened. ${this.describe(head)}`);
  }

  // Draw a head of the open layer with the others, or remove it. Return the reason if that is impossible, or "".
  /** @type {(head: number) => string} */
  toggle(head) {
    const { view } = this.#stage;
    const { together } = this.#data.reading;
    const on = view.on.includes(head) ? view.on.filter((other) => other !== head) : [...view.on, head];
    if (on.length > together) return `For a text this long, at most ${together} heads can be drawn together.`;
    if (on.length) {
      this.cursor = on.includes(view.head) ? view.head : on[0];
      this.#stage.change({ on, head: this.cursor });
    }
    return "";
  }

  // Show one head alone or, if it is already alone, its whole layer.
  /** @type {(head: number, previousView: ReadingView | null) => void} */
  showAlone(head, previousView) {
    const { reading } = this.#data;
    const wasAlone = previousView && previousView.on.length === 1 && previousView.on[0] === head;
    const first = getLayer(reading, head) * reading.heads;
    const others = Array.from({ length: reading.heads }, (_, k) => first + k).filter((other) => other !== head);
    this.cursor = head;
    this.#stage.change({ head, on: wasAlone ? [head, ...others].slice(0, reading.together) : [head] });
  }

  // Switch a head off, or on again; do nothing if a map joins all heads of a layer.
  /** @type {(head: number) => void} */
  toggleOff(head) {
    const { reading } = this.#data;
    if (isOfLayers(reading)) return;
    this.#stage.send("off", formatHead(reading, head));
    this.#lastSwitch = { model: reading.model, head, isOff: !this.isOff(head), isDone: false };
    this.#say(`${formatMapName(reading, head)} is being switched ${this.isOff(head) ? "on" : "off"}.`);
  }

  // Announce that the server has switched the head, or undone the switch, and name the later head that changes most.
  announceSwitch() {
    const { reading, ablation } = this.#data;
    if (this.#lastSwitch?.model !== reading.model) return; // another model has heads of the same numbers
    const { head, isDone } = this.#lastSwitch;
    const isOff = this.isOff(head);
    if (isDone === (isOff === this.#lastSwitch.isOff)) return;
    this.#lastSwitch = { ...this.#lastSwitch, isOff, isDone: true };
    const mostChanged = ablation?.moved.indexOf(1) ?? -1; // the changes are shares of the largest one
    const changeNote = mostChanged < 0 ? "" : ` ${formatMapName(reading, mostChanged)} changes most.`;
    this.#say(`${formatMapName(reading, head)} is ${isOff ? "off" : "on"}.${changeNote}`);
  }

  /** @type {(head: number) => boolean} */
  isOff(head) {
    return !!this.#data.ablation?.off.includes(head);
  }

  // Add a head to the comparison.
  /** @type {(head: number) => void} */
  compare(head) {
    const { reading } = this.#data;
    const { model, of, request } = reading;
    this.#stage.send("compare", { model, head: formatHead(reading, head), of, ...request });
    this.#say(`${formatMapName(reading, head)} is being added to My heads.`);
  }
}

// ---- The heads of the open layer as switches ----------------------------------------------------------------

// Each switch includes a head in the links or excludes it.

const LINES = ["solid", "dashed", "dotted", "dash-dotted"]; // matches the dashes in figures/drawing/theme.py

export class HeadBar {
  #bar = make("div", { class: "heads", role: "group", "aria-label": "Heads of this layer in the link diagram" });
  box = make("div", { class: "switches" }, make("span", { class: "soft" }, "Heads of this layer"), this.#bar);
  #stores;
  #showRefusal;

  /** @param {Stores} stores @param {(words: string) => void} showRefusal */
  constructor(stores, showRefusal) {
    this.#stores = stores;
    this.#showRefusal = showRefusal;
  }

  draw() {
    const { heads: count } = this.#stores.data.reading;
    while (this.#bar.children.length > count) this.#bar.lastChild?.remove();
    for (let i = this.#bar.children.length; i < count; i++) this.#bar.append(this.#makeSwitch(i));
    /** @type {NodeListOf<HTMLElement>} */ (this.#bar.querySelectorAll("button")).forEach((button, i) =>
      this.#drawSwitch(button, i),
    );
  }

  /** @type {(button: HTMLElement, i: number) => void} */
  #drawSwitch(button, i) {
    const { data, stage, look } = this.#stores;
    const { reading } = data;
    const { view } = stage;
    const head = this.#getHead(i);
    button.hidden = !getGrid(reading).heads.includes(i);
    const position = listDrawnHeads(view).indexOf(head);
    const lineStyle = view.on.length > 1 && position >= 0 ? position % look.dashes.length : null;
    button.setAttribute("aria-pressed", String(position >= 0));
    button.style.setProperty("--colour", getHeadColour(look, reading, i));
    if (lineStyle === null) delete button.dataset.line;
    else button.dataset.line = String(lineStyle);
    const note = lineStyle === null ? "" : `, ${LINES[lineStyle]} lines`;
    button.title = `${formatMapName(reading, head)}${note}: click to show or hide it, double-click to show it alone`;
    button.setAttribute("aria-label", `Head ${i} of this layer in the link diagram${note}`);
  }

  /** @type {(i: number) => number} */
  #getHead(i) {
    const { data, stage } = this.#stores;
    return getLayer(data.reading, stage.view.head) * data.reading.heads + i;
  }

  /** @type {(i: number) => HTMLElement} */
  #makeSwitch(i) {
    const { stage, heads } = this.#stores;
    const button = make("button", { type: "button", textContent: String(i) });
    /** @type {ReadingView | null} */
    let previousView = null; // before a double click, whose first click must not remove heads
    button.onclick = (event) => {
      if (event.detail > 1) return;
      previousView = stage.view;
      const refusal = heads.toggle(this.#getHead(i));
      if (refusal) this.#showRefusal(refusal);
    };
    button.ondblclick = () => heads.showAlone(this.#getHead(i), previousView);
    return button;
  }
}
