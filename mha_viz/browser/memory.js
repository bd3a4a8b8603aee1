// Data that this browser stores between visits. If storage is refused, each visit is like the first one.

/**
 * A typed sentence, possibly with a second one.
 *
 * @typedef {{ text: string, pair: string }} Typed
 */

const ACTED = "mha_viz.acted";
const SENTENCES = "mha_viz.sentences";
const MOST_SENTENCES = 20;
const MOST_LETTERS = 2000; // maximum length of a stored sentence, in characters
const SHORTCUTS = "mha_viz.shortcuts";

// Whether the user has ever touched, typed or scrolled on Explore; if so, the first-visit animation does not run.
/** @type {() => boolean} */
export function hasActed() {
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
    // a private window: the animation runs again in the next visit
  }
}

// Return the sentences typed here, latest first. They stay in this browser and are not sent anywhere.
/** @type {() => Typed[]} */
export function loadSentences() {
  try {
    const entries = JSON.parse(window.localStorage.getItem(SENTENCES) ?? "[]");
    return Array.isArray(entries) ? entries.filter(isSentence).slice(0, MOST_SENTENCES) : [];
  } catch {
    return [];
  }
}

/** @type {(entry: any) => boolean} */
const isSentence = (entry) => typeof entry?.text === "string" && typeof entry?.pair === "string";

// Store a sentence, or move it to the front if it is already stored. A text that is too long is not stored, not even in
// part.
/** @type {(typed: Typed) => void} */
export function rememberSentence({ text, pair }) {
  if (!text.trim() || text.length + pair.length > MOST_LETTERS) return;
  const others = loadSentences().filter((sentence) => sentence.text !== text || sentence.pair !== pair);
  try {
    window.localStorage.setItem(SENTENCES, JSON.stringify([{ text, pair }, ...others].slice(0, MOST_SENTENCES)));
  } catch {
    // a private window, or no room: the history does not change
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

// Whether the shortcuts "/" and "?" are on, as by default. Users of speech input can turn them off.
/** @type {() => boolean} */
export function areShortcutsOn() {
  try {
    return window.localStorage.getItem(SHORTCUTS) !== "off";
  } catch {
    return true;
  }
}

/** @type {(isOn: boolean) => void} */
export function storeShortcuts(isOn) {
  try {
    window.localStorage.setItem(SHORTCUTS, isOn ? "on" : "off");
  } catch {
    // a private window: the shortcuts stay on
  }
}
