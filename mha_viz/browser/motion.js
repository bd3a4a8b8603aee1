// What moves by itself, unless the visitor's system asks for less motion.
import { make } from "./dom.js";

const FADE = 200; // milliseconds

/** @type {() => boolean} */
export const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

// Fade the picture that a canvas shows now into the one that is drawn next. `box` holds both, and is positioned.
/** @type {(canvas: HTMLCanvasElement, box: HTMLElement) => void} */
export function fadeOut(canvas, box) {
  const [at, within] = [canvas.getBoundingClientRect(), box.getBoundingClientRect()];
  if (still() || !canvas.width || !at.width) return;
  const { width, height } = canvas;
  const before = make("canvas", { class: "before", "aria-hidden": true, width, height });
  before.getContext("2d")?.drawImage(canvas, 0, 0);
  const [left, top] = [at.left - within.left, at.top - within.top];
  Object.assign(before.style, {
    left: `${left}px`,
    top: `${top}px`,
    width: `${at.width}px`,
    height: `${at.height}px`,
  });
  box.append(before);
  const end = () => before.remove();
  before.animate({ opacity: [1, 0] }, FADE).finished.then(end, end);
}
