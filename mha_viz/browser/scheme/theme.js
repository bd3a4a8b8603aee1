// Charts in the colours of the page: the server is told when the page has turned light or dark.
import { isDark } from "../ink.js";
/** @import { Send } from "../post.js" */

const LOOKS = [400, 1500, 4000]; // milliseconds: a busy page takes its new colours late, and tells the server later

export class Theme {
  #left = 1; // how often the server may still be told, so that telling ends
  #timers = /** @type {ReturnType<typeof setTimeout>[]} */ ([]);
  #tell = () => {};

  // Returns what ends the watch.
  watch() {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const onTurn = () => {
      this.#left = LOOKS.length;
      this.#lookSoon();
    };
    media.addEventListener("change", onTurn);
    return () => {
      media.removeEventListener("change", onTurn);
      this.#timers.forEach(clearTimeout);
    };
  }

  // `type` is the page's colour scheme as the server knows it, "" if it does not: then only a turn is told.
  /** @type {(root: Element, type: string, send: Send) => void} */
  show(root, type, send) {
    this.#tell = () => {
      const now = isDark(root) ? "dark" : "light";
      if (now === type || this.#left === 0) return;
      this.#left -= 1;
      send("turned", now);
    };
    this.#timers.forEach(clearTimeout);
    if (type) this.#lookSoon(); // the page may have turned before this was here
  }

  #lookSoon() {
    this.#timers.forEach(clearTimeout);
    this.#timers = LOOKS.map((wait) => setTimeout(() => this.#tell(), wait));
  }
}
