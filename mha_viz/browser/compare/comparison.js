// Send edits of the compared heads to the server one at a time, and show their result when the panels arrive.
import { formatHead } from "../reading.js";
import { encodePanelsView, updateOpening, updatePlace, getReading, updateView } from "./together.js";
/** @import { Send } from "../mount.js" */
/** @import { Stage } from "../stage.js" */
/** @import { PanelElements } from "./parts.js" */
/** @import { Panels, PanelsView } from "./together.js" */

/**
 * An edit of the compared heads; `index` and `to` are panel numbers.
 *
 * @typedef {{ action: string, index: number, to?: number, name?: string }} Edit
 */

const TIMEOUT = 4000; // milliseconds before an edit counts as lost
/** @type {Record<string, string>} */
const MESSAGES = { remove: "Removed. The Back button restores it.", duplicate: "Duplicated.", rename: "Renamed." };

/**
 * An edit waiting for its panels: the expected number of panels and their view, and the tool button to focus.
 *
 * @typedef {Edit & { count: number, view: PanelsView, tool: string, deadline: number }} Pending
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

  // Send an edit, unless another one is unanswered, because it would refer to panel numbers that no longer exist.
  /** @type {(panelSet: Panels, change: Edit) => void} */
  edit(panelSet, change) {
    const { action, index } = change;
    if (this.#pending && performance.now() < this.#pending.deadline) return;
    const newView = updateView(change, this.#stage.view);
    this.#stage.discardUnsent();
    const view = encodePanelsView(newView, updateOpening(change, panelSet));
    this.#send("edit", { ...describePanel(panelSet, index), ...toComparedPositions(panelSet, change), view });
    if (action === "pin") this.#say("Added to My heads.");
    if (action === "open" || action === "pin") return;
    this.#pending = predictResult(panelSet, change, newView);
  }

  // Return the view of the panels that arrived, or undefined if they do not answer an edit.
  /** @type {(panelSet: Panels) => PanelsView | undefined} */
  getView(panelSet) {
    return this.#pending?.count === panelSet.panels.length ? this.#pending.view : undefined;
  }

  // Restore the keyboard focus after an edit, and make the address match the panels.
  /** @type {(panelSet: Panels, panels: PanelElements[]) => void} */
  finishEdit(panelSet, panels) {
    if (!this.#pending) return;
    const { index, action, tool } = this.#pending;
    const place = Math.min(panelSet.panels.length - 1, updatePlace(this.#pending, index) ?? index);
    this.#pending = null;
    const panel = panels[place];
    const button = action === "rename" ? panel?.rename : panel?.tools.querySelector(`[data-tool="${tool}"]`);
    /** @type {HTMLElement | undefined} */ (button)?.focus();
    this.#say(action === "move" ? `Moved to place ${place + 1}.` : MESSAGES[action] || "");
    const address = new URLSearchParams(this.#stage.readAddress());
    const fields = Object.entries(encodePanelsView(this.#stage.view, panelSet));
    if (fields.some(([name, value]) => address.get(name) !== value)) this.#stage.change({});
  }
}

// Describe the head of a panel. `request` holds the texts given to an encoder–decoder, because its source is not
// always among the texts of the axes, or the heads that are off.
/** @type {(panelSet: Panels, index: number) => Record<string, string>} */
function describePanel(panelSet, index) {
  const reading = getReading(panelSet, index);
  const { model, text, pair, request } = reading;
  return { head: formatHead(reading, panelSet.panels[index].head), model, text, pair, ...request };
}

// Replace panel numbers by positions among the compared heads.
/** @type {(panelSet: Panels, change: Edit) => Edit} */
function toComparedPositions(panelSet, change) {
  /** @type {(panel: number) => number} */
  const getPosition = (panel) => panelSet.panels[panel].source ?? panel;
  const to = change.to === undefined ? {} : { to: getPosition(change.to) };
  return { ...change, index: getPosition(change.index), ...to };
}

// Describe the result of an edit, to recognize the panels that answer it.
/** @type {(panelSet: Panels, change: Edit, view: PanelsView) => Pending} */
function predictResult(panelSet, change, view) {
  const { action, index, to } = change;
  const count = panelSet.panels.length + ({ remove: -1, duplicate: 1 }[action] || 0);
  const tool = action === "move" ? ((to ?? index) < index ? "left" : "right") : action;
  return { ...change, count, view, tool, deadline: performance.now() + TIMEOUT };
}
