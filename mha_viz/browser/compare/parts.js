// The comparison's page elements. What the user does is reported to the functions in `on`.
import { SPECIALS, UNITS, begin, choice, differing, drawingMenu, linksChoice, segments } from "../controls.js";
import { make, typedText } from "../dom.js";
import { keysOf } from "../reading.js";
import { defaultsFor } from "../view.js";
import { canvasPair } from "./canvas_pair.js";
import { nameOf, readingOf, sideOf } from "./set.js";
import { START, areAlike, sameText, startOf } from "./together.js";
import { icon, toolbar } from "./tools.js";
/** @import { Actions } from "../controls.js" */
/** @import { Children, Parts } from "../dom.js" */
/** @import { Setting } from "../view.js" */
/** @import { CanvasPair } from "./canvas_pair.js" */
/** @import { Panels, Sides } from "./set.js" */
/** @import { PanelsView } from "./together.js" */

/**
 * @typedef {object} PanelPartFields
 * @property {HTMLElement} all
 * @property {HTMLElement} name
 * @property {HTMLElement} tools
 * @property {HTMLElement} says
 * @property {HTMLElement} note
 * @property {HTMLElement} [rename]
 * @property {string} drawn
 */
/** @typedef {CanvasPair & PanelPartFields} PanelPart */

const AS = [
  ["heatmap", "heatmap"],
  ["links", "links"],
];
const SCALES = [
  ["fixed", "0 to 1"],
  ["head", "0 to the largest shown"],
  ["log", "logarithmic"],
];
/** @type {(text: string) => HTMLElement} */
const quiet = (text) => make("span", { class: "soft" }, text);

/** @type {(on: Actions) => Parts & { panels: PanelPart[] }} */
export function page(on) {
  const p = /** @type {ReturnType<typeof page>} */ ({ panels: [] });
  p.sheet = make("div", { class: "sheet" });
  p.hint = make("p", { class: "hint soft" });
  p.announcement = make("p", { class: "said", "aria-live": "polite" });
  p.begun = make("p", { class: "begun", hidden: true });
  p.all = make(
    "div",
    { class: "compare" },
    controlsOf(p, on),
    p.begun,
    scaleOf(p),
    p.sheet,
    p.hint,
    differenceOf(p, on),
    tableOf(p, on),
    p.announcement,
  );
  return p;
}

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function controlsOf(p, on) {
  p.choices = {
    as: segments("Drawn as", "as", AS, on.change),
    unit: segments("Tokens", "unit", UNITS, on.change),
    special: segments("Special tokens", "special", SPECIALS, on.change),
    links: linksChoice(on.change),
    scale: choice("Colour scale", SCALES, (scale) => on.change({ scale })),
  };
  /** @type {(label: string) => HTMLSelectElement} */
  const pick = (label) =>
    make("select", {
      "aria-label": label,
      onchange: (/** @type {Event} */ event) => on.subtract(event.target === p.second),
    });
  [p.second, p.first] = [pick("The panel to subtract from"), pick("The panel that is subtracted")];
  p.subtract = make(
    "fieldset",
    { class: "subtract" },
    make("legend", {}, "Difference"),
    make("div", { class: "choice" }, p.second, make("span", { "aria-hidden": true }, "−"), p.first),
  );
  p.drawing = make("summary");
  p.controls = make("div", { class: "controls" }, ...Object.values(p.choices).map((c) => c.box), p.subtract);
  return drawingMenu(p.drawing, p.controls);
}

/** @type {() => HTMLElement} */
const bar = () => make("i", { class: "ramp", "aria-hidden": true });

/** @type {(p: Parts) => HTMLElement} */
function scaleOf(p) {
  [p.ramp, p.scaleText] = [bar(), make("span")];
  p.how = make(
    "span",
    { class: "how" },
    "Point at a word or a cell: every panel shows it. A click holds it, Escape lets go.",
  );
  p.scale = make("p", { class: "scale" }, p.ramp, p.scaleText, p.how);
  return p.scale;
}

/** @type {(p: Parts, set: Panels, view: PanelsView) => void} */
export function setControls(p, set, view) {
  for (const [name, choice_] of Object.entries(p.choices)) choice_.set(view[/** @type {Setting} */ (name)]);
  const usual = startOf(set);
  const links = view.as === "links" ? view.links : usual.links; // a heatmap has all
  p.drawing.textContent = differing({ ...view, links }, usual, { scale: SCALES });
  p.choices.links.box.hidden = view.as !== "links";
  p.subtract.hidden = set.panels.length < 2;
  const options = () => [
    make("option", { value: "", textContent: "none" }),
    ...set.panels.map((_, i) => make("option", { value: i, textContent: shortName(set, i) })),
  ];
  for (const [select, at] of [
    [p.second, 1],
    [p.first, 0],
  ]) {
    if (p.offered !== set.key) select.replaceChildren(...options());
    select.value = view.diff ? view.diff[at] : "";
  }
  p.offered = set.key;
}

// Long texts begin with only what is strongest: one line says so.
/** @type {(p: Parts, set: Panels, view: PanelsView, on: Actions) => void} */
export function setBegun(p, set, view, on) {
  const { special } = startOf({ readings: [], start: set.start }); // begins so with any text
  begin(p.begun, startOf(set), { ...defaultsFor(START, set.readings), special }, view, on.change, [
    "A long text: special tokens hidden, colours up to the largest weight shown, three links of each word.",
    "Show the strongest only",
  ]);
}

const LETTERS = 24; // characters of a name in a menu

/** @type {(set: Panels, panel: number) => string} */
export function shortName(set, panel) {
  const letters = Array.from(set.panels[panel].name);
  const start = letters
    .slice(0, LETTERS - 1)
    .join("")
    .trimEnd();
  const name = letters.length > LETTERS ? `${start}…` : letters.join("");
  return [`${panel + 1} `, nameOf(set, panel).name, name].filter(Boolean).join(" ");
}

// ---- One panel ----------------------------------------------------------------------------------------------

/** @type {(set: Panels, index: number, on: Actions) => PanelPart} */
export function panelOf(set, index, on) {
  const { name, paper } = nameOf(set, index);
  const p = /** @type {PanelPart} */ (canvasPair());
  const number = make("span", { class: "number", "aria-hidden": true }, String(index + 1));
  p.name = make("span", { class: "named" }, ...nameParts(p, set, index, on));
  p.tools = toolbar(set, index, on);
  const title = make("h2", {}, number, make("code", {}, name), quiet(` (${paper})`));
  p.says = make("p", { class: "says" });
  p.note = make("p", { class: "note soft" });
  const whose = whoseOf(set, index);
  p.all = make(
    "article",
    {
      class: "panel",
      "aria-label": `Panel ${index + 1}: ${name}${set.panels[index].name ? `, ${set.panels[index].name}` : ""}`,
    },
    make("header", {}, make("div", { class: "title" }, title, p.name), p.tools),
    whose ?? make("p", { class: "whose" }),
    p.box,
    p.says,
    p.note,
  );
  return p;
}

// The user's name for a panel, with a field to change it.
/** @type {(p: Parts, set: Panels, index: number, on: Actions) => Children} */
function nameParts(p, set, index, on) {
  const { name } = set.panels[index];
  const text = typedText(name);
  if (!set.editable) return name ? [text] : [];
  const rename = make(
    "button",
    {
      type: "button",
      class: "rename",
      title: name ? `${name}. Rename` : "Rename",
      "aria-label": `Name of panel ${index + 1}${name ? `: ${name}` : ""}. Rename`,
    },
    ...(name ? [text] : [quiet("Add a name"), icon("rename")]),
  ); // a name takes all the available room
  rename.onclick = () => askName(p, rename, name, (value) => on.edit({ action: "rename", index, name: value }));
  p.rename = rename;
  return [rename];
}

/** @type {(p: Parts, button: HTMLElement, name: string, done: (name: string) => void) => void} */
function askName(p, button, name, done) {
  const field = make("input", { type: "text", value: name, maxLength: 60, "aria-label": "Name of this panel" });
  let open = true;
  /** @type {(value: string | null) => void} */
  const close = (value) => {
    if (!open) return;
    open = false;
    field.replaceWith(button);
    if (value !== null && value.trim() !== name) done(value.trim());
  };
  field.onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    close(event.key === "Enter" ? field.value : null);
    button.focus();
    event.stopPropagation();
  };
  field.onblur = () => close(field.value);
  button.replaceWith(field);
  field.focus();
  field.select();
}

// The model, the sentence and the steps applied, if panels differ in them; words that other panels lack are
// highlighted.
/** @type {(set: Panels, index: number) => HTMLElement | null} */
function whoseOf(set, index) {
  const reading = readingOf(set, index);
  const others = set.readings.filter((other) => other !== reading);
  const model = others.some((other) => other.model !== reading.model || other.revision !== reading.revision);
  const isOtherText = others.some((other) => !sameText(other, reading) || !sameText(keysOf(other), keysOf(reading)));
  const done = others.some((other) => other.steps !== reading.steps);
  if (!model && !isOtherText && !done) return null;
  const isOneModel = others.every((other) => other.model === reading.model);
  const named = isOneModel ? `${reading.label} (${reading.revision || "no revision"})` : reading.label;
  const parts = model ? [make("span", { class: "model" }, typedText(named))] : [];
  const number = set.panels[index].reading;
  const to = reading.keys ? [" → ", ...sentenceOf(sideOf(set, "cols"), number)] : [];
  if (isOtherText) parts.push(make("span", { class: "sentence" }, ...sentenceOf(set, number), ...to));
  if (done) parts.push(make("span", { class: "steps" }, typedText(reading.steps || "as read")));
  return make("p", { class: "whose" }, ...parts);
}

const ROOM = 90; // visible characters of a sentence on a narrow panel
const BEFORE = 40; // of these, those before the first different word of a longer sentence

/** @type {(set: Sides, number: number) => Children} */
function sentenceOf(set, number) {
  const reading = set.readings[number];
  const alike = set.readings.flatMap((other, j) =>
    j !== number && !sameText(other, reading) && areAlike(set, number, j) ? [j] : [],
  );
  /** @type {(word: number) => boolean} */
  const differs = (word) => alike.some((j) => (set.aligned[number][j][word] ?? null) === null);
  const unlike = reading.groups.flatMap((tokens, word) => {
    const spans = tokens.flatMap((t) => reading.spans[t] ?? []); // where each piece begins and ends
    return spans.length && differs(word) ? [[reading.segments[tokens[0]], spans[0], spans[spans.length - 1]]] : [];
  });
  const first = unlike.length ? unlike[0] : [0, 0, 0];
  const whole = [reading.text, reading.pair].map((text) => Array.from(text)); // spans count code points
  const sentences = reading.pair ? [0, 1] : [0];
  const start = first[0] === 0 && first[2] > ROOM ? whole[0].indexOf(" ", first[1] - BEFORE) + 1 : 0;
  return sentences.flatMap((segment) => {
    const spans = unlike.filter((span) => span[0] === segment);
    return [segment ? " · " : start ? "…" : "", ...marked(whole[segment], spans, segment ? 0 : start)];
  });
}

/** @type {(letters: string[], spans: number[][], start: number) => Children} */
function marked(letters, spans, start) {
  const parts = [];
  let at = start;
  for (const [, from, to] of spans) {
    parts.push(typedText(letters.slice(at, from).join("")), make("b", {}, typedText(letters.slice(from, to).join(""))));
    at = to;
  }
  return [...parts, typedText(letters.slice(at, at + 600).join(""))];
}

// ---- The difference, and the table --------------------------------------------------------------------------

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function differenceOf(p, on) {
  p.diffTitle = make("h2");
  p.close = make("button", { type: "button", class: "quiet", onclick: () => on.change({ diff: null }) }, "Close");
  p.diffText = make("p", { class: "meaning" });
  p.map = canvasPair();
  [p.diffLess, p.diffRamp, p.diffMore] = [make("span"), bar(), make("span")];
  p.diffSays = make("p", { class: "says" });
  p.diffMissing = make("p", { class: "soft" });
  p.list = make("ol");
  p.diffBody = make(
    "div",
    { class: "two" },
    make(
      "div",
      { class: "map" },
      make("p", { class: "scale" }, p.diffLess, p.diffRamp, p.diffMore),
      p.map.box,
      p.diffSays,
      p.diffMissing,
    ),
    make("div", { class: "most" }, make("h3", {}, "Largest differences"), p.list),
  );
  p.diff = make(
    "section",
    { class: "difference", "aria-label": "Difference", hidden: true },
    make("header", {}, p.diffTitle, p.close),
    p.diffText,
    p.diffBody,
  );
  return p.diff;
}

/** @type {(p: Parts, on: Actions) => HTMLElement} */
function tableOf(p, on) {
  p.tableOf = make("select", { "aria-label": "Which weights", onchange: on.table });
  p.tableBox = make("div", { class: "tablebox", tabIndex: 0, role: "region", "aria-label": "Weights as a table" });
  p.table = make("details", { ontoggle: on.table }, make("summary", {}, "Weights as a table"), p.tableOf, p.tableBox);
  return p.table;
}

// One of the largest differences: "it → animal 0.677 → 0.051 −0.626", with a bar for its size and sign.
/** @type {(from: string, to: string, numbers: string[], share: number, on: object) => HTMLElement} */
export function entry(from, to, numbers, share, on) {
  const strip = make("i", { class: share < 0 ? "less" : "more", "aria-hidden": true });
  strip.style.setProperty("--share", `${Math.abs(share) * 50}%`);
  const [first, second, difference] = numbers;
  const button = make(
    "button",
    { type: "button", ...on },
    make("span", { class: "link" }, typedText(from), " → ", typedText(to)),
    make("span", { class: "soft" }, `${first} → ${second}`),
    strip,
    make("span", { class: "value" }, difference),
  );
  return make("li", {}, button);
}

/** @type {(caption: string, rows: string[][]) => HTMLElement} */
export function differenceTable(caption, rows) {
  /** @type {(tag: "th" | "td", cells: string[]) => HTMLElement} */
  const line = (tag, cells) =>
    make("tr", {}, ...cells.map((cell) => make(tag, tag === "th" ? { scope: "col" } : {}, typedText(cell))));
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, line("th", ["from", "to", "first", "second", "difference"])),
    make("tbody", {}, ...rows.map((row) => line("td", row))),
  );
}
