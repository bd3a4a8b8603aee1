// The link to the current view: copied in full, with a note on who can open it.
import { make } from "./dom.js";
import { showsRoles } from "./memory.js";

/**
 * What a link must say besides the address, and what the page can save for others.
 *
 * @typedef {{ full: Record<string, string>, file: "html" | "figures" | "" }} LinkData
 */

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const NEAR_TOP = 60; // pixels
const LONGEST_WAIT = 10_000; // milliseconds
const FILES = { html: "save one interactive HTML file", figures: "save its figures" };

// The complete address, which shows the same where other defaults apply.
/** @type {(address: string, full: Record<string, string>) => string} */
export function wholeLink(address, full) {
  const url = new URL(address);
  for (const name of ["tour", "before"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(full)) {
    if (!url.searchParams.has(name)) url.searchParams.set(name, value);
  }
  if (showsRoles(url.searchParams)) url.searchParams.set("roles", "on");
  return url.href;
}

// Copy the link to the current view; returns the note to show.
/** @type {(data: Partial<LinkData>) => Promise<(Node | string)[]>} */
export async function copiedLink({ full = {}, file = "" }) {
  try {
    await navigator.clipboard.writeText(wholeLink(window.location.href, full));
    return whoCanOpen(window.location.hostname, file);
  } catch {
    return ["Copying is not allowed here: copy the address bar. It contains your text."];
  }
}

/** @type {(host: string, file: LinkData["file"]) => (Node | string)[]} */
function whoCanOpen(host, file) {
  if (!LOOPBACK.includes(host)) return ["Copied. The link contains your text."];
  if (!file) return ["Copied. Only this computer can open the link."];
  const save = make("button", { type: "button", class: "quiet", onclick: openFiles }, FILES[file]);
  return ["Copied. Only this computer can open the link. For anybody else, ", save, "."];
}

// Opens the part of the page that makes files, and focuses its beginning.
/** @type {() => void} */
function openFiles() {
  const box = document.querySelector(".st-key-publish") ?? document.querySelector(".st-key-download_panel");
  const summary = /** @type {HTMLElement | null} */ (box?.querySelector("summary"));
  if (!box || !summary) return;
  if (!summary.closest("details")?.open) summary.click();
  summary.focus({ preventScroll: true });
  bringUp(box);
}

// Scrolls to a box whose content is still loading; before it arrives, the page may be too short.
/** @type {(box: Element) => void} */
function bringUp(box) {
  const sizes = new ResizeObserver(() => {
    box.scrollIntoView({ block: "start" });
    if (box.getBoundingClientRect().top < NEAR_TOP) sizes.disconnect();
  });
  sizes.observe(box);
  setTimeout(() => sizes.disconnect(), LONGEST_WAIT);
}
