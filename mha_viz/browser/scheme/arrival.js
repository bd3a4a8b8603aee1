// What a link leads to, if that is not the top of a page: it comes into sight once it is drawn, and the keyboard with
// it. A person who acts before is not taken there. A link that the server asks to follow is followed once.

const DESTINATION = ".st-key-destination :is(h2, h3)";
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
  #page = -1; // the number of the page that was last open
  #isDue = false; // as long as the destination has not been drawn and nobody has acted
  /** @type {WeakSet<Element>} */
  #followed = new WeakSet(); // links

  // Returns what ends the watch.
  watch() {
    const onAct = () => {
      this.#isDue = false;
    };
    hearActs(onAct);
    return () => ignoreActs(onAct);
  }

  // Page number `page` is open.
  /** @type {(page: number) => void} */
  show(page) {
    this.#isDue ||= this.#page !== page;
    this.#page = page;
  }

  // After a change of the page: follows the link, and goes to the destination if it has come.
  arrive() {
    this.#follow();
    const title = this.#isDue && /** @type {HTMLElement | null} */ (document.querySelector(DESTINATION));
    if (!title) return;
    this.#isDue = false;
    bringTo(title);
  }

  #follow() {
    const link = /** @type {HTMLElement | null} */ (document.querySelector(LEAVING));
    if (!link || this.#followed.has(link)) return;
    this.#followed.add(link);
    link.click();
  }
}
