// The explorer's page elements. What a person does is told to `on`: {change, ask, more, compare, table}.
import { linkRule } from "./geometry.js";
import { make } from "../dom.js";

const UNITS = [
  ["words", "words", "Attention to a word is the sum over its pieces, from a word the mean"],
  ["pieces", "pieces", "Exactly the tokens that the model reads"],
];
const SPECIALS = [
  ["keep", "shown", "Every weight is shown"],
  ["hide", "hidden", "Special tokens are left out, nothing is rescaled"],
  ["rescale", "hidden, rescaled", "Special tokens are left out and each row is rescaled to sum to 1"],
];
const LINKS = [["all", "all"], ["top", "top k per word"], ["min", "weight ≥ t"], ["mass", "cumulative mass"]];
const FIRST_LINKS = { all: "all", top: "top3", min: "min0.10", mass: "mass0.70" };
const RANGES = { all: [0, 1, 1], top: [1, 10, 1], min: [0.02, 0.9, 0.01], mass: [0.1, 0.99, 0.01] };
const SCALES = [["fixed", "0 to 1"], ["head", "per head"], ["row", "per row"], ["log", "logarithmic"]];
const SIDES = [["all", "all"], ["aa", "A → A"], ["ab", "A → B"], ["ba", "B → A"], ["bb", "B → B"]];

export function page(on) {
  const p = {};
  const overview = make("section", { class: "overview" }, ...overviewOf(p, on));
  const one = make("section", { class: "one" }, ...headOf(p, on));
  p.said = make("p", { class: "said", "aria-live": "polite" });
  p.all = make("div", { class: "explorer" }, overview, one, p.said);
  return p;
}

function overviewOf(p, on) {
  p.grid = surface("All heads. Arrow keys move from head to head, Enter opens one, c sets one aside to compare.");
  p.marks = make("div", { class: "marks" });
  p.gridBox = make("div", { class: "grid" }, make("div", { class: "sheet" }, p.grid, p.marks));
  p.count = make("span", { class: "soft" });
  p.previewName = make("p", { class: "name" });
  p.numbers = make("dl");
  const preview = make("div", { class: "preview" }, p.previewName, p.numbers);
  return [make("header", {}, make("h2", {}, "Every head"), p.count), p.gridBox, preview, askOf(p, on)];
}

function askOf(p, on) {
  const [from, to] = [choice("from", [], on.ask), choice("to", [], on.ask)];
  [p.askQuery, p.askKey] = [from.select, to.select];
  p.askNote = make("p", { class: "soft" });
  p.ranks = make("ol");
  p.more = make("button", { type: "button", class: "quiet", hidden: true, onclick: on.more });
  p.ask = make("section", { class: "ask" }, make("h3", {}, "Which heads link two words?"),
    make("div", { class: "row" }, from.label, make("span", { class: "arrow" }, "→"), to.label), p.askNote, p.ranks, p.more);
  return p.ask;
}

function headOf(p, on) {
  p.title = make("h2");
  p.bar = make("div", { class: "heads", role: "group", "aria-label": "Heads of this layer in the link diagram" });
  p.readout = make("p", { class: "readout" });
  p.links = surface("Token links");
  p.tall = make("div", { class: "tall" }, p.links);
  p.scroller = make("div", { class: "scroller" }, p.tall);
  p.linksBox = make("div", { class: "links" }, ends("from (query)", "to (key)"), p.scroller);
  p.heat = surface("Heatmap");
  p.heatBox = make("div", { class: "heat" }, ends("rows: from (query)", "columns: to (key)"), make("div", { class: "sheet" }, p.heat));
  p.panels = make("div", { class: "panels" }, p.linksBox, p.heatBox);
  p.note = make("p", { class: "note soft" });
  p.tableBox = make("div", { class: "tablebox", tabIndex: 0, role: "region", "aria-label": "Weights as a table" });
  p.table = make("details", { ontoggle: on.table }, make("summary", {}, "These weights as a table"), p.tableBox);
  p.compare = make("button", { type: "button", class: "quiet", title: "Set this head aside for the Compare page (in the grid: key c)", onclick: on.compare }, "+ Compare");
  const switches = make("div", { class: "switches" }, make("span", { class: "soft" }, "Heads drawn"), p.bar);
  return [make("header", {}, p.title, p.compare, switches), controlsOf(p, on), p.readout, p.panels, p.note, p.table];
}

function controlsOf(p, on) {
  const links = choice("Links", LINKS, () => on.change({ links: FIRST_LINKS[p.linkMode.value] }));
  const scale = choice("Colour", SCALES, () => on.change({ scale: p.scale.value }));
  const side = choice("Pair", SIDES, () => on.change({ side: p.side.value }));
  [p.linkMode, p.scale, p.side, p.sideBox] = [links.select, scale.select, side.select, side.label];
  p.linkNumber = make("output");
  p.linkValue = make("input", { type: "range", "aria-label": "Value for the choice of links" });
  p.linkValue.oninput = () => {
    const [mode, value] = [p.linkMode.value, +p.linkValue.value];
    on.change({ links: mode + (mode === "top" ? value : value.toFixed(2)) }, 300);
  };
  p.radios = [...segments("unit", UNITS, on), ...segments("special", SPECIALS, on)];
  const [unit, special] = [p.radios[0], p.radios[UNITS.length]].map((input) => input.closest(".segments"));
  return make("div", { class: "controls" }, legend("Tokens", unit), legend("Special tokens", special),
    make("div", { class: "choice" }, links.label, p.linkValue, p.linkNumber), scale.label, side.label);
}

const legend = (text, inside) => make("fieldset", {}, make("legend", {}, text), inside);

// Radio buttons side by side; returns the inputs, which lie in one `.segments`.
function segments(name, options, on) {
  const inputs = options.map(([value]) => make("input", { type: "radio", name, value, onchange: () => on.change({ [name]: value }) }));
  make("div", { class: "segments" }, ...options.map(([, text, title], i) => make("label", { title }, inputs[i], make("span", {}, text))));
  return inputs;
}

function choice(text, options, onchange) {
  const select = make("select", { onchange }, ...options.map(([value, shown]) => make("option", { value, textContent: shown })));
  return { select, label: make("label", { class: "choice" }, make("span", {}, text), select) };
}

const surface = (label) => make("canvas", { tabIndex: 0, role: "application", "aria-label": label });
const ends = (left, right) => make("div", { class: "ends soft" }, make("span", {}, left), make("span", {}, right));

// Set the controls to what a view says.
export function setControls(p, view, pair) {
  for (const input of p.radios) input.checked = view[input.name] === input.value;
  const { mode, value } = linkRule(view.links);
  p.linkMode.value = mode;
  p.linkValue.hidden = p.linkNumber.hidden = mode === "all";
  [p.linkValue.min, p.linkValue.max, p.linkValue.step] = RANGES[mode];
  p.linkValue.value = value;
  p.linkNumber.textContent = mode === "top" ? `${value}` : value.toFixed(2);
  p.scale.value = view.scale;
  p.side.value = view.side;
  p.sideBox.hidden = !pair;
}
