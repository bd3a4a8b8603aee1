// Let the keys of a presenter go to the next or the previous view of a lesson.

/** @type {Record<string, string>} */
const LABELS = { PageDown: "Next", ArrowRight: "Next", PageUp: "Back", ArrowLeft: "Back" };
const CONTROLS = ".st-key-class_ways :is(a, button)";
const KEY_CONTROLS =
  "input, textarea, select, canvas, dialog, [contenteditable], [data-testid=stPopoverBody], " +
  "[role=application], [role=slider], [role=radiogroup], [role=toolbar], [role=grid], [role=listbox], [role=group]";

// Return a function that stops watching.
/** @type {() => () => void} */
export function watchLesson() {
  /** @type {(event: KeyboardEvent) => void} */
  const onKey = (event) => {
    const label = LABELS[event.key];
    if (!label || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (/** @type {Element} */ (event.composedPath()[0]).closest?.(KEY_CONTROLS)) return;
    const controls = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(CONTROLS))];
    const control = controls.find(({ textContent }) => textContent.includes(label));
    if (!control) return;
    event.preventDefault();
    control.click();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
