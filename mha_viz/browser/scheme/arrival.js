// What a link leads to on the page that is open comes into sight, and the keyboard with it. A link that the server asks
// to follow is followed once.

const LEAVING = ".st-key-leaving a";
const ACTS = ["pointerdown", "keydown", "wheel"];
const DRAWN = 8000; // milliseconds after which what changes is not the drawing of the page any more
const FIRST = { capture: true, passive: true }; // heard before anybody stops it

// It stays in sight while the rest of the page is still drawn, until a person acts or goes back.
/** @type {(title: HTMLElement) => void} */
export function bringTo(title) {
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  title.scrollIntoView();
  const sizes = new ResizeObserver(() => (title.isConnected ? title.scrollIntoView() : leave()));
  const leave = () => {
    sizes.disconnect();
    ignoreActs(leave);
    window.removeEventListener("popstate", leave);
  };
  window.addEventListener("popstate", leave);
  setTimeout(leave, DRAWN);
  sizes.observe(title.closest("[data-testid=stMainBlockContainer]") ?? document.body);
  hearActs(leave);
}

/** @type {(onAct: () => void) => void} */
function hearActs(onAct) {
  ACTS.forEach((type) => document.addEventListener(type, onAct, FIRST));
}

/** @type {(onAct: () => void) => void} */
function ignoreActs(onAct) {
  ACTS.forEach((type) => document.removeEventListener(type, onAct, FIRST));
}

export class Arrival {
  /** @type {WeakSet<Element>} */
  #followed = new WeakSet(); // links

  // After a change of the page.
  arrive() {
    const link = /** @type {HTMLElement | null} */ (document.querySelector(LEAVING));
    if (!link || this.#followed.has(link)) return;
    this.#followed.add(link);
    link.click();
  }
}
