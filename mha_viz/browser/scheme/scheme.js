// What every page needs of a script: charts in the colours of the page, keys that reach what scrolls sideways and stay
// with what they operate, a navigation that says which page is open, names in words, the way to what a link leads to,
// and links in tables that open a head's card without loading the page again.
import { isDark } from "../ink.js";
import { arrive, bringTo, watchArrival } from "./arrival.js";
import { restoreKeyboard, watchKeyboard } from "./keyboard.js";
import { speakFormulas } from "./spoken.js";

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

const LATE = 8000; // milliseconds after which a card that appears no longer takes the keyboard
const SLACK = 4; // pixels that nobody misses
const PAGES = ".st-key-pages";

let late = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
let wanted = ""; // the head whose card is about to be drawn
let left = 1; // how often they may still be asked for, so that asking ends

/** @type {(selector: string) => HTMLElement[]} */
const all = (selector) => [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))];

/** @type {(element: Element) => number} */
function middle(element) {
  const box = element.getBoundingClientRect();
  return (box.left + box.right) / 2;
}

// Makes the links a landmark. Names the one to the open page, number `at`, and brings it into sight where the pages
// scroll.
/** @type {(at: number) => void} */
function nameCurrent(at) {
  for (const box of all(PAGES)) {
    box.setAttribute("role", "navigation");
    box.setAttribute("aria-label", "Pages");
  }
  all(`${PAGES} a`).forEach((link, number) => {
    if (number !== at) return link.removeAttribute("aria-current");
    if (link.hasAttribute("aria-current")) return;
    link.setAttribute("aria-current", "page");
    const box = link.closest(PAGES);
    if (box) box.scrollLeft += middle(link) - middle(box);
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

// The head of a link in a table, if the click is to open it here and not in another tab.
/** @type {(event: MouseEvent) => string | null} */
function headOf(event) {
  const link = event.target instanceof Element && event.target.closest(".mha-rows a");
  if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return null;
  return new URLSearchParams(link.search).get("head");
}

// Brings the card of a head into sight, and the keyboard to it. Returns whether it is on the page.
/** @type {(head: string) => boolean} */
function goTo(head) {
  const title = all(".st-key-head_card :is(h2, h3)")[0];
  if (!title?.textContent.startsWith(`${head} `)) return false;
  bringTo(title);
  return true;
}

// A head whose card is about to be drawn; it may have none.
/** @type {(head: string) => void} */
function want(head) {
  wanted = head;
  clearTimeout(late);
  late = setTimeout(() => (wanted = ""), LATE);
}

// Keeps that up to date, with the page number `current` open; `open` opens the card of a head. Returns what ends the
// watch.
/** @type {(current: number, open: (head: string) => void) => () => void} */
function watchPage(current, open) {
  let frame = 0;
  const click = (/** @type {MouseEvent} */ event) => {
    const head = headOf(event);
    if (!head) return;
    event.preventDefault();
    want(head);
    open(head);
    soon();
  };
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const changes = new MutationObserver(soon);
  const leave = [watchKeyboard(), watchArrival(current)];
  const look = () => {
    nameCurrent(current);
    restoreKeyboard();
    speakFormulas(document);
    if (wanted && goTo(wanted)) wanted = "";
    arrive();
    for (const box of all(`[class*="st-key-wide_"], ${PAGES}`)) {
      mark(box);
      box.onscroll = soon;
      [box, ...box.children].forEach((element) => sizes.observe(element));
    }
  };
  changes.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("click", click);
  soon(); // the page may have been drawn before this was here
  return () => {
    cancelAnimationFrame(frame);
    changes.disconnect();
    document.removeEventListener("click", click);
    sizes.disconnect();
    leave.forEach((end) => end());
  };
}

// Streamlit calls this on the same page elements at every change of the data.
/** @param {StreamlitComponent} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = /** @type {any} */ (parentElement.querySelector(".mha-scheme"));
  root.leave?.();
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  /** @type {ReturnType<typeof setTimeout>[]} */
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
  const unwatch = watchPage(data.page, (head) => setTriggerValue("linked", head));
  root.leave = () => {
    timers.forEach(clearTimeout);
    media.removeEventListener("change", turned);
    unwatch();
  };
  return root.leave;
}
