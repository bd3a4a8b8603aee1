// A step of the tour: scrolls to what it points at, and keeps the keyboard focus on the button for the next step.
import { still } from "../dom.js";
import { whileDrawn } from "../scheme/arrival.js";
/** @import { StreamlitComponent } from "../mount.js" */

const LOOKS = 250; // how often the page is searched for the element of the step
const WAIT = 120; // milliseconds between two searches

const page = /** @type {{ mhaVizTour?: { step: string } }} */ (globalThis);

// The last step that was shown, on whichever page the component is drawn.
/** @type {() => { step: string }} */
const led = () => (page.mhaVizTour ??= { step: "" });

/** @param {StreamlitComponent} component */
export default function ({ data, parentElement }) {
  let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  let leave = () => {};
  const isSame = led().step === data.step;
  led().step = data.step;
  /** @type {(left: number) => void} */
  const lead = (left) => {
    if (led().step !== data.step) return;
    const way = wayOn();
    if (way && hasNoKeyboard()) way.focus({ preventScroll: true });
    if (way && placeOf(data.place)) leave = whileDrawn(() => bring(data.place));
    else if (left > 0) timer = setTimeout(() => lead(left - 1), WAIT);
  };
  if (!isSame) lead(LOOKS);
  return () => {
    if (parentElement.isConnected) return; // newer data have overtaken this call
    clearTimeout(timer);
    leave();
  };
}

/** @type {() => HTMLElement | null} */
const wayOn = () => document.querySelector(".st-key-tour_ways :is(a, button)");

// A selector of a part, `OUTER *::part(NAME)`, is for style sheets alone: the part is inside a drawing's shadow root.
/** @type {(selector: string) => Element | null} */
function placeOf(selector) {
  const [, outer, name] = /^(.+)::part\((.+)\)$/.exec(selector) ?? [];
  if (!name) return document.querySelector(selector);
  const roots = [...document.querySelectorAll(outer)].map((host) => host.shadowRoot);
  return roots.find(Boolean)?.querySelector(`[part="${name}"]`) ?? null;
}

// The focused element was removed with the previous step, or was one of its buttons.
/** @type {() => boolean} */
const hasNoKeyboard = () =>
  document.activeElement === document.body || !!document.activeElement?.closest(".st-key-tour");

// To the top of the page if the place is in its upper half there, otherwise to the place if it is not in that of the
// window.
/** @type {(selector: string) => void} */
function bring(selector) {
  const [place, main] = [placeOf(selector), document.querySelector(".stMain")];
  if (!place || !main) return;
  const [{ top }, low] = [place.getBoundingClientRect(), window.innerHeight * 0.55];
  const behavior = still() ? "auto" : "smooth";
  if (top + main.scrollTop < low) main.scrollTo({ top: 0, behavior });
  else if (top <= 0 || top >= low) place.scrollIntoView({ behavior, block: "start" });
}
