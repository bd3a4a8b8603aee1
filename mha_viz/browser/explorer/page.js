// The explorer's page elements. What the user does is reported to the functions in `on`: {change, ask, more, compare,
// table}.
import { SPECIALS, UNITS, choice, linksChoice, segments } from "../controls.js";
import { make } from "../dom.js";
import { QUANTITIES } from "../view.js";

const SCALES = [
  ["fixed", "0 to 1"],
  ["head", "per head"],
  ["row", "per row"],
  ["log", "logarithmic"],
];
const SIDES = [
  ["all", "all"],
  ["aa", "A → A"],
  ["ab", "A → B"],
  ["ba", "B → A"],
  ["bb", "B → B"],
];

/** @type {(on: Actions) => Parts} */
export function page(on) {
  const p = /** @type {Parts} */ ({});
  const overview = make("section", { class: "overview" }, ...overviewOf(p, on));
  p.one = make("section", { class: "one" }, ...headOf(p, on));
  p.announcement = make("p", { class: "said", "aria-live": "polite" });
  p.all = make("div", { class: "explorer" }, overview, p.one, p.announcement);
  return p;
}

/** @type {(p: Parts, on: Actions) => HTMLElement[]} */
function overviewOf(p, on) {
  p.grid = surface("All heads. Arrow keys move from head to head, Enter opens one, c adds one to the compared heads.");
  p.marks = make("div", { class: "marks" });
  p.hovered = make("b", { class: "hovered", hidden: true });
  p.gridBox = make("div", { class: "grid", part: "grid" }, make("div", { class: "sheet" }, p.grid, p.marks));
  p.count = make("span", { class: "soft" });
  p.previewName = make("p", { class: "name" });
  p.numbers = make("dl");
  p.kinds = make("div", { class: "kinds", role: "group", "aria-label": "Heads with a role" });
  p.rolesHere = make("div", { class: "chips" });
  p.rolesHere.dataset.name = "role_here";
  const preview = make("div", { class: "preview" }, p.previewName, p.rolesHere, p.numbers);
  const header = make("header", {}, make("h2", {}, "Every head"), p.count, ...rolesOf(p, on));
  return [header, p.kinds, p.gridBox, preview, askOf(p, on)];
}

// The controls for roles, which are shown on request.
/** @type {(p: Parts, on: Actions) => HTMLElement[]} */
function rolesOf(p, on) {
  const title = "What each head does over annotated corpora, as marks in the grid";
  p.rolesShown = make("input", { type: "checkbox", onchange: on.roles });
  p.rolesBox = make("label", { class: "known", title }, p.rolesShown, "Known roles");
  p.measure = make("button", { type: "button", class: "quiet", onclick: on.measure }, "Measure them");
  p.unmeasured = make("span", { class: "known soft" }, "Roles not measured yet.", p.measure);
  return [p.rolesBox, p.unmeasured];
}

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function askOf(p, on) {
  const [from, to] = [choice("from", [], on.ask), choice("to", [], on.ask)];
  [p.askQuery, p.askKey] = [from.select, to.select];
  p.askNote = make("p", { class: "soft" });
  p.ranks = make("ol");
  p.more = make("button", { type: "button", class: "quiet", hidden: true, onclick: on.more });
  p.ask = make(
    "section",
    { class: "ask" },
    make("h3", {}, "Which heads link two words?"),
    make("div", { class: "row" }, from.box, make("span", { class: "arrow" }, "→"), to.box),
    p.askNote,
    p.ranks,
    p.more,
  );
  return p.ask;
}

/** @type {(p: Parts, on: Actions) => HTMLElement[]} */
function headOf(p, on) {
  const top = titleOf(p, on);
  const controls = controlsOf(p, on);
  drawingsOf(p);
  p.roles = make("div", { class: "chips" });
  p.roles.dataset.name = "role_open";
  p.readout = make("p", { class: "readout" });
  p.begun = make("p", { class: "begun", hidden: true });
  p.note = make("p", { class: "note soft" });
  p.tableBox = make("div", { class: "tablebox", tabIndex: 0, role: "region", "aria-label": "Weights as a table" });
  p.table = make("details", { ontoggle: on.table }, make("summary", {}, "These weights as a table"), p.tableBox);
  return [top, p.roles, controls, p.begun, p.readout, p.panels, p.note, p.table];
}

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function titleOf(p, on) {
  p.title = make("h2");
  p.bar = make("div", { class: "heads", role: "group", "aria-label": "Heads of this layer in the link diagram" });
  const title = "Add this head to the compared heads (in the grid: key c)";
  p.compare = make("button", { type: "button", class: "quiet", title, onclick: on.compare }, "+ Compare");
  const drawn = make("span", { class: "soft" }, "Heads of this layer in the drawing");
  const switches = make("div", { class: "switches" }, drawn, p.bar);
  return make("header", {}, p.title, p.compare, switches);
}

/** @type {(p: Parts) => void} */
function drawingsOf(p) {
  p.links = surface("Token links");
  p.tall = make("div", { class: "tall" }, p.links);
  p.scroller = make("div", { class: "scroller" }, p.tall);
  p.linksEnds = ends("from (query)", "to (key)");
  p.shownRows = make("span");
  p.linksEnds.firstChild.after(p.shownRows);
  p.linksBox = make("div", { class: "links" }, p.linksEnds, p.scroller);
  p.heat = surface("Heatmap");
  const sheet = make("div", { class: "sheet" }, p.heat);
  p.heatBox = make("div", { class: "heat" }, ends("rows: from (query)", "columns: to (key)"), sheet);
  p.panels = make("div", { class: "panels", part: "drawings" }, p.linksBox, p.heatBox);
}

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function controlsOf(p, on) {
  const set = {
    unit: segments("Tokens", "unit", UNITS, on.change),
    special: segments("Special tokens", "special", SPECIALS, on.change),
    links: linksChoice(on.change),
  };
  const scale = choice("Colour", SCALES, () => on.change({ scale: p.scale.value }));
  const side = choice("Pair", SIDES, () => on.change({ side: p.side.value }));
  const shown = choice("Shown", QUANTITIES, () => on.change({ shown: p.shown.value }));
  [p.set, p.scale, p.side, p.shown] = [set, scale.select, side.select, shown.select];
  [p.sideBox, p.shownBox] = [side.box, shown.box];
  const boxes = [...Object.values(set), scale, shown, side].map((control) => control.box);
  return make("div", { class: "controls" }, ...boxes);
}

/** @type {(label: string) => HTMLCanvasElement} */
const surface = (label) => make("canvas", { tabIndex: 0, role: "application", "aria-label": label });
/** @type {(left: string, right: string) => HTMLElement} */
const ends = (left, right) => make("div", { class: "ends soft" }, make("span", {}, left), make("span", {}, right));

// Set the controls to the values of a view.
/** @type {(p: Parts, view: ReadingView, pair: boolean) => void} */
export function setControls(p, view, pair) {
  for (const [name, control] of Object.entries(p.set)) control.set(view[/** @type {Setting} */ (name)]);
  p.scale.value = view.scale;
  p.side.value = view.side;
  p.shown.value = view.shown;
  p.sideBox.hidden = !pair;
}
