// One reading on the page: the grid of all heads, one head as links and heatmap, and what is asked of them.
// What only changes the view is drawn here at once; the server hears of it afterwards and keeps the URL.
import {
  block, chosen, encodeView, gridCellAt, headName, heatmapSpotAt, isPair, keysOf, linksSpotAt, paperName, parseView, shades, units, unpack,
} from "./geometry.js";
import { isDark, palette } from "./ink.js";
import { drawGrid } from "./grid.js";
import { drawHeatmap } from "./heatmap.js";
import { drawLinks } from "./links.js";
import { page, setControls } from "./page.js";
import { byHead, chips, drawBadges, drawKinds, spoken } from "./roles.js";
import { drawRanks, hiddenNote, readout, suggestion, table } from "./words.js";
import { make } from "../dom.js";
import { post } from "../post.js";

const TELL_AFTER = 80; // milliseconds of quiet before the server hears of a view: quick clicks are one message
const KEEP_BYTES = 64e6; // matrices kept in the browser for heads opened before

export function explorer(root, send, locate = () => window.location.search) {
  let reading = null;
  let view = null;
  let focus = null; // what the pointer is on: {row, col} in units, either may be null
  let hovered = null; // the head under the pointer in the grid
  let cursor = 0; // the head that the arrow keys are on
  let layouts = {};
  let derived = null;
  let tell = 0;
  let tour = ""; // the step that the page says
  let roles = { kinds: {}, of: new Map() }; // what heads are known for: kind → colour, head → its roles
  let sought = null; // the kind of role that is looked for
  const look = {};
  const part = page({ change, ask, more, compare: () => compare(view.head), table: () => { if (part.table.open) drawTable(); } });
  part.compare.hidden = !!root.dataset.alone;
  root.replaceChildren(part.all);

  // ---- Arrivals ---------------------------------------------------------------------------------------

  function show(bytes, known = null) {
    const next = unpack(bytes);
    const led = known?.tour && known.tour !== tour; // a step of the tour has a view of its own, which the address holds
    if (known) [roles, tour] = [byHead(known), known.tour];
    if (reading && reading.key === next.key) {
      keep(next);
      if (led) adopt();
    } else {
      reading = next;
      hovered = null;
      adopt(); // what was still to be told was of the text before
    }
    render();
  }

  function keep(next) {
    if (next.link) reading.link = next.link;
    for (const [head, matrix] of next.matrices) reading.matrices.set(head, matrix);
    const room = Math.max(24, KEEP_BYTES / (4 * reading.n * keysOf(reading).n));
    for (const head of reading.matrices.keys()) {
      if (reading.matrices.size <= room) break;
      if (!view.on.includes(head)) reading.matrices.delete(head);
    }
  }

  function adopt() {
    clearTimeout(tell);
    view = parseView(new URLSearchParams(locate()), reading);
    cursor = view.head;
    focus = null;
  }

  // ---- Changes ----------------------------------------------------------------------------------------

  function change(fields, delay = TELL_AFTER) {
    view = { ...view, ...fields };
    if ("unit" in fields || "special" in fields || "side" in fields) focus = null; // it counts rows that are no more
    clearTimeout(tell);
    tell = setTimeout(() => send("view", { of: reading.of, ...encodeView(view, reading) }), delay);
    render();
  }

  function open(head) {
    cursor = head;
    const layer = Math.floor(head / reading.heads);
    const stay = view.on.filter((h) => Math.floor(h / reading.heads) === layer && h !== view.head);
    const fields = { head, on: stay.length ? [...new Set([head, ...stay])] : [head] };
    change(fields);
    part.said.textContent = `${headName(reading, head)} opened. ${spoken(roles.of.get(head) ?? [])}${numbersOf(head)}`;
  }

  function toggle(head) {
    const on = view.on.includes(head) ? view.on.filter((h) => h !== head) : [...view.on, head];
    if (on.length && on.length <= reading.together) {
      cursor = on.includes(view.head) ? view.head : on[0];
      change({ on, head: cursor });
    }
    else if (on.length) part.note.textContent = `A text as long as this one shows ${reading.together} heads together.`;
  }

  // Set a head aside for the Compare page.
  function compare(head) {
    if (root.dataset.alone) return;
    send("tray", { model: reading.model, head: headName(reading, head), of: reading.of });
    part.said.textContent = `${headName(reading, head)} is set aside to compare.`;
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
    const known = JSON.stringify([reading.key, unit, special, side, scale, look.theme, width, height, look.ink, window.devicePixelRatio]);
    if (known !== drawn) {
      drawn = known;
      layouts.grid = drawGrid(part.grid, reading, view, { ...look, width, height });
    }
    part.count.textContent = `${reading.layers} layers × ${reading.heads} heads`;
    part.marks.replaceChildren(...drawBadges(roles, reading.layers * reading.heads, sought, place, look.heads),
      ...view.on.map(mark), ...(cursor === view.head ? [] : [mark(cursor, "cursor")]));
    drawKinds(part.kinds, roles, sought, look.heads, (kind) => { sought = sought === kind ? null : kind; drawOverview(); });
    drawPreview();
  }

  function place(at, head) {
    const { left, top, step, size } = layouts.grid;
    at.style.left = `${left + (head % reading.heads) * step}px`;
    at.style.top = `${top + Math.floor(head / reading.heads) * step}px`;
    at.style.width = at.style.height = `${size}px`;
    return at;
  }

  function mark(head, kind) {
    const at = place(make("i", { class: kind === "cursor" ? "cursor" : head === view.head ? "opened" : "on" }), head);
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
      make("span", { class: "soft" }, head === view.head ? " open" : hovered === null ? " Enter opens it" : " click to open"));
    part.rolesHere.replaceChildren(...chips(roles.of.get(head) ?? [], roles, look.heads));
    part.numbers.replaceChildren(...reading.metrics.map((metric) => {
      const value = metric.values[head] ?? 0;
      const bar = make("dd", { class: "bar", "aria-hidden": true });
      const top = metric.unit === "nats" ? Math.log(keysOf(reading).n) : 1;
      bar.style.setProperty("--share", `${Math.min(100, (100 * value) / (top || 1))}%`);
      return make("div", { title: metric.help }, make("dt", {}, metric.label), bar, make("dd", {}, valueOf(metric, head)));
    }));
  }

  function drawControls() {
    part.title.replaceChildren(`Layer ${Math.floor(view.head / reading.heads)}, head ${view.head % reading.heads} `,
      make("code", {}, `${headName(reading, view.head)} (${paperName(reading, view.head)})`));
    part.roles.replaceChildren(...chips(roles.of.get(view.head) ?? [], roles, look.heads));
    setControls(part, view, isPair(reading));
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
      const some = [head(), ...all.filter((h) => h !== head())].slice(0, reading.together);
      cursor = head();
      change(only ? { on: some, head: head() } : { on: [head()], head: head() });
    };
    return button;
  }

  function drawHead() {
    const { axes, heads } = derive();
    part.panels.classList.toggle("waiting", heads.length < Math.min(view.on.length, reading.together));
    const at = focus || pinned();
    const first = opened();
    if (!first) {
      const name = headName(reading, view.head);
      part.readout.textContent = root.dataset.alone ? `${name} is not in this file: the text is too long for all heads.` : `${name} is on its way…`;
      part.tableBox.replaceChildren();
      return;
    }
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

  function drawWords(at, first, axes) {
    part.readout.replaceChildren(...readout(first, axes, at));
    part.note.textContent = hiddenNote(first, axes, at, view, reading);
    const name = headName(reading, first.head);
    part.heat.setAttribute("aria-label", `Heatmap of ${name}. ${part.readout.textContent}`);
    part.links.setAttribute("aria-label", `Token links of ${name}. ${part.readout.textContent}`);
  }

  const opened = () => derive().heads.find((h) => h.head === view.head);

  function drawAsk() {
    const all = units(reading, { ...view, special: "keep", side: "all" });
    const link = view.link || suggestion(reading, opened(), derived.axes, pinned());
    drawRanks(part, reading, view, link, all, open);
  }

  function ask() {
    const [query, key] = [part.askQuery.value, part.askKey.value];
    if (query === "" || key === "") return;
    const link = { query: +query, key: +key };
    change({ link, pin: { ...link } });
  }

  function more() {
    part.ask.all = !part.ask.all;
    drawAsk();
  }

  function drawTable() {
    const head = opened();
    if (head) part.tableBox.replaceChildren(...table(head, derived.axes, reading));
  }

  // ---- Pointer and keys -------------------------------------------------------------------------------

  function listen() {
    const spot = (event) => { const box = event.currentTarget.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const gridCell = (event) => layouts.grid && gridCellAt(layouts.grid, reading.layers, reading.heads, ...spot(event));
    part.grid.onpointermove = (event) => { const at = gridCell(event); if (at !== hovered) { hovered = at; drawPreview(); } };
    part.grid.onpointerleave = () => { hovered = null; drawPreview(); };
    part.grid.onclick = (event) => { const at = gridCell(event); if (at !== null) open(at); };
    part.grid.onkeydown = gridKey;

    const counts = () => { const { rows, cols } = derive().axes; return [rows.length, cols.length]; };
    const heatCell = (event) => layouts.heat ? heatmapSpotAt(layouts.heat, ...counts(), ...spot(event)) : null;
    const linkSpot = (event) => {
      const [x, y] = spot(event);
      return layouts.links ? linksSpotAt(layouts.links, ...counts(), x, y + part.scroller.scrollTop) : null;
    };
    for (const [canvas, where] of [[part.heat, heatCell], [part.links, linkSpot]]) {
      canvas.onpointermove = (event) => hover(where(event));
      canvas.onpointerleave = () => hover(null);
      canvas.onclick = (event) => press(where(event));
      canvas.onkeydown = (event) => headKey(event, canvas === part.heat);
      canvas.onblur = () => hover(null);
    }
    part.scroller.onscroll = () => drawHead();
  }

  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  function gridKey(event) {
    if (event.key === "Enter" || event.key === " ") { open(cursor); event.preventDefault(); }
    if (event.key === "c" && !event.ctrlKey && !event.metaKey) compare(cursor);
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const layer = Math.max(0, Math.min(reading.layers - 1, Math.floor(cursor / reading.heads) + step[0]));
    const head = Math.max(0, Math.min(reading.heads - 1, (cursor % reading.heads) + step[1]));
    cursor = layer * reading.heads + head;
    hovered = null;
    drawOverview();
    part.said.textContent = `${headName(reading, cursor)}. ${spoken(roles.of.get(cursor) ?? [])}${numbersOf(cursor)}`;
  }

  // Links: up and down along a column of tokens, left and right between the two. Heatmap: from cell to cell.
  function headKey(event, isHeat) {
    const { rows, cols } = derive().axes;
    if (!rows.length || !cols.length) return;
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
    if (event.key !== "Escape" || !reading || event.composedPath()[0].matches?.("textarea, input[type=text]")) return;
    focus = null;
    if (view.pin) pin(null); else drawHead();
  }

  const onHistory = () => { if (reading) { adopt(); render(); } };
  let resizing = 0;
  const onResize = () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(render); };

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

// A packet, and after it the roles as JSON with their length.
function apart(data) {
  const end = data.byteLength - 4;
  const begin = end - new DataView(data.buffer, data.byteOffset + end).getUint32(0, true);
  return [data.subarray(0, begin), JSON.parse(new TextDecoder().decode(data.subarray(begin, end)))];
}

// Streamlit calls this on the same page elements at every change of the data.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-explorer");
  root.send = setTriggerValue;
  try {
    root.app ??= explorer(root, (name, value) => post(root.send, name, value));
    root.app.show(...apart(data));
  } catch (error) {
    console.error(error);
    root.app = null;
    root.replaceChildren(make("p", { role: "alert" }, "This drawing failed. Reload the page without the part of its address after “&”, or read another sentence."));
  }
  return () => { root.app?.stop(); root.app = null; };
}
