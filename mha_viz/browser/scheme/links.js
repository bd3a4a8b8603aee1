// Links in tables that open a head's card without loading the page again.
import { bringTo } from "./arrival.js";

const LATE = 8000; // milliseconds after which a card that appears no longer takes the keyboard

export class HeadLinks {
  #wanted = ""; // the head whose card is about to be drawn
  #late = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

  // `open` opens the card of a head. Returns what ends the watch.
  /** @type {(open: (head: string) => void) => () => void} */
  watch(open) {
    /** @type {(event: MouseEvent) => void} */
    const onClick = (event) => {
      const head = headOf(event);
      if (!head) return;
      event.preventDefault();
      this.#wanted = head;
      clearTimeout(this.#late);
      this.#late = setTimeout(() => (this.#wanted = ""), LATE); // it may have no card
      open(head);
    };
    document.addEventListener("click", onClick);
    return () => document.removeEventListener("click", onClick);
  }

  // After a change of the page: goes to the card if it has come.
  arrive() {
    if (this.#wanted && goTo(this.#wanted)) this.#wanted = "";
  }
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
  const title = /** @type {HTMLElement | null} */ (document.querySelector(".st-key-head_card :is(h2, h3)"));
  if (!title?.textContent.startsWith(`${head} `)) return false;
  bringTo(title);
  return true;
}
