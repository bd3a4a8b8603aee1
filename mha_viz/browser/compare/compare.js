// Show heads side by side. The hovered spot is shown in all panels on one scale, and any two panels can be subtracted.
// Changes of the view are drawn here at once; the server is told afterwards and keeps the URL.
import { mountComponent, queueMessages } from "../mount.js";
import { Stage, readLook } from "../stage.js";
import { Comparison } from "./comparison.js";
import { drawDifference, isBetween, listenToDifference } from "./difference.js";
import { computeVisiblePart, drawScale, drawTable, listenToPanel, layOutPanels, refresh } from "./panels.js";
import { makePage, makePanel, showLongTextNote, setControls } from "./parts.js";
import { encodePanelsView, findPinnedSpot, parsePanelsView, makePin, unpackPanels } from "./together.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { Derived } from "./panels.js" */
/** @import { Panels, PanelsView } from "./together.js" */

/**
 * State shared by the drawings of a comparison: the data and their visible part, the view and the hovered spot, and the
 * colours and fonts.
 *
 * @typedef {object} Stores
 * @property {{ panelSet: Panels, derived: Derived }} data
 * @property {Stage<PanelsView>} stage
 * @property {Look} look
 */

const EMPTY_HINT = "No heads chosen yet. Press + Compare in Explore.";
const ONE_HEAD_HINT = "Add a second head with + Compare in Explore, or duplicate this one, to see both side by side.";

/** @type {(root: HTMLElement, send: Send, readAddress?: () => string) => Compare} */
export const compare = (root, send, readAddress = () => window.location.search) => new Compare(root, send, readAddress);

class Compare {
  #frame = 0;
  #root;
  #stores;
  #comparison;
  #page;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} readAddress */
  constructor(root, send, readAddress) {
    const stage = new Stage(send, readAddress, this.#makeDrawing());
    const data = /** @type {Stores["data"]} */ (/** @type {unknown} */ ({ panelSet: null, derived: null }));
    const look = /** @type {Look} */ ({});
    this.#root = root;
    this.#stores = { data, stage, look };
    this.#page = makePage({
      change: (fields, delay) => stage.change(fields, delay),
      subtract: (isSecond) => this.#subtract(isSecond),
      edit: (change) => this.#comparison.edit(data.panelSet, change),
      table: () => drawTable(this.#stores, this.#page),
    });
    this.#comparison = new Comparison(send, stage, (words) => {
      this.#page.announcement.textContent = words;
    });
    root.replaceChildren(this.#page.all);
    listenToDifference(this.#stores, this.#page);
  }

  /** @type {() => Drawing<PanelsView>} */
  #makeDrawing() {
    const getPanelSet = () => this.#stores.data.panelSet;
    return {
      isReady: () => !!getPanelSet(),
      parse: (params) => parsePanelsView(params, getPanelSet()),
      onAdopt: () => {},
      makeMessage: (view) => ({ of: getPanelSet().key, ...encodePanelsView(view, getPanelSet()) }),
      findPinnedSpot: () => findPinnedSpot(this.#stores),
      makePin: (spot) => makePin(this.#stores, spot),
      draw: () => this.#draw(),
      drawFocus: (now) => (now ? refresh(this.#stores, this.#page) : this.#refreshSoon()),
    };
  }

  // Show the panels of a packet.
  /** @type {(bytes: Uint8Array) => void} */
  show(bytes) {
    const { data } = this.#stores;
    const panels = unpackPanels(bytes);
    const hasSamePanels = data.panelSet?.key === panels.key;
    if (!hasSamePanels) this.#replacePanels(panels);
    this.#draw();
    if (!hasSamePanels) this.#comparison.finishEdit(data.panelSet, this.#page.panels);
  }

  stop() {
    this.#stores.stage.stop();
    cancelAnimationFrame(this.#frame);
  }

  // Redraw in the next frame, once for many moves of the pointer.
  #refreshSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      refresh(this.#stores, this.#page);
    });
  }

  #draw() {
    const { data, stage, look } = this.#stores;
    const [{ panelSet }, page] = [data, this.#page];
    if (!panelSet) return;
    readLook(look, this.#root, panelSet.themes, page.hint);
    page.all.classList.toggle("empty", !panelSet.panels.length);
    page.hint.textContent = getHint(panelSet);
    page.instructions.hidden = panelSet.panels.length < 2 || !!panelSet.start?.pin; // a pin shows already how it works
    if (panelSet.panels.length) {
      computeVisiblePart(this.#stores);
      setControls(page, panelSet, stage.view);
      showLongTextNote(page, panelSet, stage.view, { change: (fields) => stage.change(fields) });
      drawScale(this.#stores, page);
      layOutPanels(this.#stores, page);
    }
    drawDifference(this.#stores, page);
    refresh(this.#stores, page, true);
    drawTable(this.#stores, page);
  }

  /** @type {(next: Panels) => void} */
  #replacePanels(next) {
    const [{ data, stage }, page] = [this.#stores, this.#page];
    Object.assign(data, { panelSet: next, derived: null });
    stage.adopt(this.#comparison.getView(next));
    page.panels = next.panels.map((_, index) =>
      makePanel(next, index, {
        edit: (change) => this.#comparison.edit(next, change),
        difference: (first) => this.#toggleDifference(first),
      }),
    );
    page.panels.forEach((_, index) => listenToPanel(this.#stores, page, index));
  }

  // Choose the two panels to subtract, after a change of the first or the second menu; if both name the same panel, use
  // its neighbour.
  /** @type {(isSecond: boolean) => void} */
  #subtract(isSecond) {
    const { first, second } = this.#page;
    const [firstPanel, secondPanel] = isSecond ? [+second.value, +first.value] : [+first.value, +second.value];
    const pair = [firstPanel, secondPanel === firstPanel ? (firstPanel ? firstPanel - 1 : 1) : secondPanel];
    this.#showDifference(isSecond ? pair.reverse() : pair);
  }

  // Show the difference of panel `index` and the next one, or hide it if it is already shown.
  /** @type {(index: number) => void} */
  #toggleDifference(index) {
    const { diff } = this.#stores.stage.view;
    this.#showDifference(isBetween(diff, index) ? null : [index, index + 1]);
  }

  /** @type {(diff: number[] | null) => void} */
  #showDifference(diff) {
    this.#stores.stage.change({ diff });
    this.#page.diff.scrollIntoView({ block: "nearest" });
  }
}

/** @type {(panelSet: Panels) => string} */
function getHint({ panels, editable }) {
  if (!panels.length) return EMPTY_HINT;
  return panels.length === 1 && editable ? ONE_HEAD_HINT : "";
}

const FAILURE =
  "This comparison could not be drawn. Delete everything from the first “&” in the address, and reload the page.";

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-compare", (root, send) => compare(root, queueMessages(send)), FAILURE);
}
