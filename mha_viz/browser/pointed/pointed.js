// Mark the word under the pointer in every chart of a page: a band over its row or column, its name in the line of
// words, its row in the table, and the reason why the query attends to it. `layout.meta` of a chart says which tokens
// are along which axes. Nothing is sent to the server.
import { make } from "../dom.js";
import { getArea, getAxis, computeBand } from "../plotly.js";
/** @import { StreamlitComponent } from "../mount.js" */

const WORDS = ".inside-pinned [data-token]";
const REASONS = ":is(.inside-why, .inside-sides)[data-key]"; // a sentence and bars for each key in the chart
const ROWS = ".st-key-wide_inside_by_hand tbody tr";

/** @typedef {(element: Element, tokens?: number[]) => void} OnHover without tokens: no longer hovered */

/** @type {WeakMap<Element, OnHover>} */
const callbacks = new WeakMap(); // by chart: the callback of the latest run
let stop = () => {}; // removes the listeners of the latest run
let hoveredElement = /** @type {Element | null} */ (null); // the word or chart hovered last

/** @param {StreamlitComponent} component */
export default function ({ data }) {
  stop();
  /** @type {OnHover} */
  const onHover = (element, tokens) => {
    if (!tokens && element !== hoveredElement) return; // a chart may report late that the pointer left
    hoveredElement = element;
    markAll(new Set(tokens), data.tokens, data.colour);
  };
  let frame = 0;
  const listenToCharts = () =>
    document.querySelectorAll(".js-plotly-plot").forEach((chart) => listenToChart(chart, onHover));
  const listenSoon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(listenToCharts);
  };
  const changes = new MutationObserver(listenSoon);
  changes.observe(document.body, { childList: true, subtree: true });
  listenSoon(); // charts may have been drawn before this script ran
  /** @type {(event: Event) => void} */
  const onEnter = ({ target }) => {
    const word = target instanceof Element ? target.closest(WORDS) : null;
    if (word) onHover(word, [Number(word.getAttribute("data-token"))]);
  };
  /** @type {(event: Event) => void} */
  const onLeave = ({ target }) => {
    const word = target instanceof Element ? target.closest(WORDS) : null;
    if (word) onHover(word);
  };
  document.addEventListener("pointerover", onEnter);
  document.addEventListener("pointerout", onLeave);
  document.addEventListener("focusin", onEnter);
  document.addEventListener("focusout", onLeave);
  return (stop = () => {
    cancelAnimationFrame(frame);
    changes.disconnect();
    document.removeEventListener("pointerover", onEnter);
    document.removeEventListener("pointerout", onLeave);
    document.removeEventListener("focusin", onEnter);
    document.removeEventListener("focusout", onLeave);
  });
}

/** @type {(chart: any, onHover: OnHover) => void} */
function listenToChart(chart, onHover) {
  if (typeof chart.on !== "function") return; // not drawn yet
  const hasListeners = callbacks.has(chart);
  callbacks.set(chart, onHover);
  if (hasListeners) return;
  chart.on("plotly_hover", (/** @type {{ points: any[] }} */ { points }) =>
    callbacks.get(chart)?.(chart, findTokens(chart.layout.meta, points[0])),
  );
  chart.on("plotly_unhover", () => callbacks.get(chart)?.(chart));
}

// Return the tokens at a point of a chart: two in a map of queries by keys.
/** @type {(meta: { tokens: number[], axes: string[] } | undefined, point: any) => number[]} */
export function findTokens(meta, point) {
  if (!meta?.tokens) return [];
  const positions = [
    [point.xaxis?._id, point.x],
    [point.yaxis?._id, point.y],
  ];
  return positions
    .filter(([name]) => meta.axes.includes(name))
    .map(([, position]) => meta.tokens[Math.round(position)]);
}

/** @type {(hoveredTokens: Set<number>, rowTokens: number[], colour: string) => void} */
function markAll(hoveredTokens, rowTokens, colour) {
  for (const chart of document.querySelectorAll(".js-plotly-plot")) drawBands(chart, hoveredTokens, colour);
  for (const word of document.querySelectorAll(WORDS)) {
    word.classList.toggle("pointed", hoveredTokens.has(Number(word.getAttribute("data-token"))));
  }
  showReason(/** @type {HTMLElement[]} */ ([...document.querySelectorAll(REASONS)]), hoveredTokens);
  const rows = document.querySelectorAll(ROWS);
  rows.forEach((row, i) => row.classList.toggle("pointed", i < rowTokens.length && hoveredTokens.has(rowTokens[i])));
}

// Show why the query attends to the hovered key (the first one in a map) or, if there is none, the pinned key.
/** @type {(reasons: HTMLElement[], hoveredTokens: Set<number>) => void} */
export function showReason(reasons, hoveredTokens) {
  const [key] = hoveredTokens;
  const isDrawn = reasons.some((reason) => Number(reason.dataset.key) === key);
  for (const reason of reasons) {
    reason.hidden = isDrawn ? Number(reason.dataset.key) !== key : !("pinned" in reason.dataset);
  }
}

/** @type {(chart: any, hoveredTokens: Set<number>, colour: string) => void} */
function drawBands(chart, hoveredTokens, colour) {
  const container = chart.querySelector(".svg-container");
  container?.querySelectorAll(".mha-band").forEach((/** @type {Element} */ band) => band.remove());
  const { tokens = [], axes = [] } = chart.layout?.meta ?? {};
  const positions = tokens.flatMap((/** @type {number} */ token, /** @type {number} */ i) =>
    hoveredTokens.has(token) ? [i] : [],
  );
  for (const name of axes) {
    const area = getArea(chart, name);
    const { range } = getAxis(chart.layout, name);
    if (area)
      for (const position of positions) container?.append(makeBand(computeBand(area, name, range, position), colour));
  }
}

/** @type {(box: Record<string, number>, colour: string) => HTMLElement} */
function makeBand(box, colour) {
  const element = make("div", { class: "mha-band" });
  const sides = Object.fromEntries(Object.entries(box).map(([side, value]) => [side, `${value}px`]));
  const look = { position: "absolute", pointerEvents: "none", boxSizing: "border-box", border: `2px solid ${colour}` };
  Object.assign(element.style, look, sides);
  return element;
}
