// The legend of the map of roles stays open, and keeps the keyboard, when the page draws the map anew. Escape closes
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
