// Show a step of the tour: scroll to its element, and keep the focus on the button for the next step.
import { prefersReducedMotion } from "../dom.js";
import { repeatWhileDrawn } from "../scheme/arrival.js";
/** @import { StreamlitComponent } from "../mount.js" */

const MAX_SEARCHES = 250; // for the step's element
const SEARCH_INTERVAL = 120; // milliseconds

const page = /** @type {{ mhaVizTour?: { step: string } }} */ (globalThis);

// Return the state that all pages share: the last step shown.
/** @type {() => { step: string }} */
const getTourState = () => (page.mhaVizTour ??= { step: "" });

/** @param {StreamlitComponent} component */
export default function ({ data, parentElement }) {
  let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  let stopScrolling = () => {};
  const isSameStep = getTourState().step === data.step;
  getTourState().step = data.step;
  /** @type {(attempts: number) => void} */
  const showStep = (attempts) => {
    if (getTourState().step !== data.step) return;
    const control = findNextControl();
    if (control && isFocusFree()) control.focus({ preventScroll: true });
    if (control && findPlace(data.place)) stopScrolling = repeatWhileDrawn(() => scrollToPlace(data.place));
    else if (attempts > 0) timer = setTimeout(() => showStep(attempts - 1), SEARCH_INTERVAL);
  };
  if (!isSameStep) showStep(MAX_SEARCHES);
  return () => {
    if (parentElement.isConnected) return; // newer data have replaced this call
    clearTimeout(timer);
    stopScrolling();
  };
}

/** @type {() => HTMLElement | null} */
const findNextControl = () => document.querySelector(".st-key-tour_ways :is(a, button)");

// Find an element. The selector `OUTER *::part(NAME)` works only in style sheets: the part is inside a shadow root.
/** @type {(selector: string) => Element | null} */
function findPlace(selector) {
  const [, outer, name] = /^(.+)::part\((.+)\)$/.exec(selector) ?? [];
  if (!name) return document.querySelector(selector);
  const roots = [...document.querySelectorAll(outer)].map((host) => host.shadowRoot);
  return roots.find(Boolean)?.querySelector(`[part="${name}"]`) ?? null;
}

// Whether the focused element was removed with the previous step, or is one of the tour's buttons.
/** @type {() => boolean} */
const isFocusFree = () => document.activeElement === document.body || !!document.activeElement?.closest(".st-key-tour");

// Scroll to the top of the page if the element is then in the upper half of the window. Otherwise scroll to the
// element, unless it is already there.
/** @type {(selector: string) => void} */
function scrollToPlace(selector) {
  const [place, main] = [findPlace(selector), document.querySelector(".stMain")];
  if (!place || !main) return;
  const [{ top }, limit] = [place.getBoundingClientRect(), window.innerHeight * 0.55];
  const behavior = prefersReducedMotion() ? "auto" : "smooth";
  if (top + main.scrollTop < limit) main.scrollTo({ top: 0, behavior });
  else if (top <= 0 || top >= limit) place.scrollIntoView({ behavior, block: "start" });
}
