// What the view shows of a reading: rows, columns and the open heads, computed once per view; and what is held in it.
import { linksOf } from "../drawn_links.js";
import { block, shades, units } from "../geometry.js";
import { signColours } from "../ink.js";
import { drawn, headColour, headDash } from "./heads.js";
/** @import { Axes, Pin, Unit } from "../geometry.js" */
/** @import { Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Look } from "../stage.js" */
/** @import { ReadingStage } from "./heads.js" */
/** @import { Read } from "./read.js" */

/** @typedef {{ key: string, reading: Reading, rowsKey: string, axes: Axes, heads: ShownHead[] }} Derived */

export class Shown {
  #derived = /** @type {Derived | null} */ (null);
  #read;
  #stage;
  #look;

  /** @param {Read} read @param {ReadingStage} stage @param {Look} look */
  constructor(read, stage, look) {
    this.#read = read;
    this.#stage = stage;
    this.#look = look;
  }

  get axes() {
    return this.#now().axes;
  }

  get heads() {
    return this.#now().heads;
  }

  // The head whose name is above the drawings; undefined while its weights are being loaded.
  get opened() {
    return this.heads.find(({ head }) => head === this.#stage.view.head);
  }

  #now() {
    const { reading } = this.#read;
    const { view } = this.#stage;
    const { unit, special, side, links, scale } = view;
    const here = drawn(view).filter((head) => reading.matrices.has(head));
    const key = JSON.stringify([unit, special, side, links, scale, here, this.#look.theme]);
    if (this.#derived?.key === key && this.#derived.reading === reading) return this.#derived;
    const rowsKey = unit + special + side;
    const axes = this.#axesFor(rowsKey);
    const alone = here.map((head) => this.#headOf(head, axes));
    const parts = alone.map(({ part }) => part);
    const lines = linksOf(parts, axes, links, scale);
    const heads = alone.map((head, i) => ({ ...head, ...lines[i] }));
    return (this.#derived = { key, reading, rowsKey, axes, heads });
  }

  // The rows and columns; the same objects while they are unchanged, so that what was measured of them is kept.
  /** @type {(rowsKey: string) => Axes} */
  #axesFor(rowsKey) {
    const { reading } = this.#read;
    const last = this.#derived;
    return last?.reading === reading && last.rowsKey === rowsKey ? last.axes : units(reading, this.#stage.view);
  }

  /** @type {(head: number, axes: Axes) => ShownHead} */
  #headOf(head, axes) {
    const { reading } = this.#read;
    const { view } = this.#stage;
    const look = this.#look;
    const part = block(reading, head, view, axes);
    const dash = headDash(look, view, head);
    const signs = reading.signed ? signColours(look) : { colour: headColour(look, reading, head) };
    return { head, dash, part, shade: shades(part, view.scale), ...signs };
  }

  // The spot that the view holds, null if its tokens are not shown.
  held() {
    const { pin } = this.#stage.view;
    if (!pin || !this.#derived) return null;
    const { rows, cols } = this.#derived.axes;
    /** @type {(list: Unit[], token: number | null) => number | null} */
    const find = (list, token) => (token === null ? null : list.findIndex((unit) => unit.tokens.includes(token)));
    const spot = /** @type {Spot} */ ({ row: find(rows, pin.query), col: find(cols, pin.key) });
    return spot.row === -1 || spot.col === -1 ? null : spot;
  }

  /** @type {(spot: Spot) => Pin} */
  pinAt({ row, col }) {
    const { rows, cols } = this.axes;
    /** @type {(list: Unit[], index: number | null) => number | null} */
    const token = (list, index) => (index === null ? null : list[index].tokens[0]);
    return { query: token(rows, row), key: token(cols, col) };
  }
}
