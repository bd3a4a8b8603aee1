// The menu "More": the link to this view, the keys, the view for a class. "?" opens the list of keys from anywhere.
import { make } from "../dom.js";
import { copiedLink } from "../link.js";
import { mounted } from "../mount.js";
import { isShortcut } from "../shortcuts.js";
import { keyList } from "./keys.js";
/** @import { LinkData } from "../link.js" */
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */

class More {
  #data = /** @type {Partial<LinkData>} */ ({});
  #root;
  #note = make("span", { role: "status", onclick: () => this.#note.replaceChildren() });
  #keys = keyList();
  #items;
  #way = make(
    "button",
    { type: "button", class: "way", "aria-expanded": false, onclick: () => this.#toggle() },
    "More",
  );
  /** @type {(event: KeyboardEvent) => void} */
  #onKey = (event) => {
    if (event.key === "Escape" && this.#closes())
      event.stopPropagation(); // it closes one thing at a time
    else if (isShortcut(event, "?")) this.#openKeys(event);
  };
  /** @type {(event: PointerEvent) => void} */
  #onPress = (event) => {
    if (!event.composedPath().includes(this.#root)) this.#closes();
  };

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#items = make(
      "div",
      { class: "items", hidden: true },
      item("Copy link", () => this.#copy()),
      item("Keys", (event) => this.#openKeys(event), make("kbd", { "aria-hidden": "true" }, "?")),
      item("Class view", () => send("class", true)),
    );
    this.#items.addEventListener("keydown", (event) => this.#walk(event));
    root.replaceChildren(this.#way, this.#items, this.#note, this.#keys);
    root.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !root.contains(/** @type {Node} */ (relatedTarget))) this.#open(false);
    });
    document.addEventListener("keydown", this.#onKey, true);
    document.addEventListener("pointerdown", this.#onPress, true);
  }

  /** @type {(data: LinkData) => void} */
  show(data) {
    this.#data = data;
  }

  stop() {
    document.removeEventListener("keydown", this.#onKey, true);
    document.removeEventListener("pointerdown", this.#onPress, true);
  }

  #toggle() {
    const opens = this.#items.hidden === true;
    this.#closes();
    this.#open(opens);
    if (opens) /** @type {HTMLElement} */ (this.#items.firstElementChild).focus();
  }

  // Arrow keys go from item to item, around the ends; Home and End to the first and the last.
  /** @type {(event: KeyboardEvent) => void} */
  #walk(event) {
    const all = /** @type {HTMLElement[]} */ ([...this.#items.children]);
    const at = all.findIndex((one) => one.matches(":focus"));
    /** @type {Record<string, number>} */
    const places = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (!(event.key in places)) return;
    event.preventDefault();
    all[(places[event.key] + all.length) % all.length].focus();
  }

  /** @type {(isOpen: boolean) => void} */
  #open(isOpen) {
    this.#items.hidden = !isOpen;
    this.#way.setAttribute("aria-expanded", String(isOpen));
  }

  // Closes the menu and the note, which lie over the page; says whether one was open.
  #closes() {
    const wasOpen = !this.#items.hidden;
    const had = wasOpen || this.#note.firstChild !== null;
    if (this.#root.querySelector(":is(.items, [role=status]) :focus")) this.#way.focus();
    this.#open(false);
    this.#note.replaceChildren();
    return had;
  }

  async #copy() {
    this.#closes();
    this.#note.replaceChildren(...(await copiedLink(this.#data)));
  }

  /** @type {(event: Event) => void} */
  #openKeys(event) {
    event.preventDefault();
    this.#closes();
    this.#keys.showModal();
  }
}

/** @type {(name: string, onclick: (event: Event) => void, ...more: Node[]) => HTMLElement} */
const item = (name, onclick, ...more) => make("button", { type: "button", onclick }, name, ...more);

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-more", (root, send) => new More(root, send));
}
