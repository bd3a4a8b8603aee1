// The grid of all heads, with marks for open heads, roles and composition arrows, and the numbers of one head.
import { make, prefersReducedMotion, makeSvg } from "../dom.js";
import { isPair, poolBlock, listPooledUnits, computeShading, computeShownBlock, computeUnits } from "../geometry.js";
import { fitCanvas, matchCellsToPixels, paint, getResolution } from "../ink.js";
import { findGridCell, computeGridLayout } from "../layouts.js";
import { formatPercent } from "../numerals.js";
import { getGrid, getGridPlace, hasKeptHeads, getModelNumbers, formatMapName } from "../reading.js";
import { getArrowStep as arrowKey, clamp, isPress, getPoint } from "../stage.js";
import { isOfLayers } from "../view.js";
import { makeFocusableCanvas } from "./head.js";
import { getHeadColour } from "./heads.js";
import { Preview } from "./preview.js";
import { RoleSwitch } from "./roles.js";
/** @import { ReadingView, ShownBlock } from "../geometry.js" */
/** @import { CellPixels } from "../ink.js" */
/** @import { GridLayout } from "../layouts.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Look } from "../stage.js" */
/** @import { Stores } from "./explorer.js" */

const MAX_SIZE = 112; // maximum size of a head in pixels, if there are few
const LAYERS =
  "A model reads a text in layers, one after the other. In each layer, several heads look at all words in parallel.";
const WHY_LINK = "Why do they differ? →";
const LABEL = "All heads. Arrow keys move from head to head, Enter opens a head, c compares it, x switches it off.";

export class Overview {
  #grid = makeFocusableCanvas(LABEL);
  #marks = make("div", { class: "marks" });
  #hovered = make("b", { class: "hovered", hidden: true });
  #sheet = make("div", { class: "sheet" }, this.#grid, this.#marks);
  #gridBox = make("div", { class: "grid", part: "grid" }, this.#sheet);
  #count = make("h2");
  #why = make(
    "a",
    { href: "why_heads_differ", onclick: (/** @type {MouseEvent} */ e) => this.#openAnswerPage(e) },
    WHY_LINK,
  );
  #movedNote = make("span", { class: "soft" });
  #layout = /** @type {GridLayout | null} */ (null);
  #changesKey = ""; // key of the data from which the bars of changes were drawn
  #picturesKey = ""; // key of the data from which the grid's pictures were drawn
  #stores;
  #headBox;
  #preview;
  roles;
  #arrows;

  // `headBox` describes the open head, beside the grid or below it; `rankingBox` goes below the numbers.
  /** @param {Stores} stores @param {HTMLElement} headBox @param {HTMLElement} rankingBox */
  constructor(stores, headBox, rankingBox) {
    this.#stores = stores;
    this.#headBox = headBox;
    this.#preview = new Preview(stores, rankingBox);
    this.roles = new RoleSwitch(stores, () => this.draw());
    const header = make("header", {}, this.#count, this.#movedNote, this.roles.unmeasured);
    this.#arrows = new Arrows(stores, this.#sheet);
    const parts = [header, this.roles.kinds, this.#gridBox, this.#arrows.box, this.#preview.box];
    this.box = make("section", { class: "overview" }, ...parts);
    this.#listen();
  }

  draw() {
    const { data, stage, heads } = this.#stores;
    const { reading } = data;
    const { view } = stage;
    const { layers, heads: columns } = getGrid(reading);
    const rows = hasKeptHeads(reading) ? "" : `${formatCount(layers.length, reading.layers)} layers × `;
    const headCount = `${rows}${formatCount(columns.length, reading.heads)} heads`;
    const hasAllHeads = !hasKeptHeads(reading) && !isOfLayers(reading) && !this.#stores.isStandalone;
    const texts = isPair(reading) ? "texts" : "sentence";
    const question = `${layers.length * columns.length} heads read the same ${texts}. `;
    this.#count.title = `${headCount}. ${LAYERS}`;
    this.#count.replaceChildren(hasAllHeads ? question : isOfLayers(reading) ? "One map per layer" : headCount);
    if (hasAllHeads) this.#count.append(this.#why);
    this.#movedNote.textContent = data.ablation?.moved.some((share) => share) ? "orange: its attention moved" : "";
    const marks = view.on.map((head) => this.#makeMark(head, head === view.head ? "opened" : "on"));
    const cursorMarks = heads.cursor === view.head ? [] : [this.#makeMark(heads.cursor, "cursor")];
    const badges = this.roles.draw((box, head) => this.#placeOnHead(box, head));
    this.#marks.replaceChildren(...this.#drawChanges(), ...badges, ...marks, ...cursorMarks, this.#hovered);
    this.#drawPreview();
  }

  // Go to the page that answers the question, unless the browser opens a new tab.
  /** @type {(event: MouseEvent) => void} */
  #openAnswerPage(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.#stores.stage.send("why", {});
  }

  // Redraw the pictures if anything in them has changed.
  drawPictures() {
    const { data, stage, look } = this.#stores;
    const { unit, special, side, scale } = stage.view;
    const style = getComputedStyle(this.#gridBox);
    const width = this.#gridBox.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    // Height of the window without the sentence, the line of unusual findings and the heading above the grid.
    const usualHeight = this.#isWide ? Math.max(230, window.innerHeight - 330) : 10000;
    const height = look.minLabelSize ? this.#gridBox.clientHeight : usualHeight; // set by CSS in class mode
    const page = [look.theme, width, height, look.ink, getResolution(this.#grid)];
    const key = JSON.stringify([data.reading.key, unit, special, side, scale, ...page]);
    if (key === this.#picturesKey) return;
    this.#picturesKey = key;
    this.#layout = drawGrid(this.#grid, data.reading, stage.view, { ...look, width, height, maxCell: MAX_SIZE });
  }

  /**
   * Position an element on a head.
   *
   * @template {HTMLElement} T
   * @param {T} box
   * @param {number} head
   */
  #placeOnHead(box, head) {
    const { reading } = this.#stores.data;
    const { left, top, step, size } = /** @type {GridLayout} */ (this.#layout);
    const [row, column] = getGridPlace(reading, head);
    box.style.left = `${left + column * step}px`;
    box.style.top = `${top + row * step}px`;
    box.style.width = box.style.height = `${size}px`;
    return box;
  }

  /** @type {(head: number, kind: string) => HTMLElement} */
  #makeMark(head, kind) {
    const { data, look } = this.#stores;
    const box = this.#placeOnHead(make("i", { class: kind }), head);
    if (kind === "on") box.style.outlineColor = getHeadColour(look, data.reading, head);
    return box;
  }

  // Draw dark squares for heads that are off, and below each later head a bar for the change of its attention.
  #drawChanges() {
    const { ablation } = this.#stores.data;
    if (!ablation) return [];
    const off = ablation.off.map((head) => this.#placeOnHead(make("b", { class: "dark" }), head));
    const bars = ablation.moved.flatMap((share, head) => {
      if (share === null) return [];
      const bar = this.#placeOnHead(make("b", { class: "moved" }), head);
      bar.style.setProperty("--share", String(share));
      return [bar];
    });
    const key = JSON.stringify(ablation);
    this.#marks.classList.toggle("shiver", key !== this.#changesKey); // animate once per change
    this.#changesKey = key;
    return [...bars, ...off];
  }

  #drawPreview() {
    const { data, heads } = this.#stores;
    const head = heads.hovered ?? heads.cursor;
    this.#placeOnHead(this.#hovered, head);
    this.#hovered.hidden = heads.hovered === null;
    this.#hovered.dataset.name = formatMapName(data.reading, head);
    this.#preview.draw(head);
    this.#arrows.draw(this.#layout);
  }

  // Whether the open head is beside the grid rather than below it.
  get #isWide() {
    return this.#headBox.offsetTop < this.#gridBox.offsetTop;
  }

  // ---- Pointer and keys ---------------------------------------------------------------------------------------

  #listen() {
    const { data, heads } = this.#stores;
    /** @type {(event: MouseEvent) => number | null} */
    const findHead = (event) => {
      if (!this.#layout) return null;
      const { layers, heads: columns } = getGrid(data.reading);
      const i = findGridCell(this.#layout, layers.length, columns.length, ...getPoint(this.#grid, event));
      if (i === null) return null;
      return layers[Math.floor(i / columns.length)] * data.reading.heads + columns[i % columns.length];
    };
    if (!this.#stores.isStandalone)
      makeDraggable(this.#grid, this.#gridBox, findHead, (head) => heads.isOff(head) || heads.toggleOff(head));
    this.#grid.onpointermove = (event) => this.#hover(findHead(event));
    this.#grid.onpointerleave = () => this.#hover(null);
    this.#grid.onclick = (event) => {
      const head = findHead(event);
      if (head === null) return;
      if (event.shiftKey && !this.#stores.isStandalone) return heads.compare(head);
      const wasWide = this.#isWide;
      heads.open(head);
      if (!wasWide)
        this.#headBox.scrollIntoView({ behavior: prefersReducedMotion() ? "auto" : "smooth", block: "start" });
    };
    this.#grid.onkeydown = (event) => this.#onKey(event);
  }

  /** @type {(head: number | null) => void} */
  #hover(head) {
    const { heads } = this.#stores;
    if (head === heads.hovered) return;
    heads.hovered = head;
    this.#drawPreview();
  }

  /** @type {(event: KeyboardEvent) => void} */
  #onKey(event) {
    const { data, heads, isStandalone, say } = this.#stores;
    const { reading } = data;
    if (isPress(event)) {
      heads.open(heads.cursor);
      event.preventDefault();
    }
    const isPlain = !event.ctrlKey && !event.metaKey && !isStandalone;
    if (event.key === "c" && isPlain) heads.compare(heads.cursor);
    if (event.key === "x" && isPlain) {
      heads.toggleOff(heads.cursor);
      event.preventDefault(); // keep the page from handling this key too
    }
    const step = arrowKey(event);
    if (!step) return;
    event.preventDefault();
    const { layers, heads: columns } = getGrid(reading);
    const [row, column] = getGridPlace(reading, heads.cursor);
    const layer = layers[clamp(row + step[0], layers.length)];
    heads.cursor = layer * reading.heads + columns[clamp(column + step[1], columns.length)];
    heads.hovered = null;
    this.draw();
    say(`${formatMapName(reading, heads.cursor)}. ${heads.describe(heads.cursor)}`);
  }
}

// Return "12" if all are shown, otherwise "2 of 12".
/** @type {(count: number, all: number) => string} */
const formatCount = (count, all) => (count === all ? String(all) : `${count} of ${all}`);

// ---- Dragging a head out of the grid ------------------------------------------------------------------------

// Dragging a head out of the grid switches it off. On touch screens, dragging scrolls instead.

const DRAG_DISTANCE = 8; // pixels after which a press becomes a drag

/**
 * Let users drag heads out of `box`. `findHead` returns the head under the pointer; `onDrop` is called with the dragged
 * head.
 *
 * @param {HTMLElement} grid
 * @param {HTMLElement} box
 * @param {(event: PointerEvent) => number | null} findHead
 * @param {(head: number) => void} onDrop
 */
function makeDraggable(grid, box, findHead, onDrop) {
  const ghost = make("b", { class: "ghost", "aria-hidden": "true" });
  let pressed = /** @type {{ head: number, x: number, y: number } | null} */ (null);
  let wasDragged = false;
  const drop = () => {
    pressed = null;
    ghost.remove();
    document.removeEventListener("keydown", cancel, true);
  };
  /** @type {(event: KeyboardEvent) => void} */
  const cancel = ({ key }) => void (key === "Escape" && drop());
  grid.addEventListener("pointerdown", (event) => {
    const head = event.pointerType === "touch" || event.button ? null : findHead(event);
    wasDragged = false;
    pressed = head === null ? null : { head, x: event.clientX, y: event.clientY };
  });
  grid.addEventListener("pointermove", (event) => {
    if (!pressed) return;
    if (!event.buttons) return drop(); // released elsewhere
    const { clientX: x, clientY: y } = event;
    if (!wasDragged && Math.hypot(x - pressed.x, y - pressed.y) < DRAG_DISTANCE) return;
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
    const head = wasDragged && isOutside(box, event) ? (pressed?.head ?? null) : null;
    drop();
    if (head !== null) onDrop(head);
  });
  grid.addEventListener("pointercancel", drop);
  grid.addEventListener("click", (event) => wasDragged && event.stopImmediatePropagation(), true); // not a click
}

/** @type {(box: HTMLElement, event: PointerEvent) => boolean} */
function isOutside(box, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  return x < left || x > right || y < top || y > bottom;
}

// ---- All heads at a glance ----------------------------------------------------------------------------------

// One canvas, one small picture per head.

const NAME_WIDTH = 44; // pixels for "L11H11"

// Draw all heads and return the layout. `look` = {width, height, colours, muted, smallFont}.
/** @type {(canvas: HTMLCanvasElement, reading: Reading, view: ReadingView, look: Look) => GridLayout} */
export function drawGrid(canvas, reading, view, look) {
  const { layers, heads } = getGrid(reading);
  const minHeight = look.minLabelSize || undefined;
  const layout = computeGridLayout(look.width, layers.length, heads.length, look.height, look.maxCell, minHeight);
  const context = fitCanvas(canvas, layout.width, layout.height);
  const ratio = getResolution(canvas);
  const size = Math.max(1, Math.floor(layout.size * ratio));
  const image = context.createImageData(canvas.width, canvas.height); // all heads in one image, drawn in one call
  const target = new Uint32Array(image.data.buffer);
  const getBlock = makeBlockGetter(reading, view);
  /** @type {CellPixels[]} */
  let cellPixels = []; // for rows and columns; the same for all heads
  for (let i = 0; i < layers.length * heads.length; i++) {
    const [row, column] = [Math.floor(i / heads.length), i % heads.length];
    const block = getBlock(layers[row] * reading.heads + heads[column]);
    const x = Math.round((layout.left + column * layout.step) * ratio);
    const y = Math.round((layout.top + row * layout.step) * ratio);
    if (!block.R || !block.C) continue;
    if (!cellPixels.length) cellPixels = [matchCellsToPixels(block.R, size), matchCellsToPixels(block.C, size)];
    const colours = block.signed ? look.signedColours : look.colours;
    paint(block, computeShading(block, view.scale), cellPixels, colours, target, canvas.width, y * canvas.width + x);
  }
  context.putImageData(image, 0, 0);
  drawLabels(context, reading, layout, look);
  return layout;
}

// Return a function that computes the visible block of each head, pooled if only thumbnails were sent.
/** @type {(reading: Reading, view: ReadingView) => (head: number) => ShownBlock} */
function makeBlockGetter(reading, view) {
  if (reading.bins) {
    const bins = listPooledUnits(reading, view);
    return (head) => poolBlock(reading, head, bins);
  }
  const axes = computeUnits(reading, view);
  return (head) => computeShownBlock(reading, head, view, axes);
}

/** @type {(context: CanvasRenderingContext2D, reading: Reading, layout: GridLayout, look: Look) => void} */
function drawLabels(context, reading, layout, look) {
  context.fillStyle = look.muted;
  context.font = look.smallFont;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const { layers, heads } = getGrid(reading);
  const isSelection = hasKeptHeads(reading);
  const hasNames = !isOfLayers(reading) && (!isSelection || layout.step >= NAME_WIDTH);
  for (const [column, head] of hasNames ? heads.entries() : []) {
    const name = isSelection ? formatMapName(reading, head) : String(head);
    context.fillText(name, layout.left + column * layout.step + layout.size / 2, layout.top / 2);
  }
  context.textAlign = "right";
  for (const [row, layer] of isSelection ? [] : layers.entries()) {
    const name = `L${getModelNumbers(reading, layer * reading.heads)[0]}`;
    context.fillText(name, layout.left - 8, layout.top + row * layout.step + layout.size / 2);
  }
}

// ---- Composition --------------------------------------------------------------------------------------------

// Draw arrows over the grid from each head to the later heads whose scores it contributes to, and list them.

/**
 * `from` and `to` are heads of the reading; `side` is the side of the score, query or key, to which the head
 * contributes.
 *
 * @typedef {{ from: number, to: number, side: "query" | "key", share: number }} Arrow
 */

const MAX_WIDTH = 9; // pixels for a share of 1, on top of the minimum
const BEND = 0.22; // sideways bend as a share of an arrow's length: keys to the right, queries to the left
const THRESHOLD_NOTE = "At least 5% of the later head’s scores here.";

class Arrows {
  box = make("section", { class: "composed", "aria-label": "Arrows between heads" });
  #lines = makeSvg("svg", { "aria-hidden": "true", class: "marks arrows" });
  #drawnKey = "";
  #noArrowsNote = make("span", { role: "status" }); // says that the open head has no arrows
  #hoveredArrow = /** @type {Arrow | null} */ (null);
  #stores;

  /** @param {Stores} stores @param {HTMLElement} sheet the element below the arrows */
  constructor(stores, sheet) {
    this.#stores = stores;
    sheet.append(this.#lines);
  }

  // Draw the arrows over a grid of this layout.
  /** @type {(layout: GridLayout | null) => void} */
  draw(layout) {
    const { data } = this.#stores;
    const arrows = (layout && data.arrows) || [];
    this.box.hidden = !data.arrows;
    const key = JSON.stringify([data.reading.key, layout, data.arrows]);
    if (key !== this.#drawnKey) {
      this.#drawnKey = key;
      this.#hoveredArrow = null;
      const paths = [...arrows]
        .reverse()
        .flatMap((arrow) => drawPath(arrow, data.reading, /** @type {any} */ (layout)));
      this.#lines.replaceChildren(...paths);
      this.#listArrows(arrows);
    }
    this.#highlightArrows();
  }

  // Highlight the arrows of the hovered head, or the arrow hovered in the list.
  #highlightArrows() {
    const { heads, data } = this.#stores;
    const head = heads.hovered ?? heads.cursor;
    const hoveredArrow = this.#hoveredArrow;
    /** @type {(arrow: Arrow) => boolean} */
    const isHighlighted = (arrow) =>
      hoveredArrow ? identifyArrow(arrow) === identifyArrow(hoveredArrow) : arrow.from === head || arrow.to === head;
    const highlightedKeys = new Set((data.arrows ?? []).filter(isHighlighted).map(identifyArrow));
    const lacksArrows = head !== null && highlightedKeys.size === 0 && (data.arrows ?? []).length > 0;
    this.#noArrowsNote.textContent = lacksArrows ? `${formatMapName(data.reading, head)} has no arrows.` : "";
    this.#lines.classList.toggle("some", highlightedKeys.size > 0);
    for (const line of this.#lines.children)
      line.classList.toggle("near", highlightedKeys.has(line.getAttribute("data-of") ?? ""));
  }

  /** @type {(arrows: Arrow[]) => void} */
  #listArrows(arrows) {
    const noneText = "No earlier head contributes 5% or more to a later head’s scores here.";
    const legend = ["query", "key"].map((side) => make("span", { class: side }, `through its ${side}`));
    const line = make(
      "p",
      { class: "soft" },
      ...(arrows.length ? [THRESHOLD_NOTE, ...legend] : [noneText]),
      this.#noArrowsNote,
    );
    this.box.replaceChildren(line, make("ol", {}, ...arrows.map((arrow) => make("li", {}, this.#makeButton(arrow)))));
  }

  /** @type {(arrow: Arrow) => HTMLElement} */
  #makeButton(arrow) {
    const { data, heads } = this.#stores;
    const [from, to] = [arrow.from, arrow.to].map((head) => formatMapName(data.reading, head));
    /** @type {(hovered: Arrow | null) => () => void} */
    const setHovered = (hovered) => () => {
      this.#hoveredArrow = hovered;
      this.#highlightArrows();
    };
    const [enter, leave] = [setHovered(arrow), setHovered(null)];
    const events = { onfocus: enter, onblur: leave, onpointerenter: enter, onpointerleave: leave };
    const title = `Open ${to}`;
    const share = formatPercent(arrow.share);
    const label = `${from} contributes ${share} of the scores of ${to}, through its ${arrow.side}. ${title}.`;
    const texts = [make("code", {}, `${from} → ${to}`), make("span", { class: arrow.side }, arrow.side)];
    const value = make("span", { class: "value" }, formatPercent(arrow.share));
    const onclick = () => heads.open(arrow.to);
    return make("button", { type: "button", title, "aria-label": label, onclick, ...events }, ...texts, value);
  }
}

/** @type {(arrow: Arrow) => string} */
const identifyArrow = ({ from, to, side }) => `${from} ${to} ${side}`;

// Draw an arrow between the centres of two heads, with its halo; return nothing if the grid lacks one of them.
/** @type {(arrow: Arrow, reading: Reading, layout: GridLayout) => SVGElement[]} */
export function drawPath(arrow, reading, { left, top, step, size }) {
  const places = [arrow.from, arrow.to].map((head) => getGridPlace(reading, head));
  if (places.flat().includes(-1)) return [];
  const [[x, y], [u, v]] = places.map(([row, column]) => [
    left + column * step + size / 2,
    top + row * step + size / 2,
  ]);
  const length = Math.hypot(u - x, v - y);
  const [normalX, normalY] = [(v - y) / length, -(u - x) / length];
  const bend = BEND * length * (arrow.side === "key" ? 1 : -1);
  const [midX, midY] = [(x + u) / 2 + bend * normalX, (y + v) / 2 + bend * normalY];
  const width = 1 + MAX_WIDTH * Math.min(1, arrow.share);
  const tip = 4 + width;
  const [dx, dy] = [u - midX, v - midY].map((part) => part / Math.hypot(u - midX, v - midY));
  const [endX, endY] = [u - tip * dx, v - tip * dy];
  /** @type {(...numbers: number[]) => string} */
  const formatPoint = (...numbers) => numbers.map((number) => number.toFixed(1)).join(" ");
  const line = `M${formatPoint(x, y)}Q${formatPoint(midX, midY, endX, endY)}`;
  const half = 2.5 + width / 2;
  const base = formatPoint(endX - half * dy, endY + half * dx, endX + half * dy, endY - half * dx);
  const arrowhead = `M${formatPoint(u, v)}L${base}Z`;
  const group = makeSvg(
    "g",
    { class: arrow.side, "data-of": identifyArrow(arrow) },
    makeSvg("path", { class: "halo", d: line, "stroke-width": formatPoint(width + 3) }),
    makeSvg("path", { class: "line", d: line, "stroke-width": formatPoint(width) }),
    makeSvg("path", { class: "tip", d: arrowhead }),
  );
  return [group];
}
