// What this browser stores from visit to visit. If storage is refused, each visit is like the first one.

/**
 * A sentence, maybe with a second one, as it was typed.
 *
 * @typedef {{ text: string, pair: string }} Typed
 */

const ACTED = "mha_viz.acted";
const SENTENCES = "mha_viz.sentences";
const MOST_SENTENCES = 20;
const MOST_LETTERS = 2000; // the most characters of a sentence that is stored
const SHORTCUTS = "mha_viz.shortcuts";

// Whether somebody has touched, typed or scrolled on Explore: what moves by itself on a first visit then does not.
/** @type {() => boolean} */
export function remembersActing() {
  try {
    return window.localStorage.getItem(ACTED) === "yes";
  } catch {
    return false;
  }
}

/** @type {() => void} */
export function rememberActing() {
  try {
    window.localStorage.setItem(ACTED, "yes");
  } catch {
    // a private window: it moves again in the next visit
  }
}

// Sentences that were typed here, the latest first. They stay in this browser and are not sent anywhere.
/** @type {() => Typed[]} */
export function typedSentences() {
  try {
    const entries = JSON.parse(window.localStorage.getItem(SENTENCES) ?? "[]");
    return Array.isArray(entries) ? entries.filter(isTyped).slice(0, MOST_SENTENCES) : [];
  } catch {
    return [];
  }
}

/** @type {(entry: any) => boolean} */
const isTyped = (entry) => typeof entry?.text === "string" && typeof entry?.pair === "string";

// Adds a sentence; one that was typed before moves to the front. A text that is too long is not stored, not even in
// part.
/** @type {(typed: Typed) => void} */
export function rememberSentence({ text, pair }) {
  if (!text.trim() || text.length + pair.length > MOST_LETTERS) return;
  const others = typedSentences().filter((one) => one.text !== text || one.pair !== pair);
  try {
    window.localStorage.setItem(SENTENCES, JSON.stringify([{ text, pair }, ...others].slice(0, MOST_SENTENCES)));
  } catch {
    // a private window, or no room: the history stays unchanged
  }
}

/** @type {() => void} */
export function forgetSentences() {
  try {
    window.localStorage.removeItem(SENTENCES);
  } catch {
    // if storage is refused, nothing was stored
  }
}

// Whether "/" and "?" are keys of every page: on by default; users of speech input can turn them off.
/** @type {() => boolean} */
export function remembersShortcuts() {
  try {
    return window.localStorage.getItem(SHORTCUTS) !== "off";
  } catch {
    return true;
  }
}

/** @type {(isOn: boolean) => void} */
export function rememberShortcuts(isOn) {
  try {
    window.localStorage.setItem(SHORTCUTS, isOn ? "on" : "off");
  } catch {
    // a private window: they stay on
  }
}
