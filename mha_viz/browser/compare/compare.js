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
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { Derived } from "./panels.js" */
/** @import { Panels } from "./set.js" */
/** @import { PanelsView } from "./together.js" */

/**
 * What the drawings of a comparison share: what was read, and what the view shows of it; the view, and what is pointed
 * at; and the look.
 *
 * @typedef {object} Stores
 * @property {{ set: Panels, derived: Derived }} read
 * @property {Stage<PanelsView>} stage
 * @property {Look} look
 */

const EMPTY = "No heads chosen yet. Press + Compare on the Explore page.";
const ALONE =
  "Add a second head with + Compare on the Explore page, or duplicate this one, to see both side by side on one scale.";

/** @type {(root: HTMLElement, send: Send, locate?: () => string) => Compare} */
export const compare = (root, send, locate = () => window.location.search) => new Compare(root, send, locate);

class Compare {
  #frame = 0;
  #root;
  #stores;
  #comparison;
  #part;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} locate */
  constructor(root, send, locate) {
    const stage = new Stage(send, locate, this.#drawing());
    const read = /** @type {Stores["read"]} */ (/** @type {unknown} */ ({ set: null, derived: null })); // nothing yet
    const look = /** @type {Look} */ ({});
    this.#root = root;
    this.#stores = { read, stage, look };
    this.#part = page({
      change: (fields, delay) => stage.change(fields, delay),
      subtract: (ofSecond) => this.#subtract(ofSecond),
      edit: (change) => this.#comparison.edit(read.set, change),
      table: () => drawTable(this.#stores, this.#part),
    });
    this.#comparison = new Comparison(send, stage, (words) => {
      this.#part.announcement.textContent = words;
    });
    root.replaceChildren(this.#part.all);
    listenToDifference(this.#stores, this.#part);
  }

  /** @type {() => Drawing<PanelsView>} */
  #drawing() {
    const set = () => this.#stores.read.set;
    return {
      isReady: () => !!set(),
      parse: (params) => parseTogether(params, set()),
      adopted: () => {},
      message: (view) => ({ of: set().key, ...encodeTogether(view, set()) }),
      held: () => held(this.#stores),
      pin: (spot) => pinAt(this.#stores, spot),
      draw: () => this.#draw(),
      drawFocus: (now) => (now ? refresh(this.#stores, this.#part) : this.#refreshSoon()),
    };
  }

  // Show the panels in these bytes.
  /** @type {(bytes: Uint8Array) => void} */
  show(bytes) {
    const { read } = this.#stores;
    const next = unpackPanels(bytes);
    const isSame = read.set?.key === next.key;
    if (!isSame) this.#arrive(next);
    this.#draw();
    if (!isSame) this.#comparison.settle(read.set, this.#part.panels);
  }

  stop() {
    this.#stores.stage.stop();
    cancelAnimationFrame(this.#frame);
  }

  // Many moves of the pointer lead to one drawing.
  #refreshSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      refresh(this.#stores, this.#part);
    });
  }

  #draw() {
    const { read, stage, look } = this.#stores;
    const [{ set }, part] = [read, this.#part];
    if (!set) return;
    readLook(look, this.#root, set.themes, part.hint);
    part.all.classList.toggle("empty", !set.panels.length);
    part.hint.textContent = hint(set);
    part.how.hidden = set.panels.length < 2;
    if (set.panels.length) {
      derive(this.#stores);
      setControls(part, set, stage.view);
      setBegun(part, set, stage.view, { change: (fields) => stage.change(fields) });
      drawScale(this.#stores, part);
      measure(this.#stores, part);
    }
    drawDifference(this.#stores, part);
    refresh(this.#stores, part, true);
    drawTable(this.#stores, part);
  }

  /** @type {(next: Panels) => void} */
  #arrive(next) {
    const [{ read, stage }, part] = [this.#stores, this.#part];
    Object.assign(read, { set: next, derived: null });
    stage.adopt(this.#comparison.viewOf(next));
    part.panels = next.panels.map((_, index) =>
      panelOf(next, index, { edit: (change) => this.#comparison.edit(next, change) }),
    );
    part.panels.forEach((_, index) => listenTo(this.#stores, part, index));
    part.sheet.replaceChildren(...part.panels.map((panel) => panel.all));
  }

  // Two panels to subtract; if only one is chosen, the other is its neighbour.
  /** @type {(ofSecond: boolean) => void} */
  #subtract(ofSecond) {
    const [{ stage }, part] = [this.#stores, this.#part];
    const [first, second] = [part.first.value, part.second.value];
    const [one, other] = ofSecond ? [second, first] : [first, second];
    if (one === "") return stage.change({ diff: null });
    const neighbour = +one ? +one - 1 : 1;
    /** @type {[number, number]} */
    const pair = [+one, other === "" || +other === +one ? neighbour : +other];
    stage.change({ diff: ofSecond ? pair.reverse() : pair });
    part.diff.scrollIntoView({ block: "nearest" });
  }
}

/** @type {(set: Panels) => string} */
function hint({ panels, editable }) {
  if (!panels.length) return EMPTY;
  return panels.length === 1 && editable ? ALONE : "";
}

const FAILURE = "This comparison failed. Reload the page without the part of its address after “&”.";

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-compare", (root, send) => compare(root, queued(send)), FAILURE);
}
