// One reading on the page: the grid of all heads, one head as links and heatmap, and the ranking by a link. What only
// changes the view is drawn here at once; the server is told afterwards and keeps the URL.
import { make } from "../dom.js";
import { encodeView, parseView } from "../geometry.js";
import { rememberRoles, rolesName, showsRoles } from "../memory.js";
import { mounted } from "../mount.js";
import { queued } from "../post.js";
import { isShortcut } from "../shortcuts.js";
import { Stage, readLook } from "../stage.js";
import { Findings } from "./findings.js";
import { HeadView } from "./head.js";
import { Heads } from "./heads.js";
import { Overview } from "./overview.js";
import { Ranks } from "./ranks.js";
import { Read } from "./read.js";
import { Shown } from "./shown.js";
import { Turns } from "./turns.js";
import { tellBows } from "./bows.js";
/** @import { ReadingView } from "../geometry.js" */
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Send } from "../post.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { HeadRoles } from "./roles.js" */

/**
 * What the drawings of the explorer share: what was read, what the view shows of it, and what is pointed at. `say`
 * tells screen readers; `isAlone`: in a file, without a server.
 *
 * @typedef {object} Stores
 * @property {Read} read
 * @property {Stage<ReadingView>} stage
 * @property {Shown} shown
 * @property {Heads} heads
 * @property {Look} look
 * @property {(words: string) => void} say
 * @property {boolean} isAlone
 */

const REMEDY = "Reload the page without the part of its address after “&”, or read another text.";

/** @type {(root: HTMLElement, send: Send, locate?: () => string) => Explorer} */
export const explorer = (root, send, locate = () => window.location.search) => new Explorer(root, send, locate);

class Explorer {
  #announcement = make("p", { class: "said", "aria-live": "polite" });
  #root;
  #box;
  #stores;
  #findings;
  #overview;
  #head;
  #ranks;
  #turns;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} locate */
  constructor(root, send, locate) {
    const [read, look] = [new Read(), /** @type {Look} */ ({})];
    const stage = new Stage(send, locate, this.#drawing());
    /** @type {(words: string) => void} */
    const say = (words) => {
      this.#announcement.textContent = words;
    };
    const heads = new Heads(read, stage, say);
    this.#root = root;
    this.#stores = {
      read,
      stage,
      shown: new Shown(read, stage, look),
      heads,
      look,
      say,
      isAlone: !!root.dataset.alone,
    };
    this.#findings = new Findings(this.#stores);
    this.#ranks = new Ranks(this.#stores);
    this.#turns = new Turns(this.#stores);
    this.#head = new HeadView(this.#stores);
    this.#overview = new Overview(this.#stores, this.#head.box, this.#ranks.box);
    this.#head.menu.append(this.#overview.roles.box, this.#overview.roles.signs);
    this.#box = make("div", { class: "explorer" }, this.#overview.box, this.#head.box, this.#announcement);
    root.replaceChildren(this.#findings.box, this.#box);
    if (!root.dataset.alone) document.addEventListener("keydown", this.#onKey);
  }

  // The key that switches a head off, wherever the keyboard is; in the grid, the grid has done it.
  #onKey = (/** @type {KeyboardEvent} */ event) => {
    const { read, heads } = this.#stores;
    if (!event.defaultPrevented && read.reading && isShortcut(event, "x")) heads.turn(heads.cursor);
  };

  /** @type {() => Drawing<ReadingView>} */
  #drawing() {
    const reading = () => this.#stores.read.reading;
    return {
      isReady: () => !!reading(),
      parse: (params) => {
        const view = {
          ...parseView(params, reading()),
          roles: showsRoles(params),
          arrows: params.get("arrows") === "on",
        };
        return this.#stores.read.quiet ? { ...view, pin: null } : view; // a held word would give the hidden answer away
      },
      adopted: () => {
        this.#stores.heads.cursor = this.#stores.stage.view.head;
      },
      message: (view) => ({
        of: reading().of,
        ...encodeView(view, reading()),
        roles: rolesName(view.roles),
        arrows: view.arrows ? "on" : null,
      }),
      held: () => this.#stores.shown.held(),
      pin: (spot) => this.#stores.shown.pinAt(spot),
      draw: () => this.#draw(),
      drawFocus: () => this.#head.draw(),
    };
  }

  // Show a reading, or its bytes, and the roles of its heads, with the step of the tour.
  /** @type {(data: Uint8Array | Reading, headRoles: HeadRoles | null) => void} */
  show(data, headRoles = null) {
    const { read, stage, heads } = this.#stores;
    const { isSame, isOfSameTokens, isStep, isLed } = read.receive(data, headRoles, () => stage.view.on);
    if (!isSame) heads.hovered = null;
    if (!isSame || isLed) stage.adopt(undefined, isOfSameTokens && !isLed);
    if (isStep && stage.view.roles) rememberRoles(true); // the tour has explained them
    this.#draw();
    heads.tell();
    this.#turns.begin();
  }

  stop() {
    document.removeEventListener("keydown", this.#onKey);
    this.#turns.stop();
    this.#stores.stage.stop();
  }

  #draw() {
    const { read, stage, look } = this.#stores;
    if (!read.reading) return;
    readLook(look, this.#root, read.reading.themes, this.#head.note);
    this.#box.classList.toggle("plain", new URLSearchParams(stage.locate()).get("class") === "1");
    this.#box.style.setProperty("--heads", String(read.reading.heads));
    this.#findings.draw();
    this.#overview.drawPictures(); // first what measures the page, then what changes it: one layout
    this.#head.draw();
    this.#overview.draw();
    this.#head.drawControls();
    this.#ranks.draw();
    this.#head.drawTable();
    tellBows(this.#stores);
  }
}

// Splits the data into a packet and the roles, which follow it as JSON, preceded by their length.
/** @type {(data: Uint8Array) => [Uint8Array, HeadRoles]} */
function apart(data) {
  const end = data.byteLength - 4;
  const begin = end - new DataView(data.buffer, data.byteOffset + end).getUint32(0, true);
  return [data.subarray(0, begin), JSON.parse(new TextDecoder().decode(data.subarray(begin, end)))];
}

/** @type {(root: HTMLElement, send: Send) => { show: (data: Uint8Array) => void, stop: () => void }} */
function onPage(root, send) {
  const drawing = explorer(root, queued(send));
  return { show: (data) => drawing.show(...apart(data)), stop: () => drawing.stop() };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  const leave = mounted(component, ".mha-explorer", onPage, `This drawing failed. ${REMEDY}`);
  const { host } = /** @type {ShadowRoot} */ (/** @type {unknown} */ (component.parentElement));
  host?.toggleAttribute("data-drawn", true); // the placeholder can be hidden
  return leave;
}
