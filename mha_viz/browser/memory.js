// Data that this browser stores between visits. If storage is refused, each visit is like the first one.

/**
 * A typed sentence, possibly with a second one.
 *
 * @typedef {{ text: string, pair: string }} TypedSentence
 */

const ACTED_KEY = "mha_viz.acted";
const SENTENCES_KEY = "mha_viz.sentences";
const MAX_SENTENCES = 20;
const MAX_CHARACTERS = 2000; // of a stored sentence
const SHORTCUTS_KEY = "mha_viz.shortcuts";

// Whether the user has ever touched, typed or scrolled on Explore; if so, the first-visit animation does not run.
/** @type {() => boolean} */
export function hasActed() {
  try {
    return window.localStorage.getItem(ACTED_KEY) === "yes";
  } catch {
    return false;
  }
}

/** @type {() => void} */
export function rememberUserAction() {
  try {
    window.localStorage.setItem(ACTED_KEY, "yes");
  } catch {
    // a private window: the animation runs again in the next visit
  }
}

// Return the sentences typed here, latest first. They stay in this browser and are not sent anywhere.
/** @type {() => TypedSentence[]} */
export function loadSentences() {
  try {
    const entries = JSON.parse(window.localStorage.getItem(SENTENCES_KEY) ?? "[]");
    return Array.isArray(entries) ? entries.filter(isSentence).slice(0, MAX_SENTENCES) : [];
  } catch {
    return [];
  }
}

/** @type {(entry: any) => boolean} */
const isSentence = (entry) => typeof entry?.text === "string" && typeof entry?.pair === "string";

// Store a sentence, or move it to the front if it is already stored. A text that is too long is not stored, not even in
// part.
/** @type {(typed: TypedSentence) => void} */
export function rememberSentence({ text, pair }) {
  if (!text.trim() || text.length + pair.length > MAX_CHARACTERS) return;
  const others = loadSentences().filter((sentence) => sentence.text !== text || sentence.pair !== pair);
  try {
    window.localStorage.setItem(SENTENCES_KEY, JSON.stringify([{ text, pair }, ...others].slice(0, MAX_SENTENCES)));
  } catch {
    // a private window, or no room: the history does not change
  }
}

/** @type {() => void} */
export function forgetSentences() {
  try {
    window.localStorage.removeItem(SENTENCES_KEY);
  } catch {
    // if storage is refused, nothing was stored
  }
}

// Whether the shortcuts "/" and "?" are on, as by default. Users of speech input can turn them off.
/** @type {() => boolean} */
export function areShortcutsOn() {
  try {
    return window.localStorage.getItem(SHORTCUTS_KEY) !== "off";
  } catch {
    return true;
  }
}

/** @type {(isOn: boolean) => void} */
export function storeShortcuts(isOn) {
  try {
    window.localStorage.setItem(SHORTCUTS_KEY, isOn ? "on" : "off");
  } catch {
    // a private window: the shortcuts stay on
  }
}
