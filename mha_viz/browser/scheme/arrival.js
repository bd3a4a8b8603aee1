// Scroll to the target of a link on the open page, and focus it. A link that the server asks to follow is followed
// once.

const MAST = ".st-key-mast"; // the navigation, with the search field
const LEAVING = ".st-key-leaving a";
const ACTS = ["pointerdown", "keydown", "wheel"];
const DRAWN = 8000; // milliseconds after a run of the page during which changes still belong to its drawing
const RUNNING = ".stApp[data-test-script-state=running]";
const FIRST = { capture: true, passive: true }; // before anybody stops the event

// Keep an element in view while the rest of the page is being drawn, until the user acts or goes back.
/** @type {(title: HTMLElement) => void} */
export function bringIntoView(title) {
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  repeatWhileDrawn(() => title.isConnected && title.scrollIntoView());
}

// Call `bring` now and whenever the page changes size while it is being drawn, until the user acts or goes back, or
// `bring` returns false. Return a function that stops this.
/** @type {(bring: () => boolean | void) => () => void} */
export function repeatWhileDrawn(bring) {
  const sizes = new ResizeObserver(() => void (bring() === false && leave()));
  const leave = () => {
    sizes.disconnect();
    ignore();
  };
  const ignore = callOnAction(leave);
  const leaveOnceDrawn = () => void (document.querySelector(RUNNING) ? setTimeout(leaveOnceDrawn, DRAWN) : leave());
  setTimeout(leaveOnceDrawn, DRAWN);
  sizes.observe(document.querySelector("[data-testid=stMainBlockContainer]") ?? document.body);
  bring();
  return leave;
}

// Call `onAct` once the user acts or goes back. Return a function that stops watching.
/** @type {(onAct: () => void) => () => void} */
export function callOnAction(onAct) {
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
  #left = ""; // the path of the page with the link, until the user acts
  #asked = ""; // the parameters of the link, until its page is open

  // Call after a change of the page.
  arrive() {
    const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(LEAVING));
    if (!link || this.#followed.has(link)) return this.#land();
    this.#followed.add(link);
    this.#left = location.pathname;
    this.#asked = link.search;
    callOnAction(() => (this.#left = this.#asked = ""));
    link.click();
  }

  // Move the focus if the focused element is gone, or is the search field, which stays on all pages.
  #land() {
    const isThere = this.#left !== "" && location.pathname !== this.#left;
    const { activeElement: active, body } = document;
    if (isThere) this.#complete();
    if (isThere && (active === body || active?.closest(MAST))) focusHeading();
  }

  // Streamlit opens the page with the parameters that it knows at that moment. If those of the link are lost, restore
  // them in the address; Streamlit then reads them as after a step back.
  #complete() {
    const asked = this.#asked;
    this.#asked = "";
    if (asked.length < 2 || location.search) return;
    history.replaceState(history.state, "", asked);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }
}

// Move the focus below the navigation. Return false if the page has no heading yet.
/** @type {() => boolean} */
export function focusHeading() {
  const heading = /** @type {HTMLElement | null} */ (document.querySelector("h1.mha-heading"));
  if (heading) heading.tabIndex = -1;
  heading?.focus({ preventScroll: true });
  return heading !== null;
}
