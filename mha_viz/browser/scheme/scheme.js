// What every page needs of a script: charts in the colours of the page, keys that reach what scrolls sideways and stay
// with what they operate, and a navigation that says which page is open.
import { isDark } from "../ink.js";
import { restoreKeyboard, watchKeyboard } from "./keyboard.js";

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

const SLACK = 4; // pixels that nobody misses
const PAGES = ".st-key-pages";

let left = 1; // how often they may still be asked for: never without end

/** @type {(selector: string) => HTMLElement[]} */
const all = (selector) => [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))];

/** @type {(element: Element) => number} */
function middle(element) {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}

// Names the link to the open page, number `at`, and brings it into sight where the pages scroll.
/** @type {(at: number) => void} */
function nameCurrent(at) {
  all(`${PAGES} a`).forEach((link, number) => {
    if (number !== at) return link.removeAttribute("aria-current");
    if (link.hasAttribute("aria-current")) return;
    link.setAttribute("aria-current", "page");
    const box = link.closest(PAGES);
    box.scrollLeft += middle(link) - middle(box);
  });
}

// What is wider than its page scrolls in a box that says so: data-scrolls, and data-more as long as something lies
// beyond its right edge. The keyboard can focus it, unless it can go to what is inside. One that fits is no stop.
/** @type {(box: HTMLElement) => void} */
function mark(box) {
  const beyond = box.scrollWidth - box.clientWidth;
  if (beyond > 0 && !box.querySelector("a[href]")) box.setAttribute("tabindex", "0");
  else box.removeAttribute("tabindex");
  box.toggleAttribute("data-scrolls", beyond > 0);
  box.toggleAttribute("data-more", beyond - box.scrollLeft > SLACK);
}

// Keeps that up to date, with the page number `current` open. Returns what ends the watch.
/** @type {(current: number) => () => void} */
function watchPage(current) {
  let frame = 0;
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const changes = new MutationObserver(soon);
  const leaveKeyboard = watchKeyboard();
  const look = () => {
    nameCurrent(current);
    restoreKeyboard();
    for (const box of all(`[class*="st-key-wide_"], ${PAGES}`)) {
      mark(box);
      box.onscroll = soon;
      for (const element of [box, ...box.children]) sizes.observe(element);
    }
  };
  changes.observe(document.body, { childList: true, subtree: true });
  soon(); // the page may have been drawn before this was here
  return () => {
    cancelAnimationFrame(frame);
    changes.disconnect();
    sizes.disconnect();
    leaveKeyboard();
  };
}

// Streamlit calls this on the same page elements at every change of the data.
/** @param {StreamlitComponent} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = /** @type {any} */ (parentElement.querySelector(".mha-scheme"));
  root.leave?.();
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  let timers = [];
  const look = () => {
    const type = isDark(root) ? "dark" : "light";
    if (type === data.type || left === 0) return;
    left -= 1;
    setTriggerValue("turned", type);
  };
  const watch = () => {
    timers.forEach(clearTimeout);
    timers = LOOKS.map((wait) => setTimeout(look, wait));
  };
  const turned = () => {
    left = LOOKS.length;
    watch();
  };
  if (data.type) watch(); // the page may have turned before this was here
  media.addEventListener("change", turned);
  const unwatch = watchPage(data.page);
  root.leave = () => {
    timers.forEach(clearTimeout);
    media.removeEventListener("change", turned);
    unwatch();
  };
  return root.leave;
}
