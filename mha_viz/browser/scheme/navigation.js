// The links to the pages: a landmark that says which page is open.
export const PAGES = ".st-key-pages";
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
export function middle(element) {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}
