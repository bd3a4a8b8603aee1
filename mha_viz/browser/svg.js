// SVG elements, as dom.js makes those of HTML: text always arrives as text nodes.

/** @type {(tag: string, attributes?: Record<string, string | number>, ...children: (Node | string)[]) => SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return /** @type {SVGElement} */ (element);
}
