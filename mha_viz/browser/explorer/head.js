// One head as links and as a heatmap, in words and as a table; in the links, other heads of its layer beside it.
import { begin } from "../controls.js";
import { make } from "../dom.js";
import { DEFAULTS, block, chosen, firstView, isPair, mapName, paperMapName, shades, units } from "../geometry.js";
import { drawHeatmap, labelStep } from "../heatmap.js";
import { signColours } from "../ink.js";
import { heatmapSpotAt, linksSpotAt } from "../layouts.js";
import { drawLinks } from "../links.js";
import { pointOn, reveal } from "../stage.js";
import { defaultsFor } from "../view.js";
import { hiddenNote, readout, table } from "../words.js";
import { drawn, headColour, headDash, isComparable, layerOf, showAlone, toggleHead } from "./heads.js";
import { setControls } from "./page.js";
import { drawChips } from "./roles.js";

const LINES = ["solid", "dashed", "dotted", "dash-dotted"]; // the same as the dashes in figures/theme.py

// The rows, the columns and the open heads of the view, computed once per view.
/** @type {(app: ExplorerApp) => NonNullable<ExplorerApp["derived"]>} */
export function derive(app) {
  const { reading, look, derived } = app;
  const { view } = app.stage;
  const { unit, special, side, links, scale } = view;
  const here = drawn(view).filter((head) => reading.matrices.has(head));
  const key = JSON.stringify([unit, special, side, links, scale, here, look.theme]);
  if (derived?.key === key && derived.reading === reading) return derived;
  const axes = axesOf(app);
  const heads = here.map((head) => {
    const part = block(reading, head, view, axes);
    const dash = headDash(look, view, head);
    const signs = reading.signed ? signColours(look) : { colour: headColour(look, reading, head) };
    return { head, dash, part, mask: chosen(part, links), shade: shades(part, scale), ...signs };
  });
  return (app.derived = { key, reading, shown: unit + special + side, axes, heads });
}

// The rows and columns; the same objects while they are unchanged, so that what was measured of them is kept.
/** @type {(app: ExplorerApp) => Axes} */
function axesOf({ reading, derived, stage }) {
  const { unit, special, side } = stage.view;
  const isSame = derived?.reading === reading && derived.shown === unit + special + side;
  return isSame ? derived.axes : units(reading, stage.view);
}

// The head whose name is above the drawings; undefined while its weights are being loaded.
/** @type {(app: ExplorerApp) => ShownHead | undefined} */
export const opened = (app) => derive(app).heads.find(({ head }) => head === app.stage.view.head);

/** @type {(app: ExplorerApp) => Spot | null} */
export function held({ derived, stage }) {
  const { pin } = stage.view;
  if (!pin || !derived) return null;
  /** @type {(list: Unit[], token: number | null) => number | null} */
  const find = (list, token) => (token === null ? null : list.findIndex((unit) => unit.tokens.includes(token)));
  const spot = /** @type {Spot} */ ({ row: find(derived.axes.rows, pin.query), col: find(derived.axes.cols, pin.key) });
  return spot.row === -1 || spot.col === -1 ? null : spot;
}

/** @type {(app: ExplorerApp, spot: Spot) => Pin} */
export function pinAt(app, { row, col }) {
  const { axes } = derive(app);
  /** @type {(list: Unit[], index: number | null) => number | null} */
  const token = (list, index) => (index === null ? null : list[index].tokens[0]);
  return { query: token(axes.rows, row), key: token(axes.cols, col) };
}

// ---- Drawing --------------------------------------------------------------------------------------------------

/** @type {(reading: Reading, head: number) => (string | HTMLElement)[]} */
function headingOf(reading, head) {
  const layer = layerOf(reading, head);
  if (reading.quantity === "rollout") return [`After layer ${layer}, all heads together`];
  const names = make("code", {}, `${mapName(reading, head)} (${paperMapName(reading, head)})`);
  return [`Layer ${layer}, head ${head % reading.heads} `, names];
}

/** @type {(app: ExplorerApp) => void} */
export function drawControls(app) {
  const { reading, part } = app;
  const { view } = app.stage;
  part.title.replaceChildren(...headingOf(reading, view.head));
  part.compare.hidden = !isComparable(app);
  part.shownBox.hidden = !!app.root.dataset.alone; // only a server computes other quantities
  drawChips(part.roles, app, view.head);
  setControls(part, view, isPair(reading));
  drawBegun(app);
  drawHeadBar(app);
}

// A long text begins with only its strongest links: one line says so.
/** @type {(app: ExplorerApp) => void} */
function drawBegun({ reading, part, stage }) {
  begin(
    part.begun,
    firstView(reading),
    defaultsFor(DEFAULTS, [reading]),
    stage.view,
    (settings) => stage.change(settings),
    [
      "A long text: the three strongest links of each word, special tokens hidden, colours per row.",
      "Show the strongest links only",
    ],
  );
}

/** @type {(app: ExplorerApp) => void} */
function drawHeadBar(app) {
  const { reading, look, part } = app;
  const { view } = app.stage;
  const first = layerOf(reading, view.head) * reading.heads;
  while (part.bar.children.length > reading.heads) part.bar.lastChild.remove();
  for (let i = part.bar.children.length; i < reading.heads; i++) part.bar.append(headSwitch(app, i));
  Array.from(part.bar.children).forEach((button, i) => {
    const place = drawn(view).indexOf(first + i);
    const line = view.on.length > 1 && place >= 0 ? place % look.dashes.length : null;
    button.setAttribute("aria-pressed", String(place >= 0));
    button.style.setProperty("--colour", headColour(look, reading, i));
    if (line === null) delete button.dataset.line;
    else button.dataset.line = String(line);
    const how = line === null ? "" : `, ${LINES[line]} lines`;
    button.title = `${mapName(reading, first + i)}${how}: click shows or hides it, double click shows it alone`;
    button.setAttribute("aria-label", `Head ${i} of this layer in the link diagram${how}`);
  });
}

/** @type {(app: ExplorerApp, i: number) => HTMLElement} */
function headSwitch(app, i) {
  const button = make("button", { type: "button", textContent: String(i) });
  const head = () => layerOf(app.reading, app.stage.view.head) * app.reading.heads + i;
  /** @type {ReadingView | null} */
  let before = null; // the view before the first click of a double click, which must not remove the heads
  button.onclick = (event) => {
    if (event.detail > 1) return;
    before = app.stage.view;
    toggleHead(app, head());
  };
  button.ondblclick = () => showAlone(app, head(), before);
  return button;
}

/** @type {(app: ExplorerApp) => void} */
export function drawHead(app) {
  const { reading, part, stage } = app;
  const { axes, heads } = derive(app);
  part.panels.classList.toggle("waiting", heads.length < Math.min(stage.view.on.length, reading.together));
  const focus = stage.focused();
  const head = opened(app);
  if (!head) return drawNothing(app);
  drawDrawings(app, { ...axes, heads, focus }, head);
  drawWords(app, focus, head, axes);
}

/** @type {(app: ExplorerApp) => void} */
function drawNothing({ reading, root, part, stage }) {
  const name = mapName(reading, stage.view.head);
  const alone = `${name} is not in this file: the text is too long for all heads.`;
  part.readout.textContent = root.dataset.alone ? alone : `${name} is loading…`;
  part.tableBox.replaceChildren();
}

/** @type {(app: ExplorerApp, scene: Axes & { heads: ShownHead[], focus: Spot | null }, head: ShownHead) => void} */
function drawDrawings({ part, look, layouts }, scene, head) {
  const height = Math.max(380, Math.min(640, window.innerHeight - 520)); // the usual height of the rest of the page
  const [width, across] = [part.linksBox.clientWidth, part.heatBox.clientWidth]; // read before anything changes
  const scroll = part.scroller.scrollTop;
  part.scroller.style.maxHeight = `${height}px`;
  part.heatBox.style.maxHeight = `${height + 60}px`;
  layouts.links = drawLinks(part.links, scene, { ...look, width, height }, scroll);
  part.tall.style.height = `${layouts.links.height}px`;
  layouts.heat = drawHeatmap(part.heat, { ...scene, head }, { ...look, width: across, height });
  part.shownRows.textContent = shownRows(layouts.links, scene, scroll, height);
}

// Which words of a scrolling diagram are visible; an empty string if all are.
/** @type {(layout: LinksLayout, axes: Axes, scroll: number, height: number) => string} */
function shownRows({ rowHeight, height: whole }, { rows, cols }, scroll, height) {
  if (whole <= height) return "";
  const [count, first] = [Math.max(rows.length, cols.length), Math.floor(scroll / rowHeight)];
  const last = Math.min(count, Math.floor((scroll + height) / rowHeight));
  return `↕ ${first + 1}–${last} of ${count}`;
}

/** @type {(app: ExplorerApp, focus: Spot | null, head: ShownHead, axes: Axes) => void} */
function drawWords({ reading, part, stage, layouts, quiet }, focus, head, axes) {
  part.readout.replaceChildren(...readout(head, axes, focus, stage.view.unit, quiet));
  const every = labelStep(layouts.heat.cell);
  const sparse =
    every > 1 ? " One in " + every + " of the heatmap’s words is written; point at a cell to read its words." : "";
  part.note.textContent = hiddenNote(head, axes, focus, stage.view, reading) + sparse;
  const name = mapName(reading, head.head);
  const keys = "Arrow keys move, Enter holds, Escape lets go.";
  part.heat.setAttribute("aria-label", `Heatmap of ${name}. ${part.readout.textContent} ${keys}`);
  part.links.setAttribute("aria-label", `Token links of ${name}. ${part.readout.textContent} ${keys}`);
}

/** @type {(app: ExplorerApp) => void} */
export function drawTable(app) {
  const head = app.part.table.open && opened(app);
  if (head) app.part.tableBox.replaceChildren(...table(head, derive(app).axes, app.reading));
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------

/** @type {(app: ExplorerApp) => void} */
export function listenToHead(app) {
  const { part, stage, layouts } = app;
  /** @type {() => [number, number]} */
  const counts = () => {
    const { rows, cols } = derive(app).axes;
    return [rows.length, cols.length];
  };
  /** @type {(event: MouseEvent) => Spot | null} */
  const cell = (event) =>
    layouts.heat ? heatmapSpotAt(layouts.heat, ...counts(), ...pointOn(part.heat, event)) : null;
  /** @type {(event: MouseEvent) => Spot | null} */
  const end = (event) => {
    const [x, y] = pointOn(part.links, event);
    return layouts.links ? linksSpotAt(layouts.links, ...counts(), x, y + part.scroller.scrollTop) : null;
  };
  /** @type {(isHeat: boolean) => () => Walk} */
  const about = (isHeat) => () => {
    const [R, C] = counts();
    return { from: stage.focused(), isHeat, R, C, start: {}, walked: (spot) => walkedTo(app, spot, isHeat) };
  };
  stage.attend(part.heat, cell, about(true));
  stage.attend(part.links, end, about(false));
  part.scroller.onscroll = () => drawHead(app);
}

/** @type {(app: ExplorerApp, spot: Spot, isHeat: boolean) => void} */
function walkedTo({ part, layouts }, spot, isHeat) {
  part.announcement.textContent = part.readout.textContent;
  if (!isHeat) reveal(part.scroller, (spot.row ?? spot.col) * layouts.links.rowHeight);
}
