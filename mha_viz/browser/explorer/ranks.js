// Which heads link two words: all heads ranked by one link.
import { make } from "../dom.js";
import { mapName, paperMapName, ranking, units } from "../geometry.js";
import { number } from "../numerals.js";
import { isShare } from "../view.js";
import { derive, held, opened } from "./head.js";
import { drawBar, largest, openHead } from "./heads.js";

const RANKS = 6; // heads that are shown until the user asks for all

// Draws the requested link, or else the one that the held word suggests.
/** @type {(app: ExplorerApp) => void} */
export function drawAsk(app) {
  const { reading, part } = app;
  const { view } = app.stage;
  const all = units(reading, { ...view, special: "keep", side: "all" });
  const link = view.link || suggestion(reading, opened(app), derive(app).axes, held(app));
  drawMenus(part, reading, view, link, all);
  const ranked = link && ranking(reading, { ...view, link });
  drawRanks(app, ranked || []);
  part.more.hidden = !ranked;
  part.more.textContent = part.ask.all ? `Show the first ${RANKS}` : `Show all ${reading.layers * reading.heads}`;
  part.askNote.hidden = !!ranked;
  const isAlone = part.ask.closest("[data-alone]");
  const waiting = isAlone ? "This file holds some heads only: they cannot be ranked." : "Looking at every head…";
  part.askNote.textContent = link ? waiting : "Choose two words to rank all heads by the link between them.";
}

// The two words of the menus become the link, and are held.
/** @type {(app: ExplorerApp) => void} */
export function ask({ part, stage }) {
  const [query, key] = [part.askQuery.value, part.askKey.value];
  if (query === "" || key === "") return;
  const link = { query: +query, key: +key };
  stage.change({ link, pin: { ...link } });
}

/** @type {(app: ExplorerApp) => void} */
export function more(app) {
  app.part.ask.all = !app.part.ask.all;
  drawAsk(app);
}

// By default, the held word and the ordinary word that it attends to most in the opened head.
/** @type {(reading: Reading, head: ShownHead | undefined, axes: Axes, spot: Spot | null) => Link | null} */
function suggestion(reading, head, { rows, cols }, spot) {
  if (reading.bins || !head || !spot || spot.row === null) return null;
  const { w, C } = head.part;
  const weights = cols.map((unit, i) => (unit.special ? -1 : w[spot.row * C + i]));
  const col = spot.col ?? weights.indexOf(Math.max(...weights));
  if (col < 0 || weights[col] < 0) return null; // only special tokens are left
  return { query: rows[spot.row].tokens[0], key: cols[col].tokens[0] };
}

/** @type {(part: Parts, reading: Reading, view: ReadingView, link: Link | null, all: Axes) => void} */
function drawMenus(part, reading, view, link, all) {
  const options = JSON.stringify([reading.key, view.unit]);
  if (part.ask.options !== options) {
    part.ask.options = options;
    for (const [select, side] of [
      [part.askQuery, all.rows],
      [part.askKey, all.cols],
    ]) {
      const words = side.map(
        (/** @type {Unit} */ unit, /** @type {number} */ i) => new Option(`${i} ${unit.text}`, String(unit.tokens[0])),
      );
      select.replaceChildren(new Option("choose…", ""), ...words);
    }
  }
  /** @type {(side: Unit[], token: number) => number | string} */
  const unitOf = (side, token) => side.find((unit) => unit.tokens.includes(token))?.tokens[0] ?? "";
  part.askQuery.value = link ? unitOf(all.rows, link.query) : "";
  part.askKey.value = link ? unitOf(all.cols, link.key) : "";
}

/** @type {(app: ExplorerApp, ranked: Rank[]) => void} */
function drawRanks(app, ranked) {
  const { ranks, ask: box } = app.part;
  const top = isShare(app.reading) ? 1 : largest(ranked.map(({ weight }) => weight));
  const hasKeyboard = ranks.contains(ranks.getRootNode().activeElement);
  ranks.replaceChildren(...ranked.slice(0, box.all ? undefined : RANKS).map((entry) => rank(app, entry, top)));
  if (hasKeyboard) ranks.querySelector('[aria-current="true"]')?.focus(); // it keeps its place
}

/** @type {(app: ExplorerApp, entry: Rank, top: number) => HTMLElement} */
function rank(app, { head, weight }, top) {
  const { reading, stage } = app;
  const bar = drawBar(app, make("i", { class: "bar" }), weight, top);
  const button = make(
    "button",
    { type: "button", onclick: () => openHead(app, head), "aria-current": head === stage.view.head },
    make("b", {}, mapName(reading, head)),
    make("span", { class: "soft" }, ` (${paperMapName(reading, head)})`),
    bar,
    make("span", { class: "value" }, number(weight, reading)),
  );
  return make("li", {}, button);
}
