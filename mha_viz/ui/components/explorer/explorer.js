// One reading on the page: the grid of all heads, one head as links and heatmap, and what is asked of them.
// What only changes the view is drawn here at once; the server hears of it afterwards and keeps the URL.
import {
  DEFAULTS, block, chosen, encodeView, gridCellAt, gridLayout, headName, heatmapCellAt, isPair, linkRule, mean,
  number, paperName, parseView, ranking, shades, units, unpack,
} from "./geometry.js";
import { isDark, palette } from "./ink.js";
import { drawGrid } from "./grid.js";
import { drawHeatmap } from "./heatmap.js";
import { drawLinks } from "./links.js";

const KEEP_BYTES = 64e6; // matrices kept in the browser for heads opened before
const TABLE_UNITS = 40; // larger matrices are listed by weight

// A page element with properties and children; text always through textContent.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("aria-") || name === "role" || name === "for" || name.startsWith("data-")) {
      element.setAttribute(name, value);
    } else element[name] = value;
  }
  element.append(...children);
  return element;
}

export function explorer(root, send, locate = () => window.location.search) {
  let reading = null;
  let view = null;
  let focus = null; // what the pointer is on: {row, col} in units, either may be null
  let hovered = null; // the head under the pointer in the grid
  let cursor = 0; // the head that the arrow keys are on
  let layouts = {};
  let derived = null;
  let asking = false; // a head was opened whose matrix is still on its way
  let tell = 0;
  const look = {};
  const part = build();
  root.replaceChildren(part.all);

  // ---- Arrivals ---------------------------------------------------------------------------------------

  function show(bytes) {
    const next = unpack(bytes);
    const same = reading && reading.key === next.key;
    if (same) {
      keep(next);
      asking = asking && !reading.matrices.has(view.head);
    } else {
      reading = next;
      asking = false;
      focus = hovered = null;
      adopt();
    }
    render();
  }

  function keep(next) {
    if (next.link) reading.link = next.link;
    for (const [head, matrix] of next.matrices) reading.matrices.set(head, matrix);
    const room = Math.max(24, KEEP_BYTES / (2 * reading.n * reading.n));
    for (const head of reading.matrices.keys()) {
      if (reading.matrices.size <= room) break;
      if (!view.on.includes(head)) reading.matrices.delete(head);
    }
  }

  function adopt() {
    view = parseView(new URLSearchParams(locate()), reading);
    cursor = view.head;
  }

  // ---- Changes ----------------------------------------------------------------------------------------

  function change(fields, delay = 0) {
    view = { ...view, ...fields };
    asking = !reading.matrices.has(view.head);
    render();
    clearTimeout(tell);
    tell = setTimeout(() => send("view", encodeView(view, reading)), delay);
  }

  function open(head) {
    cursor = head;
    const layer = Math.floor(head / reading.heads);
    const stay = view.on.filter((h) => Math.floor(h / reading.heads) === layer && h !== view.head);
    const fields = { head, on: stay.length ? [...new Set([head, ...stay])] : [head] };
    change(fields);
    part.said.textContent = `${headName(reading, head)} opened. ${numbersOf(head)}`;
  }

  function toggle(head) {
    const on = view.on.includes(head) ? view.on.filter((h) => h !== head) : [...view.on, head];
    if (!on.length) return;
    change({ on, head: on.includes(view.head) ? view.head : on[0] });
  }

  const pin = (at) => change({ pin: at && { query: token("rows", at.row), key: token("cols", at.col) } });
  const token = (side, index) => (index === null ? null : derived.axes[side][index].tokens[0]);

  function pinned() {
    if (!view.pin || !derived) return null;
    const find = (side, wanted) =>
      wanted === null ? null : derived.axes[side].findIndex((u) => u.tokens.includes(wanted));
    const at = { row: find("rows", view.pin.query), col: find("cols", view.pin.key) };
    return at.row === -1 || at.col === -1 ? null : at;
  }

  const sameSpot = (a, b) => !!a && !!b && a.row === b.row && a.col === b.col;

  function press(at) {
    if (at) pin(sameSpot(at, pinned()) ? null : at);
  }

  function hover(at) {
    if (sameSpot(at, focus) || (!at && !focus)) return;
    focus = at;
    drawHead();
  }

  // ---- Drawing ----------------------------------------------------------------------------------------

  function readLook() {
    const style = getComputedStyle(root);
    const value = (name, other) => style.getPropertyValue(name).trim() || other;
    const theme = reading.themes[isDark(root) ? "dark" : "light"];
    if (look.theme !== theme.ramp.join()) { look.theme = theme.ramp.join(); look.colours = palette(theme.ramp); }
    look.heads = theme.heads;
    look.ink = value("--st-text-color", "#222");
    look.paper = value("--st-background-color", "#fff");
    look.accent = value("--st-primary-color", "#0b5cad");
    look.muted = getComputedStyle(part.note).color;
    const sans = value("--st-font", "sans-serif");
    const mono = value("--st-code-font", "monospace");
    look.small = `11px ${mono}`;
    look.textFont = (size, weight = 400) => `${weight} ${size}px ${sans}`;
    look.numberFont = (size) => `600 ${size}px ${mono}`;
  }

  function derive() {
    const { unit, special, side, links, scale, on } = view;
    const here = on.filter((head) => reading.matrices.has(head));
    const key = JSON.stringify([unit, special, side, links, scale, here, look.theme]);
    if (derived && derived.key === key && derived.reading === reading) return derived;
    const axes = units(reading, view);
    const heads = here.map((head) => {
      const cells = block(reading, head, view, axes);
      const colour = look.heads[(head % reading.heads) % look.heads.length];
      return { head, colour, part: cells, mask: chosen(cells, links), shade: shades(cells, scale) };
    });
    derived = { key, reading, axes, heads };
    return derived;
  }

  function render() {
    if (!reading) return;
    readLook();
    drawOverview();
    drawControls();
    drawHead();
    drawAsk();
    if (part.table.open) drawTable();
  }

  let drawn = "";
  function drawOverview() {
    const width = part.gridBox.clientWidth;
    const roomy = root.clientWidth > 900;
    const height = roomy ? Math.max(230, window.innerHeight - 300) : 10000;
    const { unit, special, side, scale } = view;
    const known = JSON.stringify([reading.key, unit, special, side, scale, look.theme, width, height, look.ink]);
    if (known !== drawn) {
      drawn = known;
      layouts.grid = drawGrid(part.grid, reading, view, { ...look, width, height });
    }
    part.count.textContent = `${reading.layers} layers × ${reading.heads} heads`;
    part.marks.replaceChildren(...view.on.map(mark), ...(cursor === view.head ? [] : [mark(cursor, "cursor")]));
    drawPreview();
  }

  function mark(head, kind) {
    const { left, top, step, size } = layouts.grid;
    const at = make("i", { class: kind === "cursor" ? "cursor" : head === view.head ? "opened" : "on" });
    at.style.left = `${left + (head % reading.heads) * step}px`;
    at.style.top = `${top + Math.floor(head / reading.heads) * step}px`;
    at.style.width = at.style.height = `${size}px`;
    if (at.className === "on") at.style.outlineColor = look.heads[(head % reading.heads) % look.heads.length];
    return at;
  }

  const numbersOf = (head) =>
    reading.metrics.map((m) => `${m.label} ${valueOf(m, head)}`).join(", ");
  const valueOf = (metric, head) => {
    const value = metric.values[head];
    if (value === null) return "–";
    return metric.unit === "nats" ? `${value.toFixed(2)} nats` : `${Math.round(value * 100)} %`;
  };

  function drawPreview() {
    const head = hovered ?? cursor;
    const name = make("b", {}, headName(reading, head));
    part.previewName.replaceChildren(name, ` (${paperName(reading, head)})`,
      make("span", { class: "soft" }, hovered === null || hovered === view.head ? " open" : " click to open"));
    part.numbers.replaceChildren(...reading.metrics.map((metric) => {
      const value = metric.values[head] ?? 0;
      const bar = make("i", { class: "bar" });
      const top = metric.unit === "nats" ? Math.log(reading.n) : 1;
      bar.style.setProperty("--share", `${Math.min(100, (100 * value) / (top || 1))}%`);
      return make("div", { title: metric.help }, make("dt", {}, metric.label), bar, make("dd", {}, valueOf(metric, head)));
    }));
  }

  function drawControls() {
    part.title.replaceChildren(`Layer ${Math.floor(view.head / reading.heads)}, head ${view.head % reading.heads} `,
      make("code", {}, `${headName(reading, view.head)} (${paperName(reading, view.head)})`));
    for (const input of part.all.querySelectorAll("input[type=radio]")) input.checked = view[input.name] === input.value;
    const { mode, value } = linkRule(view.links);
    part.linkMode.value = mode;
    part.linkValue.hidden = part.linkLabel.hidden = mode === "all";
    const range = { all: [0, 1, 1], top: [1, 10, 1], min: [0.02, 0.9, 0.01], mass: [0.1, 0.99, 0.01] }[mode];
    [part.linkValue.min, part.linkValue.max, part.linkValue.step] = range;
    part.linkValue.value = value;
    part.linkLabel.textContent = mode === "top" ? `${value}` : value.toFixed(2);
    part.scale.value = view.scale;
    part.side.value = view.side;
    part.sideBox.hidden = !isPair(reading);
    drawHeadBar();
  }

  function drawHeadBar() {
    const layer = Math.floor(view.head / reading.heads) * reading.heads;
    while (part.bar.children.length > reading.heads) part.bar.lastChild.remove();
    for (let i = part.bar.children.length; i < reading.heads; i++) part.bar.append(headSwitch(i));
    Array.from(part.bar.children).forEach((button, i) => {
      const on = view.on.includes(layer + i);
      button.setAttribute("aria-pressed", on);
      button.style.setProperty("--colour", look.heads[i % look.heads.length]);
      button.title = `${headName(reading, layer + i)}: click switches it, double click shows it alone`;
      button.setAttribute("aria-label", `Head ${i} of this layer in the link diagram`);
    });
  }

  function headSwitch(i) {
    const button = make("button", { type: "button", textContent: String(i) });
    const head = () => Math.floor(view.head / reading.heads) * reading.heads + i;
    let before = null; // the state before a double click's first click, which must not lose the heads
    button.onclick = (event) => {
      if (event.detail > 1) return;
      before = view;
      toggle(head());
    };
    button.ondblclick = () => {
      const only = before && before.on.length === 1 && before.on[0] === head();
      const layer = Math.floor(view.head / reading.heads) * reading.heads;
      const all = Array.from({ length: reading.heads }, (_, k) => layer + k);
      change(only ? { on: all, head: head() } : { on: [head()], head: head() });
    };
    return button;
  }

  function drawHead() {
    const { axes, heads } = derive();
    part.panels.classList.toggle("waiting", asking || !heads.length);
    const at = focus || pinned();
    const first = heads.find((h) => h.head === view.head);
    if (!first) { part.readout.textContent = "Reading this head…"; return; }
    const above = part.panels.getBoundingClientRect().top - document.documentElement.getBoundingClientRect().top;
    const tall = Math.max(380, Math.min(640, window.innerHeight - Math.max(above, 330) - 60));
    const scene = { ...axes, heads, focus: at };
    const across = part.linksBox.clientWidth;
    layouts.links = drawLinks(part.links, scene, { ...look, width: across, height: tall }, part.scroller.scrollTop);
    part.scroller.style.maxHeight = `${tall}px`;
    part.heatBox.style.maxHeight = `${tall + 60}px`;
    part.tall.style.height = `${layouts.links.height}px`;
    const wide = part.heatBox.clientWidth;
    layouts.heat = drawHeatmap(part.heat, { ...axes, head: first, focus: at },
      { ...look, width: wide, height: Math.max(tall, 300) });
    drawWords(at, first, axes);
  }

  // The sentence under the title: what the focused token attends to, with exact weights.
  function drawWords(at, { part: cells, head }, { rows, cols }) {
    const { w, C, hidden } = cells;
    const share = at && at.row !== null ? hidden[at.row] : mean(Array.from(hidden));
    const whose = at && at.row !== null ? `the attention from “${rows[at.row].text}”` : "this head’s attention";
    const gone = view.special === "rescale" ? "was hidden before rescaling" : "is hidden";
    const filtered = view.special !== "keep" || (isPair(reading) && view.side !== "all");
    part.note.textContent = filtered ? `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} % of ${whose} ${gone}.` : "0 % hidden: every weight is shown.";
    if (!rows.length || !cols.length) {
      part.readout.textContent = "Nothing is left to draw: this text has only special tokens here.";
      return;
    }
    if (!at) {
      const best = w.reduce((top, value, i) => (value > w[top] ? i : top), 0);
      say(["Strongest: ", strong(rows[Math.floor(best / C)].text), " → ", strong(cols[best % C].text), ` ${number(w[best])}`,
        make("span", { class: "soft" }, "  Point at a word to see only its links; click to hold.")]);
    } else if (at.row !== null && at.col !== null) {
      say([strong(rows[at.row].text), " → ", strong(cols[at.col].text), ` ${number(w[at.row * C + at.col])}`]);
    } else {
      const isQuery = at.row !== null;
      const list = (isQuery ? cols : rows).map((u, i) => [u.text, w[isQuery ? at.row * C + i : i * C + at.col]]);
      list.sort((a, b) => b[1] - a[1]);
      say([strong((isQuery ? rows[at.row] : cols[at.col]).text), isQuery ? " attends to " : " is attended to by ",
        ...list.slice(0, 4).flatMap(([text, weight], i) => [i ? ", " : "", text, ` ${number(weight)}`])]);
    }
    part.heat.setAttribute("aria-label", `Heatmap of ${headName(reading, head)}. ${part.readout.textContent}`);
    part.links.setAttribute("aria-label", `Token links of ${headName(reading, head)}. ${part.readout.textContent}`);
  }

  const strong = (text) => make("b", {}, make("bdi", {}, text));
  const say = (pieces) => part.readout.replaceChildren(...pieces.map((p) => p));

  // ---- The other way round: which heads link these two? --------------------------------------------------

  function drawAsk() {
    const all = units(reading, { ...view, special: "keep", side: "all" }).rows;
    const options = JSON.stringify([reading.key, view.unit]);
    if (part.ask.dataset.options !== options) {
      part.ask.dataset.options = options;
      for (const select of [part.askQuery, part.askKey]) {
        select.replaceChildren(make("option", { value: "", textContent: "choose…" }),
          ...all.map((u, i) => make("option", { value: u.tokens[0], textContent: `${i} ${u.text}` })));
      }
    }
    const unitOf = (t) => all.find((u) => u.tokens.includes(t))?.tokens[0] ?? "";
    const link = view.link || suggestion();
    part.askQuery.value = link ? unitOf(link.query) : "";
    part.askKey.value = link ? unitOf(link.key) : "";
    const ranked = link && ranking(reading, { ...view, link });
    part.ranks.replaceChildren(...(ranked || []).slice(0, part.ask.dataset.all ? undefined : 6).map(rank));
    part.more.hidden = !ranked;
    part.more.textContent = part.ask.dataset.all ? "Show the first six" : `Show all ${reading.layers * reading.heads}`;
    part.askNote.hidden = !!ranked;
    part.askNote.textContent = link ? "Looking at every head…" : "Choose two words to rank all heads by the link between them.";
  }

  // Until somebody asks: the pinned word and the word that it attends to most in the opened head.
  function suggestion() {
    const at = pinned();
    const first = derived && derived.heads.find((h) => h.head === view.head);
    if (reading.bins || !first || !at || at.row === null) return null;
    const { rows, cols } = derived.axes;
    const row = Array.from(first.part.w.subarray(at.row * first.part.C, (at.row + 1) * first.part.C));
    const weights = row.map((w, i) => (cols[i].special ? -1 : w));
    const col = at.col ?? weights.indexOf(Math.max(...weights));
    return { query: rows[at.row].tokens[0], key: cols[col].tokens[0] };
  }

  function rank({ head, weight }) {
    const bar = make("i", { class: "bar" });
    bar.style.setProperty("--share", `${100 * weight}%`);
    const button = make("button", { type: "button" }, make("b", {}, headName(reading, head)),
      make("span", { class: "soft" }, ` (${paperName(reading, head)})`), bar, make("span", { class: "value" }, number(weight)));
    button.setAttribute("aria-current", head === view.head);
    button.onclick = () => open(head);
    return make("li", {}, button);
  }

  function askChanged() {
    const [query, key] = [part.askQuery.value, part.askKey.value];
    if (query === "" || key === "") return;
    const link = { query: +query, key: +key };
    change({ link, pin: { ...link } });
  }

  // ---- Numbers as a table -----------------------------------------------------------------------------

  function drawTable() {
    const first = derive().heads.find((h) => h.head === view.head);
    if (!first) return;
    const { rows, cols } = derived.axes;
    const { w, C } = first.part;
    const cell = (tag, text, scope) => make(tag, scope ? { scope } : {}, make("bdi", {}, text));
    const line = (...cells) => make("tr", {}, ...cells);
    const caption = make("caption", {}, `${headName(reading, view.head)} (${paperName(reading, view.head)}), ${reading.model}: rows attend to columns`);
    if (Math.max(rows.length, cols.length) <= TABLE_UNITS) {
      part.tableBox.replaceChildren(make("table", {}, caption,
        make("thead", {}, line(cell("td", ""), ...cols.map((u) => cell("th", u.text, "col")))),
        make("tbody", {}, ...rows.map((u, r) =>
          line(cell("th", u.text, "row"), ...cols.map((_, c) => cell("td", number(w[r * C + c]))))))));
      return;
    }
    const order = Array.from(w.keys()).filter((i) => w[i] >= 0.05).sort((a, b) => w[b] - w[a]).slice(0, 300);
    part.tableBox.replaceChildren(make("table", {}, caption,
      make("thead", {}, line(...["from", "to", "weight"].map((t) => cell("th", t, "col")))),
      make("tbody", {}, ...order.map((i) =>
        line(cell("td", rows[Math.floor(i / C)].text), cell("td", cols[i % C].text), cell("td", number(w[i])))))),
      make("p", { class: "soft" }, `The ${order.length} largest of ${w.length} weights.`));
  }

  // ---- Pointer and keys -------------------------------------------------------------------------------

  function listen() {
    const spot = (event) => { const box = event.currentTarget.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const gridCell = (event) => layouts.grid && gridCellAt(layouts.grid, reading.layers, reading.heads, ...spot(event));
    part.grid.onpointermove = (event) => { const at = gridCell(event); if (at !== hovered) { hovered = at; drawPreview(); } };
    part.grid.onpointerleave = () => { hovered = null; drawPreview(); };
    part.grid.onclick = (event) => { const at = gridCell(event); if (at !== null) open(at); };
    part.grid.onkeydown = gridKey;

    const heatCell = (event) => {
      const [x, y] = spot(event);
      const { rows, cols } = derive().axes;
      const cell = layouts.heat && heatmapCellAt(layouts.heat, rows.length, cols.length, x, y);
      if (cell) return cell;
      const { left, top, cell: side } = layouts.heat; // on a label: the whole row or column
      const [r, c] = [Math.floor((y - top) / side), Math.floor((x - left) / side)];
      if (x < left && r >= 0 && r < rows.length) return { row: r, col: null };
      if (y < top && c >= 0 && c < cols.length) return { row: null, col: c };
      return null;
    };
    const linkSpot = (event) => {
      const [x, y] = spot(event);
      const { rows, cols } = derive().axes;
      const i = Math.floor((y + part.scroller.scrollTop) / layouts.links.rowHeight);
      if (x < layouts.links.left + 40) return i < rows.length ? { row: i, col: null } : null;
      if (x > layouts.links.right - 40) return i < cols.length ? { row: null, col: i } : null;
      return null;
    };
    for (const [canvas, where] of [[part.heat, heatCell], [part.links, linkSpot]]) {
      canvas.onpointermove = (event) => hover(where(event));
      canvas.onpointerleave = () => hover(null);
      canvas.onclick = (event) => press(where(event));
      canvas.onkeydown = (event) => headKey(event, canvas === part.heat);
    }
    part.scroller.onscroll = () => drawHead();
  }

  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  function gridKey(event) {
    if (event.key === "Enter" || event.key === " ") { open(cursor); event.preventDefault(); }
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const layer = Math.max(0, Math.min(reading.layers - 1, Math.floor(cursor / reading.heads) + step[0]));
    const head = Math.max(0, Math.min(reading.heads - 1, (cursor % reading.heads) + step[1]));
    cursor = layer * reading.heads + head;
    hovered = null;
    drawOverview();
    part.said.textContent = `${headName(reading, cursor)}. ${numbersOf(cursor)}`;
  }

  // Links: up and down along a column of tokens, left and right between the two. Heatmap: from cell to cell.
  function headKey(event, isHeat) {
    const { rows, cols } = derive().axes;
    const at = focus || pinned() || { row: 0, col: isHeat ? 0 : null };
    if (event.key === "Enter" || event.key === " ") { press(at); event.preventDefault(); return; }
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const within = (i, list) => Math.max(0, Math.min(list.length - 1, i));
    if (isHeat) hover({ row: within((at.row ?? 0) + step[0], rows), col: within((at.col ?? 0) + step[1], cols) });
    else if (step[1]) { const i = at.row ?? at.col; hover(step[1] > 0 ? { row: null, col: within(i, cols) } : { row: within(i, rows), col: null }); }
    else if (at.row !== null) hover({ row: within(at.row + step[0], rows), col: null });
    else hover({ row: null, col: within(at.col + step[0], cols) });
    part.said.textContent = part.readout.textContent;
    if (!isHeat) reveal((focus.row ?? focus.col) * layouts.links.rowHeight);
  }

  function reveal(y) {
    const { scrollTop, clientHeight } = part.scroller;
    if (y < scrollTop) part.scroller.scrollTop = y;
    else if (y + 40 > scrollTop + clientHeight) part.scroller.scrollTop = y + 40 - clientHeight;
  }

  function onEscape(event) {
    if (event.key !== "Escape" || !reading || /^(INPUT|TEXTAREA|SELECT)$/.test(event.composedPath()[0].tagName)) return;
    focus = null;
    if (view.pin) pin(null); else drawHead();
  }

  const onHistory = () => { if (reading) { adopt(); render(); } };
  let resizing = 0;
  const onResize = () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(render); };

  // ---- The page's parts -------------------------------------------------------------------------------

  function build() {
    const p = {};
    const radio = (name, label, options) => make("fieldset", {}, make("legend", {}, label), make("div", { class: "segments" },
      ...options.map(([value, text, title]) => {
        const input = make("input", { type: "radio", name, value, onchange: () => change({ [name]: value, ...(name === "unit" ? {} : {}) }) });
        return make("label", { title }, input, make("span", {}, text));
      })));
    const choice = (label, options, onchange) => {
      const select = make("select", { onchange }, ...options.map(([value, text]) => make("option", { value, textContent: text })));
      return [make("label", { class: "choice" }, make("span", {}, label), select), select];
    };
    p.grid = make("canvas", { tabIndex: 0, role: "application", "aria-label": "All heads. Arrow keys move from head to head, Enter opens one." });
    p.marks = make("div", { class: "marks" });
    p.gridBox = make("div", { class: "grid" }, make("div", { class: "sheet" }, p.grid, p.marks));
    p.count = make("span", { class: "soft" });
    p.previewName = make("p", { class: "name" });
    p.numbers = make("dl", {});
    p.preview = make("div", { class: "preview" }, p.previewName, p.numbers);
    let box;
    [box, p.askQuery] = choice("from", [], askChanged);
    const from = box;
    [box, p.askKey] = choice("to", [], askChanged);
    p.ranks = make("ol", {});
    p.more = make("button", { type: "button", class: "quiet", hidden: true, onclick: () => { if (p.ask.dataset.all) delete p.ask.dataset.all; else p.ask.dataset.all = "1"; drawAsk(); } });
    p.askNote = make("p", { class: "soft" });
    p.ask = make("section", { class: "ask" }, make("h3", {}, "Which heads link two words?"), make("div", { class: "row" }, from, make("span", { class: "arrow" }, "→"), box), p.askNote, p.ranks, p.more);
    p.title = make("h2", {});
    p.readout = make("p", { class: "readout" });
    p.note = make("p", { class: "note soft" });
    p.bar = make("div", { class: "heads", role: "group", "aria-label": "Heads of this layer in the link diagram" });
    p.links = make("canvas", { tabIndex: 0, role: "application" });
    p.tall = make("div", { class: "tall" }, p.links);
    p.scroller = make("div", { class: "scroller" }, p.tall);
    p.linksBox = make("div", { class: "links" }, make("div", { class: "ends soft" }, make("span", {}, "from (query)"), make("span", {}, "to (key)")), p.scroller);
    p.heat = make("canvas", { tabIndex: 0, role: "application" });
    p.heatBox = make("div", { class: "heat" }, make("div", { class: "ends soft" }, make("span", {}, "rows: from (query)"), make("span", {}, "columns: to (key)")), make("div", { class: "sheet" }, p.heat));
    p.panels = make("div", { class: "panels" }, p.linksBox, p.heatBox);
    [box, p.linkMode] = choice("Links", [["all", "all"], ["top", "top k per word"], ["min", "weight ≥ t"], ["mass", "cumulative mass"]],
      () => change({ links: { all: "all", top: "top3", min: "min0.10", mass: "mass0.70" }[p.linkMode.value] }));
    p.linkLabel = make("output", {});
    p.linkValue = make("input", { type: "range", "aria-label": "Value for the choice of links", oninput: () => {
      const mode = p.linkMode.value;
      change({ links: mode + (mode === "top" ? +p.linkValue.value : (+p.linkValue.value).toFixed(2)) }, 300);
    } });
    const links = make("div", { class: "choice" }, box, p.linkValue, p.linkLabel);
    [box, p.scale] = choice("Colour", [["fixed", "0 to 1"], ["head", "per head"], ["row", "per row"], ["log", "logarithmic"]], () => change({ scale: p.scale.value }));
    const colour = box;
    [p.sideBox, p.side] = choice("Pair", [["all", "all"], ["aa", "A → A"], ["ab", "A → B"], ["ba", "B → A"], ["bb", "B → B"]], () => change({ side: p.side.value }));
    const controls = make("div", { class: "controls" },
      radio("unit", "Tokens", [["words", "words", "Attention to a word is the sum over its pieces, from a word the mean"], ["pieces", "pieces", "Exactly the tokens that the model reads"]]),
      radio("special", "[CLS] [SEP]", [["keep", "shown", "Every weight is shown"], ["hide", "hidden", "Special tokens are left out, nothing is rescaled"], ["rescale", "hidden, rescaled", "Special tokens are left out and each row is rescaled to sum to 1"]]),
      links, colour, p.sideBox);
    p.tableBox = make("div", { class: "tablebox" });
    p.table = make("details", { ontoggle: () => { if (p.table.open) drawTable(); } }, make("summary", {}, "These weights as a table"), p.tableBox);
    p.said = make("p", { class: "said", "aria-live": "polite" });
    p.all = make("div", { class: "explorer" },
      make("section", { class: "overview" }, make("header", {}, make("h2", {}, "Every head"), p.count), p.gridBox, p.preview, p.ask),
      make("section", { class: "one" }, make("header", {}, p.title, make("div", { class: "switches" }, make("span", { class: "soft" }, "Heads drawn"), p.bar)), controls, p.readout, p.panels, p.note, p.table), p.said);
    return p;
  }

  function start() {
    listen();
    document.addEventListener("keydown", onEscape);
    window.addEventListener("popstate", onHistory);
    window.addEventListener("resize", onResize);
  }

  function stop() {
    clearTimeout(tell);
    document.removeEventListener("keydown", onEscape);
    window.removeEventListener("popstate", onHistory);
    window.removeEventListener("resize", onResize);
  }

  start();
  return { show, stop };
}

// Streamlit calls this on the same page elements at every change of the data.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-explorer");
  root.send = setTriggerValue;
  root.app ??= explorer(root, (name, value) => root.send(name, value));
  root.app.show(data);
  return () => { root.app.stop(); root.app = null; };
}
