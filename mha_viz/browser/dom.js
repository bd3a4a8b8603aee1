/**
 * What children of a page element may be.
 *
 * @typedef {(Node | string)[]} Children
 */

/**
 * Page elements by name, as `page` of each component makes them.
 *
 * @typedef {Record<string, any>} Parts
 */

/**
 * A page element with properties and children. Text always becomes text nodes, never markup.
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

// Escape on `way`, or in the `box` that it opens, closes the box if it `isOpen`: the keyboard is then on `way`, and a
// held word stays.
/** @type {(way: HTMLElement, box: HTMLElement, isOpen: () => boolean, close: () => void) => void} */
export function closedByEscape(way, box, isOpen, close) {
  /** @type {(event: KeyboardEvent) => void} */
  const onEscape = (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation();
    close();
    way.focus();
  };
  for (const part of new Set([way, box])) part.addEventListener("keydown", onEscape);
}

// Text from users, isolated so that its direction does not affect the text around it.
/** @type {(text: string) => HTMLElement} */
export const typedText = (text) => make("bdi", {}, text);
