// What a visitor clicks must not move away from under the pointer while the page above it still loads.

const [STILL, LONGEST] = [300, 8000]; // milliseconds: at one place, and in all

// Hides an element until fonts are loaded, no placeholder of Streamlit stands before it, and its place is still.
/** @type {(element: HTMLElement) => void} */
export function hideUntilSettled(element) {
  element.style.visibility = "hidden";
  const begin = performance.now();
  const place = { top: NaN, since: begin };
  const look = (/** @type {number} */ now) => {
    const outside = hostOf(element);
    const top = element.getBoundingClientRect().top + scrolled(outside);
    if (top !== place.top || isLoading(outside)) Object.assign(place, { top, since: now });
    if (now - place.since < STILL && now - begin < LONGEST) requestAnimationFrame(look);
    else element.style.visibility = "";
  };
  requestAnimationFrame(look);
}

/** @type {(element: Element) => boolean} */
function isLoading(element) {
  const before = (/** @type {Element} */ placeholder) =>
    Boolean(placeholder.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
  return document.fonts.status !== "loaded" || [...document.querySelectorAll("[data-testid=stSkeleton]")].some(before);
}

// What stands for an element in the page.
/** @type {(element: Element) => Element} */
export function hostOf(element) {
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : element;
}

// How far the page is scrolled, which moves everything and unsettles nothing.
/** @type {(element: Element) => number} */
export const scrolled = (element) => element.closest("[data-testid=stMain]")?.scrollTop ?? window.scrollY;
