// Where the keyboard is on Streamlit's page: it stays with a control that is drawn anew, and with the legend of the
// map of roles, "Skip to main content" brings it below the navigation, and the page has no ring around it after a click
// beside all controls and a key, such as Escape.
import { focusHeading } from "./arrival.js";

const CONTROLS = "a[href], button, input, select, summary, textarea, [role=slider]";
const ICON = /^keyboard_arrow_(right|down|up)/; // of an expander, which changes when it opens

// A square of a chart is known by its head: what it says changes with the head's state and number.
/** @type {(element: Element) => string} */
function nameOf(element) {
  const { labels } = /** @type {HTMLInputElement} */ (element);
  const label = [...(labels ?? [])].map((one) => one.textContent).join(" ");
  const name =
    element.getAttribute("data-head") ?? element.getAttribute("aria-label") ?? (label || element.textContent);
  return [element.tagName, element.getAttribute("role"), name.replace(ICON, "").trim()].join("|");
}

/** @type {(name: string) => HTMLElement[]} */
const called = (name) =>
  [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(CONTROLS))].filter(
    (control) => nameOf(control) === name && control.checkVisibility(),
  );

// The class that Streamlit makes of the key of one control.
/** @type {(control: Element) => string | undefined} */
const keyOf = (control) =>
  [...(control.closest(".stElementContainer")?.classList ?? [])].find((name) => name.startsWith("st-key-"));

/** @typedef {{ element: Element, name: string, at: number, key: string | undefined }} Focused */

export class Keyboard {
  // What last had the keyboard: the control, its name, its place among those of that name, and its key.
  #last = /** @type {Focused | null} */ (null);
  #isPointer = false; // what acted last

  // Returns what ends the watch.
  watch() {
    /** @type {[string, (event: Event) => void][]} */
    const listeners = [
      ["focusin", (event) => this.#note(event)],
      ["pointerdown", (event) => this.#giveUp(event)],
      ["keydown", (event) => this.#giveUp(event)],
      ["click", skip],
    ];
    listeners.forEach(([type, listener]) => document.addEventListener(type, listener, true));
    return () => listeners.forEach(([type, listener]) => document.removeEventListener(type, listener, true));
  }

  // What opens over a control may have the keyboard for a moment: the control is remembered.
  /** @type {(event: Event) => void} */
  #note({ target }) {
    const control = /** @type {HTMLElement} */ (target);
    if (control.matches("main")) control.toggleAttribute("data-clicked", this.#isPointer);
    if (control.shadowRoot) this.#last = null; // drawn by us, and stays
    if (!control.matches(CONTROLS)) return;
    const name = nameOf(control);
    this.#last = { element: control, name, at: called(name).indexOf(control), key: keyOf(control) };
  }

  // A click elsewhere and a Tab give it up.
  /** @type {(event: Event) => void} */
  #giveUp(event) {
    this.#isPointer = !(event instanceof KeyboardEvent);
    if (!(event instanceof KeyboardEvent) || event.key === "Tab") this.#last = null;
  }

  // After a change of the page: where the control that had the keyboard is gone, the one in its place gets it.
  restore() {
    const last = this.#last;
    if (!last || last.element.isConnected || document.activeElement !== document.body || !document.hasFocus()) return;
    const same = called(last.name);
    const keyed = last.key && document.querySelector(`.${last.key} :is(${CONTROLS})`);
    /** @type {HTMLElement} */ (same[last.at] ?? same[0] ?? keyed)?.focus({ preventScroll: true });
  }
}

// Streamlit's own way leads to the navigation, which is part of its main content.
/** @type {(event: Event) => void} */
function skip(event) {
  if (!(event.target instanceof Element) || !event.target.closest("[data-testid=stSkipToContent]")) return;
  if (!focusHeading()) return;
  event.preventDefault();
  event.stopPropagation();
}

// ---- The legend of the map of roles -------------------------------------------------------------------------

// It stays open, and keeps the keyboard, when the page draws the map anew. Escape closes
// it, and the keyboard is then on what opened it.

const LEGEND = ".mha-map details";

/** @type {() => HTMLDetailsElement | null} */
const legend = () => document.querySelector(LEGEND);

export class Legend {
  #isOpen = false;
  #hasKeyboard = false;
  #drawn = /** @type {HTMLDetailsElement | null} */ (null);

  // Returns what ends the watch.
  watch() {
    /** @type {(event: Event) => void} */
    const note = ({ target }) => {
      if (target === legend()) this.#isOpen = /** @type {HTMLDetailsElement} */ (target).open;
    };
    /** @type {(event: Event) => void} */
    const notice = ({ target }) => {
      this.#hasKeyboard = !!legend()?.contains(/** @type {Node} */ (target));
    };
    document.addEventListener("toggle", note, true);
    document.addEventListener("focusin", notice);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("toggle", note, true);
      document.removeEventListener("focusin", notice);
      document.removeEventListener("keydown", close);
    };
  }

  // After a change of the page.
  restore() {
    const drawn = legend();
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    if (!drawn) return; // it may be absent for a moment
    drawn.open = this.#isOpen;
    if (this.#hasKeyboard && document.activeElement === document.body) focus(drawn);
  }
}

/** @type {(event: KeyboardEvent) => void} */
function close({ key, target }) {
  const drawn = legend();
  if (key !== "Escape" || !drawn?.open) return;
  if (target instanceof Element && target.matches("input, textarea, [aria-expanded=true]")) return;
  drawn.open = false;
  focus(drawn);
}

/** @type {(drawn: HTMLDetailsElement) => void} */
function focus(drawn) {
  drawn.querySelector("summary")?.focus({ preventScroll: true });
}
