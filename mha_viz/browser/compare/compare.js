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
 * @property {{ set: Panels, derived: Derived }} data
 * @property {Stage<PanelsView>} stage
 * @property {Look} look
 */

const EMPTY = "No heads chosen yet. Press + Compare in Explore.";
const ONE_HEAD = "Add a second head with + Compare in Explore, or duplicate this one, to see both side by side.";

/** @type {(root: HTMLElement, send: Send, readAddress?: () => string) => Compare} */
export const compare = (root, send, readAddress = () => window.location.search) => new Compare(root, send, readAddress);

class Compare {
  #frame = 0;
  #root;
  #stores;
  #comparison;
  #part;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} readAddress */
  constructor(root, send, readAddress) {
    const stage = new Stage(send, readAddress, this.#makeDrawing());
    const data = /** @type {Stores["data"]} */ (/** @type {unknown} */ ({ set: null, derived: null })); // no data yet
    const look = /** @type {Look} */ ({});
    this.#root = root;
    this.#stores = { data, stage, look };
    this.#part = makePage({
      change: (fields, delay) => stage.change(fields, delay),
      subtract: (ofSecond) => this.#subtract(ofSecond),
      edit: (change) => this.#comparison.edit(data.set, change),
      table: () => drawTable(this.#stores, this.#part),
    });
    this.#comparison = new Comparison(send, stage, (words) => {
      this.#part.announcement.textContent = words;
    });
    root.replaceChildren(this.#part.all);
    listenToDifference(this.#stores, this.#part);
  }

  /** @type {() => Drawing<PanelsView>} */
  #makeDrawing() {
    const set = () => this.#stores.data.set;
    return {
      isReady: () => !!set(),
      parse: (params) => parsePanelsView(params, set()),
      onAdopt: () => {},
      makeMessage: (view) => ({ of: set().key, ...encodePanelsView(view, set()) }),
      findPinnedSpot: () => findPinnedSpot(this.#stores),
      makePin: (spot) => makePin(this.#stores, spot),
      draw: () => this.#draw(),
      drawFocus: (now) => (now ? refresh(this.#stores, this.#part) : this.#refreshSoon()),
    };
  }

  // Show the panels of a packet.
  /** @type {(bytes: Uint8Array) => void} */
  show(bytes) {
    const { data } = this.#stores;
    const panels = unpackPanels(bytes);
    const isSame = data.set?.key === panels.key;
    if (!isSame) this.#replacePanels(panels);
    this.#draw();
    if (!isSame) this.#comparison.finishEdit(data.set, this.#part.panels);
  }

  stop() {
    this.#stores.stage.stop();
    cancelAnimationFrame(this.#frame);
  }

  // Redraw in the next frame, once for many moves of the pointer.
  #refreshSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      refresh(this.#stores, this.#part);
    });
  }

  #draw() {
    const { data, stage, look } = this.#stores;
    const [{ set }, part] = [data, this.#part];
    if (!set) return;
    readLook(look, this.#root, set.themes, part.hint);
    part.all.classList.toggle("empty", !set.panels.length);
    part.hint.textContent = getHint(set);
    part.how.hidden = set.panels.length < 2 || !!set.start?.pin; // a pinned word is explanation enough
    if (set.panels.length) {
      computeVisiblePart(this.#stores);
      setControls(part, set, stage.view);
      showLongTextNote(part, set, stage.view, { change: (fields) => stage.change(fields) });
      drawScale(this.#stores, part);
      layOutPanels(this.#stores, part);
    }
    drawDifference(this.#stores, part);
    refresh(this.#stores, part, true);
    drawTable(this.#stores, part);
  }

  /** @type {(next: Panels) => void} */
  #replacePanels(next) {
    const [{ data, stage }, part] = [this.#stores, this.#part];
    Object.assign(data, { set: next, derived: null });
    stage.adopt(this.#comparison.getView(next));
    part.panels = next.panels.map((_, index) =>
      makePanel(next, index, {
        edit: (change) => this.#comparison.edit(next, change),
        difference: (first) => this.#toggleDifference(first),
      }),
    );
    part.panels.forEach((_, index) => listenToPanel(this.#stores, part, index));
  }

  // Choose the two panels to subtract; if the same panel is chosen twice, use its neighbour.
  /** @type {(isSecond: boolean) => void} */
  #subtract(isSecond) {
    const { first, second } = this.#part;
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
    this.#part.diff.scrollIntoView({ block: "nearest" });
  }
}

/** @type {(set: Panels) => string} */
function getHint({ panels, editable }) {
  if (!panels.length) return EMPTY;
  return panels.length === 1 && editable ? ONE_HEAD : "";
}

const FAILURE =
  "This comparison could not be drawn. Delete everything from the first “&” in the address, and reload the page.";

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-compare", (root, send) => compare(root, queueMessages(send)), FAILURE);
}
