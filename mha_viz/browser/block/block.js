// The multi-head attention block: x, a linear layer, h heads with their steps, the concatenation, a linear layer.
import { make, svg } from "../dom.js";
import { mounted, queued } from "../mount.js";
/** @import { Children } from "../dom.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */

/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/**
 * A step of multi-head attention (app/inside).
 *
 * @typedef {{ name: string, label: string, shape: string, inside: boolean }} Step
 */

/** @typedef {{ steps: Step[], step: string, heads: string[], head: number }} BlockData */

// Group the steps in order: each step outside a head alone, steps inside heads together.
/** @type {(steps: Step[]) => { inside: boolean, steps: Step[] }[]} */
export function groups(steps) {
  const list = [];
  for (const step of steps) {
    const last = list.at(-1);
    if (step.inside && last?.inside) last.steps.push(step);
    else list.push({ inside: !!step.inside, steps: [step] });
  }
  return list;
}

// Split "W_Q  W_K" into text and subscripts.
/** @type {(text: string) => string[]} */
export const subscripts = (text) => text.split(/_(\w+)/);
/** @type {(text: string) => Children} */
const formula = (text) => subscripts(text).map((part, i) => (i % 2 ? make("sub", {}, part) : part));
/** @type {() => HTMLElement} */
const arrow = () => make("span", { class: "arrow", "aria-hidden": "true" }, "→");

// Start and end of each head's thread between two steps, as shares of the height, given the position of the head from 0
// to 1. x is split among the heads, their outputs lie side by side in the concatenation, and W_O joins them.
/** @typedef {Record<string, (place: number) => [number, number]>} Ways */
/** @type {(place: number) => number} */
const spread = (place) => 0.06 + 0.88 * place;
/** @type {Ways} */
const ACROSS = {
  split: (place) => [0.5, spread(place)],
  lay: (place) => [spread(place), 0.38 + 0.24 * place],
  join: (place) => [0.38 + 0.24 * place, 0.5],
};
// Likewise as shares of the width, if the steps are in rows: from the last step of one row to the first of the next.
/** @type {Ways} */
const DOWN = {
  split: (place) => [0.75, spread(place)],
  lay: (place) => [spread(place), 0.13 + 0.24 * place],
};

/** @type {(way: string, data: BlockData) => SVGElement[]} */
const threads = (way, data) => [
  drawThreads(ACROSS[way], data, way in DOWN ? "across" : ""),
  ...(way in DOWN ? [drawThreads(DOWN[way], data, "down")] : []),
];

/** @type {(ends: Ways[string], data: BlockData, direction: string) => SVGElement} */
function drawThreads(ends, { heads, head }, direction) {
  const lines = heads.map((colour, number) => {
    const [from, to] = ends(heads.length > 1 ? number / (heads.length - 1) : 0.5).map((part) => 100 * part);
    const d =
      direction === "down" ? `M${from} 0C${from} 50 ${to} 50 ${to} 100` : `M0 ${from}C50 ${from} 50 ${to} 100 ${to}`;
    return svg("path", { d, stroke: colour, class: number === head ? "open" : "" });
  });
  lines.push(...lines.splice(head, 1)); // the open head's thread lies on top
  const box = { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" };
  return svg("svg", { class: `threads ${direction}`, ...box }, ...lines);
}

/** @type {(root: HTMLElement, send: Send) => { show: (data: BlockData) => void }} */
export function block(root, send) {
  let step = "";
  return {
    show: (data) => {
      drawBlock(root, send, data);
      if (step && step !== data.step) bringBack(document.querySelector(".st-key-inside_step"));
      step = data.step;
    },
  };
}

// Scroll back to the beginning of a step that was opened from the end of another one.
/** @type {(opened: Element | null) => void} */
function bringBack(opened) {
  if (opened && opened.getBoundingClientRect().top < 0) opened.scrollIntoView();
}

// Redraw the block after each change; the keyboard focus stays where it was.
/** @type {(root: HTMLElement, send: Send, data: BlockData) => void} */
function drawBlock(root, send, data) {
  const order = () => [...root.querySelectorAll("button")];
  const { activeElement } = /** @type {Document | ShadowRoot} */ (root.getRootNode());
  const at = order().indexOf(/** @type {HTMLButtonElement} */ (activeElement));
  const name = "Steps of multi-head attention";
  const row = make("div", { class: "row block", role: "toolbar", "aria-label": name, onkeydown: walkSteps });
  const all = groups(data.steps);
  const inside = all.findIndex((group) => group.inside);
  all.forEach((group, i) => {
    const way = ["split", "lay", "join"][inside < 0 ? -1 : i - inside];
    const between = way ? threads(way, data) : [arrow()];
    const drawn = group.inside ? headsOf(group, data, send) : stepButton(group.steps[0], data.step, send);
    row.append(...(i ? between : []), drawn);
  });
  root.replaceChildren(row);
  const steps = stepsIn(row);
  (steps.find((step) => step.hasAttribute("aria-current")) ?? steps[0]).tabIndex = 0;
  if (at >= 0) order()[at]?.focus();
}

/** @type {(step: Step, open: string, send: Send) => HTMLElement} */
function stepButton({ name, label, shape }, open, send) {
  const button = make(
    "button",
    { type: "button", class: "step", tabIndex: -1, onclick: () => send("step", name) },
    make("b", {}, ...formula(label)),
    make("span", {}, ...formula(shape)),
  );
  if (name === open) button.setAttribute("aria-current", "step");
  return button;
}

/** @type {(row: Element) => HTMLElement[]} */
const stepsIn = (row) => [...row.querySelectorAll(/** @type {"button"} */ (".step"))];

// Make the steps one tab stop; an arrow key goes to the next or the previous one.
/** @type {(event: KeyboardEvent) => void} */
function walkSteps(event) {
  const here = /** @type {HTMLElement} */ (event.target).closest(/** @type {"button"} */ (".step"));
  const steps = stepsIn(/** @type {Element} */ (event.currentTarget));
  const next = here && neighbour(event, here, steps);
  if (!next) return;
  here.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** @type {(group: { steps: Step[] }, data: BlockData, send: Send) => HTMLElement} */
function headsOf(group, data, send) {
  const buttons = data.heads.map((colour, number) => headButton(number, colour, data.head, send));
  const chips = make("div", { class: "chips", role: "radiogroup", "aria-label": "Heads", onkeydown: walk }, ...buttons);
  chips.style.setProperty("--in-a-row", String(Math.min(8, Math.ceil(buttons.length / (buttons.length > 8 ? 2 : 1)))));
  const inner = make("div", { class: "row" });
  group.steps.forEach((step, i) => inner.append(...(i ? [arrow()] : []), stepButton(step, data.step, send)));
  const title = make("div", { class: "title" }, `${data.heads.length} heads`, chips);
  const box = make("div", { class: "head" }, title, inner);
  box.style.setProperty("--own", data.heads[data.head]);
  return box;
}

/** @type {(number: number, colour: string, chosen: number, send: Send) => HTMLElement} */
function headButton(number, colour, chosen, send) {
  const button = make(
    "button",
    {
      type: "button",
      class: "chip",
      role: "radio",
      "aria-checked": String(number === chosen),
      "aria-label": `Head ${number}`,
      tabIndex: number === chosen ? 0 : -1,
      onclick: () => send("head", number),
    },
    String(number),
  );
  button.style.setProperty("--own", colour);
  return button;
}

// Make the heads one tab stop; an arrow key opens the next or the previous one.
/** @type {(event: KeyboardEvent) => void} */
function walk(event) {
  const chip = /** @type {HTMLElement} */ (event.target).closest("button");
  const chips = /** @type {HTMLElement[]} */ ([...(chip?.parentElement?.children ?? [])]);
  const next = chip && neighbour(event, chip, chips);
  next?.focus();
  next?.click();
}

// Return the element to which an arrow key leads from `here`; undefined for other keys.
/** @type {(event: KeyboardEvent, here: HTMLElement, all: HTMLElement[]) => HTMLElement | undefined} */
function neighbour(event, here, all) {
  const step = STEPS[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return undefined;
  event.preventDefault();
  event.stopPropagation();
  return all.at((all.indexOf(here) + step) % all.length);
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-block", (root, send) => block(root, queued(send)));
}
