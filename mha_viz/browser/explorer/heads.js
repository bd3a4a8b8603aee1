// Which heads are open, and how a head is described.
import { headName, mapName } from "../geometry.js";
import { signColours } from "../ink.js";
import { inNats, number, percent } from "../numerals.js";
import { shownRoles, spoken } from "./roles.js";

/** @type {(reading: Reading, head: number) => number} */
export const layerOf = (reading, head) => Math.floor(head / reading.heads);
/** @type {(look: Look, reading: Reading, head: number) => string} */
export const headColour = (look, reading, head) => look.heads[(head % reading.heads) % look.heads.length];
// The heads of the link diagram in the order of their lines, the opened one first, as in files.
/** @type {(view: ReadingView) => number[]} */
export const drawn = ({ head, on }) => (on.includes(head) ? [head, ...on.filter((other) => other !== head)] : on);
/** @type {(look: Look, view: ReadingView, head: number) => number[]} */
export const headDash = (look, view, head) => look.dashes[drawn(view).indexOf(head) % look.dashes.length];

/** @type {(reading: Reading, metric: Metric, head: number) => string} */
export function measured(reading, metric, head) {
  const value = metric.values[head];
  if (value === null) return "–";
  if (metric.unit === "nats") return inNats(value, 2);
  return metric.unit === "share" ? percent(value) : number(value, reading);
}

// The length of a bar is the number's share of `top`; signed numbers have the colours of their cells.
/** @type {(app: ExplorerApp, bar: HTMLElement, value: number, top: number) => HTMLElement} */
export function drawBar({ reading, look }, bar, value, top) {
  bar.style.setProperty("--share", `${Math.min(100, (100 * Math.abs(value)) / (top || 1))}%`);
  const { colour, below } = signColours(look);
  if (reading.signed) bar.style.setProperty("--colour", value < 0 ? below : colour);
  return bar;
}

// The largest size of numbers, one per head, that are no shares of 1.
/** @type {(values: (number | null)[]) => number} */
export const largest = (values) => Math.max(...values.map((value) => Math.abs(value ?? 0)));

// The roles and numbers of a head for screen readers.
/** @type {(app: ExplorerApp, head: number) => string} */
export function heard(app, head) {
  const { reading } = app;
  const numbers = reading.metrics.map((metric) => `${metric.label} ${measured(reading, metric, head)}`);
  return spoken(shownRoles(app, head)) + numbers.join(", ");
}

/** @type {(app: ExplorerApp, head: number) => void} */
export function openHead(app, head) {
  const { reading, stage, part } = app;
  app.cursor = head;
  const { on, head: before } = stage.view;
  const others = on.filter((other) => layerOf(reading, other) === layerOf(reading, head) && other !== before);
  stage.change({ head, on: others.length ? [...new Set([head, ...others])] : [head] });
  part.announcement.textContent = `${mapName(reading, head)} opened. ${heard(app, head)}`;
}

// Draw a head of the open layer together with the others, or remove it again.
/** @type {(app: ExplorerApp, head: number) => void} */
export function toggleHead(app, head) {
  const { reading, stage, part } = app;
  const { view } = stage;
  const on = view.on.includes(head) ? view.on.filter((other) => other !== head) : [...view.on, head];
  if (on.length > reading.together) {
    part.note.textContent = `With a text this long, at most ${reading.together} heads can be drawn together.`;
  } else if (on.length) {
    app.cursor = on.includes(view.head) ? view.head : on[0];
    stage.change({ on, head: app.cursor });
  }
}

// Show one head alone or, if it is alone already, its whole layer.
/** @type {(app: ExplorerApp, head: number, before: ReadingView | null) => void} */
export function showAlone(app, head, before) {
  const { reading, stage } = app;
  const wasAlone = before && before.on.length === 1 && before.on[0] === head;
  const first = layerOf(reading, head) * reading.heads;
  const others = Array.from({ length: reading.heads }, (_, k) => first + k).filter((other) => other !== head);
  app.cursor = head;
  stage.change({ head, on: wasAlone ? [head, ...others].slice(0, reading.together) : [head] });
}

// Heads can be compared if there is a server.
/** @type {(app: ExplorerApp) => boolean} */
export const isComparable = ({ root }) => !root.dataset.alone;

// Add a head to the compared heads.
/** @type {(app: ExplorerApp, head: number) => void} */
export function setAside(app, head) {
  if (!isComparable(app)) return;
  const { reading, send, part } = app;
  send("tray", { model: reading.model, head: headName(reading, head), of: reading.of, ...reading.request });
  part.announcement.textContent = `${mapName(reading, head)} is being added to the compared heads.`;
}
