// Changes of the compared heads: sent to the server one at a time, and shown when the panels come back.
import { headName } from "../reading.js";
import { encodeTogether, openingAfter, placeAfter, readingOf, viewAfter } from "./together.js";
/** @import { Send } from "../mount.js" */
/** @import { Stage } from "../stage.js" */
/** @import { PanelPart } from "./parts.js" */
/** @import { Panels, PanelsView } from "./together.js" */

/**
 * A change of the compared heads; `index` and `to` are panels.
 *
 * @typedef {{ action: string, index: number, to?: number, name?: string }} Edit
 */

const ANSWER_AFTER = 4000; // milliseconds after which a change counts as lost
/** @type {Record<string, string>} */
const DONE = { remove: "Removed. The Back button restores it.", duplicate: "Duplicated.", rename: "Renamed." };

/**
 * A change that the next panels answer: their number and view, and where the keyboard goes.
 *
 * @typedef {Edit & { count: number, view: PanelsView, tool: string, until: number }} Pending
 */

export class Comparison {
  #pending = /** @type {Pending | null} */ (null);
  #send;
  #stage;
  #say;

  /** @param {Send} send @param {Stage<PanelsView>} stage @param {(words: string) => void} say */
  constructor(send, stage, say) {
    this.#send = send;
    this.#stage = stage;
    this.#say = say;
  }

  // One change at a time, because a second one would count places that no longer exist. `index` and `to` are places
  // among the compared heads.
  /** @type {(set: Panels, change: Edit) => void} */
  edit(set, change) {
    const { action, index } = change;
    if (this.#pending && performance.now() < this.#pending.until) return;
    const after = viewAfter(change, this.#stage.view);
    this.#stage.quiet();
    const view = encodeTogether(after, openingAfter(change, set));
    this.#send("edit", { ...whatStands(set, index), ...inComparison(set, change), view });
    if (action === "pin") this.#say("Added to My heads.");
    if (action === "open" || action === "pin") return;
    this.#pending = expected(set, change, after);
  }

  // The view of the panels that have come; undefined if they are not the answer to a change.
  /** @type {(set: Panels) => PanelsView | undefined} */
  viewOf(set) {
    return this.#pending?.count === set.panels.length ? this.#pending.view : undefined;
  }

  // Restores the keyboard focus after a change; the address states what the panels show.
  /** @type {(set: Panels, panels: PanelPart[]) => void} */
  settle(set, panels) {
    if (!this.#pending) return;
    const { index, action, tool } = this.#pending;
    const place = Math.min(set.panels.length - 1, placeAfter(this.#pending, index) ?? index);
    this.#pending = null;
    const panel = panels[place];
    const button = action === "rename" ? panel?.rename : panel?.tools.querySelector(`[data-tool="${tool}"]`);
    /** @type {HTMLElement | undefined} */ (button)?.focus();
    this.#say(action === "move" ? `Moved to place ${place + 1}.` : DONE[action] || "");
    const address = new URLSearchParams(this.#stage.locate());
    const fields = Object.entries(encodeTogether(this.#stage.view, set));
    if (fields.some(([name, value]) => address.get(name) !== value)) this.#stage.change({});
  }
}

// `request`: the texts given to an encoder–decoder, because its source is not always among the texts of the axes; or
// the heads that are off.
/** @type {(set: Panels, index: number) => Record<string, string>} */
function whatStands(set, index) {
  const reading = readingOf(set, index);
  const { model, text, pair, request } = reading;
  return { head: headName(reading, set.panels[index].head), model, text, pair, ...request };
}

/** @type {(set: Panels, change: Edit) => Edit} */
function inComparison(set, change) {
  /** @type {(panel: number) => number} */
  const place = (panel) => set.panels[panel].source ?? panel;
  const to = change.to === undefined ? {} : { to: place(change.to) };
  return { ...change, index: place(change.index), ...to };
}

// The change that the next panels answer.
/** @type {(set: Panels, change: Edit, view: PanelsView) => Pending} */
function expected(set, change, view) {
  const { action, index, to } = change;
  const count = set.panels.length + ({ remove: -1, duplicate: 1 }[action] || 0);
  const tool = action === "move" ? ((to ?? index) < index ? "left" : "right") : action;
  return { ...change, count, view, tool, until: performance.now() + ANSWER_AFTER };
}
