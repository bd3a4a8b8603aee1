// State shared by interactive drawings: hovered and pinned spots, the keyboard, the address, size and theme.
import { isDark, makePalette } from "./ink.js";
import { isUnanswered } from "./mount.js";
/** @import { Pin } from "./geometry.js" */
/** @import { Spot } from "./layouts.js" */
/** @import { Send } from "./mount.js" */
/** @import { Reading } from "./reading.js" */

/**
 * Colours and fonts of the page, and the size of one drawing.
 *
 * @typedef {object} Look
 * @property {string} theme identifies the colours
 * @property {string[]} ramp the colours of numbers from 0 to 1
 * @property {string[]} signed the colours of signed numbers
 * @property {string[]} heads the colours of heads
 * @property {number[][]} dashes
 * @property {boolean} hasMinus whether cells below 0 carry a minus
 * @property {Uint32Array} colours `ramp` as pixels
 * @property {Uint32Array} signedColours
 * @property {string} ink
 * @property {string} paper
 * @property {string} accent
 * @property {string} muted
 * @property {string} smallFont
 * @property {number} [minLabelSize] pixels
 * @property {(size: number, weight?: number) => string} textFont
 * @property {(size: number) => string} numberFont
 * @property {number} width
 * @property {number} height
 * @property {number} [labelWidth] shared by drawings of equal size
 * @property {number} [labelHeight] labelWidth by default
 * @property {number} [maxUnits] the number of rows and columns to leave room for
 * @property {number} [maxCell] pixels
 * @property {number} [maxRowHeight] pixels
 */

/**
 * The functions that a drawing provides to its stage.
 *
 * @template View
 * @typedef {object} Drawing
 * @property {() => boolean} isReady whether there are data
 * @property {(params: URLSearchParams) => View} parse the view in an address
 * @property {() => void} onAdopt called when the view was replaced
 * @property {(view: View) => object} makeMessage the message to the server about a view
 * @property {() => Spot | null} findPinnedSpot the spot that the view pins, null if it is not shown
 * @property {(spot: Spot) => Pin} makePin the tokens of a spot, as a view stores them
 * @property {() => void} draw draws everything
 * @property {(now: boolean) => void} drawFocus draws the focus; `now`: without waiting for the next frame
 */

/**
 * The data that an arrow key on a canvas needs to move the focus.
 *
 * @typedef {object} KeyContext
 * @property {Spot | null} from the focused spot
 * @property {boolean} isHeatmap
 * @property {number} R
 * @property {number} C
 * @property {Partial<Spot>} start the panel in which the focus starts
 * @property {(spot: Spot) => void} onMove called with the new spot
 */

const SEND_DELAY = 80; // milliseconds before a view is sent to the server, so that quick clicks become one message
const ROW_SETTINGS = ["unit", "special", "side"]; // view settings that determine the rows
/** @type {Record<string, readonly [number, number]>} */
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
/** @type {Record<string, number>} */
const ENDS = { Home: -Infinity, End: Infinity };

// Return the step of an arrow key as [rows, columns]. Home and End go to the ends of a row or, with Ctrl, to corners.
// Undefined for other keys, and with other modifiers.
/** @type {(event: KeyboardEvent) => readonly [number, number] | undefined} */
export function getArrowStep({ key, altKey, ctrlKey, metaKey }) {
  if (altKey || metaKey) return undefined;
  if (key in ENDS) return [ctrlKey ? ENDS[key] : 0, ENDS[key]];
  return ctrlKey ? undefined : ARROWS[key];
}
/** @type {(event: KeyboardEvent) => boolean} */
export const isPress = (event) => event.key === "Enter" || event.key === " ";
/** @type {(i: number, count: number) => number} */
export const clamp = (i, count) => Math.max(0, Math.min(count - 1, i));
/** @type {(a: Spot | null, b: Spot | null) => boolean} */
export const isSameSpot = (a, b) => a === b || (!!a && !!b && a.at === b.at && a.row === b.row && a.col === b.col);

// Return the neighbouring spot in the direction of an arrow key. Heatmap: from cell to cell. Links: up and down within
// a column of tokens, left and right between the two columns; Home and End go to the ends of a column.
/** @type {(spot: Spot, step: readonly [number, number], isHeatmap: boolean, R: number, C: number) => Spot} */
export function moveSpot(spot, [down, right], isHeatmap, R, C) {
  const { row, col } = spot;
  if (isHeatmap) return { ...spot, row: clamp((row ?? 0) + down, R), col: clamp((col ?? 0) + right, C) };
  const isQuery = right && Number.isFinite(right) ? right < 0 : row !== null;
  const newIndex = (row ?? col ?? 0) + (Number.isFinite(right) ? down : right);
  return isQuery ? { ...spot, row: clamp(newIndex, R), col: null } : { ...spot, row: null, col: clamp(newIndex, C) };
}

// Scroll a box until the row that begins at `y` is visible.
/** @type {(box: HTMLElement, y: number) => void} */
export function revealRow(box, y) {
  if (y < box.scrollTop) box.scrollTop = y;
  else if (y + 40 > box.scrollTop + box.clientHeight) box.scrollTop = y + 40 - box.clientHeight;
}

// Return the position of an event in an element, in the element's own pixels, which differ from the event's on a zoomed
// page.
/** @type {(element: HTMLElement, event: MouseEvent) => [number, number]} */
export function getPoint(element, event) {
  const box = element.getBoundingClientRect();
  const scale = box.width ? element.offsetWidth / box.width : 1;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

// Read colours and fonts of the page and its theme into `look`. `mutedElement` has muted text.
/** @type {(look: Partial<Look>, root: Element, themes: Reading["themes"], mutedElement: Element) => void} */
export function readLook(look, root, themes, mutedElement) {
  const style = getComputedStyle(root);
  /** @type {(name: string, fallback: string) => string} */
  const value = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  const isGrey = value("--mha-look", "") === "grey"; // a file for printing without colour
  const theme = (isGrey && themes.grey) || themes[isDark(root) ? "dark" : "light"];
  const name = theme.ramp.join();
  if (look.theme !== name) {
    const { ramp, signed, heads, dashes, has_minus: hasMinus } = theme;
    const colours = { colours: makePalette(ramp), signedColours: makePalette(signed) };
    Object.assign(look, { theme: name, ramp, signed, heads, dashes, hasMinus, ...colours });
  }
  const isForced = window.matchMedia?.("(forced-colors: active)").matches; // then muted text has the normal colour
  look.ink = isForced ? "CanvasText" : value("--st-text-color", "#222");
  look.paper = isForced ? "Canvas" : value("--st-background-color", "#fff");
  look.accent = value("--st-primary-color", look.ink);
  look.muted = getComputedStyle(mutedElement).color;
  const [sans, mono] = [value("--st-font", "sans-serif"), value("--st-code-font", "monospace")];
  look.minLabelSize = Number(value("--mha-letters", "0")); // minimum size of labels, for class mode on a projector
  look.smallFont = `${look.minLabelSize || 11}px ${mono}`;
  look.textFont = (size, weight = 400) => `${weight} ${size}px ${sans}`;
  look.numberFont = (size) => `600 ${size}px ${mono}`;
}

/**
 * The view of one drawing and its focus. The drawing decides what to draw.
 *
 * @template {{ pin: Pin | null }} View
 */
export class Stage {
  view = /** @type {View} */ ({}); // empty until data arrive
  hovered = /** @type {Spot | null} */ (null); // the spot under the pointer or the arrow keys
  #sendTimer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  #unsent = /** @type {Record<string, any>} */ ({}); // the latest changes of the view
  #resizeFrame = 0;

  /**
   * @param {Send} send
   * @param {() => string} readAddress
   * @param {Drawing<View>} drawing
   */
  constructor(send, readAddress, drawing) {
    this.send = send;
    this.readAddress = readAddress;
    this.drawing = drawing;
    document.addEventListener("keydown", this.#onEscape);
    window.addEventListener("popstate", this.#onHistory);
    window.addEventListener("resize", this.#onResize);
  }

  stop() {
    clearTimeout(this.#sendTimer);
    cancelAnimationFrame(this.#resizeFrame);
    document.removeEventListener("keydown", this.#onEscape);
    window.removeEventListener("popstate", this.#onHistory);
    window.removeEventListener("resize", this.#onResize);
  }

  // Return the changes of the view that the server may not know yet.
  get #unsentChanges() {
    return this.#sendTimer || isUnanswered("view") ? this.#unsent : {};
  }

  /**
   * Adopt the view in the address, or `view` if it is given. Changes that the server may not know yet are dropped or,
   * if `keepsChanges` is set, applied to this view too.
   *
   * @param {View} view
   */
  adopt(view = this.drawing.parse(new URLSearchParams(this.readAddress())), keepsChanges = false) {
    const changes = Object.entries(keepsChanges ? this.#unsentChanges : {});
    this.discardUnsent();
    this.view = view;
    this.hovered = null;
    this.drawing.onAdopt();
    const newView = /** @type {Record<string, any>} */ (view);
    const overwritten = changes.filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(newView[name]));
    if (overwritten.length) this.change(Object.fromEntries(overwritten));
  }

  // Drop unsent changes of the view.
  discardUnsent() {
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
    this.#unsent = {};
  }

  /**
   * Change fields of the view and draw it. Send the view to the server after `delay` milliseconds.
   *
   * @param {Record<string, any>} fields
   * @param {number} delay
   */
  change(fields, delay = SEND_DELAY) {
    this.view = { ...this.view, ...fields };
    if (ROW_SETTINGS.some((name) => name in fields)) this.hovered = null;
    const changes = { ...this.#unsentChanges, ...fields };
    this.discardUnsent();
    this.#unsent = changes;
    this.#sendTimer = setTimeout(() => {
      this.#sendTimer = undefined;
      this.send("view", this.drawing.makeMessage(this.view));
    }, delay);
    this.drawing.draw();
  }

  // ---- Focus: the hovered spot or, if there is none, the pinned one -----------------------------------------

  getFocus() {
    return this.hovered ?? this.drawing.findPinnedSpot();
  }

  /** @param {Spot | null} spot */
  hover(spot) {
    if (isSameSpot(spot, this.hovered)) return;
    this.hovered = spot;
    this.drawing.drawFocus(false);
  }

  /**
   * Pin a spot, or unpin it if it is already pinned.
   *
   * @param {Spot | null} spot
   */
  togglePin(spot) {
    if (spot) this.change({ pin: isSameSpot(spot, this.drawing.findPinnedSpot()) ? null : this.drawing.makePin(spot) });
  }

  // ---- Pointer and keys ------------------------------------------------------------------------------------

  /**
   * Handle pointer and arrow keys on a canvas. `findSpot` returns the spot of an event.
   *
   * @param {HTMLCanvasElement} canvas
   * @param {(event: MouseEvent) => Spot | null} findSpot
   * @param {() => KeyContext} getKeyContext
   */
  listenTo(canvas, findSpot, getKeyContext) {
    canvas.onpointermove = (event) => this.hover(findSpot(event));
    canvas.onpointerleave = () => this.hover(null);
    canvas.onblur = () => this.hover(null);
    canvas.onclick = (event) => this.togglePin(findSpot(event));
    canvas.onkeydown = (event) => this.#onKey(event, getKeyContext());
  }

  /**
   * @param {KeyboardEvent} event
   * @param {KeyContext} context
   */
  #onKey(event, { from, isHeatmap, R, C, start, onMove }) {
    const step = getArrowStep(event);
    const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey;
    if (!R || !C || !(step || (isPress(event) && isPlain))) return;
    const spot = from ?? { ...start, row: 0, col: isHeatmap ? 0 : null };
    event.preventDefault();
    if (!step) return this.togglePin(spot);
    this.hovered = moveSpot(spot, step, isHeatmap, R, C);
    this.drawing.drawFocus(true);
    onMove(this.hovered);
  }

  /** @type {(event: KeyboardEvent) => void} */
  #onEscape = (event) => {
    if (event.key !== "Escape" || !this.drawing.isReady()) return;
    const [target] = /** @type {Element[]} */ (event.composedPath());
    if (target.matches?.("textarea, input[type=text]")) return;
    this.hovered = null;
    if (this.view.pin) this.change({ pin: null });
    else this.drawing.drawFocus(true);
  };

  // ---- The page ----------------------------------------------------------------------------------------------

  #onHistory = () => {
    if (!this.drawing.isReady()) return;
    this.adopt();
    this.drawing.draw();
  };

  #onResize = () => {
    cancelAnimationFrame(this.#resizeFrame);
    this.#resizeFrame = requestAnimationFrame(() => this.drawing.draw());
  };
}
