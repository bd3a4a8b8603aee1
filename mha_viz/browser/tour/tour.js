// A step of the tour: what it speaks of comes into sight, and the keyboard stays on the way to the next step.
const LOOKS = 50; // how often the page is looked at for what the step points at
const WAIT = 120; // milliseconds between two looks

// The step that was led to last, whichever page the component is drawn on.
/** @type {() => { step: string }} */
const led = () => (globalThis.mhaVizTour ??= { step: "" });

/** @param {StreamlitComponent} component */
export default function ({ data }) {
  let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  const isSame = led().step === data.step;
  led().step = data.step;
  const lead = (left) => {
    const [way, place] = [wayOn(), document.querySelector(data.place)];
    if ((!way || !place) && left > 0) timer = setTimeout(() => lead(left - 1), WAIT);
    if (way && hasNoKeyboard()) way.focus({ preventScroll: true });
    if (place) bring(place);
  };
  if (!isSame) lead(LOOKS);
  return () => clearTimeout(timer);
}

/** @type {() => HTMLElement | null} */
const wayOn = () => document.querySelector(".st-key-tour_ways :is(a, button)");

// What had the keyboard has gone with the step before, or was a way of it.
/** @type {() => boolean} */
const hasNoKeyboard = () =>
  document.activeElement === document.body || !!document.activeElement.closest(".st-key-tour");

/** @type {(element: Element) => void} */
function bring(element) {
  const { top } = element.getBoundingClientRect();
  if (top > 0 && top < window.innerHeight * 0.55) return;
  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "start" });
}
