// A square that is dragged out of the grid: its head is switched off. Fingers scroll instead.
import { make } from "../dom.js";

const FAR = 8; // pixels from which on a press is a drag

/**
 * `box` is what a square has to leave; `cell`: the head under the pointer; `turn` gets its head.
 *
 * @param {HTMLElement} grid
 * @param {HTMLElement} box
 * @param {(event: PointerEvent) => number | null} cell
 * @param {(head: number) => void} turn
 */
export function draggable(grid, box, cell, turn) {
  const ghost = make("b", { class: "ghost", "aria-hidden": "true" });
  let held = /** @type {{ head: number, x: number, y: number } | null} */ (null);
  let wasDragged = false;
  const drop = () => {
    held = null;
    ghost.remove();
    document.removeEventListener("keydown", cancel, true);
  };
  /** @type {(event: KeyboardEvent) => void} */
  const cancel = ({ key }) => void (key === "Escape" && drop());
  grid.addEventListener("pointerdown", (event) => {
    const head = event.pointerType === "touch" || event.button ? null : cell(event);
    wasDragged = false;
    held = head === null ? null : { head, x: event.clientX, y: event.clientY };
  });
  grid.addEventListener("pointermove", (event) => {
    if (!held) return;
    if (!event.buttons) return drop(); // released elsewhere
    const { clientX: x, clientY: y } = event;
    if (!wasDragged && Math.hypot(x - held.x, y - held.y) < FAR) return;
    if (!wasDragged) {
      grid.setPointerCapture(event.pointerId);
      document.addEventListener("keydown", cancel, true);
    }
    wasDragged = true;
    if (!ghost.isConnected) box.append(ghost);
    ghost.style.translate = `${x}px ${y}px`;
    ghost.classList.toggle("out", isOutside(box, event));
  });
  grid.addEventListener("pointerup", (event) => {
    const head = wasDragged && isOutside(box, event) ? (held?.head ?? null) : null;
    drop();
    if (head !== null) turn(head);
  });
  grid.addEventListener("pointercancel", drop);
  grid.addEventListener("click", (event) => wasDragged && event.stopImmediatePropagation(), true); // opens no head
}

/** @type {(box: HTMLElement, event: PointerEvent) => boolean} */
function isOutside(box, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  return x < left || x > right || y < top || y > bottom;
}
