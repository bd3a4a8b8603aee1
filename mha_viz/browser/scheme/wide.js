// Boxes that scroll sideways where the page is too narrow for what is in them.
import { PAGES, middle } from "./navigation.js";

const CHOICES = ":is(.st-key-lab_experiment, .st-key-show) [data-testid=stButtonGroup] > *";
const SLACK = 4; // pixels that nobody misses

/** @type {() => NodeListOf<HTMLElement>} */
export const wideBoxes = () => document.querySelectorAll(`[class*="st-key-wide_"], ${PAGES}, ${CHOICES}`);

/** @type {WeakMap<Element, Element>} */
const shown = new WeakMap(); // the choice that each box was scrolled to

// What is wider than its page scrolls in a box that says so: data-scrolls, data-more as long as something lies beyond
// its right edge, and data-before as long as something lies beyond its left one. The keyboard can focus it, unless it
// can go to what is inside. One that fits is no stop.
/** @type {(box: HTMLElement) => void} */
export function mark(box) {
  const beyond = box.scrollWidth - box.clientWidth;
  if (beyond > 0 && !box.querySelector("a[href], button")) box.setAttribute("tabindex", "0");
  else box.removeAttribute("tabindex");
  box.toggleAttribute("data-scrolls", beyond > 0);
  const chosen = box.querySelector("[aria-checked=true]");
  if (chosen && chosen !== shown.get(box)) box.scrollLeft += middle(chosen) - middle(box);
  if (chosen) shown.set(box, chosen);
  box.toggleAttribute("data-before", box.scrollLeft > SLACK);
  box.toggleAttribute("data-more", beyond - box.scrollLeft > SLACK);
}
