// The menu "More": a link to this view, the keyboard shortcuts, the class view. "?" opens the list of keys from
// anywhere.
import { make } from "../dom.js";
import { storeShortcuts, areShortcutsOn } from "../memory.js";
import { mountComponent } from "../mount.js";
import { isShortcut } from "../shortcuts.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

class More {
  #data = /** @type {Partial<LinkData>} */ ({});
  #root;
  #note = make("span", { role: "status", onclick: () => this.#note.replaceChildren() });
  #keys = makeKeyList();
  #items;
  #menuButton = make(
    "button",
    { type: "button", class: "way", "aria-expanded": false, onclick: () => this.#toggle() },
    "More",
  );
  /** @type {(event: KeyboardEvent) => void} */
  #onKey = (event) => {
    if (event.key === "Escape" && this.#closeAll())
      event.stopPropagation(); // Escape closes one thing at a time
    else if (isShortcut(event, "?")) this.#openKeys(event);
  };
  /** @type {(event: PointerEvent) => void} */
  #onPress = (event) => {
    if (!event.composedPath().includes(this.#root)) this.#closeAll();
  };

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#items = make(
      "div",
      { class: "items", hidden: true },
      makeItem("Copy link", () => this.#copy()),
      makeItem("Keyboard shortcuts", (event) => this.#openKeys(event), make("kbd", { "aria-hidden": "true" }, "?")),
      makeItem("Class view", () => send("class", {})),
      makeItem("Lesson: What do heads do?", () => send("class", { lesson: true })),
    );
    this.#items.addEventListener("keydown", (event) => this.#moveFocus(event));
    root.replaceChildren(this.#menuButton, this.#items, this.#note, this.#keys);
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
    this.#closeAll();
    this.#open(opens);
    if (opens) /** @type {HTMLElement} */ (this.#items.firstElementChild).focus();
  }

  // Move between items with the arrow keys, wrapping around; Home and End go to the first and the last.
  /** @type {(event: KeyboardEvent) => void} */
  #moveFocus(event) {
    const items = /** @type {HTMLElement[]} */ ([...this.#items.children]);
    const index = items.findIndex((item) => item.matches(":focus"));
    /** @type {Record<string, number>} */
    const targets = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 };
    if (!(event.key in targets)) return;
    event.preventDefault();
    items[(targets[event.key] + items.length) % items.length].focus();
  }

  /** @type {(isOpen: boolean) => void} */
  #open(isOpen) {
    this.#items.hidden = !isOpen;
    this.#menuButton.setAttribute("aria-expanded", String(isOpen));
  }

  // Close the menu and the note, which lie over the page; return whether one was open.
  #closeAll() {
    const wasOpen = !this.#items.hidden;
    const wasAnythingOpen = wasOpen || this.#note.firstChild !== null;
    if (this.#root.querySelector(":is(.items, [role=status]) :focus")) this.#menuButton.focus();
    this.#open(false);
    this.#note.replaceChildren();
    return wasAnythingOpen;
  }

  async #copy() {
    this.#closeAll();
    this.#note.replaceChildren(...(await copyLink(this.#data)));
  }

  /** @type {(event: Event) => void} */
  #openKeys(event) {
    event.preventDefault();
    this.#closeAll();
    this.#keys.showModal();
  }
}

/** @type {(name: string, onclick: (event: Event) => void, ...more: Node[]) => HTMLElement} */
const makeItem = (name, onclick, ...more) => make("button", { type: "button", onclick }, name, ...more);

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-more", (root, send) => new More(root, send));
}

// ---- The keyboard shortcuts of the page ---------------------------------------------------------------------

const KEYS = [
  ["/", "Find a head, from anywhere on the page"],
  ["?", "Open this list"],
  ["Esc", "Close the open panel, then unpin the word"],
  ["Enter", "In the sentence: show its attention. In the grid: open the head. In a drawing: pin the word"],
  ["Shift Enter", "In the sentence: start a new line"],
  ["← ↑ → ↓", "In the grid: go from head to head. In a drawing: go from word to word"],
  ["Home End", "Go to the ends of a row or column; with Ctrl, to the corners of a grid"],
  ["← →", "On Inside a head: from stage to stage; Enter opens a stage"],
  ["c", "In the grid: add the head to My heads, as Shift-click does"],
  ["x", "On Explore: switch the open head, or the head marked in the grid, off or on"],
  ["Tab", "Go to the next control; the first one skips to the page"],
];

// Make the dialog with the keyboard shortcuts.
/** @type {() => HTMLDialogElement} */
function makeKeyList() {
  const rows = KEYS.map(([key, effect]) =>
    make("div", {}, make("dt", {}, ...key.split(" ").map((name) => make("kbd", {}, name))), make("dd", {}, effect)),
  );
  const shortcuts = make("input", { type: "checkbox", checked: areShortcutsOn() });
  shortcuts.onchange = () => storeShortcuts(shortcuts.checked);
  const dialog = make(
    "dialog",
    { "aria-label": "Keyboard shortcuts" },
    make("h2", {}, "Keyboard shortcuts"),
    make("dl", {}, ...rows),
    make("label", { class: "switch" }, shortcuts, make("span", {}, "Use the keys /, ? and x anywhere on a page")),
    make("button", { type: "button", class: "close", autofocus: true, onclick: () => dialog.close() }, "Close"),
  );
  dialog.onkeydown = (event) => {
    if (event.key === "Escape" && dialog.open) event.stopPropagation(); // Escape closes only the list
  };
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close(); // a click outside the dialog
  };
  return dialog;
}

// ---- The link to this view ----------------------------------------------------------------------------------

// Copy the complete link, and show a note on who can open it.

/**
 * Parameters that a link must contain besides the address, and the file that the page can save for others.
 *
 * @typedef {{ full: Record<string, string>, file: "html" | "figures" | "" }} LinkData
 */

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const TOP_DISTANCE = 60; // pixels
const MAX_WAIT = 10_000; // milliseconds
const FILES = { html: "save one interactive HTML file", figures: "save its figures" };

// Return the complete address, which shows the same view even where other defaults apply.
/** @type {(address: string, full: Record<string, string>) => string} */
function completeLink(address, full) {
  const url = new URL(address);
  for (const name of ["tour", "before"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(full)) {
    if (!url.searchParams.has(name)) url.searchParams.set(name, value);
  }
  return url.href;
}

// Copy the link to the current view; return the note to show.
/** @type {(data: Partial<LinkData>) => Promise<(Node | string)[]>} */
async function copyLink({ full = {}, file = "" }) {
  try {
    await navigator.clipboard.writeText(completeLink(window.location.href, full));
    return describeAudience(window.location.hostname, file);
  } catch {
    return ["This browser did not allow copying. Copy the address from the address bar; it contains your text."];
  }
}

/** @type {(host: string, file: LinkData["file"]) => (Node | string)[]} */
function describeAudience(host, file) {
  if (!LOOPBACK.includes(host)) return ["Copied. The link contains your text."];
  if (!file) return ["Copied. This link works on this computer only."];
  const save = make("button", { type: "button", class: "quiet", onclick: openFiles }, FILES[file]);
  return ["Copied. This link works on this computer only. For anyone else, ", save, "."];
}

// Open the section that makes files, and focus its first element.
/** @type {() => void} */
function openFiles() {
  const box = document.querySelector(".st-key-publish") ?? document.querySelector(".st-key-download_panel");
  const summary = /** @type {HTMLElement | null} */ (box?.querySelector("summary"));
  if (!box || !summary) return;
  if (!summary.closest("details")?.open) summary.click();
  summary.focus({ preventScroll: true });
  scrollToBox(box);
}

// Scroll to a box whose content is still loading; until it has loaded, the page may be too short.
/** @type {(box: Element) => void} */
function scrollToBox(box) {
  const sizes = new ResizeObserver(() => {
    box.scrollIntoView({ block: "start" });
    if (box.getBoundingClientRect().top < TOP_DISTANCE) sizes.disconnect();
  });
  sizes.observe(box);
  setTimeout(() => sizes.disconnect(), MAX_WAIT);
}
