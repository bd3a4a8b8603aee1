// What this browser remembers from visit to visit. Where storage is refused, each visit is the first one.
const ROLES = "mha_viz.roles";
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
