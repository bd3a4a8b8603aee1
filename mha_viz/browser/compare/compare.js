// Heads side by side: what is pointed at in one panel is shown in all, on one scale, and any two are subtracted.
// What only changes the view is drawn here at once; the server hears of it afterwards and keeps the URL.
import {
  block, chosen, headName, heatmapLayout, heatmapSpotAt, linksSpotAt, number, paperName, spanWeight,
} from "../geometry.js";
import { isDark, palette } from "../ink.js";
import { drawHeatmap, drawHeatmapFocus, heatmapLabel } from "../heatmap.js";
import { drawLinks, linksLabel } from "../links.js";
import { hiddenNote, table } from "../words.js";
import { make, typedText } from "../dom.js";
import { post } from "../post.js";
import { differenceTable, entry, page, panelOf, setControls, shortName } from "./parts.js";
import {
  columns, counterparts, difference, encodeTogether, largest, nameOf, parseTogether, partners, placeAfter, readingOf,
  scaleWords, sharedShades, signed, signedShades, toldApart, topOf, unitsOf, unpackPanels, viewAfter,
} from "./together.js";

const TELL_AFTER = 80; // milliseconds of quiet before the server hears of a view: quick clicks are one message
const ANSWER_AFTER = 4000; // milliseconds after which a change of the tray counts as not heard
const GAP = 32; // between panels, pixels
const LEAST = 292; // a panel is at least as wide, pixels
const LINKS_WIDTH = 560; // a link diagram at most
const LARGEST = 12;
const TABLED = 300;

export function compare(root, send, locate = () => window.location.search) {
  let set = null;
  let view = null;
  let focus = null; // what the pointer is on: {at: panel, row, col} in units of that panel, one may be null
  let derived = null;
  let sent = null; // a change of the tray that is not answered yet
  let tell = 0;
  let frame = 0;
  const look = {};
  const part = page({ change, subtract, edit, table: drawTable });
  root.replaceChildren(part.all);

  // ---- Arrivals ---------------------------------------------------------------------------------------

  function show(bytes) {
    const next = unpackPanels(bytes);
    const same = set && set.key === next.key;
    if (!same) arrive(next);
    render();
    if (!same) settle();
  }

  function arrive(next) {
    clearTimeout(tell);
    set = next;
    focus = null;
    derived = null;
    view = sent && sent.count === set.panels.length ? sent.view : parseTogether(new URLSearchParams(locate()), set);
    part.panels = set.panels.map((_, index) => panelOf(set, index, { edit }));
    part.panels.forEach(listenTo);
    part.sheet.replaceChildren(...part.panels.map((panel) => panel.all));
  }

  // The keyboard stays where it was before a change of the tray; the address says what the panels show.
  function settle() {
    if (!sent) return;
    const { index, action, focused } = sent;
    sent = null;
    const place = Math.min(set.panels.length - 1, placeAfter({ ...focused, action }, index) ?? index);
    const panel = part.panels[place];
    if (panel) (action === "rename" ? panel.rename : panel.tools.querySelector(`[data-tool="${focused.tool}"]`))?.focus();
    part.said.textContent = { move: `Moved to place ${place + 1}.`, remove: "Removed. Back brings it again.", duplicate: "Duplicated.", rename: "Renamed." }[action] || "";
    const said = new URLSearchParams(locate());
    if (Object.entries(encodeTogether(view, set)).some(([name, value]) => said.get(name) !== value)) change({});
  }

  // ---- Changes ----------------------------------------------------------------------------------------

  function change(fields, delay = TELL_AFTER) {
    view = { ...view, ...fields };
    if ("unit" in fields || "special" in fields) focus = null; // it counts rows that are no more
    clearTimeout(tell);
    tell = setTimeout(() => send("view", { of: set.key, ...encodeTogether(view, set) }), delay);
    render();
  }

  // Two panels to subtract; of one that is chosen alone the other is its neighbour.
  function subtract(ofSecond) {
    const [first, second] = [part.first.value, part.second.value];
    if ((ofSecond ? second : first) === "") { change({ diff: null }); return; }
    const chosen_ = +(ofSecond ? second : first);
    let other = ofSecond ? first : second;
    if (other === "" || +other === chosen_) other = chosen_ ? chosen_ - 1 : 1;
    change({ diff: ofSecond ? [+other, chosen_] : [chosen_, +other] });
    part.diff.scrollIntoView({ block: "nearest" });
  }

  // One change at a time: the next would count places that are no more. `index` and `to` are places in the tray.
  function edit(asked) {
    const { action, index, to } = asked;
    if (sent && performance.now() < sent.until) return;
    const reading = readingOf(set, index);
    const tray = (panel) => set.panels[panel].source ?? panel;
    const own = { head: nameOf(set, index).name, model: reading.model, text: reading.text, pair: reading.pair };
    const after = viewAfter(asked, view);
    clearTimeout(tell);
    send("edit", { ...own, ...asked, index: tray(index), ...(to === undefined ? {} : { to: tray(to) }), view: encodeTogether(after, set) });
    if (action === "open" || action === "pin") { if (action === "pin") part.said.textContent = "Pinned."; return; }
    const count = set.panels.length + ({ remove: -1, duplicate: 1 }[action] || 0);
    const tool = action === "move" ? (to < index ? "left" : "right") : action;
    sent = { action, index, count, view: after, focused: { index, to, tool }, until: performance.now() + ANSWER_AFTER };
  }

  // ---- What is pointed at, in every panel -----------------------------------------------------------------

  // What stands in reading j for each unit of reading i; while two panels are subtracted, replaced words do.
  function standing(i, j) {
    const key = `${i}-${j}`;
    if (derived.standing[key]) return derived.standing[key];
    const [ours, theirs] = [derived.units[i], derived.units[j]];
    const subtracted = derived.diff?.partner && i !== j && [i, j].every((r) => view.diff.some((panel) => set.panels[panel].reading === r));
    const found = subtracted
      ? partners(set, i, j, ours, theirs, view).partner?.map((unit) => [unit, 1])
      : null;
    derived.standing[key] = found || counterparts(set, i, j, ours, theirs);
    return derived.standing[key];
  }

  // A focus of panel `at` as it is in a reading: {row, rows, col, cols}, or {missing: unit}.
  function focusIn(reading, at) {
    if (!at) return null;
    const from = set.panels[at.at].reading;
    const found = {};
    for (const [side, many] of [["row", "rows"], ["col", "cols"]]) {
      const own = at[side] === null ? [null, 1] : standing(from, reading)[at[side]];
      if (!own) return { missing: derived.units[from][at[side]] };
      [found[side], found[many]] = own;
    }
    return found;
  }

  function pinned() {
    if (!view.pin || !derived) return null;
    const { at, query, key } = view.pin;
    const own = derived.units[set.panels[at].reading];
    const find = (token) => (token === null ? null : own.findIndex((unit) => unit.tokens.includes(token)));
    const found = { at, row: find(query), col: find(key) };
    return found.row === -1 || found.col === -1 ? null : found;
  }

  const sameSpot = (a, b) => a === b || (!!a && !!b && a.at === b.at && a.row === b.row && a.col === b.col);

  function hover(at) {
    if (sameSpot(at, focus)) return;
    focus = at;
    frame ||= requestAnimationFrame(() => { frame = 0; refresh(); }); // many moves, one drawing
  }

  function press(at) {
    if (!at) return;
    const own = derived.units[set.panels[at.at].reading];
    const token = (unit) => (unit === null ? null : own[unit].tokens[0]);
    change({ pin: sameSpot(at, pinned()) ? null : { at: at.at, query: token(at.row), key: token(at.col) } });
  }

  // ---- Drawing ----------------------------------------------------------------------------------------

  function readLook() {
    const style = getComputedStyle(root);
    const value = (name, other) => style.getPropertyValue(name).trim() || other;
    const theme = set.themes[isDark(root) ? "dark" : "light"];
    if (look.theme !== theme) {
      Object.assign(look, { theme, colours: palette(theme.ramp), signedColours: palette(theme.signed), heads: theme.heads });
    }
    look.ink = value("--st-text-color", "#222");
    look.paper = value("--st-background-color", "#fff");
    look.accent = value("--st-primary-color", "#0b5cad");
    look.veil = 0.5; // lighter than where one head is all: its other rows are what is compared
    look.muted = getComputedStyle(part.hint).color;
    const [sans, mono] = [value("--st-font", "sans-serif"), value("--st-code-font", "monospace")];
    look.textFont = (size, weight = 400) => `${weight} ${size}px ${sans}`;
    look.numberFont = (size) => `600 ${size}px ${mono}`;
  }

  function derive() {
    const { unit, special, links, scale, diff, as } = view;
    const key = JSON.stringify([set.key, unit, special, links, scale, diff, as, look.theme.ramp]);
    if (derived?.key === key) return;
    const units = set.readings.map((reading) => unitsOf(reading, view));
    const parts = set.panels.map(({ reading, head }) => block(set.readings[reading], head, view, { rows: units[reading], cols: units[reading] }));
    const top = topOf(parts);
    const heads = set.panels.map(({ reading, head }, index) => ({
      head, part: parts[index], shade: sharedShades(parts[index], scale, top),
      mask: as === "links" ? chosen(parts[index], links) : null,
      colour: look.heads[(head % set.readings[reading].heads) % look.heads.length],
    }));
    derived = { key, units, heads, top, standing: {}, diff: diff && difference(set, view, diff) };
    if (derived.diff?.partner) derived.diff.head = { part: { w: derived.diff.d, R: derived.diff.R, C: derived.diff.C }, shade: signedShades(derived.diff) };
  }

  function render() {
    if (!set) return;
    readLook();
    part.all.classList.toggle("empty", !set.panels.length);
    part.hint.replaceChildren(...hint());
    if (set.panels.length) {
      derive();
      setControls(part, set, view);
      drawScale();
      measure();
    }
    drawDifference();
    refresh(true);
    drawTable();
  }

  function hint() {
    if (!set.panels.length) return ["Nothing is compared yet: pin a head on the Explore page, and it stands here beside the next one."];
    part.how.hidden = set.panels.length < 2;
    if (set.panels.length === 1 && set.editable) return ["One head is here. Pin another on the Explore page, or duplicate this one, and both stand side by side on one scale."];
    return [];
  }

  function drawScale() {
    const { as, scale } = view;
    const stops = as === "links" ? `transparent, ${look.ink}` : look.theme.ramp.join();
    part.ramp.style.background = `linear-gradient(90deg, ${stops})`;
    const whose = set.panels.length > 1 ? "One scale for all panels" : "Scale";
    part.scaleText.textContent = `${whose}: ${scaleWords(scale, derived.top)}${as === "links" ? ", as strength of the line" : ""}`;
  }

  // All panels have one size and one layout, whatever they show: cells can be compared by place.
  function measure() {
    const links = view.as === "links";
    const most = Math.max(1, ...derived.units.map((units) => units.length));
    const label = Math.max(...derived.units.map((units) => (links ? linksLabel : heatmapLabel)(units, units, look)));
    const width = part.sheet.clientWidth;
    const least = width < 600 ? width : links ? LEAST : Math.max(LEAST, Math.min(width, label + 2 * most));
    const across = columns(width, set.panels.length, least, GAP);
    const own = Math.floor((width - (across - 1) * GAP) / across);
    part.sheet.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
    const height = Math.max(300, Math.min(680, window.innerHeight - 230));
    Object.assign(look, { most, label, width: links ? Math.min(own, LINKS_WIDTH) : own, height });
    const drawn = links ? look.width : heatmapLayout(own, most, most, height, label).width;
    for (const panel of part.panels) {
      panel.all.style.maxWidth = `${Math.max(drawn, LEAST)}px`; // its tools stand over the drawing's end
      panel.box.style.maxHeight = `${links ? height : Math.max(height, own) + 12}px`;
    }
  }

  // Draw what changed: a panel whose focus is as it was keeps its picture.
  function refresh(all = false) {
    if (!set) return;
    const at = focus || pinned();
    part.panels.forEach((panel, index) => {
      const own = focusIn(set.panels[index].reading, at);
      const key = JSON.stringify(own);
      if (!all && key === panel.drawn) return;
      panel.drawn = key;
      drawPanel(panel, index, own, all);
    });
    refreshDifference(at, all);
  }

  // The drawing is made once; what is pointed at lies on a canvas over it, in links instead of it.
  function drawPlate(plate, scene, own, whole, dress = look) {
    const isLinks = !!scene.heads;
    if (whole && isLinks) {
      plate.layout = drawLinks(plate.canvas, scene, dress, plate.box.scrollTop);
      plate.tall.style.height = `${plate.layout.height}px`;
    } else if (whole) {
      plate.layout = drawHeatmap(plate.canvas, scene, dress);
      plate.tall.style.height = "";
    }
    plate.over.hidden = !own;
    plate.tall.classList.toggle("replaced", isLinks && !!own);
    if (!own) return;
    if (isLinks) drawLinks(plate.over, { ...scene, focus: own }, dress, plate.box.scrollTop);
    else drawHeatmapFocus(plate.over, { ...scene, focus: own }, dress, plate.layout);
  }

  function drawPanel(panel, index, own, whole) {
    const units = derived.units[set.panels[index].reading];
    const [head, shown] = [derived.heads[index], own && !own.missing ? own : null];
    drawPlate(panel, { rows: units, cols: units, head, ...(view.as === "links" ? { heads: [head] } : {}), focus: null }, shown, whole);
    panel.says.replaceChildren(...sentence(index, own));
    panel.says.classList.toggle("rest", !own);
    const note = view.special === "keep" ? "" : hiddenNote(head, { rows: units }, shown, view, readingOf(set, index));
    if (panel.note.textContent !== note) panel.note.textContent = note;
    panel.all.classList.toggle("lacks", !!own?.missing);
    const { name } = nameOf(set, index);
    panel.canvas.setAttribute("aria-label", `${view.as === "links" ? "Token links" : "Heatmap"} of panel ${index + 1}, ${name}. ${panel.says.textContent}`);
  }

  const textOf = (units, from, count = 1) => units.slice(from, from + count).map((unit) => unit.text).join(" ");
  const bold = (text) => make("b", {}, typedText(text));
  const value = (text) => make("span", { class: "value" }, text);

  // What a panel says of the focus: one link with its exact weight, or the largest of a word.
  function sentence(index, own) {
    const { reading } = set.panels[index];
    const [units, { part: cells }] = [derived.units[reading], derived.heads[index]];
    if (!units.length) return ["Only special tokens are here."];
    if (own?.missing) return lacking(own.missing, reading);
    if (!own) {
      const found = strongest(cells, units);
      const words = !units[found.row].special && !units[found.col].special;
      return [make("span", { class: "soft" }, `strongest ${words ? `between ${view.unit} ` : ""}`), ...linkOf(units, found)];
    }
    if (own.row !== null && own.col !== null) return linkOf(units, own, spanWeight(cells, own));
    const isQuery = own.row !== null;
    const weights = units.map((_, i) => spanWeight(cells, isQuery ? { ...own, col: i, cols: 1 } : { ...own, row: i, rows: 1 }));
    const best = topThree(weights);
    return [make("span", { class: "link" }, bold(isQuery ? textOf(units, own.row, own.rows) : textOf(units, own.col, own.cols)), isQuery ? " → " : " ← ",
      ...best.flatMap((i, at) => [at ? ", " : "", typedText(units[i].text), ` ${number(weights[i])}`]))];
  }

  function linkOf(units, { row, rows, col, cols, weight }, exact = weight) {
    return [make("span", { class: "link" }, bold(textOf(units, row, rows)), " → ", bold(textOf(units, col, cols))), " ", value(number(exact))];
  }

  function lacking(unit, reading) {
    const typed = unit.special ? "special token" : view.unit === "words" ? "word" : "piece";
    const hidden = unit.special && view.special !== "keep";
    return [make("span", { class: "soft" }, `no ${typed} “`, typedText(unit.text), `” here${hidden ? ": hidden" : ""}`)];
  }

  // Between ordinary words where there are any: most heads rest on [CLS] or [SEP], which says little.
  function strongest({ w, R, C }, units) {
    const found = { row: 0, col: 0, weight: w[0] };
    let top = -1;
    for (let row = 0, i = 0; row < R; row++) {
      for (let col = 0; col < C; col++, i++) {
        const weight = w[i] - (units[row].special || units[col].special ? 1 : 0);
        if (weight > top) { top = weight; Object.assign(found, { row, col, weight: w[i] }); }
      }
    }
    return found;
  }

  function topThree(weights) {
    const best = [];
    weights.forEach((weight, i) => {
      let at = best.length;
      while (at && weight > weights[best[at - 1]]) at--;
      if (at < 3) { best.splice(at, 0, i); best.length = Math.min(best.length, 3); }
    });
    return best;
  }

  // ---- The difference -------------------------------------------------------------------------------------

  function drawDifference() {
    const { diff } = view;
    part.diff.hidden = !diff;
    if (!diff) return;
    const [first, second] = toldApart(set, diff).map(({ name, more }) => [make("code", {}, name), ...(more ? [" ", typedText(more)] : [])]);
    part.diffTitle.replaceChildren(...second, " minus ", ...first,
      make("span", { class: "soft" }, ` panel ${diff[1] + 1} minus panel ${diff[0] + 1}`));
    const found = derived.diff;
    part.diffBody.hidden = !found.partner;
    part.diffText.replaceChildren(...(found.partner ? meaning(diff) : refusal(found, diff)));
    if (!found.partner) return;
    part.diffRamp.style.background = `linear-gradient(90deg, ${look.theme.signed.join()})`;
    part.diffLess.replaceChildren(`more in panel ${diff[0] + 1}  `, value(`−${number(found.top)}`));
    part.diffMore.replaceChildren(value(`+${number(found.top)}`), `  more in panel ${diff[1] + 1}`);
    part.list.replaceChildren(...largest(found, LARGEST).map((cell) => listed(found, cell)));
    if (!part.list.children.length) part.list.append(make("li", { class: "soft" }, "None: the two are the same."));
  }

  function meaning([p, q]) {
    const nats = set.divergence[p][q];
    if (nats === null) return ["Only what is shown is subtracted. No divergence is given: it takes every row, and special tokens do not correspond."];
    const unit = set.compared[set.panels[p].reading][set.panels[q].reading];
    return ["Jensen–Shannon divergence ", bold(`${nats.toFixed(3)} nats`), `, the mean over all ${unit === "words" ? "words" : "pieces"}, special tokens included, whatever is shown: 0 means the same rows, 0.693 (ln 2) rows with nothing in common.`];
  }

  // Why two panels cannot be subtracted, and the one click that helps, where one does.
  function refusal({ ours, theirs, remedy }, [p, q]) {
    const only = [[ours, p], [theirs, q]].filter(([units]) => units.length).map(([units, panel]) => {
      const words = units.slice(0, 5).flatMap((unit, i) => [i ? ", " : "", "“", typedText(unit.text), "”"]);
      return make("span", {}, ...words, units.length > 5 ? ` and ${units.length - 5} more` : "", ` only in panel ${panel + 1}`);
    });
    const listed_ = only.flatMap((span, i) => [i ? "; " : "", span]);
    if (!remedy) return ["These two cannot be subtracted: their words do not correspond one to one. ", ...listed_, ". Compare two sentences of which one has some words replaced, each by one."];
    const pieces = remedy.unit && "they are cut into different pieces";
    const special = remedy.special && "their special tokens differ";
    const [does, text] = pieces && special ? ["Compare by words, without special tokens", `${pieces}, and ${special}`] : pieces ? ["Compare by words", pieces] : ["Hide special tokens", special];
    return [`As shown, these two cannot be subtracted: ${text}. `, make("button", { type: "button", class: "quiet", onclick: () => change(remedy) }, does)];
  }

  function listed({ rows, d, C, first, second, top }, cell) {
    const at = { at: view.diff[0], row: Math.floor(cell / C), col: cell % C };
    const leave = () => hover(null);
    return entry(rows[at.row].text, rows[at.col].text, [number(first[cell]), number(second[cell]), signed(d[cell])], d[cell] / top,
      { onclick: () => press(at), onpointerenter: () => hover(at), onpointerleave: leave, onfocus: () => hover(at), onblur: leave });
  }

  function refreshDifference(at, all) {
    const found = derived?.diff;
    if (!found?.partner || part.diff.hidden) return;
    const own = focusIn(set.panels[view.diff[0]].reading, at);
    const key = JSON.stringify(own);
    if (!all && key === part.drawn) return;
    part.drawn = key;
    const scene = { rows: found.rows, cols: found.rows, head: found.head, focus: null };
    const width = all ? Math.min(680, part.map.box.clientWidth - 12) : 0;
    drawPlate(part.map, scene, own && !own.missing ? own : null, all,
      { ...look, colours: look.signedColours, width, height: Math.max(380, look.height), label: undefined, most: 0 });
    part.diffSays.replaceChildren(...differenceSays(found, own));
    part.map.canvas.setAttribute("aria-label", `Difference. ${part.diffSays.textContent}`);
    for (const [i, item] of [...part.list.querySelectorAll("button")].entries()) item.setAttribute("aria-current", isCell(found, i, own));
  }

  const isCell = (found, place, shown) => {
    if (!shown || shown.missing || shown.row === null || shown.col === null) return false;
    found.cells ??= largest(found, LARGEST);
    return found.cells[place] === shown.row * found.C + shown.col;
  };

  function differenceSays({ rows, d, C, first, second }, own) {
    if (own?.missing) return lacking(own.missing, null);
    if (!own || own.row === null || own.col === null) return [make("span", { class: "soft" }, own ? "Point at a cell for its numbers." : "Point at a cell: every panel shows that link.")];
    const cell = own.row * C + own.col;
    return [make("span", { class: "link" }, bold(rows[own.row].text), " → ", bold(rows[own.col].text)), " ",
      make("span", { class: "soft" }, `${number(first[cell])} → ${number(second[cell])}`), " ", value(signed(d[cell]))];
  }

  // ---- The table ------------------------------------------------------------------------------------------

  function drawTable() {
    if (!set.panels.length || !part.table.open) return;
    const differs = !!derived.diff?.partner;
    const options = [...set.panels.map((_, i) => [String(i), shortName(set, i)]), ...(differs ? [["diff", "the difference"]] : [])];
    const key = JSON.stringify(options);
    const before = part.tableOf.value || (differs ? "diff" : "0");
    if (part.tableOf.key !== key) part.tableOf.replaceChildren(...options.map(([value_, text]) => make("option", { value: value_, textContent: text })));
    part.tableOf.key = key;
    part.tableOf.value = options.some(([value_]) => value_ === before) ? before : "0";
    const at = part.tableOf.value;
    part.tableBox.replaceChildren(...(at === "diff" ? [tableOfDifference()] : tableOfPanel(+at)));
  }

  function tableOfPanel(index) {
    const reading = readingOf(set, index);
    const units = derived.units[set.panels[index].reading];
    return units.length ? table(derived.heads[index], { rows: units, cols: units }, reading) : [];
  }

  function tableOfDifference() {
    const { rows, d, C, first, second } = derived.diff;
    const [p, q] = view.diff.map((panel) => `${headName(readingOf(set, panel), set.panels[panel].head)} (${paperName(readingOf(set, panel), set.panels[panel].head)})`);
    const cells = largest(derived.diff, TABLED);
    const caption = `${q} minus ${p}: the ${cells.length} largest of ${d.length} differences`;
    return differenceTable(caption, cells.map((cell) => [rows[Math.floor(cell / C)].text, rows[cell % C].text, number(first[cell]), number(second[cell]), signed(d[cell])]));
  }

  // ---- Pointer and keys -------------------------------------------------------------------------------

  function listenTo(panel, index) {
    const count = () => derived.units[set.panels[index].reading].length;
    const where = (event) => {
      if (!panel.layout || !derived) return null;
      const box = panel.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const spot = view.as === "links"
        ? linksSpotAt(panel.layout, count(), count(), x, y + panel.box.scrollTop)
        : heatmapSpotAt(panel.layout, count(), count(), x, y);
      return spot && { at: index, ...spot };
    };
    attend(panel.canvas, where, () => ({ at: index, isHeat: view.as !== "links", count: count(), says: () => saidAll() }));
    panel.box.onscroll = () => follow(panel);
  }

  function listenToDifference() {
    const where = (event) => {
      const found = derived?.diff;
      if (!part.map.layout || !found?.partner) return null;
      const box = part.map.canvas.getBoundingClientRect();
      const spot = heatmapSpotAt(part.map.layout, found.R, found.C, event.clientX - box.left, event.clientY - box.top);
      return spot && { at: view.diff[0], ...spot };
    };
    attend(part.map.canvas, where, () => ({ at: view.diff[0], isHeat: true, count: derived.diff.R, says: () => `${part.diffSays.textContent}. ${saidAll()}` }));
  }

  function attend(canvas, where, about) {
    canvas.onpointermove = (event) => hover(where(event));
    canvas.onpointerleave = () => hover(null);
    canvas.onblur = () => hover(null);
    canvas.onclick = (event) => press(where(event));
    canvas.onkeydown = (event) => onKey(event, about());
  }

  // Panels of one layout scroll together.
  function follow(panel) {
    const { scrollTop, scrollLeft } = panel.box;
    for (const other of part.panels) {
      if (other === panel) continue;
      if (other.box.scrollTop !== scrollTop) other.box.scrollTop = scrollTop;
      if (other.box.scrollLeft !== scrollLeft) other.box.scrollLeft = scrollLeft;
    }
    if (view.as === "links") drawPanel(panel, part.panels.indexOf(panel), JSON.parse(panel.drawn), true);
  }

  const saidAll = () => part.panels.map((panel, i) => `${i + 1}, ${nameOf(set, i).name}: ${panel.says.textContent}`).join("; ");
  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  // Links: up and down along a column of tokens, left and right between the two. Heatmap: from cell to cell.
  function onKey(event, { at, isHeat, count, says }) {
    if (!count || event.altKey || event.ctrlKey || event.metaKey) return;
    const held = focusIn(set.panels[at].reading, focus || pinned());
    const own = held && !held.missing ? { at, row: held.row, col: held.col } : { at, row: 0, col: isHeat ? 0 : null };
    if (event.key === "Enter" || event.key === " ") { press(own); event.preventDefault(); return; }
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const inside = (i) => Math.max(0, Math.min(count - 1, i));
    if (isHeat) focus = { at, row: inside((own.row ?? 0) + step[0]), col: inside((own.col ?? 0) + step[1]) };
    else if (step[1]) focus = step[1] > 0 ? { at, row: null, col: own.row ?? own.col } : { at, row: own.row ?? own.col, col: null };
    else focus = own.row !== null ? { at, row: inside(own.row + step[0]), col: null } : { at, row: null, col: inside(own.col + step[0]) };
    refresh();
    part.said.textContent = says();
    if (!isHeat) reveal(part.panels[at], focus.row ?? focus.col);
  }

  function reveal({ box, layout }, unit) {
    const y = unit * layout.rowHeight;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + 40 > box.scrollTop + box.clientHeight) box.scrollTop = y + 40 - box.clientHeight;
  }

  function onEscape(event) {
    if (event.key !== "Escape" || !set || event.composedPath()[0].matches?.("textarea, input[type=text]")) return;
    focus = null;
    if (view.pin) change({ pin: null }); else refresh();
  }

  const onHistory = () => {
    if (!set) return;
    view = parseTogether(new URLSearchParams(locate()), set);
    focus = null;
    render();
  };
  let resizing = 0;
  const onResize = () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(render); };

  function start() {
    listenToDifference();
    document.addEventListener("keydown", onEscape);
    window.addEventListener("popstate", onHistory);
    window.addEventListener("resize", onResize);
  }

  function stop() {
    clearTimeout(tell);
    cancelAnimationFrame(frame);
    document.removeEventListener("keydown", onEscape);
    window.removeEventListener("popstate", onHistory);
    window.removeEventListener("resize", onResize);
  }

  start();
  return { show, stop };
}

// Streamlit calls this on the same page elements at every change of the data.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".mha-compare");
  root.send = setTriggerValue;
  try {
    root.app ??= compare(root, (name, value) => post(root.send, name, value));
    root.app.show(data);
  } catch (error) {
    console.error(error);
    root.app = null;
    root.replaceChildren(make("p", { role: "alert" }, "This comparison failed. Reload the page without the part of its address after “&”."));
  }
  return () => { root.app?.stop(); root.app = null; };
}
