// On a first visit, show three heads in turn, each for three seconds with a description, until the user acts. This
// happens only once per browser.
import { prefersReducedMotion } from "../dom.js";
import { encodeView } from "../geometry.js";
import { rememberUserAction, hasActed } from "../memory.js";
import { formatMapName } from "../reading.js";
/** @import { ReadingView } from "../geometry.js" */
/** @import { Stores } from "./explorer.js" */

const TURN_DURATION = 3000; // milliseconds
let hasUserActed = false; // on any page
const USER_EVENTS = ["pointerdown", "keydown", "wheel", "touchstart", "scroll"];

export class FirstVisit {
  #timer = /** @type {ReturnType<typeof setInterval> | undefined} */ (undefined);
  #initialView = /** @type {ReadingView | null} */ (null); // the view before the first turn
  #index = -1;
  #hasBegun = false;
  #stores;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
  }

  // Start if there are heads to show and the address has no parameters.
  begin() {
    const { stage, isStandalone } = this.#stores;
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (hasUserActed || isStandalone || hasActed()) return;
    USER_EVENTS.forEach((type) => document.addEventListener(type, this.#end, { capture: true, passive: true }));
    if (prefersReducedMotion() || stage.readAddress() !== "" || this.#readyTurns.length < 2) return;
    this.#initialView = stage.view;
    this.#timer = setInterval(() => this.#show(), TURN_DURATION);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    USER_EVENTS.forEach((type) => document.removeEventListener(type, this.#end, { capture: true }));
  }

  // Return the description of the head shown now; "" once the user has acted.
  get description() {
    const { data, stage } = this.#stores;
    const turn = this.#readyTurns[this.#index];
    return this.#timer !== undefined && turn?.head === stage.view.head
      ? `${formatMapName(data.reading, turn.head)} ${turn.says}.`
      : "";
  }

  // Return the turns whose heads have been sent in full.
  get #readyTurns() {
    const { showcaseHeads, reading } = this.#stores.data;
    return showcaseHeads.filter(({ head }) => reading.matrices.has(head));
  }

  #show() {
    const { stage, heads } = this.#stores;
    const turns = this.#readyTurns;
    if (stage.readAddress() !== "" || turns.length < 2) return this.stop();
    this.#index = (this.#index + 1) % turns.length;
    const { head, pin } = turns[this.#index];
    heads.cursor = head;
    stage.view = { ...stage.view, head, on: [head], pin };
    stage.drawing.draw();
  }

  // Stop at the current view and write it to the address, without a history entry, since the user did not ask for it.
  // The server reads it with the next action.
  #end = () => {
    hasUserActed = true;
    rememberUserAction();
    this.stop();
    const { stage, data } = this.#stores;
    if (!this.#initialView || stage.view.head === this.#initialView.head || stage.readAddress() !== "") return;
    const { head, pin } = encodeView(stage.view, data.reading);
    const query = new URLSearchParams(
      Object.entries({ head, pin }).flatMap(([name, value]) => (value ? [[name, value]] : [])),
    );
    window.history.replaceState(window.history.state, "", `?${query}`);
  };
}
