// The grid of all heads: which are open, what each is known for, and one head's numbers beside it.
import { make } from "../dom.js";
import { resolution } from "../ink.js";
import { gridCellAt } from "../layouts.js";
import { still } from "../motion.js";
import { gridOf, gridPlace, hasKeptHeads, mapName } from "../reading.js";
import { isOfLayers } from "../view.js";
import { arrow, bounded, isPress, pointOn } from "../stage.js";
import { Arrows } from "./arrows.js";
import { drawGrid } from "./grid.js";
import { draggable } from "./drag.js";
import { surface } from "./head.js";
import { headColour } from "./heads.js";
import { Preview } from "./preview.js";
import { barOf } from "./recipe.js";
import { RoleSwitch } from "./switch.js";
/** @import { GridLayout } from "../layouts.js" */
/** @import { Recipes } from "./recipe.js" */
/** @import { Stores } from "./explorer.js" */

const LARGEST = 112; // pixels of a head, where there are few
const BAR = 6; // pixels for the bar of a recipe, below each head
const LAYERS =
  "A model reads a text in layers, one after the other. In each, several heads look at all words side by side.";
const LABEL = "All heads. Arrow keys move from head to head, Enter opens one, c compares it, x switches it off.";

export class Overview {
  #grid = surface(LABEL);
  #recipes = make("div", { class: "marks", "aria-hidden": true });
  #marks = make("div", { class: "marks" });
  #hovered = make("b", { class: "hovered", hidden: true });
  #sheet = make("div", { class: "sheet" }, this.#grid, this.#recipes, this.#marks);
  #gridBox = make("div", { class: "grid", part: "grid" }, this.#sheet);
  #count = make("h2", { title: LAYERS });
  #moves = make("span", { class: "soft" });
  #layout = /** @type {GridLayout | null} */ (null);
  #moved = ""; // what the bars of changes were drawn from
  #pictured = ""; // the data from which the pictures of the grid were drawn
  #stores;
  #one;
  #preview;
  roles;
  #arrows;

  // `one` is the opened head, beside the grid or below it; `ask` belongs to the numbers below the grid.
  /** @param {Stores} stores @param {HTMLElement} one @param {HTMLElement} ask */
  constructor(stores, one, ask) {
    this.#stores = stores;
    this.#one = one;
    this.#preview = new Preview(stores, ask);
    this.roles = new RoleSwitch(stores, () => this.draw());
    const header = make("header", {}, this.#count, this.#moves, this.roles.unmeasured);
    this.#arrows = new Arrows(stores, this.#sheet);
    const parts = [header, this.roles.kinds, this.#gridBox, this.#arrows.box, this.#preview.box];
    this.box = make("section", { class: "overview" }, ...parts);
    this.#listen();
  }

  draw() {
    const { read, stage, heads } = this.#stores;
    const { reading } = read;
    const { view } = stage;
    const { layers, heads: across } = gridOf(reading);
    const rows = hasKeptHeads(reading) ? "" : `${some(layers.length, reading.layers)} layers × `;
    const many = `${rows}${some(across.length, reading.heads)} heads`;
    this.#count.textContent = isOfLayers(reading) ? "One map per layer" : many;
    this.#moves.textContent = read.mode?.moved.some((share) => share) ? "orange: looks elsewhere now" : "";
    const marks = view.on.map((head) => this.#mark(head, head === view.head ? "opened" : "on"));
    const walked = heads.cursor === view.head ? [] : [this.#mark(heads.cursor, "cursor")];
    const badges = this.roles.draw((box, head) => this.#place(box, head));
    this.#marks.replaceChildren(...this.#changes(), ...badges, ...marks, ...walked, this.#hovered);
    this.#drawPreview();
  }

  // Redraws the pictures if anything that they show has changed.
  drawPictures() {
    const { read, stage, look } = this.#stores;
    const { unit, special, side, scale } = stage.view;
    const style = getComputedStyle(this.#gridBox);
    const width = this.#gridBox.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = this.#isWide ? Math.max(230, window.innerHeight - 300) : 10000;
    const below = this.#below;
    const page = [look.theme, width, height, below, look.ink, resolution(this.#grid)];
    const key = JSON.stringify([read.reading.key, unit, special, side, scale, ...page]);
    if (key === this.#pictured) return;
    this.#pictured = key;
    this.#layout = drawGrid(this.#grid, read.reading, stage.view, { ...look, width, height, largest: LARGEST }, below);
    this.#drawRecipes();
  }

  // A bar below every head, with the kinds of the rules of its recipe.
  #drawRecipes() {
    const { read, look } = this.#stores;
    const { recipes, mode } = read;
    const bars = mode ? [] : (recipes?.heads ?? []); // those of heads that have moved stand there, too
    this.#recipes.replaceChildren(
      ...bars.map((_, head) => this.#place(barOf(/** @type {Recipes} */ (recipes), head, look.heads), head)),
    );
  }

  // The room for a bar below each head.
  get #below() {
    return this.#stores.read.recipes && !this.#stores.read.mode ? BAR : 0;
  }

  /**
   * Position an element on a head.
   *
   * @template {HTMLElement} T
   * @param {T} box
   * @param {number} head
   */
  #place(box, head) {
    const { reading } = this.#stores.read;
    const { left, top, step, size, down } = /** @type {GridLayout} */ (this.#layout);
    const [row, column] = gridPlace(reading, head);
    box.style.left = `${left + column * step}px`;
    box.style.top = `${top + row * down}px`;
    box.style.width = box.style.height = `${size}px`;
    return box;
  }

  // The same, with the bar below the head.
  /** @type {(box: HTMLElement, head: number) => HTMLElement} */
  #around(box, head) {
    this.#place(box, head).style.height = `${(this.#layout?.size ?? 0) + this.#below}px`;
    return box;
  }

  /** @type {(head: number, kind: string) => HTMLElement} */
  #mark(head, kind) {
    const { read, look } = this.#stores;
    const box = this.#around(make("i", { class: kind }), head);
    if (kind === "on") box.style.outlineColor = headColour(look, read.reading, head);
    return box;
  }

  // Dark squares for heads that are off, and below each later one a bar for how far it has moved.
  #changes() {
    const { mode } = this.#stores.read;
    if (!mode) return [];
    const off = mode.off.map((head) => this.#place(make("b", { class: "dark" }), head));
    const moved = mode.moved.flatMap((share, head) => {
      if (share === null) return [];
      const bar = this.#place(make("b", { class: "moved" }), head);
      bar.style.setProperty("--share", String(share));
      return [bar];
    });
    const key = JSON.stringify(mode);
    this.#marks.classList.toggle("shiver", key !== this.#moved); // once
    this.#moved = key;
    return [...moved, ...off];
  }

  #drawPreview() {
    const { read, heads } = this.#stores;
    const head = heads.hovered ?? heads.cursor;
    this.#around(this.#hovered, head);
    this.#hovered.hidden = heads.hovered === null;
    this.#hovered.dataset.name = mapName(read.reading, head);
    this.#preview.draw(head);
    this.#arrows.draw(this.#layout);
  }

  // True if the opened head is beside the grid and not below it.
  get #isWide() {
    return this.#one.offsetTop < this.#gridBox.offsetTop;
  }

  // ---- Pointer and keys ---------------------------------------------------------------------------------------

  #listen() {
    const { read, heads } = this.#stores;
    /** @type {(event: MouseEvent) => number | null} */
    const cell = (event) => {
      if (!this.#layout) return null;
      const { layers, heads: across } = gridOf(read.reading);
      const i = gridCellAt(this.#layout, layers.length, across.length, ...pointOn(this.#grid, event));
      if (i === null) return null;
      return layers[Math.floor(i / across.length)] * read.reading.heads + across[i % across.length];
    };
    if (!this.#stores.isAlone)
      draggable(this.#grid, this.#gridBox, cell, (head) => heads.isOff(head) || heads.turn(head));
    this.#grid.onpointermove = (event) => this.#hover(cell(event));
    this.#grid.onpointerleave = () => this.#hover(null);
    this.#grid.onclick = (event) => {
      const head = cell(event);
      if (head === null) return;
      const isBeside = this.#isWide;
      heads.open(head);
      if (!isBeside) bringIntoView(this.#one);
    };
    this.#grid.onkeydown = (event) => this.#onKey(event);
  }

  /** @type {(head: number | null) => void} */
  #hover(head) {
    const { heads } = this.#stores;
    if (head === heads.hovered) return;
    heads.hovered = head;
    this.#drawPreview();
  }

  /** @type {(event: KeyboardEvent) => void} */
  #onKey(event) {
    const { read, heads, isAlone, say } = this.#stores;
    const { reading } = read;
    if (isPress(event)) {
      heads.open(heads.cursor);
      event.preventDefault();
    }
    const isPlain = !event.ctrlKey && !event.metaKey && !isAlone;
    if (event.key === "c" && isPlain) heads.compare(heads.cursor);
    if (event.key === "x" && isPlain) {
      heads.turn(heads.cursor);
      event.preventDefault(); // the page need not do it, too
    }
    const step = arrow(event);
    if (!step) return;
    event.preventDefault();
    const { layers, heads: across } = gridOf(reading);
    const [row, column] = gridPlace(reading, heads.cursor);
    const layer = layers[bounded(row + step[0], layers.length)];
    heads.cursor = layer * reading.heads + across[bounded(column + step[1], across.length)];
    heads.hovered = null;
    this.draw();
    say(`${mapName(reading, heads.cursor)}. ${heads.heard(heads.cursor)}`);
  }
}

// "12", or "2 of 12".
/** @type {(count: number, all: number) => string} */
const some = (count, all) => (count === all ? String(all) : `${count} of ${all}`);

/** @type {(element: HTMLElement) => void} */
function bringIntoView(element) {
  element.scrollIntoView({ behavior: still() ? "auto" : "smooth", block: "start" });
}
