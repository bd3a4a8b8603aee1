// The grid of all heads: which are open, what each is known for, and one head's numbers beside it.
import { make } from "../dom.js";
import { keysOf, mapName, paperMapName } from "../geometry.js";
import { resolution } from "../ink.js";
import { gridCellAt } from "../layouts.js";
import { arrow, bounded, isPress, pointOn } from "../stage.js";
import { drawGrid } from "./grid.js";
import { drawBar, headColour, heard, largest, layerOf, measured, openHead, setAside } from "./heads.js";
import { drawBadges, drawChips, drawKinds } from "./roles.js";

/** @type {(app: ExplorerApp) => void} */
export function drawOverview(app) {
  const { reading, part, cursor } = app;
  const { view } = app.stage;
  const each =
    reading.quantity === "rollout" ? "one map per layer" : `${reading.layers} layers × ${reading.heads} heads`;
  part.count.textContent = each;
  const marks = view.on.map((head) => mark(app, head, head === view.head ? "opened" : "on"));
  const walked = cursor === view.head ? [] : [mark(app, cursor, "cursor")];
  part.marks.replaceChildren(...drawRoles(app), ...marks, ...walked, part.hovered);
  drawPreview(app);
}

// The switch for roles and, if it is on, the filter by kind. Returns the marks for the grid.
/** @type {(app: ExplorerApp) => HTMLElement[]} */
function drawRoles(app) {
  const { reading, roles, look, part, sought, stage } = app;
  part.unmeasured.hidden = roles.measured || !!app.root.dataset.alone;
  part.rolesBox.hidden = !roles.ofHead.size;
  part.rolesShown.checked = stage.view.roles;
  part.kinds.hidden = part.rolesBox.hidden || !stage.view.roles;
  if (part.kinds.hidden) return [];
  drawKinds(part.kinds, roles, sought, look.heads, (kind) => {
    app.sought = app.sought === kind ? null : kind;
    drawOverview(app);
  });
  const heads = reading.layers * reading.heads;
  return drawBadges(roles, heads, sought, (box, head) => place(app, box, head), look.heads);
}

// Redraws the pictures if anything that they show has changed.
/** @type {(app: ExplorerApp) => void} */
export function drawPictures(app) {
  const { reading, look, part, layouts } = app;
  const { unit, special, side, scale } = app.stage.view;
  part.all.style.setProperty("--heads", String(reading.heads));
  const style = getComputedStyle(part.gridBox);
  const width = part.gridBox.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const height = isWide(app) ? Math.max(230, window.innerHeight - 300) : 10000;
  const shown = [reading.key, unit, special, side, scale, look.theme, width, height, look.ink, resolution(part.grid)];
  const key = JSON.stringify(shown);
  if (key === app.pictured) return;
  app.pictured = key;
  layouts.grid = drawGrid(part.grid, reading, app.stage.view, { ...look, width, height });
}

/** @type {<T extends HTMLElement>(app: ExplorerApp, box: T, head: number) => T} */
function place({ layouts, reading }, box, head) {
  const { left, top, step, size } = layouts.grid;
  box.style.left = `${left + (head % reading.heads) * step}px`;
  box.style.top = `${top + layerOf(reading, head) * step}px`;
  box.style.width = box.style.height = `${size}px`;
  return box;
}

/** @type {(app: ExplorerApp, head: number, kind: string) => HTMLElement} */
function mark(app, head, kind) {
  const box = place(app, make("i", { class: kind }), head);
  if (kind === "on") box.style.outlineColor = headColour(app.look, app.reading, head);
  return box;
}

/** @type {(app: ExplorerApp) => void} */
function drawPreview(app) {
  const { reading, part, stage, hoveredHead, cursor } = app;
  const head = hoveredHead ?? cursor;
  place(app, part.hovered, head);
  part.hovered.hidden = hoveredHead === null;
  part.hovered.dataset.name = mapName(reading, head);
  const hint = head === stage.view.head ? " open" : hoveredHead === null ? " Enter opens it" : " click to open";
  const name = make("b", {}, mapName(reading, head));
  part.previewName.replaceChildren(name, ` (${paperMapName(reading, head)})`, make("span", { class: "soft" }, hint));
  part.rolesHere.hidden = head === stage.view.head; // they are already shown beside its name
  drawChips(part.rolesHere, app, head);
  part.numbers.replaceChildren(...reading.metrics.map((metric) => numberOf(app, metric, head)));
}

/** @type {(app: ExplorerApp, metric: Metric, head: number) => HTMLElement} */
function numberOf(app, metric, head) {
  const { reading } = app;
  /** @type {Record<string, number>} */
  const tops = { nats: Math.log(keysOf(reading).n), share: 1, number: largest(metric.values) };
  const line = drawBar(
    app,
    make("dd", { class: "bar", "aria-hidden": true }),
    metric.values[head] ?? 0,
    tops[metric.unit],
  );
  const value = make("dd", {}, measured(reading, metric, head));
  const help = reading.keys && metric.values[head] === null ? "Not defined between two texts." : metric.help;
  return make("div", { title: help }, make("dt", {}, metric.label), line, value);
}

// True if the opened head is beside the grid and not below it.
/** @type {(app: ExplorerApp) => boolean} */
const isWide = ({ part }) => part.one.offsetTop < part.gridBox.offsetTop;

/** @type {(element: HTMLElement) => void} */
function bringIntoView(element) {
  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "start" });
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------

/** @type {(app: ExplorerApp) => void} */
export function listenToGrid(app) {
  const { grid } = app.part;
  /** @type {(event: MouseEvent) => number | null} */
  const cell = (event) => {
    const { layouts, reading } = app;
    return layouts.grid ? gridCellAt(layouts.grid, reading.layers, reading.heads, ...pointOn(grid, event)) : null;
  };
  grid.onpointermove = (/** @type {PointerEvent} */ event) => hoverHead(app, cell(event));
  grid.onpointerleave = () => hoverHead(app, null);
  grid.onclick = (/** @type {MouseEvent} */ event) => {
    const head = cell(event);
    if (head === null) return;
    const isBeside = isWide(app);
    openHead(app, head);
    if (!isBeside) bringIntoView(app.part.one);
  };
  grid.onkeydown = (/** @type {KeyboardEvent} */ event) => onGridKey(app, event);
}

/** @type {(app: ExplorerApp, head: number | null) => void} */
function hoverHead(app, head) {
  if (head === app.hoveredHead) return;
  app.hoveredHead = head;
  drawPreview(app);
}

/** @type {(app: ExplorerApp, event: KeyboardEvent) => void} */
function onGridKey(app, event) {
  const { reading, cursor, part } = app;
  if (isPress(event)) {
    openHead(app, cursor);
    event.preventDefault();
  }
  if (event.key === "c" && !event.ctrlKey && !event.metaKey) setAside(app, cursor);
  const step = arrow(event);
  if (!step) return;
  event.preventDefault();
  const layer = bounded(layerOf(reading, cursor) + step[0], reading.layers);
  app.cursor = layer * reading.heads + bounded((cursor % reading.heads) + step[1], reading.heads);
  app.hoveredHead = null;
  drawOverview(app);
  part.announcement.textContent = `${mapName(reading, app.cursor)}. ${heard(app, app.cursor)}`;
}
