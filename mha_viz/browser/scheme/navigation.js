// The links to the pages: a landmark that says which page is open. They scroll sideways, as other boxes do, where the
// page is too narrow.
const PAGES = ".st-key-pages";
const LAST = ".st-key-about_way"; // stands apart

// Makes the links a landmark. Names the one to the open page, number `at`, and brings it into sight where the pages
// scroll.
/** @type {(at: number) => void} */
export function nameCurrent(at) {
  for (const box of document.querySelectorAll(PAGES)) {
    box.setAttribute("role", "navigation");
    box.setAttribute("aria-label", "Pages");
  }
  document.querySelectorAll(`${PAGES} a, ${LAST} a`).forEach((link, number) => {
    if (number !== at) return link.removeAttribute("aria-current");
    if (link.hasAttribute("aria-current")) return;
    link.setAttribute("aria-current", "page");
    const box = link.closest(PAGES);
    if (box) box.scrollLeft += middle(link) - middle(box);
  });
}

/** @type {(element: Element) => number} */
function middle(element) {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}

// ---- What scrolls sideways ----------------------------------------------------------------------------------

// Boxes that scroll where the page is too narrow for what is in them.

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
