// Heads side by side: the spot under the pointer in one panel is shown in all, on one scale, and any two can be
// subtracted. What only changes the view is drawn here at once; the server is told afterwards and keeps the URL.
import { mounted } from "../mount.js";
import { queued } from "../post.js";
import { Stage, readLook } from "../stage.js";
import { drawDifference, listenToDifference } from "./difference.js";
import { derive, drawScale, listenTo, measure, refresh } from "./panels.js";
import { page, panelOf, setBegun, setControls } from "./parts.js";
import { unpackPanels } from "./set.js";
import { held, pinAt } from "./spots.js";
import { drawTable } from "./tables.js";
import { encodeTogether, parseTogether } from "./together.js";
import { Comparison } from "./comparison.js";
/** @import { Parts } from "../dom.js" */
/** @import { Unit } from "../geometry.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { DrawnDifference } from "./difference.js" */
/** @import { PanelPart } from "./parts.js" */
/** @import { Panels } from "./set.js" */
/** @import { PanelsView, Refusal } from "./together.js" */

/**
 * @typedef {object} CompareApp
 * @property {HTMLElement} root
 * @property {Panels} set
 * @property {{ key: string, units: Unit[][], columns: Unit[][], heads: ShownHead[], top: number, standing:
 *   Record<string, ([number, number] | null)[]>, diff: DrawnDifference | Refusal | null }} derived
 * @property {Comparison} comparison
 * @property {number} frame
 * @property {Look} look
 * @property {Stage<PanelsView>} stage
 * @property {Parts & { panels: PanelPart[] }} part
 */

/** @typedef {{ show: (bytes: Uint8Array) => void, stop: () => void }} CompareOnPage */

const EMPTY = "No heads chosen yet. Press + Compare on the Explore page.";
const ALONE =
  "Add a second head with + Compare on the Explore page, or duplicate this one, to see both side by side on one scale.";

/** @type {(root: HTMLElement, send: Send, locate?: () => string) => CompareOnPage} */
export function compare(root, send, locate = () => window.location.search) {
  /** @type {CompareApp} */
  const app = /** @type {any} */ ({
    root,
    set: null,
    derived: null, // what the view shows of every panel
    frame: 0,
    look: /** @type {Look} */ ({ veil: 0.5 }), // lighter than in the explorer, because the other rows are compared
  });
  app.stage = new Stage(send, locate, drawingOf(app));
  app.part = page({
    change: (fields, delay) => app.stage.change(fields, delay),
    subtract: (ofSecond) => subtract(app, ofSecond),
    edit: (change) => app.comparison.edit(app.set, change),
    table: () => drawTable(app),
  });
  app.comparison = new Comparison(send, app.stage, (words) => {
    app.part.announcement.textContent = words;
  });
  root.replaceChildren(app.part.all);
  listenToDifference(app);
  return { show: (bytes) => drawPanels(app, bytes), stop: () => stop(app) };
}

/** @type {(app: CompareApp) => Drawing<PanelsView>} */
const drawingOf = (app) => ({
  isReady: () => !!app.set,
  parse: (params) => parseTogether(params, app.set),
  adopted: () => {},
  message: (view) => ({ of: app.set.key, ...encodeTogether(view, app.set) }),
  held: () => held(app),
  pin: (spot) => pinAt(app, spot),
  draw: () => draw(app),
  drawFocus: (now) => (now ? refresh(app) : refreshSoon(app)),
});

// Many moves of the pointer lead to one drawing.
/** @type {(app: CompareApp) => void} */
function refreshSoon(app) {
  app.frame ||= requestAnimationFrame(() => {
    app.frame = 0;
    refresh(app);
  });
}

/** @type {(app: CompareApp) => void} */
function stop(app) {
  app.stage.stop();
  cancelAnimationFrame(app.frame);
}

/** @type {(app: CompareApp) => void} */
function draw(app) {
  const { set, part, look, root, stage } = app;
  if (!set) return;
  readLook(look, root, set.themes, part.hint);
  part.all.classList.toggle("empty", !set.panels.length);
  part.hint.textContent = hint(set);
  part.how.hidden = set.panels.length < 2;
  if (set.panels.length) {
    derive(app);
    setControls(part, set, stage.view);
    setBegun(part, set, stage.view, { change: (fields) => stage.change(fields) });
    drawScale(app);
    measure(app);
  }
  drawDifference(app);
  refresh(app, true);
  drawTable(app);
}

/** @type {(set: Panels) => string} */
function hint({ panels, editable }) {
  if (!panels.length) return EMPTY;
  return panels.length === 1 && editable ? ALONE : "";
}

// ---- Data from the server -------------------------------------------------------------------------------------

/** @type {(app: CompareApp, bytes: Uint8Array) => void} */
function drawPanels(app, bytes) {
  const next = unpackPanels(bytes);
  const isSame = app.set?.key === next.key;
  if (!isSame) arrive(app, next);
  draw(app);
  if (!isSame) app.comparison.settle(app.set, app.part.panels);
}

/** @type {(app: CompareApp, next: Panels) => void} */
function arrive(app, next) {
  const { part, stage, comparison } = app;
  Object.assign(app, { set: next, derived: null });
  stage.adopt(comparison.viewOf(next));
  part.panels = next.panels.map((_, index) =>
    panelOf(next, index, { edit: (change) => comparison.edit(next, change) }),
  );
  part.panels.forEach((panel, index) => listenTo(app, panel, index));
  part.sheet.replaceChildren(...part.panels.map((panel) => panel.all));
}

// Two panels to subtract; if only one is chosen, the other is its neighbour.
/** @type {(app: CompareApp, ofSecond: boolean) => void} */
function subtract({ part, stage }, ofSecond) {
  const [first, second] = [part.first.value, part.second.value];
  const [one, other] = ofSecond ? [second, first] : [first, second];
  if (one === "") return stage.change({ diff: null });
  const neighbour = +one ? +one - 1 : 1;
  /** @type {[number, number]} */
  const pair = [+one, other === "" || +other === +one ? neighbour : +other];
  stage.change({ diff: ofSecond ? pair.reverse() : pair });
  part.diff.scrollIntoView({ block: "nearest" });
}

const FAILURE = "This comparison failed. Reload the page without the part of its address after “&”.";

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-compare", (root, send) => compare(root, queued(send)), FAILURE);
}
