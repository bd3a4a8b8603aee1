// What this browser remembers from visit to visit. Where storage is refused, each visit is the first one.
const ROLES = "mha_viz.roles";
const SENTENCES = "mha_viz.sentences";
const MOST_SENTENCES = 20;
const MOST_LETTERS = 2000; // of one sentence that is remembered
const SHORTCUTS = "mha_viz.shortcuts";

/** @type {() => boolean} */
export function remembersRoles() {
  try {
    return window.localStorage.getItem(ROLES) === "on";
  } catch {
    return false;
  }
}

/** @type {(isOn: boolean) => void} */
export function rememberRoles(isOn) {
  try {
    window.localStorage.setItem(ROLES, isOn ? "on" : "off");
  } catch {
    // a private window: the address says it instead
  }
}

// Sentences that were typed here, the last one first. They stay in this browser: nobody else is told of them.
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

// One more; what was typed before comes to the front. A text that is too long to keep is not kept in part.
/** @type {(typed: Typed) => void} */
export function rememberSentence({ text, pair }) {
  if (!text.trim() || text.length + pair.length > MOST_LETTERS) return;
  const others = typedSentences().filter((one) => one.text !== text || one.pair !== pair);
  try {
    window.localStorage.setItem(SENTENCES, JSON.stringify([{ text, pair }, ...others].slice(0, MOST_SENTENCES)));
  } catch {
    // a private window, or no room: the history stays as it is
  }
}

/** @type {() => void} */
export function forgetSentences() {
  try {
    window.localStorage.removeItem(SENTENCES);
  } catch {
    // where storage is refused nothing was kept
  }
}

// Whether roles are shown: as the address says, else as in the visit before. The first visit begins without them.
/** @type {(params: URLSearchParams) => boolean} */
export function showsRoles(params) {
  const wanted = params.getAll("roles").at(-1);
  return wanted === "on" || (wanted !== "off" && remembersRoles());
}

// Whether "/" and "?" are keys of every page: so it begins, and who dictates to the machine can end it.
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
