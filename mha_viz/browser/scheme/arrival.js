// Scroll to the target of a link on the open page, and focus it. A link that the server asks to follow is followed
// once.

const NAVIGATION = ".st-key-mast"; // including the search field
const REQUESTED_LINK = ".st-key-leaving a";
const ACTIONS = ["pointerdown", "keydown", "wheel"];
const DRAWING_TIME = 8000; // milliseconds after a run in which changes still belong to its drawing
const RUNNING_APP = ".stApp[data-test-script-state=running]";
const LISTENER = { capture: true, passive: true }; // so that no other listener stops the event first

// Keep an element in view while the rest of the page is being drawn, until the user acts or goes back.
/** @type {(title: HTMLElement) => void} */
export function bringIntoView(title) {
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  repeatWhileDrawn(() => title.isConnected && title.scrollIntoView());
}

// Call `scroll` now and whenever the page changes size while it is being drawn, until the user acts or goes back, or
// `scroll` returns false. Return a function that stops this.
/** @type {(scroll: () => boolean | void) => () => void} */
export function repeatWhileDrawn(scroll) {
  const sizes = new ResizeObserver(() => void (scroll() === false && stop()));
  const stop = () => {
    sizes.disconnect();
    stopListening();
  };
  const stopListening = callOnAction(stop);
  const stopOnceDrawn = () =>
    void (document.querySelector(RUNNING_APP) ? setTimeout(stopOnceDrawn, DRAWING_TIME) : stop());
  setTimeout(stopOnceDrawn, DRAWING_TIME);
  sizes.observe(document.querySelector("[data-testid=stMainBlockContainer]") ?? document.body);
  scroll();
  return stop;
}

// Call `onAction` once, when the user acts or goes back. Return a function that stops listening.
/** @type {(onAction: () => void) => () => void} */
export function callOnAction(onAction) {
  const onEvent = () => {
    stopListening();
    onAction();
  };
  const stopListening = () => {
    ACTIONS.forEach((type) => document.removeEventListener(type, onEvent, LISTENER));
    window.removeEventListener("popstate", onEvent);
  };
  ACTIONS.forEach((type) => document.addEventListener(type, onEvent, LISTENER));
  window.addEventListener("popstate", onEvent);
  return stopListening;
}

export class LinkFollower {
  /** @type {WeakSet<Element>} */
  #followed = new WeakSet(); // links
  #previousPath = ""; // the path of the page with the link, until the user acts
  #parameters = ""; // the parameters of the link, until its page is open

  // Call after a change of the page.
  follow() {
    const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(REQUESTED_LINK));
    if (!link || this.#followed.has(link)) return this.#finish();
    this.#followed.add(link);
    this.#previousPath = location.pathname;
    this.#parameters = link.search;
    callOnAction(() => (this.#previousPath = this.#parameters = ""));
    link.click();
  }

  // Once the link's page is open, move the focus to its heading if the focused element is gone or in the navigation.
  #finish() {
    const hasArrived = this.#previousPath !== "" && location.pathname !== this.#previousPath;
    const { activeElement: active, body } = document;
    if (hasArrived) this.#restoreParameters();
    if (hasArrived && (active === body || active?.closest(NAVIGATION))) focusHeading();
  }

  // Streamlit opens the page with the parameters that it knows at that moment. If those of the link are lost, restore
  // them in the address; Streamlit then reads them as after a step back.
  #restoreParameters() {
    const parameters = this.#parameters;
    this.#parameters = "";
    if (parameters.length < 2 || location.search) return;
    history.replaceState(history.state, "", parameters);
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
