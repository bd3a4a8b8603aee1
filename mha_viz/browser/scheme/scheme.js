// What every page needs of a script: charts in the colours of the page, keys that reach what scrolls sideways and stay
// with what they operate, a navigation that says which page is open, and links in tables that open a head's card
// without loading the page again.
import { mounted } from "../mount.js";
import { Keyboard } from "./keyboard.js";
import { HeadLinks } from "./links.js";
import { nameCurrent } from "./navigation.js";
import { Theme } from "./theme.js";
import { mark, wideBoxes } from "./wide.js";
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */

// They outlive the component, which Streamlit makes anew on another page.
const [keyboard, links, theme] = [new Keyboard(), new HeadLinks(), new Theme()];

/** @typedef {{ type: string, page: number }} SchemeData */

/** @type {(root: HTMLElement, send: Send) => { show: (data: SchemeData) => void, stop: () => void }} */
function scheme(root, send) {
  let [frame, page] = [0, 0];
  const look = () => {
    nameCurrent(page);
    keyboard.restore();
    links.arrive();
    for (const box of wideBoxes()) {
      mark(box);
      box.onscroll = soon;
      for (const element of [box, ...box.children]) sizes.observe(element);
    }
  };
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const changes = new MutationObserver(soon);
  changes.observe(document.body, { childList: true, subtree: true });
  const open = (/** @type {string} */ head) => {
    send("linked", head);
    soon();
  };
  const ends = [keyboard.watch(), links.watch(open), theme.watch()];
  return {
    show: (data) => {
      page = data.page;
      theme.show(root, data.type, send);
      sizes.disconnect(); // of what is no longer on the page
      soon();
    },
    stop: () => {
      cancelAnimationFrame(frame);
      changes.disconnect();
      sizes.disconnect();
      ends.forEach((end) => end());
    },
  };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-scheme", scheme);
}
