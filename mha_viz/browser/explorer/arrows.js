// Composition: arrows over the grid from each head to later heads in whose scores it has a part, and the same as a
// list.
import { make } from "../dom.js";
import { percent } from "../numerals.js";
import { gridPlace, mapName } from "../reading.js";
import { svg } from "../svg.js";
/** @import { GridLayout } from "../layouts.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Stores } from "./explorer.js" */

/**
 * `from` and `to` are heads of the reading; `side`: on which side of the score the part stands.
 *
 * @typedef {{ from: number, to: number, side: "query" | "key", share: number }} Arrow
 */

const WIDEST = 9; // pixels for a share of 1, beyond the least
const BEND = 0.22; // how far a key's arrow bends to the right, a query's to the left, as a part of its length
const EXPLAINED = "≥ 5% of the later head’s scores here.";

export class Arrows {
  box = make("section", { class: "composed", "aria-label": "Composition: arrows between heads" });
  #lines = svg("svg", { "aria-hidden": "true", class: "marks arrows" });
  #drawn = "";
  #without = make("span", { role: "status" }); // says that the open head has none
  #pointed = /** @type {Arrow | null} */ (null);
  #stores;

  /** @param {Stores} stores @param {HTMLElement} sheet what the arrows lie on */
  constructor(stores, sheet) {
    this.#stores = stores;
    sheet.append(this.#lines);
  }

  // The arrows on a grid that has this layout.
  /** @type {(layout: GridLayout | null) => void} */
  draw(layout) {
    const { read } = this.#stores;
    const arrows = (layout && read.arrows) || [];
    this.box.hidden = !read.arrows;
    const key = JSON.stringify([read.reading.key, layout, read.arrows]);
    if (key !== this.#drawn) {
      this.#drawn = key;
      this.#pointed = null;
      const paths = [...arrows].reverse().flatMap((arrow) => pathOf(arrow, read.reading, /** @type {any} */ (layout)));
      this.#lines.replaceChildren(...paths);
      this.#list(arrows);
    }
    this.#stress();
  }

  // Those of the head that is pointed at, or of the arrow in the list, stand out.
  #stress() {
    const { heads, read } = this.#stores;
    const head = heads.hovered ?? heads.cursor;
    const one = this.#pointed;
    /** @type {(arrow: Arrow) => boolean} */
    const isNear = (arrow) => (one ? nameOf(arrow) === nameOf(one) : arrow.from === head || arrow.to === head);
    const near = new Set((read.arrows ?? []).filter(isNear).map(nameOf));
    const hasNone = head !== null && near.size === 0 && (read.arrows ?? []).length > 0;
    this.#without.textContent = hasNone ? `${mapName(read.reading, head)} has none.` : "";
    this.#lines.classList.toggle("some", near.size > 0);
    for (const line of this.#lines.children)
      line.classList.toggle("near", near.has(line.getAttribute("data-of") ?? ""));
  }

  /** @type {(arrows: Arrow[]) => void} */
  #list(arrows) {
    const none = "No earlier head has 5% of the scores of a later one here.";
    const legend = ["query", "key"].map((side) => make("span", { class: side }, `by its ${side}`));
    const line = make("p", { class: "soft" }, ...(arrows.length ? [EXPLAINED, ...legend] : [none]), this.#without);
    this.box.replaceChildren(line, make("ol", {}, ...arrows.map((arrow) => make("li", {}, this.#button(arrow)))));
  }

  /** @type {(arrow: Arrow) => HTMLElement} */
  #button(arrow) {
    const { read, heads } = this.#stores;
    const [from, to] = [arrow.from, arrow.to].map((head) => mapName(read.reading, head));
    /** @type {(now: Arrow | null) => () => void} */
    const point = (now) => () => {
      this.#pointed = now;
      this.#stress();
    };
    const [enter, leave] = [point(arrow), point(null)];
    const events = { onfocus: enter, onblur: leave, onpointerenter: enter, onpointerleave: leave };
    const title = `Open ${to}`;
    const label = `${from} has ${percent(arrow.share)} of the scores of ${to}, by its ${arrow.side}. ${title}.`;
    const texts = [make("code", {}, `${from} → ${to}`), make("span", { class: arrow.side }, arrow.side)];
    const value = make("span", { class: "value" }, percent(arrow.share));
    const onclick = () => heads.open(arrow.to);
    return make("button", { type: "button", title, "aria-label": label, onclick, ...events }, ...texts, value);
  }
}

/** @type {(arrow: Arrow) => string} */
const nameOf = ({ from, to, side }) => `${from} ${to} ${side}`;

// An arrow between the centres of two heads, with its halo; nothing if the grid lacks one of them.
/** @type {(arrow: Arrow, reading: Reading, layout: GridLayout) => SVGElement[]} */
export function pathOf(arrow, reading, { left, top, step, size, down }) {
  const places = [arrow.from, arrow.to].map((head) => gridPlace(reading, head));
  if (places.flat().includes(-1)) return [];
  const [[x, y], [u, v]] = places.map(([row, column]) => [
    left + column * step + size / 2,
    top + row * down + size / 2,
  ]);
  const length = Math.hypot(u - x, v - y);
  const [across, along] = [(v - y) / length, -(u - x) / length];
  const bend = BEND * length * (arrow.side === "key" ? 1 : -1);
  const [midX, midY] = [(x + u) / 2 + bend * across, (y + v) / 2 + bend * along];
  const width = 1 + WIDEST * Math.min(1, arrow.share);
  const tip = 4 + width;
  const [dx, dy] = [u - midX, v - midY].map((part) => part / Math.hypot(u - midX, v - midY));
  const [endX, endY] = [u - tip * dx, v - tip * dy];
  /** @type {(...numbers: number[]) => string} */
  const at = (...numbers) => numbers.map((number) => number.toFixed(1)).join(" ");
  const line = `M${at(x, y)}Q${at(midX, midY, endX, endY)}`;
  const half = 2.5 + width / 2;
  const head = `M${at(u, v)}L${at(endX - half * dy, endY + half * dx, endX + half * dy, endY - half * dx)}Z`;
  const group = svg(
    "g",
    { class: arrow.side, "data-of": nameOf(arrow) },
    svg("path", { class: "halo", d: line, "stroke-width": at(width + 3) }),
    svg("path", { class: "line", d: line, "stroke-width": at(width) }),
    svg("path", { class: "tip", d: head }),
  );
  return [group];
}
