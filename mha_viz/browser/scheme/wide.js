// Boxes that scroll sideways where the page is too narrow for what is in them.
import { PAGES } from "./navigation.js";

const SLACK = 4; // pixels that nobody misses

/** @type {() => NodeListOf<HTMLElement>} */
export const wideBoxes = () => document.querySelectorAll(`[class*="st-key-wide_"], ${PAGES}`);

// What is wider than its page scrolls in a box that says so: data-scrolls, and data-more as long as something lies
// beyond its right edge. The keyboard can focus it, unless it can go to what is inside. One that fits is no stop.
/** @type {(box: HTMLElement) => void} */
export function mark(box) {
  const beyond = box.scrollWidth - box.clientWidth;
  if (beyond > 0 && !box.querySelector("a[href], .mha-squares")) box.setAttribute("tabindex", "0");
  else box.removeAttribute("tabindex");
  box.toggleAttribute("data-scrolls", beyond > 0);
  box.toggleAttribute("data-more", beyond - box.scrollLeft > SLACK);
}
