// On a first visit, show three heads in turn, each for three seconds with a description, until the user acts. This
// happens only once per browser.
import { prefersReducedMotion } from "../dom.js";
import { encodeView } from "../geometry.js";
import { rememberActing, hasActed } from "../memory.js";
import { formatMapName } from "../reading.js";
/** @import { ReadingView } from "../geometry.js" */
/** @import { Stores } from "./explorer.js" */

const EACH = 3000; // milliseconds
let ended = false; // the user has acted, on any page
const ACTS = ["pointerdown", "keydown", "wheel", "touchstart", "scroll"];

export class Turns {
  #timer = /** @type {ReturnType<typeof setInterval> | undefined} */ (undefined);
  #first = /** @type {ReadingView | null} */ (null); // the view before the first turn
  #turn = -1;
  #begun = false;
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  // Begin if there is something to show and the address asks for nothing else.
  begin() {
    const { stage, isAlone } = this.#stores;
    if (this.#begun) return;
    this.#begun = true;
    if (ended || isAlone || hasActed()) return;
    ACTS.forEach((act) => document.addEventListener(act, this.#end, { capture: true, passive: true }));
    if (prefersReducedMotion() || stage.locate() !== "" || this.#readyTurns.length < 2) return;
    this.#first = stage.view;
    this.#timer = setInterval(() => this.#show(), EACH);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    ACTS.forEach((act) => document.removeEventListener(act, this.#end, { capture: true }));
  }

  // The description of the head shown in this turn; empty once the user has acted.
  get says() {
    const { read, stage } = this.#stores;
    const turn = this.#readyTurns[this.#turn];
    return this.#timer !== undefined && turn?.head === stage.view.head
      ? `${formatMapName(read.reading, turn.head)} ${turn.says}.`
      : "";
  }

  // The turns whose heads have been sent in full.
  get #readyTurns() {
    const { turns, reading } = this.#stores.read;
    return turns.filter(({ head }) => reading.matrices.has(head));
  }

  #show() {
    const { stage, heads } = this.#stores;
    const all = this.#readyTurns;
    if (stage.locate() !== "" || all.length < 2) return this.stop();
    this.#turn = (this.#turn + 1) % all.length;
    const { head, pin } = all[this.#turn];
    heads.cursor = head;
    stage.view = { ...stage.view, head, on: [head], pin };
    stage.drawing.draw();
  }

  // Stop at the current view. The address states it without a history entry, since the user did not ask for it; the
  // server reads it with the next action.
  #end = () => {
    ended = true;
    rememberActing();
    this.stop();
    const { stage, read } = this.#stores;
    if (!this.#first || stage.view.head === this.#first.head || stage.locate() !== "") return;
    const { head, pin } = encodeView(stage.view, read.reading);
    const query = new URLSearchParams(
      Object.entries({ head, pin }).flatMap(([name, value]) => (value ? [[name, value]] : [])),
    );
    window.history.replaceState(window.history.state, "", `?${query}`);
  };
}
