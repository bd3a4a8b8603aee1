// Draw the map of every head at one moment of training, like the heatmaps of other pages, with signs over it. If the
// head's own weights were recorded, a strip above the map shows them.
import { make, prefersReducedMotion, makeSvg } from "../dom.js";
import { EDGE, drawHeatmap, measureHeatmapLabel } from "../heatmap.js";
import { findHeatmapCell } from "../layouts.js";
import { formatDecimal } from "../numerals.js";
import { getPoint, readLook } from "../stage.js";
import { arrangeMaps } from "./arranged.js";
import { blendFrames, decodeBytes, formatColour } from "./frames.js";
import { makeSentence } from "./sentence.js";
/** @import { Axes, Unit } from "../geometry.js" */
/** @import { HeatmapLayout, Span } from "../layouts.js" */
/** @import { Look } from "../stage.js" */
/** @import { Arrangement } from "./arranged.js" */
/** @import { Palettes, PlayerData, PlayerHead, PlayerMark, PlayerStrip } from "./player.js" */

/**
 * @typedef {{ root: HTMLElement, canvas: HTMLCanvasElement, signs: SVGElement, picture: OffscreenCanvas, name: string,
 *   layout: HeatmapLayout | null }} PlayerMap
 */

/**
 * @typedef {{ root: HTMLElement, sentence: HTMLElement, draw: (moment: number, colours: Palettes) => void,
 *   showNotes: (step: number) => void, reveal: () => void }} MapsView
 */

const SIGN_RADIUS = 0.34; // half the side of a square, or the radius of a circle, as a share of a cell
const NARROW_WIDTH = 600; // pixels; pages below this width are narrow
const GAP = { narrow: 6, wide: 14 }; // between maps, as in player.css
const CAPTION = { name: 26, strip: 40 }; // height of the captions above each map, pixels
const TITLE = { width: 104, height: 24 }; // beside a row of maps or, on narrow pages, above it; see player.css
// Small maps, in pixels: beside the large ones or, on a narrow page, below them.
const SMALL_MAPS = { width: 208, columns: 2, gap: 12, caption: 24 };
const GAP_BELOW = 10; // between the maps and the elements below them, pixels
const BAR_HEIGHT = 90; // of the bar with the button, pixels

/** @type {(data: PlayerData, say: (text: string) => void) => MapsView} */
export function makeMaps(data, say) {
  const n = data.words.length;
  const cells = decodeBytes(data.maps);
  const maps = data.heads.map((head) => makeMap(data, head));
  const strips = data.strip ? addStrips(data.strip, maps) : null;
  const notes = data.rows.map(() => make("output"));
  const root = make("div", { class: "maps" }, ...arrangeInRows(data, maps, notes));
  const prepareLayout = makeLayoutFunction(data, root);
  const sentence = makeSentence(data, () => current.redraw());
  /** @type {{ weights: Uint8ClampedArray, redraw: () => void }} */
  const current = { weights: new Uint8ClampedArray(0), redraw: () => {} };
  listenToMaps(root, maps, data, current, (row, col, text) => {
    sentence.show(row, col);
    say(text);
  });
  /** @type {(moment: number, colours: Palettes) => void} */
  const draw = (moment, colours) => {
    current.redraw = () => draw(moment, colours);
    if (!root.isConnected) return;
    const { units, look, setSize } = prepareLayout();
    current.weights = blendFrames(cells, maps.length * n * n, moment);
    const focus = sentence.row() < 0 ? null : { row: sentence.row(), col: null };
    const getShades = (/** @type {number} */ h) => current.weights.subarray(h * n * n, (h + 1) * n * n);
    maps.forEach((map, h) => {
      map.root.classList.toggle("off", Boolean(data.off?.[Math.round(moment)]?.[h]));
      setSize(h);
      map.layout = drawMap(map, getShades(h), { rows: units, cols: units, focus }, look, colours.ramp);
    });
    strips?.(moment, colours.signed);
  };
  const resizeObserver = new ResizeObserver(() => (root.isConnected ? current.redraw() : resizeObserver.disconnect()));
  resizeObserver.observe(root);
  const page = document.querySelector("[data-testid=stMainBlockContainer]"); // content above the maps can move them
  if (page) resizeObserver.observe(page);
  document.fonts.ready.then(() => current.redraw());
  /** @type {(step: number) => void} */
  const showNotes = (step) => notes.forEach((note, i) => (note.textContent = data.rows[i].notes[step]));
  return { root, sentence: sentence.root, draw, showNotes, reveal: () => revealMaps(root) };
}

// Arrange the maps. If they belong to several runs, each row has a title; if some are large, the large ones come first.
/** @type {(data: PlayerData, maps: PlayerMap[], notes: HTMLElement[]) => HTMLElement[]} */
function arrangeInRows({ rows, large }, maps, notes) {
  const roots = maps.map((map) => map.root);
  if (large.length) {
    const others = roots.filter((_, h) => !large.includes(h));
    return [...large.map((h) => roots[h]), make("div", { class: "others" }, ...others)];
  }
  if (!rows.length) return roots;
  const mapsPerRow = maps.length / rows.length;
  // Only the first row names the heads.
  roots.slice(mapsPerRow).forEach((root) => root.firstElementChild?.replaceChildren());
  return rows.flatMap(({ title, dashed }, i) => [
    make("h3", { class: "row-title" }, title, drawLineSample(dashed), notes[i]),
    ...roots.slice(i * mapsPerRow, (i + 1) * mapsPerRow),
  ]);
}

// Report the hovered cell and the weight from its row to its column.
/**
 * @type {(root: HTMLElement, maps: PlayerMap[], data: PlayerData, current: { weights: Uint8ClampedArray },
 *   report: (row: number, col: number, text: string) => void) => void}
 */
function listenToMaps(root, maps, { words, heads, rows }, current, report) {
  const n = words.length;
  root.addEventListener("pointermove", (event) => {
    const h = maps.findIndex((map) => map.canvas === event.target);
    const layout = maps[h]?.layout;
    const spot = layout ? findHeatmapCell(layout, n, n, ...getPoint(maps[h].canvas, event)) : null;
    if (!spot) return report(-1, -1, "");
    const [row, col] = [Number(spot.row), Number(spot.col)];
    const weight = formatDecimal(current.weights[(h * n + row) * n + col] / 255, 2);
    const training = rows.length ? `${rows[Math.floor((h * rows.length) / heads.length)].title}, ` : "";
    report(row, col, `${training}${heads[h].name}: “${words[row]}” gives ${weight} to “${words[col]}”`);
  });
  root.addEventListener("pointerleave", () => report(-1, -1, ""));
}

// Scroll to the maps if less than half of the first is visible above the bar with the button.
/** @type {(root: HTMLElement) => void} */
function revealMaps(root) {
  const { top, height } = /** @type {HTMLElement} */ (root.firstChild).getBoundingClientRect();
  if (top + height / 2 < window.innerHeight - BAR_HEIGHT) return;
  root.scrollIntoView({ block: "start", behavior: prefersReducedMotion() ? "instant" : "smooth" });
}

// Return a function that prepares the units, fonts and layout of the maps; `setSize` sets the size of one map.
/**
 * @type {(data: PlayerData, root: HTMLElement) => () => { units: Unit[], look: Look, setSize: (head: number) => void }}
 */
function makeLayoutFunction(data, root) {
  const { words, ramp, signed } = data;
  const theme = { ramp, signed, heads: [], dashes: [] };
  const look = /** @type {Look} */ ({ height: Infinity, maxCell: Infinity });
  const cached = { key: "", arrangement: /** @type {Arrangement} */ ({}) };
  return () => {
    // New objects, so that their texts are measured again.
    const units = words.map((text, i) => ({ text, tokens: [i], special: false, segment: 0 }));
    readLook(look, root, { light: theme, dark: theme }, root);
    const label = measureHeatmapLabel(units, units, look);
    const stage = /** @type {HTMLElement} */ (root.parentElement);
    const top = stage.getBoundingClientRect().top + measureScroll(findHost(stage));
    const key = [label, stage.clientWidth, window.innerHeight, Math.round(top), measureBelow(stage)].join();
    if (key !== cached.key) Object.assign(cached, { key, arrangement: layOutMaps(data, root, label, top) });
    const { columns, cell, hasRows, hasColumns } = cached.arrangement;
    /** @type {(head: number) => void} */
    const setSize = (head) => {
      const h = data.large.length ? data.large.indexOf(head) : head;
      if (h < 0)
        return void Object.assign(look, {
          labelWidth: 0,
          labelHeight: 0,
          width: computeSmallWidth(root, words.length),
        });
      look.labelWidth = hasRows || (hasRows === null && h % columns === 0) ? label : 0;
      look.labelHeight = hasColumns || (hasColumns === null && h < columns) ? label : 0;
      look.width = look.labelWidth + cell * words.length + EDGE;
    };
    return { units, look, setSize };
  };
}

// Return the width of a small map: whole pixels per cell in the room of its row.
/** @type {(root: HTMLElement, words: number) => number} */
function computeSmallWidth(root, words) {
  const { clientWidth } = /** @type {HTMLElement} */ (root.querySelector(".others figure"));
  return Math.max(2, Math.floor((clientWidth - EDGE) / words)) * words + EDGE;
}

// Lay out the maps in the available room. If a broad strip remains free, it holds the sentence; the verdict is
// always below the maps.
/** @type {(data: PlayerData, root: HTMLElement, label: number, top: number) => Arrangement} */
function layOutMaps(data, root, label, top) {
  const stage = /** @type {HTMLElement} */ (root.parentElement);
  stage.classList.remove("aside");
  const width = stage.clientWidth;
  const zoom = stage.getBoundingClientRect().width / width || 1; // class mode enlarges everything
  const pageKind = width < NARROW_WIDTH ? "narrow" : "wide";
  const sentence = stage.querySelector(pageKind === "narrow" ? ".sentence" : ".top");
  const { heads, words, rows, large, beside } = data;
  const count = large.length || heads.length;
  const smallCount = heads.length - count;
  const titles = { width: rows.length ? TITLE.width + GAP.wide : 0, height: rows.length * (TITLE.height + GAP.narrow) };
  const room = {
    width: pageKind === "narrow" ? width : width - titles.width - (smallCount ? SMALL_MAPS.width + GAP.wide : 0),
    height:
      (window.innerHeight - top) / zoom - measureBelow(stage) - GAP_BELOW - (pageKind === "narrow" ? titles.height : 0),
    sentenceHeight: sentence?.clientHeight ?? 0,
    label,
    caption: data.strip ? CAPTION.strip : CAPTION.name,
    gap: GAP[pageKind],
  };
  if (smallCount && pageKind === "narrow")
    room.height -= SMALL_MAPS.caption + (width - smallCount * GAP.narrow) / smallCount + GAP.narrow;
  const arrangement = arrangeMaps({ count, rows: rows.length, words: words.length, isBare: Boolean(beside) }, room);
  const { columns, cell, hasRows, isAside, gap } = arrangement;
  const [mapWidth, namedWidth] = [cell * data.words.length, label + cell * data.words.length];
  const otherWidth = hasRows ? namedWidth : mapWidth;
  const titleColumn = rows.length && pageKind === "wide" ? `${TITLE.width}px ` : "";
  const smallColumn = smallCount && pageKind === "wide" ? ` ${SMALL_MAPS.width}px` : "";
  const columnsOfMaps = `${hasRows === false ? mapWidth : namedWidth}px repeat(${columns - 1}, ${otherWidth}px)`;
  root.style.gridTemplateColumns = `${titleColumn}${columnsOfMaps}${smallColumn}`;
  root.style.columnGap = `${gap}px`;
  const smallRows = Math.ceil(smallCount / SMALL_MAPS.columns);
  const height = (room.height - (isAside ? 0 : room.sentenceHeight)) / smallRows - SMALL_MAPS.caption - SMALL_MAPS.gap;
  root.style.setProperty(
    "--small",
    `${Math.min(SMALL_MAPS.width / SMALL_MAPS.columns - SMALL_MAPS.gap / 2, height)}px`,
  );
  stage.classList.toggle("aside", isAside);
  return arrangement;
}

// Return the height of the elements below the maps: the bar with its text, or the text if there is no bar.
/** @type {(stage: HTMLElement) => number} */
const measureBelow = (stage) => (stage.querySelector(".bar") ?? stage.querySelector(".said"))?.clientHeight ?? 0;

/**
 * @type {(map: PlayerMap, shades: Uint8ClampedArray, scene: Axes & { focus: Span | null }, look: Look,
 *   colours: Uint32Array) => HeatmapLayout}
 */
function drawMap({ canvas, signs, picture, root }, shades, scene, look, colours) {
  const n = scene.rows.length;
  paintCells(picture, shades, colours, n);
  const head = { block: { R: n, C: n, w: NO_WEIGHTS }, shade: NO_SHADE, picture };
  const layout = drawHeatmap(canvas, { ...scene, head }, look);
  Object.assign(signs.style, { left: `${layout.left}px`, top: `${layout.top}px`, width: `${n * layout.cell}px` });
  root.style.setProperty("--wide", `${layout.width}px`);
  return layout;
}

const [NO_WEIGHTS, NO_SHADE] = [new Float32Array(0), new Uint8ClampedArray(0)];

/** @type {(data: PlayerData, head: PlayerHead) => PlayerMap} */
function makeMap(data, head) {
  const n = data.words.length;
  const canvas = make("canvas", { role: "img", "aria-label": `Where ${head.name} looks` });
  const signs = drawSigns(data.marks, n);
  const title = make("figcaption", {}, head.name);
  const root = make("figure", {}, title, make("div", { class: "map" }, canvas, signs));
  root.style.setProperty("--own", head.colour);
  return { root, canvas, signs, picture: new OffscreenCanvas(n, n), name: head.name, layout: null };
}

/**
 * @type {(canvas: OffscreenCanvas | HTMLCanvasElement, shades: Uint8ClampedArray, colours: Uint32Array,
 *   width: number) => void}
 */
function paintCells(canvas, shades, colours, width) {
  const picture = new ImageData(width, shades.length / width);
  new Uint32Array(picture.data.buffer).set(Array.from(shades, (shade) => colours[shade]));
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.putImageData(picture, 0, 0);
}

// Add a strip above each map with the first numbers of the head's weights; return a function that draws the strips.
/** @type {(strip: PlayerStrip, maps: PlayerMap[]) => (moment: number, colours: Uint32Array) => void} */
function addStrips({ name, size, cells }, maps) {
  const levels = decodeBytes(cells);
  const canvases = maps.map((map) => {
    const label = `The first ${size} numbers of ${map.name}’s ${name}`;
    const canvas = make("canvas", { class: "strip", width: size, height: 1, role: "img", "aria-label": label });
    map.root.insertBefore(canvas, map.root.lastChild);
    map.root.firstElementChild?.append(make("span", { class: "what", "aria-hidden": "true" }, ...setSubscripts(name)));
    return canvas;
  });
  return (moment, colours) => {
    const numbers = blendFrames(levels, maps.length * size, moment);
    canvases.forEach((canvas, h) => paintCells(canvas, numbers.subarray(h * size, (h + 1) * size), colours, size));
  };
}

// Explain the strips and their colours: a quarter of the largest number has half the colour.
/** @type {(strip: PlayerStrip, colours: Uint32Array) => HTMLElement} */
export function makeStripLegend({ name, largest }, colours) {
  const swatches = [1, 128, 255].map((level) => {
    const swatch = make("i", { "aria-hidden": "true" });
    swatch.style.background = formatColour(colours[level]);
    return swatch;
  });
  const title = make("span", { class: "what" }, ...setSubscripts(name));
  return make("span", { class: "key" }, title, formatDecimal(-largest, 2), ...swatches, formatDecimal(largest, 2));
}

// Set the indices of W_Q, W_K, W_V and W_O as subscripts.
/** @type {(text: string) => (Node | string)[]} */
export const setSubscripts = (text) => text.split(/_([QKVO])/).map((part, i) => (i % 2 ? make("sub", {}, part) : part));

// Draw outlined signs, which leave the shade of their cell visible: circles for the first relation, then squares,
// diamonds.
/** @type {(marks: PlayerMark[], n: number) => SVGElement} */
function drawSigns(marks, n) {
  const shapes = marks.flatMap(({ places, colour }, relation) =>
    places.flatMap((key, query) => (key < 0 ? [] : [drawSign(relation, key + 0.5, query + 0.5, colour)])),
  );
  return makeSvg("svg", { viewBox: `0 0 ${n} ${n}`, "aria-hidden": "true" }, ...shapes);
}
/** @type {(relation: number, x: number, y: number, colour: string) => SVGElement} */
function drawSign(relation, x, y, colour) {
  const line = { fill: "none", stroke: colour, "stroke-width": 0.13 };
  if (relation === 0) return makeSvg("circle", { cx: x, cy: y, r: SIGN_RADIUS, ...line });
  /** @type {Record<string, string>} */
  const rotation = relation === 2 ? { transform: `rotate(45 ${x} ${y}) ` } : {};
  const [side, half] =
    relation === 2 ? [SIGN_RADIUS * 1.5, SIGN_RADIUS * 0.75] : [SIGN_RADIUS * 2.4, SIGN_RADIUS * 1.2];
  return makeSvg("rect", { x: x - half, y: y - half, width: side, height: side, ...rotation, ...line });
}

// ---- Rows of maps -------------------------------------------------------------------------------------------

export const DASH_PATTERN = "6 4"; // pixels

// Draw a sample of a curve beside its name.
/** @type {(isDashed: boolean) => SVGElement} */
const drawLineSample = (isDashed) =>
  makeSvg(
    "svg",
    { class: "sample", viewBox: "0 0 26 4", "aria-hidden": "true" },
    makeSvg("path", { d: "M 0 2 H 26", "stroke-dasharray": isDashed ? DASH_PATTERN : "none" }),
  );

// ---- Element positions --------------------------------------------------------------------------------------

/** @type {(element: Element) => Element} */
export function findHost(element) {
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : element;
}

// Return how far the page is scrolled. Scrolling moves all elements, but does not count as a change of the layout.
/** @type {(element: Element) => number} */
export const measureScroll = (element) => element.closest("[data-testid=stMain]")?.scrollTop ?? window.scrollY;
