// What a link leads to on the page that is open comes into sight, and the keyboard with it. A link that the server asks
// to follow is followed once.

const MAST = ".st-key-mast"; // the navigation, with the search field
const LEAVING = ".st-key-leaving a";
const ACTS = ["pointerdown", "keydown", "wheel"];
const DRAWN = 8000; // milliseconds after the page's run in which what changes is still its drawing
const RUNNING = ".stApp[data-test-script-state=running]";
const FIRST = { capture: true, passive: true }; // heard before anybody stops it

// It stays in sight while the rest of the page is still drawn, until a person acts or goes back.
/** @type {(title: HTMLElement) => void} */
export function bringTo(title) {
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  whileDrawn(() => title.isConnected && title.scrollIntoView());
}

// Calls `bring` now and whenever the size of the page changes while it is still drawn, until a person acts or goes
// back, or the answer is false. Returns what ends it.
/** @type {(bring: () => boolean | void) => () => void} */
export function whileDrawn(bring) {
  const sizes = new ResizeObserver(() => void (bring() === false && leave()));
  const leave = () => {
    sizes.disconnect();
    ignore();
  };
  const ignore = whenActed(leave);
  const leaveOnceDrawn = () => void (document.querySelector(RUNNING) ? setTimeout(leaveOnceDrawn, DRAWN) : leave());
  setTimeout(leaveOnceDrawn, DRAWN);
  sizes.observe(document.querySelector("[data-testid=stMainBlockContainer]") ?? document.body);
  bring();
  return leave;
}

// Calls `onAct` once a person acts or goes back. Returns what ends the watch.
/** @type {(onAct: () => void) => () => void} */
export function whenActed(onAct) {
  const acted = () => {
    ignore();
    onAct();
  };
  const ignore = () => {
    ACTS.forEach((type) => document.removeEventListener(type, acted, FIRST));
    window.removeEventListener("popstate", acted);
  };
  ACTS.forEach((type) => document.addEventListener(type, acted, FIRST));
  window.addEventListener("popstate", acted);
  return ignore;
}

export class Arrival {
  /** @type {WeakSet<Element>} */
  #followed = new WeakSet(); // links
  #left = ""; // the path that a link led away from, until a person acts
  #asked = ""; // the parameters of the link, until its page is open

  // After a change of the page.
  arrive() {
    const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(LEAVING));
    if (!link || this.#followed.has(link)) return this.#land();
    this.#followed.add(link);
    this.#left = location.pathname;
    this.#asked = link.search;
    whenActed(() => (this.#left = this.#asked = ""));
    link.click();
  }

  // What had the keyboard is gone, or is the search field, which stays from page to page.
  #land() {
    const isThere = this.#left !== "" && location.pathname !== this.#left;
    const { activeElement: active, body } = document;
    if (isThere) this.#complete();
    if (isThere && (active === body || active?.closest(MAST))) focusHeading();
  }

  // Streamlit opens the page with the parameters that it knows at that moment; where these are lost, the address gets
  // those of the link, and Streamlit reads them as after a step back.
  #complete() {
    const asked = this.#asked;
    this.#asked = "";
    if (asked.length < 2 || location.search) return;
    history.replaceState(history.state, "", asked);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }
}

// The keyboard goes on below the navigation. False where the page has no heading yet.
/** @type {() => boolean} */
export function focusHeading() {
  const heading = /** @type {HTMLElement | null} */ (document.querySelector("h1.mha-heading"));
  if (heading) heading.tabIndex = -1;
  heading?.focus({ preventScroll: true });
  return heading !== null;
}
