// Manage the keyboard focus on Streamlit's pages. It stays on a control that is redrawn, and on the legend of the map
// of roles; "Skip to main content" moves it below the navigation; and the page shows no focus ring after a click
// outside all controls followed by a key such as Escape.
import { focusHeading } from "./arrival.js";

const CONTROLS = "a[href], button, input, select, summary, textarea, [role=slider]";
const ICON = /^keyboard_arrow_(right|down|up)/; // of an expander; it changes when the expander opens

// Return the name of a control. A square of a chart is identified by its head, because its label changes with the
// head's state and number.
/** @type {(element: Element) => string} */
function getName(element) {
  const { labels } = /** @type {HTMLInputElement} */ (element);
  const label = [...(labels ?? [])].map(({ textContent }) => textContent).join(" ");
  const name =
    element.getAttribute("data-head") ?? element.getAttribute("aria-label") ?? (label || element.textContent);
  return [element.tagName, element.getAttribute("role"), name.replace(ICON, "").trim()].join("|");
}

/** @type {(name: string) => HTMLElement[]} */
const findByName = (name) =>
  [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(CONTROLS))].filter(
    (control) => getName(control) === name && control.checkVisibility(),
  );

// Return the class that Streamlit derives from the key of a control.
/** @type {(control: Element) => string | undefined} */
const getKey = (control) =>
  [...(control.closest(".stElementContainer")?.classList ?? [])].find((name) => name.startsWith("st-key-"));

/** @typedef {{ element: Element, name: string, index: number, key: string | undefined }} FocusedControl */

export class Keyboard {
  // The last focused control, its name, its index among controls of that name, and its key.
  #lastFocus = /** @type {FocusedControl | null} */ (null);
  #isPointer = false; // whether the last user action was a pointer action

  // Return a function that stops watching.
  watch() {
    /** @type {[string, (event: Event) => void][]} */
    const listeners = [
      ["focusin", (event) => this.#remember(event)],
      ["pointerdown", (event) => this.#forget(event)],
      ["keydown", (event) => this.#forget(event)],
      ["click", skipNavigation],
    ];
    listeners.forEach(([type, listener]) => document.addEventListener(type, listener, true));
    return () => listeners.forEach(([type, listener]) => document.removeEventListener(type, listener, true));
  }

  // Remember the focused control. A popup over it may take the focus for a moment.
  /** @type {(event: Event) => void} */
  #remember({ target }) {
    const control = /** @type {HTMLElement} */ (target);
    if (control.matches("main")) control.toggleAttribute("data-clicked", this.#isPointer);
    if (control.shadowRoot) this.#lastFocus = null; // our own component, which is not redrawn
    if (!control.matches(CONTROLS)) return;
    const name = getName(control);
    this.#lastFocus = { element: control, name, index: findByName(name).indexOf(control), key: getKey(control) };
  }

  // Forget the control after a click or a Tab.
  /** @type {(event: Event) => void} */
  #forget(event) {
    this.#isPointer = !(event instanceof KeyboardEvent);
    if (!(event instanceof KeyboardEvent) || event.key === "Tab") this.#lastFocus = null;
  }

  // After a change of the page, focus the replacement of a focused control that was removed.
  restore() {
    const lastFocus = this.#lastFocus;
    if (!lastFocus || lastFocus.element.isConnected || document.activeElement !== document.body || !document.hasFocus())
      return;
    const controls = findByName(lastFocus.name);
    const controlByKey = lastFocus.key && document.querySelector(`.${lastFocus.key} :is(${CONTROLS})`);
    /** @type {HTMLElement} */ (controls[lastFocus.index] ?? controls[0] ?? controlByKey)?.focus({
      preventScroll: true,
    });
  }
}

// Skip the navigation. Streamlit's own link leads to it, because it is part of the main content.
/** @type {(event: Event) => void} */
function skipNavigation(event) {
  if (!(event.target instanceof Element) || !event.target.closest("[data-testid=stSkipToContent]")) return;
  if (!focusHeading()) return;
  event.preventDefault();
  event.stopPropagation();
}

// ---- The legend of the map of roles -------------------------------------------------------------------------

// The legend stays open, and keeps the focus, when the map is redrawn. Escape closes it and moves the focus to its
// opener.

const LEGEND = ".mha-map details";

/** @type {() => HTMLDetailsElement | null} */
const findLegend = () => document.querySelector(LEGEND);

export class Legend {
  #isOpen = false;
  #hadFocus = false;
  #drawnLegend = /** @type {HTMLDetailsElement | null} */ (null);

  // Return a function that stops watching.
  watch() {
    /** @type {(event: Event) => void} */
    const onToggle = ({ target }) => {
      if (target === findLegend()) this.#isOpen = /** @type {HTMLDetailsElement} */ (target).open;
    };
    /** @type {(event: Event) => void} */
    const onFocus = ({ target }) => {
      this.#hadFocus = !!findLegend()?.contains(/** @type {Node} */ (target));
    };
    document.addEventListener("toggle", onToggle, true);
    document.addEventListener("focusin", onFocus);
    document.addEventListener("keydown", closeLegend);
    return () => {
      document.removeEventListener("toggle", onToggle, true);
      document.removeEventListener("focusin", onFocus);
      document.removeEventListener("keydown", closeLegend);
    };
  }

  // Call after a change of the page.
  restore() {
    const details = findLegend();
    if (details === this.#drawnLegend) return;
    this.#drawnLegend = details;
    if (!details) return; // it may be absent for a moment
    details.open = this.#isOpen;
    if (this.#hadFocus && document.activeElement === document.body) focusLegend(details);
  }
}

/** @type {(event: KeyboardEvent) => void} */
function closeLegend({ key, target }) {
  const details = findLegend();
  if (key !== "Escape" || !details?.open) return;
  if (target instanceof Element && target.matches("input, textarea, [aria-expanded=true]")) return;
  details.open = false;
  focusLegend(details);
}

/** @type {(details: HTMLDetailsElement) => void} */
function focusLegend(details) {
  details.querySelector("summary")?.focus({ preventScroll: true });
}
