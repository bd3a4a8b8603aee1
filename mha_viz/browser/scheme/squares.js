// Give the keyboard access to charts with a clickable square per head: an invisible button without pointer events lies
// over each square. Tab stops at one of them; arrow keys move between squares, Home and End to the ends of a row or,
// with Ctrl, of the chart; Enter chooses; Escape moves to the first framed square, of a head that is pinned or off.
import { make } from "../dom.js";
import { noteWidgetMessage, post } from "../mount.js";
import { getArea, computeBand } from "../plotly.js";
import { getArrowStep, clamp } from "../stage.js";

// Charts stand in containers whose Streamlit key begins with wide_, such as that of app/widgets/head_grid.py.
const CHART_SELECTOR = "[class*=st-key-wide_] .js-plotly-plot";
const LABEL = "Heads. Arrow keys move, Enter chooses, Escape goes back to the marked head.";

/**
 * @typedef {{ traceIndex: number, index: number, x: number, y: number, head: string, label: string,
 *   isFramed: boolean }} Square
 */

// Overlay every selectable chart with keyboard buttons. Call after each change of the page.
/** @type {() => void} */
export function addChartOverlays() {
  for (const chart of document.querySelectorAll(CHART_SELECTOR)) if (isSelectable(chart)) addOverlay(chart);
}

/** @type {(chart: any) => boolean} */
const isSelectable = (chart) => typeof chart.emit === "function" && /select/.test(chart.layout?.clickmode ?? "");

// List one square per head, in the order of the chart's data. `isFramed`: a shape of the chart frames the square,
// because its head is off or pinned; the label says which.
/** @type {(data: any[], shapes?: any[]) => Square[]} */
export function listSquares(data, shapes = []) {
  const traceIndex = data.findIndex((trace) => trace.customdata && trace.hovertext);
  const { x = [], y = [], customdata = [], hovertext = [] } = data[traceIndex] ?? {};
  return [...customdata].map((head, index) => {
    const isFramed = shapes.some((s) => s.x0 < x[index] && x[index] < s.x1 && s.y0 < y[index] && y[index] < s.y1);
    const label = hovertext[index]
      .replace(/<br>/g, ", ")
      .replace(/<[^>]*>/g, "")
      .trim();
    return { traceIndex, index, x: x[index], y: y[index], head, label, isFramed };
  });
}

/** @type {(chart: any) => void} */
function addOverlay(chart) {
  const container = chart.querySelector(".svg-container");
  const area = getArea(chart, "x");
  const squares = listSquares(chart.data, chart.layout.shapes);
  if (!container || !area || !squares.length) return;
  const oldSquares = container.querySelector(".mha-squares");
  const key = JSON.stringify([area, squares]);
  if (oldSquares?.dataset.key === key) return;
  const focused = oldSquares?.querySelector(":focus")?.getAttribute("data-head");
  const buttons = squares.map((square) => makeButton(chart, square, area));
  const tabStop = squares.findIndex((square) => (focused ? square.head === focused : square.isFramed));
  buttons[Math.max(0, tabStop)].tabIndex = 0;
  const group = make("div", { class: "mha-squares", role: "group", "aria-label": LABEL }, ...buttons);
  group.dataset.key = key;
  group.addEventListener("keydown", moveFocus);
  oldSquares?.remove();
  container.append(group);
  if (focused) buttons[Math.max(0, tabStop)].focus({ preventScroll: true });
  // Streamlit sends a selection itself: let our queue of messages wait for its answer. One listener a chart is enough.
  if (!oldSquares) chart.on("plotly_selected", noteWidgetMessage);
}

/** @type {(chart: any, square: Square, area: import("../plotly.js").Area) => HTMLElement} */
function makeButton(chart, square, area) {
  const { x, y, head, label, isFramed } = square;
  const { xaxis, yaxis } = chart.layout;
  const { left, width } = computeBand(area, "x", xaxis.range, x);
  const { top, height } = computeBand(area, "y", yaxis.range, y);
  const element = make("button", { type: "button", tabIndex: -1, "aria-label": label });
  Object.assign(element.dataset, { head, row: y, column: x }, isFramed ? { marked: "" } : {});
  const position = Object.entries({ left, top, width, height }).map(([side, value]) => [side, `${value}px`]);
  Object.assign(element.style, Object.fromEntries(position));
  element.addEventListener("click", () => chooseSquare(chart, square));
  return element;
}

// Act like a click with the pointer, once earlier messages have been answered.
/** @type {(chart: any, square: Square) => void} */
function chooseSquare(chart, { traceIndex, index, x, y, head }) {
  const point = { curveNumber: traceIndex, pointNumber: index, pointIndex: index, x, y, customdata: head };
  post(() => chart.emit("plotly_selected", { points: [{ ...point, data: chart.data[traceIndex] }] }), "square", null);
}

/** @type {(event: KeyboardEvent) => void} */
function moveFocus(event) {
  const { target, currentTarget } = event;
  const step = getArrowStep(event);
  if (!step && event.key !== "Escape") return;
  const group = /** @type {HTMLElement} */ (currentTarget);
  const currentSquare = /** @type {HTMLElement} */ (target);
  const [row, column] = ["row", "column"].map((axis, i) => {
    const last = Math.max(
      ...[...group.children].map((square) => Number(/** @type {HTMLElement} */ (square).dataset[axis])),
    );
    return clamp(Number(currentSquare.dataset[axis]) + (step?.[i] ?? 0), last + 1);
  });
  const selector = step ? `[data-row="${row}"][data-column="${column}"]` : "[data-marked]";
  const nextSquare = /** @type {HTMLElement | null} */ (group.querySelector(selector));
  event.preventDefault();
  if (!nextSquare) return;
  currentSquare.tabIndex = -1;
  nextSquare.tabIndex = 0;
  nextSquare.focus();
}
