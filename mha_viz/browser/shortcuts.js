// Keyboard shortcuts that work everywhere on a page.
import { areShortcutsOn } from "./memory.js";

const TEXT_CONTROLS =
  "textarea, select, [contenteditable], dialog, dialog *, input:not([type=checkbox], [type=radio], [type=range])";

// Whether `key` was pressed outside text fields, by a user who has not turned these shortcuts off.
/** @type {(event: KeyboardEvent, key: string) => boolean} */
export function isShortcut(event, key) {
  if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || !areShortcutsOn()) return false;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  return !target.matches?.(TEXT_CONTROLS);
}
