// A page element with properties and children. Text always arrives as text nodes, never as markup.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name === "role" || name === "scope" || name.startsWith("aria-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

// Text from people, isolated so that its direction does not spread.
export const typedText = (text) => make("bdi", {}, text);
