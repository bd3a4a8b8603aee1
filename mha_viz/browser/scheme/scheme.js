// What every page needs of a script: charts in the colours of the page, and keys that reach what scrolls sideways.
import { isDark } from "../ink.js";

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

const SLACK = 4; // pixels that nobody misses

let left = 1; // how often they may still be asked for: never without end

// A chart wider than its page scrolls in a box that the keyboard can focus, and says so: data-scrolls, and data-more as
// long as something lies beyond its right edge. One that fits is no stop on the way.
// Returns what ends the watch.
/** @type {() => () => void} */
function watchScrolling() {
  let frame = 0;
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const changes = new MutationObserver(soon);
  const look = () => {
    const boxes = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[class*="st-key-wide_"]'));
    for (const box of boxes) {
      const beyond = box.scrollWidth - box.clientWidth;
      if (beyond > 0) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
      box.toggleAttribute("data-scrolls", beyond > 0);
      box.toggleAttribute("data-more", beyond - box.scrollLeft > SLACK);
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
  };
}

/** @param {StreamlitComponent} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-scheme");
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
  const leave = watchScrolling();
  return () => {
    timers.forEach(clearTimeout);
    media.removeEventListener("change", turned);
    leave();
  };
}
