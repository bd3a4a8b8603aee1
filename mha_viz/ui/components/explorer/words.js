// What a head does, in words and numbers: the line above the drawings, the note below, the table, the ranking.
import { headName, isPair, mean, number, paperName, ranking } from "./geometry.js";
import { make, typedText } from "../dom.js";

const TABLE_UNITS = 40; // larger matrices are listed by weight
const LISTED = 300;
const RANKS = 6; // shown until somebody asks for all
const strong = (text) => make("b", {}, typedText(text));
const soft = (text) => make("span", { class: "soft" }, text);

// The strongest link, or what the focused token or cell does, with exact weights.
export function readout({ part: { w, C } }, { rows, cols }, at) {
  if (!rows.length || !cols.length) return ["Nothing is left to draw: this text has only special tokens here."];
  if (!at) {
    const best = strongest(w, rows, cols);
    return ["Strongest link: ", strong(rows[Math.floor(best / C)].text), " → ", strong(cols[best % C].text), ` ${number(w[best])}`,
      soft("  Point at a word to see only its links; click to hold.")];
  }
  if (at.row !== null && at.col !== null) {
    return [strong(rows[at.row].text), " → ", strong(cols[at.col].text), ` ${number(w[at.row * C + at.col])}`];
  }
  const isQuery = at.row !== null;
  const reached = (isQuery ? cols : rows).map((u, i) => [u.text, w[isQuery ? at.row * C + i : i * C + at.col]]);
  reached.sort((a, b) => b[1] - a[1]);
  const list = reached.slice(0, 4).flatMap(([text, weight], i) => [i ? ", " : "", typedText(text), ` ${number(weight)}`]);
  return [strong((isQuery ? rows[at.row] : cols[at.col]).text), isQuery ? " attends to " : " is attended to by ", ...list];
}

// Between ordinary words where there are any: most heads rest on [CLS] or [SEP], which says little.
function strongest(w, rows, cols) {
  let [best, top] = [0, -1];
  for (let r = 0, i = 0; r < rows.length; r++) {
    for (let c = 0; c < cols.length; c++, i++) {
      const weight = w[i] - (rows[r].special || cols[c].special ? 1 : 0);
      if (weight > top) [best, top] = [i, weight];
    }
  }
  return best;
}

// The share that is not shown; never silent while something is hidden.
export function hiddenNote({ part: { hidden } }, { rows }, at, view, reading) {
  const whole = view.special === "keep" && !(isPair(reading) && view.side !== "all");
  if (whole && !reading.hidden) return "0 % hidden: every weight is shown.";
  if (!hidden.length) return "100 % of this head’s attention is hidden.";
  const own = at && at.row !== null;
  const share = own ? hidden[at.row] : mean(Array.from(hidden));
  const whose = own ? `the attention from “${rows[at.row].text}”` : "this head’s attention";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} % of ${whose} ${view.special === "rescale" || whole ? "was hidden before rescaling" : "is hidden"}.`;
}

export function table(head, { rows, cols }, reading) {
  const { w, C } = head.part;
  const caption = make("caption", {}, `${headName(reading, head.head)} (${paperName(reading, head.head)}), ${reading.model}: rows attend to columns`);
  const cell = (tag, text, scope) => make(tag, scope ? { scope } : {}, typedText(text));
  const line = (...cells) => make("tr", {}, ...cells);
  const whole = (top, body) => make("table", {}, caption, make("thead", {}, line(...top)), make("tbody", {}, ...body));
  if (Math.max(rows.length, cols.length) <= TABLE_UNITS) {
    return [whole([cell("td", ""), ...cols.map((u) => cell("th", u.text, "col"))], rows.map((u, r) =>
      line(cell("th", u.text, "row"), ...cols.map((_, c) => cell("td", number(w[r * C + c]))))))];
  }
  const order = Array.from(w.keys()).filter((i) => w[i] >= 0.05).sort((a, b) => w[b] - w[a]).slice(0, LISTED);
  return [whole(["from", "to", "weight"].map((t) => cell("th", t, "col")), order.map((i) =>
    line(cell("td", rows[Math.floor(i / C)].text), cell("td", cols[i % C].text), cell("td", number(w[i]))))),
  make("p", { class: "soft" }, `The ${order.length} largest of ${w.length} weights.`)];
}

// Until somebody asks: the pinned word and the ordinary word that it attends to most in the opened head.
export function suggestion(reading, head, { rows, cols }, at) {
  if (reading.bins || !head || !at || at.row === null) return null;
  const { w, C } = head.part;
  const weights = cols.map((u, i) => (u.special ? -1 : w[at.row * C + i]));
  const col = at.col ?? weights.indexOf(Math.max(...weights));
  if (col < 0 || weights[col] < 0) return null; // only special tokens are left
  return { query: rows[at.row].tokens[0], key: cols[col].tokens[0] };
}

// The ranking of all heads by `link`, under its two menus. `all` = {rows, cols} to choose from, `open` opens a head.
export function drawRanks(p, reading, view, link, all, open) {
  const options = JSON.stringify([reading.key, view.unit]);
  if (p.ask.options !== options) {
    p.ask.options = options;
    for (const [select, side] of [[p.askQuery, all.rows], [p.askKey, all.cols]]) {
      select.replaceChildren(make("option", { value: "", textContent: "choose…" }),
        ...side.map((u, i) => make("option", { value: u.tokens[0], textContent: `${i} ${u.text}` })));
    }
  }
  const unitOf = (side, token) => side.find((u) => u.tokens.includes(token))?.tokens[0] ?? "";
  p.askQuery.value = link ? unitOf(all.rows, link.query) : "";
  p.askKey.value = link ? unitOf(all.cols, link.key) : "";
  const ranked = link && ranking(reading, { ...view, link });
  const shown = (ranked || []).slice(0, p.ask.all ? undefined : RANKS);
  const held = p.ranks.contains(p.ranks.getRootNode().activeElement) ? view.head : null; // keep the keyboard's place
  p.ranks.replaceChildren(...shown.map((entry) => rank(entry, reading, view, open)));
  if (held !== null) p.ranks.querySelector('[aria-current="true"]')?.focus();
  p.more.hidden = !ranked;
  p.more.textContent = p.ask.all ? `Show the first ${RANKS}` : `Show all ${reading.layers * reading.heads}`;
  p.askNote.hidden = !!ranked;
  const waiting = p.ask.closest("[data-alone]") ? "This file holds some heads only: they cannot be ranked." : "Looking at every head…";
  p.askNote.textContent = link ? waiting : "Choose two words to rank all heads by the link between them.";
}

function rank({ head, weight }, reading, view, open) {
  const bar = make("i", { class: "bar" });
  bar.style.setProperty("--share", `${100 * weight}%`);
  const button = make("button", { type: "button", onclick: () => open(head), "aria-current": head === view.head },
    make("b", {}, headName(reading, head)), soft(` (${paperName(reading, head)})`), bar, make("span", { class: "value" }, number(weight)));
  return make("li", {}, button);
}
