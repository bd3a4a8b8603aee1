// The navigation says which page is open.
export const PAGES = ".st-key-pages";

// Names the link to the open page, number `at`, and brings it into sight where the pages scroll.
/** @type {(at: number) => void} */
export function nameCurrent(at) {
  document.querySelectorAll(`${PAGES} a`).forEach((link, number) => {
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
