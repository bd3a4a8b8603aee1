// Mark the open page among the page links, and handle boxes, such as these links, that scroll sideways on narrow pages.
const PAGES = ".st-key-pages";
const ABOUT = ".st-key-about_way"; // set apart from the others

// Make the links a landmark. Mark the link to the open page, and scroll it into view if the links scroll.
/** @type {(pageNumber: number) => void} */
export function markOpenPage(pageNumber) {
  for (const box of document.querySelectorAll(PAGES)) {
    box.setAttribute("role", "navigation");
    box.setAttribute("aria-label", "Pages");
  }
  document.querySelectorAll(`${PAGES} a, ${ABOUT} a`).forEach((link, number) => {
    if (number !== pageNumber) return link.removeAttribute("aria-current");
    if (link.hasAttribute("aria-current")) return;
    link.setAttribute("aria-current", "page");
    const box = link.closest(PAGES);
    if (box) box.scrollLeft += computeMiddle(link) - computeMiddle(box);
  });
}

/** @type {(element: Element) => number} */
function computeMiddle(element) {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}

// ---- Sideways scrolling -------------------------------------------------------------------------------------

// Boxes that scroll if the page is too narrow for their content.

const CHOICES = ":is(.st-key-lab_experiment, .st-key-show) [data-testid=stButtonGroup] > *";
const SLACK = 4; // pixels that may be hidden without scrolling

/** @type {() => NodeListOf<HTMLElement>} */
export const findWideBoxes = () => document.querySelectorAll(`[class*="st-key-wide_"], ${PAGES}, ${CHOICES}`);

/** @type {WeakMap<Element, Element>} */
const scrolledTo = new WeakMap(); // the choice that each box was scrolled to

// Mark a box that is wider than its page: data-scrolls, data-more while content is hidden beyond its right edge, and
// data-before while content is hidden beyond its left one. The box is a tab stop unless its content is focusable. A box
// that fits is not a tab stop.
/** @type {(box: HTMLElement) => void} */
export function markHiddenSides(box) {
  const hiddenWidth = box.scrollWidth - box.clientWidth;
  if (hiddenWidth > 0 && !box.querySelector("a[href], button")) box.setAttribute("tabindex", "0");
  else box.removeAttribute("tabindex");
  box.toggleAttribute("data-scrolls", hiddenWidth > 0);
  const choice = box.querySelector("[aria-checked=true]");
  if (choice && choice !== scrolledTo.get(box)) box.scrollLeft += computeMiddle(choice) - computeMiddle(box);
  if (choice) scrolledTo.set(box, choice);
  box.toggleAttribute("data-before", box.scrollLeft > SLACK);
  box.toggleAttribute("data-more", hiddenWidth - box.scrollLeft > SLACK);
}
