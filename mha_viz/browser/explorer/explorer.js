// Show one reading: its findings, the grid of all heads, one head as links and heatmap, and the ranking by a link.
// Changes of the view are drawn here at once; the server is told afterwards and keeps the URL.
import { make, isolateText } from "../dom.js";
import { encodeView, parseView } from "../geometry.js";
import { mountComponent, queueMessages } from "../mount.js";
import { isShortcut } from "../shortcuts.js";
import { Stage, readLook } from "../stage.js";
import { OtherSentences } from "./elsewhere.js";
import { FirstVisit } from "./first_visit.js";
import { HeadView } from "./head.js";
import { Heads } from "./heads.js";
import { Overview } from "./overview.js";
import { Ranking } from "./preview.js";
import { ReadingData, VisibleState, publishArcs } from "./data.js";
/** @import { Pin, ReadingView } from "../geometry.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Drawing, Look } from "../stage.js" */
/** @import { HeadRoles } from "./roles.js" */

/**
 * State shared by the drawings of the explorer: the reading, its visible part, and the hovered spot. `say` announces
 * text to screen readers; `isStandalone`: whether this is a file without a server.
 *
 * @typedef {object} Stores
 * @property {ReadingData} data
 * @property {Stage<ReadingView>} stage
 * @property {VisibleState} visible
 * @property {Heads} heads
 * @property {Look} look
 * @property {(words: string) => void} say
 * @property {boolean} isStandalone
 */

const REMEDY = "Delete everything from the first “&” in the address, and reload the page, or read another text.";

/** @type {(root: HTMLElement, send: Send, readAddress?: () => string) => Explorer} */
export const explorer = (root, send, readAddress = () => window.location.search) =>
  new Explorer(root, send, readAddress);

class Explorer {
  #announcement = make("p", { class: "said", "aria-live": "polite" });
  #root;
  #box;
  #stores;
  #findings;
  #overview;
  #head;
  #ranking;
  #otherSentences;
  #firstVisit;
  #showsAllHeads = false; // class mode shows one drawing at a time: all heads, or the open one
  #viewButton = make("button", { type: "button", class: "turn" });
  #drawnHead = -1;

  /** @param {HTMLElement} root @param {Send} send @param {() => string} readAddress */
  constructor(root, send, readAddress) {
    const [data, look] = [new ReadingData(), /** @type {Look} */ ({})];
    const stage = new Stage(send, readAddress, this.#makeDrawing());
    /** @type {(words: string) => void} */
    const say = (words) => {
      this.#announcement.textContent = words;
    };
    const heads = new Heads(data, stage, say);
    this.#root = root;
    this.#stores = {
      data,
      stage,
      visible: new VisibleState(data, stage, look),
      heads,
      look,
      say,
      isStandalone: !!root.dataset.alone,
    };
    this.#findings = new Findings(this.#stores);
    this.#ranking = new Ranking(this.#stores);
    this.#firstVisit = new FirstVisit(this.#stores);
    this.#head = new HeadView(this.#stores);
    this.#overview = new Overview(this.#stores, this.#head.box, this.#ranking.box);
    this.#otherSentences = new OtherSentences(this.#stores);
    this.#head.box.append(this.#otherSentences.box);
    this.#viewButton.onclick = () => this.#showAllHeads(!this.#showsAllHeads);
    this.#head.menu.append(this.#overview.roles.box, this.#overview.roles.legend);
    this.#box = make("div", { class: "explorer" }, this.#overview.box, this.#head.box, this.#announcement);
    root.replaceChildren(this.#findings.box, this.#box);
    if (!root.dataset.alone) document.addEventListener("keydown", this.#onKey);
  }

  // Handle the key that switches a head off, wherever the focus is. The grid handles the key itself.
  #onKey = (/** @type {KeyboardEvent} */ event) => {
    const { data, heads } = this.#stores;
    if (!event.defaultPrevented && data.reading && isShortcut(event, "x")) heads.toggleOff(heads.cursor);
  };

  /** @type {() => Drawing<ReadingView>} */
  #makeDrawing() {
    const reading = () => this.#stores.data.reading;
    return {
      isReady: () => !!reading(),
      parse: (params) => {
        const view = {
          ...parseView(params, reading()),
          roles: params.getAll("roles").at(-1) === "on",
          arrows: params.get("arrows") === "on",
        };
        return this.#stores.data.quiet ? { ...view, pin: null } : view; // a pinned word would reveal the hidden answer
      },
      onAdopt: () => {
        this.#stores.heads.cursor = this.#stores.stage.view.head;
      },
      makeMessage: (view) => ({
        of: reading().of,
        ...encodeView(view, reading()),
        roles: view.roles ? "on" : null,
        arrows: view.arrows ? "on" : null,
      }),
      findPinnedSpot: () => this.#stores.visible.findPinnedSpot(),
      makePin: (spot) => this.#stores.visible.makePin(spot),
      draw: () => this.#draw(),
      drawFocus: () => this.#head.draw(),
    };
  }

  // Show a reading, given as an object or as bytes, with the roles of its heads and the step of the tour.
  /** @type {(packet: Uint8Array | Reading, headRoles: HeadRoles | null) => void} */
  show(packet, headRoles = null) {
    const { data, stage, heads } = this.#stores;
    const { isSameReading, hasSameTokens, isViewReplaced } = data.receive(packet, headRoles, () => stage.view.on);
    if (!isSameReading) heads.hovered = null;
    if (!isSameReading || isViewReplaced) stage.adopt(undefined, hasSameTokens && !isViewReplaced);
    this.#draw();
    heads.announceSwitch();
    this.#firstVisit.begin();
  }

  stop() {
    document.removeEventListener("keydown", this.#onKey);
    this.#firstVisit.stop();
    this.#head.stop();
    this.#stores.stage.stop();
  }

  // Show all heads in place of the open one, or return to it.
  /** @type {(showsAll: boolean) => void} */
  #showAllHeads(showsAll) {
    const wasFocused = this.#viewButton.matches(":focus");
    this.#drawnHead = this.#stores.stage.view.head;
    this.#showsAllHeads = showsAll;
    this.#box.classList.toggle("whole", showsAll);
    this.#viewButton.textContent = showsAll ? "One head" : "All heads";
    (showsAll ? this.#overview : this.#head).box.querySelector("header")?.append(this.#viewButton);
    if (wasFocused) this.#viewButton.focus();
    if (this.#stores.look.minLabelSize) this.#draw(); // hidden elements have no size
  }

  #draw() {
    const { data, stage, look } = this.#stores;
    if (!data.reading) return;
    readLook(look, this.#root, data.reading.themes, this.#head.note);
    this.#box.classList.toggle("plain", new URLSearchParams(stage.readAddress()).get("class") === "1");
    if (this.#drawnHead !== stage.view.head) this.#showAllHeads(false);
    this.#box.style.setProperty("--heads", String(data.reading.heads));
    this.#findings.draw();
    this.#overview.drawPictures(); // measure the page before changing it, for a single layout
    this.#head.draw();
    this.#overview.draw();
    this.#head.drawControls();
    this.#ranking.draw();
    this.#head.drawTable();
    this.#otherSentences.draw();
    publishArcs(this.#stores, this.#firstVisit.description);
  }
}

// Split the data into the packet, the roles as JSON, and the length of this JSON.
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
  const unmount = mountComponent(component, ".mha-explorer", mountOnPage, `This drawing could not be made. ${REMEDY}`);
  const { host } = /** @type {ShadowRoot} */ (/** @type {unknown} */ (component.parentElement));
  host?.toggleAttribute("data-drawn", true); // the placeholder can be hidden
  return unmount;
}

// ---- Findings in this text ----------------------------------------------------------------------------------

// Describe the behaviour of heads in this text: first the referents of pronouns, then unusual findings. Clicking a
// sentence opens its head and pins the word that shows the finding.

/**
 * A finding. Every second part of its `words` is quoted from the text. Findings that are not unusual come first.
 *
 * @typedef {{ head: number, words: string[], pin: Pin, isUnusual: boolean }} Finding
 */

const UNUSUAL = "Unusual here:";
const HEAD_NAME = /(L\d+H\d+)/;
const NAME_PARTS = /L(\d+)H(\d+)/;

class Findings {
  box = make("p", { class: "findings", role: "group", "aria-label": "Findings in this text" });
  #drawnFindings = /** @type {Finding[] | null} */ (null);
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  draw() {
    const { findings, ablation } = this.#stores.data;
    this.box.hidden = !findings.length || !!ablation; // heads that are off have their own sentence
    if (this.#drawnFindings === findings) return;
    this.#drawnFindings = findings;
    const firstUnusual = findings.findIndex(({ isUnusual }) => isUnusual);
    const sentences = findings.map((finding) => this.#makeSentence(finding));
    if (firstUnusual >= 0) sentences.splice(firstUnusual, 0, make("span", { class: "soft" }, UNUSUAL));
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
    .split(HEAD_NAME)
    .map((part) =>
      HEAD_NAME.test(part) ? make("b", { title: part.replace(NAME_PARTS, "Layer $1, head $2") }, part) : part,
    );
