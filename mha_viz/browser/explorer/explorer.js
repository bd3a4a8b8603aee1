// Show one reading: its findings, the grid of all heads, one head as links and heatmap, and the ranking by a link.
// Changes of the view are drawn here at once; the server is told afterwards and keeps the URL.
import { make, isolateText } from "../dom.js";
import { encodeView, parseView } from "../geometry.js";
import { mountComponent, queueMessages } from "../mount.js";
import { isShortcut } from "../shortcuts.js";
import { Stage, readLook } from "../stage.js";
import { ElsewhereView } from "./elsewhere.js";
import { Turns } from "./first_visit.js";
import { HeadView } from "./head.js";
import { Heads } from "./heads.js";
import { Overview } from "./overview.js";
import { Ranks } from "./preview.js";
import { Read, Shown, publishArcs } from "./read.js";
/** @import { Pin, ReadingView } from "../geometry.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { HeadRoles } from "./roles.js" */

/**
 * State shared by the drawings of the explorer: the reading, its visible part, and the hovered spot. `say` announces
 * text to screen readers; `isAlone`: in a file, without a server.
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

const REMEDY = "Delete everything from the first “&” in the address, and reload the page, or read another text.";

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
  #elsewhere;
  #turns;
  #isWhole = false; // class mode shows one drawing at a time: all heads, or the opened one
  #turn = make("button", { type: "button", class: "turn" });
  #opened = -1;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} locate */
  constructor(root, send, locate) {
    const [read, look] = [new Read(), /** @type {Look} */ ({})];
    const stage = new Stage(send, locate, this.#makeDrawing());
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
    this.#elsewhere = new ElsewhereView(this.#stores);
    this.#head.box.append(this.#elsewhere.box);
    this.#turn.onclick = () => this.#turnTo(!this.#isWhole);
    this.#head.menu.append(this.#overview.roles.box, this.#overview.roles.signs);
    this.#box = make("div", { class: "explorer" }, this.#overview.box, this.#head.box, this.#announcement);
    root.replaceChildren(this.#findings.box, this.#box);
    if (!root.dataset.alone) document.addEventListener("keydown", this.#onKey);
  }

  // Handle the key that switches a head off, wherever the focus is. In the grid, the grid has already done it.
  #onKey = (/** @type {KeyboardEvent} */ event) => {
    const { read, heads } = this.#stores;
    if (!event.defaultPrevented && read.reading && isShortcut(event, "x")) heads.turn(heads.cursor);
  };

  /** @type {() => Drawing<ReadingView>} */
  #makeDrawing() {
    const reading = () => this.#stores.read.reading;
    return {
      isReady: () => !!reading(),
      parse: (params) => {
        const view = {
          ...parseView(params, reading()),
          roles: params.getAll("roles").at(-1) === "on",
          arrows: params.get("arrows") === "on",
        };
        return this.#stores.read.quiet ? { ...view, pin: null } : view; // a pinned word would reveal the hidden answer
      },
      adopted: () => {
        this.#stores.heads.cursor = this.#stores.stage.view.head;
      },
      message: (view) => ({
        of: reading().of,
        ...encodeView(view, reading()),
        roles: view.roles ? "on" : null,
        arrows: view.arrows ? "on" : null,
      }),
      pinned: () => this.#stores.shown.pinned(),
      pin: (spot) => this.#stores.shown.pinAt(spot),
      draw: () => this.#draw(),
      drawFocus: () => this.#head.draw(),
    };
  }

  // Show a reading, given as an object or as bytes, with the roles of its heads and the step of the tour.
  /** @type {(data: Uint8Array | Reading, headRoles: HeadRoles | null) => void} */
  show(data, headRoles = null) {
    const { read, stage, heads } = this.#stores;
    const { isSame, isOfSameTokens, isLed } = read.receive(data, headRoles, () => stage.view.on);
    if (!isSame) heads.hovered = null;
    if (!isSame || isLed) stage.adopt(undefined, isOfSameTokens && !isLed);
    this.#draw();
    heads.tell();
    this.#turns.begin();
  }

  stop() {
    document.removeEventListener("keydown", this.#onKey);
    this.#turns.stop();
    this.#head.stop();
    this.#stores.stage.stop();
  }

  // Show all heads in place of the opened one, or return to it.
  /** @type {(isWhole: boolean) => void} */
  #turnTo(isWhole) {
    const wasFocused = this.#turn.matches(":focus");
    this.#opened = this.#stores.stage.view.head;
    this.#isWhole = isWhole;
    this.#box.classList.toggle("whole", isWhole);
    this.#turn.textContent = isWhole ? "One head" : "All heads";
    (isWhole ? this.#overview : this.#head).box.querySelector("header")?.append(this.#turn);
    if (wasFocused) this.#turn.focus();
    if (this.#stores.look.letters) this.#draw(); // hidden elements had no size
  }

  #draw() {
    const { read, stage, look } = this.#stores;
    if (!read.reading) return;
    readLook(look, this.#root, read.reading.themes, this.#head.note);
    this.#box.classList.toggle("plain", new URLSearchParams(stage.locate()).get("class") === "1");
    if (this.#opened !== stage.view.head) this.#turnTo(false);
    this.#box.style.setProperty("--heads", String(read.reading.heads));
    this.#findings.draw();
    this.#overview.drawPictures(); // measure the page before changing it, for a single layout
    this.#head.draw();
    this.#overview.draw();
    this.#head.drawControls();
    this.#ranks.draw();
    this.#head.drawTable();
    this.#elsewhere.draw();
    publishArcs(this.#stores, this.#turns.says);
  }
}

// Split the data into a packet and the roles, which follow as JSON preceded by their length.
/** @type {(data: Uint8Array) => [Uint8Array, HeadRoles]} */
function splitPacket(data) {
  const end = data.byteLength - 4;
  const begin = end - new DataView(data.buffer, data.byteOffset + end).getUint32(0, true);
  return [data.subarray(0, begin), JSON.parse(new TextDecoder().decode(data.subarray(begin, end)))];
}

/** @type {(root: HTMLElement, send: Send) => { show: (data: Uint8Array) => void, stop: () => void }} */
function mountOnPage(root, send) {
  const drawing = explorer(root, queueMessages(send));
  return { show: (data) => drawing.show(...splitPacket(data)), stop: () => drawing.stop() };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  const leave = mountComponent(component, ".mha-explorer", mountOnPage, `This drawing could not be made. ${REMEDY}`);
  const { host } = /** @type {ShadowRoot} */ (/** @type {unknown} */ (component.parentElement));
  host?.toggleAttribute("data-drawn", true); // the placeholder can be hidden
  return leave;
}

// ---- Findings in this text ----------------------------------------------------------------------------------

// Describe the behaviour of heads in this text: first the referents of pronouns, then unusual findings. Each sentence
// opens its head and pins the word that shows it.

/**
 * A finding. Every second part of its `words` is quoted from the text. Findings that are not unusual come first.
 *
 * @typedef {{ head: number, words: string[], pin: Pin, isUnusual: boolean }} Finding
 */

const UNUSUAL = "Unusual here:"; // next to a head's readout, which names its strongest link
const NAME = /(L\d+H\d+)/;
const PLACE = /L(\d+)H(\d+)/;

class Findings {
  box = make("p", { class: "findings", role: "group", "aria-label": "Findings in this text" });
  #drawn = /** @type {Finding[] | null} */ (null);
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  draw() {
    const { unusual, mode } = this.#stores.read;
    this.box.hidden = !unusual.length || !!mode; // heads that are off have their own sentence
    if (this.#drawn === unusual) return;
    this.#drawn = unusual;
    const first = unusual.findIndex(({ isUnusual }) => isUnusual);
    const sentences = unusual.map((finding) => this.#makeSentence(finding));
    if (first >= 0) sentences.splice(first, 0, make("span", { class: "soft" }, UNUSUAL));
    this.box.replaceChildren(...sentences);
  }

  /** @type {(finding: Finding) => HTMLElement} */
  #makeSentence({ head, words, pin }) {
    const { stage, heads } = this.#stores;
    const parts = words.flatMap((part, i) => (i % 2 ? [make("i", {}, isolateText(part))] : markHeadNames(part)));
    const onclick = () => {
      heads.open(head);
      stage.change({ on: [head], pin });
    };
    return make("button", { type: "button", onclick }, ...parts);
  }
}

// Split a text, and mark and explain the names of heads in it.
/** @type {(text: string) => (string | HTMLElement)[]} */
const markHeadNames = (text) =>
  text
    .split(NAME)
    .map((part) => (NAME.test(part) ? make("b", { title: part.replace(PLACE, "Layer $1, head $2") }, part) : part));
