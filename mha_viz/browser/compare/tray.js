// Changes of the compared heads: sent to the server one at a time, and shown when the panels come back.
import { nameOf, readingOf } from "./set.js";
import { encodeTogether, openingAfter, placeAfter, viewAfter } from "./together.js";
/** @import { CompareApp } from "./compare.js" */
/** @import { Panels } from "./set.js" */
/** @import { PanelsView } from "./together.js" */

/**
 * A change of the tray; `index` and `to` are panels.
 *
 * @typedef {{ action: string, index: number, to?: number, name?: string }} Edit
 */

const ANSWER_AFTER = 4000; // milliseconds after which a change counts as lost
/** @type {Record<string, string>} */
const DONE = { remove: "Removed. The Back button restores it.", duplicate: "Duplicated.", rename: "Renamed." };

// One change at a time, because a second one would count places that no longer exist. `index` and `to` are places among
// the compared heads.
/** @type {(app: CompareApp, change: Edit) => void} */
export function edit(app, change) {
  const { set, send, stage, part } = app;
  const { action, index } = change;
  if (app.sent && performance.now() < app.sent.until) return;
  const after = viewAfter(change, stage.view);
  stage.quiet();
  const view = encodeTogether(after, openingAfter(change, set));
  send("edit", { ...whatStands(set, index), ...inTray(set, change), view });
  if (action === "pin") part.announcement.textContent = "Added to the compared heads.";
  if (action === "open" || action === "pin") return;
  app.sent = expected(set, change, after);
}

// `request`: the texts given to an encoder–decoder, because its source is not always among the texts of the axes; or
// the heads that are off.
/** @type {(set: Panels, index: number) => Record<string, string>} */
function whatStands(set, index) {
  const { model, text, pair, request } = readingOf(set, index);
  return { head: nameOf(set, index).name, model, text, pair, ...request };
}

/** @type {(set: Panels, change: Edit) => Edit} */
function inTray(set, change) {
  /** @type {(panel: number) => number} */
  const place = (panel) => set.panels[panel].source ?? panel;
  const to = change.to === undefined ? {} : { to: place(change.to) };
  return { ...change, index: place(change.index), ...to };
}

// The change that the next panels answer.
/** @type {(set: Panels, change: Edit, view: PanelsView) => CompareApp["sent"]} */
function expected(set, { action, index, to }, view) {
  const count = set.panels.length + ({ remove: -1, duplicate: 1 }[action] || 0);
  const tool = action === "move" ? ((to ?? index) < index ? "left" : "right") : action;
  return { action, index, count, view, focused: { index, to, tool }, until: performance.now() + ANSWER_AFTER };
}

// Restores the keyboard focus after a change; the address states what the panels show.
/** @type {(app: CompareApp) => void} */
export function settle(app) {
  if (!app.sent) return;
  const { set, stage, part } = app;
  const { index, action, focused } = app.sent;
  app.sent = null;
  const place = Math.min(set.panels.length - 1, placeAfter({ ...focused, action }, index) ?? index);
  const panel = part.panels[place];
  const button = action === "rename" ? panel?.rename : panel?.tools.querySelector(`[data-tool="${focused.tool}"]`);
  /** @type {HTMLElement | undefined} */ (button)?.focus();
  part.announcement.textContent = action === "move" ? `Moved to place ${place + 1}.` : DONE[action] || "";
  const address = new URLSearchParams(stage.locate());
  const fields = Object.entries(encodeTogether(stage.view, set));
  if (fields.some(([name, value]) => address.get(name) !== value)) stage.change({});
}
