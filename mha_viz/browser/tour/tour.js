// A step of the tour: scrolls to what it points at, and keeps the keyboard focus on the button for the next step.
import { still } from "../motion.js";
import { RUNNING } from "../scheme/arrival.js";
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
  const isSame = led().step === data.step;
  led().step = data.step;
  /** @type {(left: number, before?: number) => void} */
  const lead = (left, before) => {
    if (led().step !== data.step) return;
    const [way, place] = [wayOn(), placeOf(data.place)];
    const top = place?.getBoundingClientRect().top;
    // While the page runs, what is above the place may still grow or go.
    const rests = top !== undefined && top === before && !document.querySelector(RUNNING);
    if (!(way && rests) && left > 0) timer = setTimeout(() => lead(left - 1, top), WAIT);
    if (way && hasNoKeyboard()) way.focus({ preventScroll: true });
    if (place && rests) bring(place);
  };
  if (!isSame) lead(LOOKS);
  return () => {
    if (!parentElement.isConnected) clearTimeout(timer); // connected where only newer data have overtaken this call
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

/** @type {(element: Element) => void} */
function bring(element) {
  const { top } = element.getBoundingClientRect();
  if (top > 0 && top < window.innerHeight * 0.55) return;
  element.scrollIntoView({ behavior: still() ? "auto" : "smooth", block: "start" });
}
