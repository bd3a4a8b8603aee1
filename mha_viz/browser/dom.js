// Make page elements (HTML and SVG), close them on Escape, and fade pictures. Text always becomes text nodes, never
// markup.

/**
 * The allowed children of a page element.
 *
 * @typedef {(Node | string)[]} Children
 */

/**
 * Page elements by name, as returned by each component's `makePage`.
 *
 * @typedef {Record<string, any>} Parts
 */

/**
 * Make a page element with properties and children. Text always becomes text nodes, never markup.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} properties
 * @param {Children} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name === "role" || name === "scope" || name.startsWith("aria-")) element.setAttribute(name, value);
    else /** @type {any} */ (element)[name] = value;
  }
  element.append(...children);
  return element;
}

// Close an open box on Escape, pressed on its `opener` or inside it. The focus moves to `opener`, and a pinned
// word stays pinned.
/** @type {(opener: HTMLElement, box: HTMLElement, isOpen: () => boolean, close: () => void) => void} */
export function closeOnEscape(opener, box, isOpen, close) {
  /** @type {(event: KeyboardEvent) => void} */
  const onEscape = (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation();
    close();
    opener.focus();
  };
  for (const part of new Set([opener, box])) part.addEventListener("keydown", onEscape);
}

// Wrap a user's text so that its direction does not affect the text around it.
/** @type {(text: string) => HTMLElement} */
export const isolateText = (text) => make("bdi", {}, text);

// ---- SVG ----------------------------------------------------------------------------------------------------

/** @type {(tag: string, attributes?: Record<string, string | number>, ...children: (Node | string)[]) => SVGElement} */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return /** @type {SVGElement} */ (element);
}

// ---- Motion, unless the visitor’s system asks for less of it ------------------------------------------------

const FADE = 200; // milliseconds

/** @type {() => boolean} */
export const prefersReducedMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

// Fade the current picture of a canvas into the next one. `box` contains the canvas, and is positioned.
/** @type {(canvas: HTMLCanvasElement, box: HTMLElement) => void} */
export function fadeOut(canvas, box) {
  const [canvasBox, outerBox] = [canvas.getBoundingClientRect(), box.getBoundingClientRect()];
  if (prefersReducedMotion() || !canvas.width || !canvasBox.width) return;
  const { width, height } = canvas;
  const picture = make("canvas", { class: "before", "aria-hidden": true, width, height });
  picture.getContext("2d")?.drawImage(canvas, 0, 0);
  const [left, top] = [canvasBox.left - outerBox.left, canvasBox.top - outerBox.top];
  Object.assign(picture.style, {
    left: `${left}px`,
    top: `${top}px`,
    width: `${canvasBox.width}px`,
    height: `${canvasBox.height}px`,
  });
  box.append(picture);
  const end = () => picture.remove();
  picture.animate({ opacity: [1, 0] }, FADE).finished.then(end, end);
}
