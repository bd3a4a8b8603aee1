// What a link leads to, if that is not the top of a page: it comes into sight once it is drawn, and the keyboard with
// it. A person who acts before is not taken there. A link that the server asks to follow is followed once.

const DESTINATION = ".st-key-destination :is(h2, h3)";
const LEAVING = ".st-key-leaving a";
const ACTS = ["pointerdown", "keydown", "wheel"];

const followed = new WeakSet(); // links
let arrived = -1; // the number of the page that was last open
let arriving = false; // as long as the destination has not been drawn and nobody has acted

/** @type {(title: HTMLElement) => void} */
export function bringTo(title) {
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  title.scrollIntoView();
}

/** @type {() => void} */
function follow() {
  const link = /** @type {HTMLElement | null} */ (document.querySelector(LEAVING));
  if (!link || followed.has(link)) return;
  followed.add(link);
  link.click();
}

/** @type {() => void} */
export function arrive() {
  follow();
  const title = arriving && /** @type {HTMLElement | null} */ (document.querySelector(DESTINATION));
  if (!title) return;
  arriving = false;
  bringTo(title);
}

// Page number `current` is open. Returns what ends the watch.
/** @type {(current: number) => () => void} */
export function watchArrival(current) {
  const act = () => (arriving = false);
  arriving ||= arrived !== current;
  arrived = current;
  ACTS.forEach((type) => document.addEventListener(type, act, { capture: true, passive: true }));
  return () => ACTS.forEach((type) => document.removeEventListener(type, act, true));
}
