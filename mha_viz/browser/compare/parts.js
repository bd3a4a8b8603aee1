// Make the page elements of the comparison. `actions` has the callbacks for user actions.
import { showInitialSettings, makeControls, describeChanges, makeDrawingMenu, enableRoving } from "../controls.js";
import { make, makeSvg, isolateText } from "../dom.js";
import { drawHeatmap, drawHeatmapFocus } from "../heatmap.js";
import { drawLinks } from "../links.js";
import { getKeys } from "../reading.js";
import { getDefaults } from "../view.js";
import { areAlike, namePanel, getReading, isSameText, getSide, getInitialSettings } from "./together.js";
/** @import { Actions } from "../controls.js" */
/** @import { Children, Parts } from "../dom.js" */
/** @import { Unit } from "../geometry.js" */
/** @import { Span } from "../layouts.js" */
/** @import { Look } from "../stage.js" */
/** @import { Setting, Settings } from "../view.js" */
/** @import { Edit } from "./comparison.js" */
/** @import { Panels, PanelsView, Sides } from "./together.js" */

/**
 * @typedef {object} PanelElementFields
 * @property {HTMLElement} all
 * @property {HTMLElement} name
 * @property {HTMLElement} tools
 * @property {HTMLElement} readout
 * @property {HTMLElement} note
 * @property {HTMLElement} [rename]
 * @property {HTMLElement} [pill]
 * @property {string} drawnKey identifies the drawn spot
 */
/** @typedef {CanvasPair & PanelElementFields} PanelElements */

/** @type {(actions: Actions) => Parts & { panels: PanelElements[] }} */
export function makePage(actions) {
  const p = /** @type {ReturnType<typeof makePage>} */ ({ panels: [] });
  p.sheet = make("div", { class: "sheet" });
  p.hint = make("p", { class: "hint soft" });
  p.announcement = make("p", { class: "said", "aria-live": "polite" });
  p.longTextNote = make("p", { class: "begun", hidden: true });
  p.all = make(
    "div",
    { class: "compare" },
    make("div", { class: "top" }, makeScale(p), makeSheetControls(p, actions)),
    p.longTextNote,
    p.sheet,
    p.hint,
    makeDifference(p, actions),
    makeTableBox(p, actions),
    p.announcement,
  );
  return p;
}

/** @type {(p: Parts, actions: Actions) => HTMLElement} */
function makeSheetControls(p, actions) {
  p.choices = makeControls("compare", actions.change);
  p.drawingMenuLabel = make("summary");
  p.controls = make("div", { class: "controls" }, ...Object.values(p.choices).map((c) => c.box));
  return makeDrawingMenu(p.drawingMenuLabel, p.controls);
}

/** @type {() => HTMLElement} */
const makeRamp = () => make("i", { class: "ramp", "aria-hidden": true });

/** @type {(p: Parts) => HTMLElement} */
function makeScale(p) {
  [p.ramp, p.scaleText] = [makeRamp(), make("span")];
  p.instructions = make("span", { class: "how" }, "Hover over a word or cell to see it in all panels; click to pin.");
  p.scale = make("p", { class: "scale" }, p.ramp, p.scaleText, p.instructions);
  return p.scale;
}

/** @type {(p: Parts, panelSet: Panels, view: PanelsView) => void} */
export function setControls(p, panelSet, view) {
  for (const [name, control] of Object.entries(p.choices)) control.set(view[/** @type {Setting} */ (name)]);
  const defaults = getInitialSettings(panelSet);
  const links = view.as === "links" ? view.links : defaults.links; // a heatmap shows all links
  p.drawingMenuLabel.textContent = describeChanges({ ...view, links }, defaults, "compare");
  p.choices.links.box.hidden = view.as !== "links";
  for (const [select, index] of [
    [p.second, 1],
    [p.first, 0],
  ]) {
    const options = () => panelSet.panels.map((_, i) => make("option", { value: i, textContent: i + 1 }));
    if (p.menusKey !== panelSet.key) select.replaceChildren(...options());
    select.disabled = panelSet.panels.length < 3; // with two panels there is nothing to choose
    select.value = view.diff ? view.diff[index] : "";
  }
  p.menusKey = panelSet.key;
}

// Show a line that says that only the strongest links of a long text are shown.
/** @type {(p: Parts, panelSet: Panels, view: PanelsView, actions: Actions) => void} */
export function showLongTextNote(p, panelSet, view, actions) {
  const { special } = getInitialSettings({ readings: [], start: panelSet.start }); // the initial setting for any text
  showInitialSettings(
    p.longTextNote,
    getInitialSettings(panelSet),
    { ...getDefaults("compare", panelSet.readings), special },
    view,
    actions.change,
    [
      "Long text: special tokens hidden, three links per word, colours up to the largest weight shown.",
      "Show only the strongest",
    ],
  );
}

const MAX_NAME = 24; // characters of a name in a menu

/** @type {(panelSet: Panels, panel: number) => string} */
export function shortenName(panelSet, panel) {
  const letters = Array.from(panelSet.panels[panel].name);
  const start = letters
    .slice(0, MAX_NAME - 1)
    .join("")
    .trimEnd();
  const name = letters.length > MAX_NAME ? `${start}…` : letters.join("");
  return [`${panel + 1} `, namePanel(panelSet, panel).name, name].filter(Boolean).join(" ");
}

// ---- One panel ----------------------------------------------------------------------------------------------

/** @type {(panelSet: Panels, index: number, actions: Actions) => PanelElements} */
export function makePanel(panelSet, index, actions) {
  const { name, paper } = namePanel(panelSet, index);
  const userName = panelSet.panels[index].name;
  const p = /** @type {PanelElements} */ (makeCanvasPair());
  const number = make("span", { class: "number", "aria-hidden": true }, String(index + 1));
  p.name = make("span", { class: "named" }, ...makeNameParts(p, panelSet, index, actions));
  p.tools = makeToolbar(panelSet, index, actions);
  const title = make("h2", {}, number, make("code", {}, name), makeSoft(` (${paper})`));
  p.readout = make("p", { class: "says" });
  p.note = make("p", { class: "note soft" });
  const readingNote = makeReadingNote(panelSet, index);
  p.all = make(
    "article",
    { class: "panel", "aria-label": `Panel ${index + 1}: ${name}${userName ? `, ${userName}` : ""}` },
    make("header", {}, make("div", { class: "title" }, title, p.name), p.tools),
    readingNote ?? make("p", { class: "whose" }),
    p.box,
    p.readout,
    p.note,
  );
  if (panelSet.panels[index + 1]) p.all.append((p.pill = makePill(index, actions)));
  return p;
}

// Make the user's name for a panel, with a field to change it.
/** @type {(p: Parts, panelSet: Panels, index: number, actions: Actions) => Children} */
function makeNameParts(p, panelSet, index, actions) {
  const { name } = panelSet.panels[index];
  const text = isolateText(name);
  if (!panelSet.editable) return name ? [text] : [];
  const rename = make(
    "button",
    {
      type: "button",
      class: "rename",
      title: name ? `${name}. Rename` : "Rename",
      "aria-label": `Name of panel ${index + 1}${name ? `: ${name}` : ""}. Rename`,
    },
    ...(name ? [text] : [makeSoft("Add a name"), makeIcon("rename")]),
  ); // the name takes all the available room
  rename.onclick = () => askForName(p, rename, name, (value) => actions.edit({ action: "rename", index, name: value }));
  p.rename = rename;
  return [rename];
}

/** @type {(p: Parts, button: HTMLElement, name: string, onDone: (name: string) => void) => void} */
function askForName(p, button, name, onDone) {
  const field = make("input", { type: "text", value: name, maxLength: 60, "aria-label": "Name of this panel" });
  let open = true;
  /** @type {(value: string | null) => void} */
  const close = (value) => {
    if (!open) return;
    open = false;
    field.replaceWith(button);
    if (value !== null && value.trim() !== name) onDone(value.trim());
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

// Show the model, the sentence and the processing steps if panels differ in them. Words that other panels lack are
// highlighted.
/** @type {(panelSet: Panels, index: number) => HTMLElement | null} */
function makeReadingNote(panelSet, index) {
  const reading = getReading(panelSet, index);
  const others = panelSet.readings.filter((other) => other !== reading);
  const hasOtherModel = others.some((other) => other.model !== reading.model || other.revision !== reading.revision);
  const isOtherText = others.some(
    (other) => !isSameText(other, reading) || !isSameText(getKeys(other), getKeys(reading)),
  );
  const hasOtherSteps = others.some((other) => other.steps !== reading.steps);
  if (!hasOtherModel && !isOtherText && !hasOtherSteps) return null;
  const isOneModel = others.every((other) => other.model === reading.model);
  const modelName = isOneModel ? `${reading.label} (${reading.revision || "no revision"})` : reading.label;
  const parts = hasOtherModel ? [make("span", { class: "model" }, isolateText(modelName))] : [];
  const readingIndex = panelSet.panels[index].reading;
  const target = reading.keys ? [" → ", ...makeSentence(getSide(panelSet, "cols"), readingIndex)] : [];
  if (isOtherText) parts.push(make("span", { class: "sentence" }, ...makeSentence(panelSet, readingIndex), ...target));
  if (hasOtherSteps) parts.push(make("span", { class: "steps" }, isolateText(reading.steps || "as read")));
  return make("p", { class: "whose" }, ...parts);
}

const VISIBLE_LENGTH = 90; // characters of a sentence on a narrow panel
const CONTEXT = 40; // of these, characters before the first different word of a longer sentence

/** @type {(side: Sides, number: number) => Children} */
function makeSentence(side, number) {
  const reading = side.readings[number];
  const similar = side.readings.flatMap((other, j) =>
    j !== number && !isSameText(other, reading) && areAlike(side, number, j) ? [j] : [],
  );
  /** @type {(word: number) => boolean} */
  const isUnmatched = (word) => similar.some((j) => (side.aligned[number][j][word] ?? null) === null);
  const differingSpans = reading.groups.flatMap((tokens, word) => {
    const spans = tokens.flatMap((t) => reading.spans[t] ?? []); // where each token begins and ends
    return spans.length && isUnmatched(word) ? [[reading.segments[tokens[0]], spans[0], spans[spans.length - 1]]] : [];
  });
  const first = differingSpans.length ? differingSpans[0] : [0, 0, 0];
  const codePoints = [reading.text, reading.pair].map((text) => Array.from(text)); // spans count code points
  const sentences = reading.pair ? [0, 1] : [0];
  const start = first[0] === 0 && first[2] > VISIBLE_LENGTH ? codePoints[0].indexOf(" ", first[1] - CONTEXT) + 1 : 0;
  return sentences.flatMap((segment) => {
    const spans = differingSpans.filter((span) => span[0] === segment);
    return [segment ? " · " : start ? "…" : "", ...highlightSpans(codePoints[segment], spans, segment ? 0 : start)];
  });
}

/** @type {(letters: string[], spans: number[][], start: number) => Children} */
function highlightSpans(letters, spans, start) {
  const parts = [];
  let position = start;
  for (const [, from, to] of spans) {
    parts.push(
      isolateText(letters.slice(position, from).join("")),
      make("b", {}, isolateText(letters.slice(from, to).join(""))),
    );
    position = to;
  }
  return [...parts, isolateText(letters.slice(position, position + 600).join(""))];
}

// ---- The difference, and the table --------------------------------------------------------------------------

// Make the difference, which is shown among the panels. Return the list of largest differences for below the panels.
/** @type {(p: Parts, actions: Actions) => HTMLElement} */
function makeDifference(p, actions) {
  /** @type {(label: string) => HTMLSelectElement} */
  const makePanelMenu = (label) =>
    make("select", {
      "aria-label": label,
      onchange: (/** @type {Event} */ event) => actions.subtract(event.target === p.second),
    });
  [p.second, p.first] = [makePanelMenu("Panel to subtract from"), makePanelMenu("Subtracted panel")];
  const menus = make("span", { class: "which" }, p.second, make("span", { "aria-hidden": true }, "−"), p.first);
  p.diffTitle = make("h2");
  p.close = makeToolButton("remove", "Close", () => actions.change({ diff: null }));
  p.diffText = make("p", { class: "note soft meaning" });
  p.map = makeCanvasPair();
  [p.diffLess, p.diffRamp, p.diffMore] = [make("span"), makeRamp(), make("span")];
  p.diffScale = make("p", { class: "scale" }, p.diffLess, p.diffRamp, p.diffMore);
  p.diffReadout = make("p", { class: "says" });
  p.largestList = make("ol");
  p.largestSection = make("div", { class: "most" }, make("h3", {}, "Largest differences"), p.largestList);
  p.diff = make(
    "section",
    { class: "difference", "aria-label": "Difference" },
    make("header", {}, menus, make("div", { class: "title" }, p.diffTitle), make("div", { class: "tools" }, p.close)),
    p.diffScale,
    p.map.box,
    p.diffReadout,
    p.diffText,
  );
  return p.largestSection;
}

// Make the button between two panels. A click shows or hides their difference.
/** @type {(index: number, actions: Actions) => HTMLElement} */
function makePill(index, actions) {
  const label = `Difference of panels ${index + 1} and ${index + 2}`;
  const sign = make("span", { class: "sign", "aria-hidden": true }, "−");
  const pill = make("button", { type: "button", class: "pill", title: "Difference", "aria-label": label }, sign);
  pill.append(make("span", { class: "word", "aria-hidden": true }, "Difference"));
  pill.onclick = () => actions.difference(index);
  return pill;
}

/** @type {(p: Parts, actions: Actions) => HTMLElement} */
function makeTableBox(p, actions) {
  p.tableMenu = make("select", { "aria-label": "Weights to show", onchange: actions.table });
  p.tableBox = make("div", { class: "tablebox", tabIndex: 0, role: "region", "aria-label": "Weights as a table" });
  p.table = make(
    "details",
    { ontoggle: actions.table },
    make("summary", {}, "Weights as a table"),
    p.tableMenu,
    p.tableBox,
  );
  return p.table;
}

// ---- The buttons of a panel ---------------------------------------------------------------------------------

// The buttons that edit the compared heads form one tab stop.

/**
 * A button of a panel: its edit of the compared heads, if possible.
 *
 * @typedef {{ name: string, label: string, change?: Omit<Edit, "index"> }} Tool
 */

/** @type {Record<string, string>} */
const ICONS = {
  // strokes in a square of 16 × 16
  left: "M10 3 5 8l5 5",
  right: "m6 3 5 5-5 5",
  duplicate: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  remove: "m4 4 8 8M12 4l-8 8",
  open: "M9 3h4v4M13 3 7.5 8.5M6.5 4H3v9h9V9.5",
  pin: "M8 3v10M3 8h10",
  rename: "m3 13 .6-2.8L10.5 3.3l2.2 2.2-6.9 6.9z",
};

/** @type {(panelSet: Panels, index: number, actions: Actions) => HTMLElement} */
function makeToolbar(panelSet, index, actions) {
  const buttons = listTools(panelSet, index).map((tool) => makePanelButton(tool, index, actions));
  const box = make("div", { class: "tools", role: "toolbar", "aria-label": `Panel ${index + 1}` }, ...buttons);
  enableRoving(box);
  return box;
}

/** @type {(panelSet: Panels, index: number) => Tool[]} */
function listTools({ panels, editable }, index) {
  const open = { name: "open", label: "Open in Explore", change: { action: "open" } };
  if (!editable) return [open, { name: "pin", label: "Compare", change: { action: "pin" } }];
  /** @type {(to: number) => Tool["change"]} */
  const moveTo = (to) => (panels[to] ? { action: "move", to } : undefined);
  return [
    { name: "left", label: "Move left", change: moveTo(index - 1) },
    { name: "right", label: "Move right", change: moveTo(index + 1) },
    { name: "duplicate", label: "Duplicate", change: { action: "duplicate" } },
    open,
    { name: "remove", label: "Remove", change: { action: "remove" } },
  ];
}

/** @type {(tool: Tool, index: number, actions: Actions) => HTMLElement} */
function makePanelButton({ name, label, change }, index, actions) {
  const button = makeToolButton(
    name,
    label,
    change && (() => actions.edit({ ...change, index })),
    `: panel ${index + 1}`,
  );
  if (name === "pin") button.append(label);
  if (!change) button.setAttribute("aria-disabled", "true");
  return button;
}

/** @type {(name: string, label: string, onclick?: () => void, suffix?: string) => HTMLElement} */
function makeToolButton(name, label, onclick, suffix = "") {
  const button = make("button", { type: "button", title: label, "aria-label": label + suffix }, makeIcon(name));
  button.dataset.tool = name;
  if (onclick) button.onclick = onclick;
  return button;
}

/** @type {(name: string) => SVGElement} */
const makeIcon = (name) =>
  makeSvg(
    "svg",
    { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    makeSvg("path", { d: ICONS[name] }),
  );

// ---- Two canvases on top of each other ----------------------------------------------------------------------

// The lower canvas holds a drawing, the upper one its focus, which is redrawn more often.

/**
 * @typedef {{ canvas: HTMLCanvasElement, overlay: HTMLCanvasElement, sizer: HTMLElement, box: HTMLElement,
 *   layout?: any }} CanvasPair
 */

/** @type {() => CanvasPair} */
function makeCanvasPair() {
  const canvas = make("canvas", { tabIndex: 0, role: "application" });
  const overlay = make("canvas", { class: "over", "aria-hidden": true });
  const wrapper = make("div", { class: "tall" }, canvas, overlay);
  return { canvas, overlay, sizer: wrapper, box: make("div", { class: "box" }, wrapper) };
}

// Draw `scene`, which contains `heads` for links or `head` for a heatmap. Unless `all`, draw only the focus: over a
// heatmap, or in place of the links.
/** @type {(pair: CanvasPair, scene: any, focus: Span | null, all: boolean, look: Look) => void} */
export function drawCanvasPair(pair, scene, focus, all, look) {
  const isLinks = !!scene.heads;
  if (all && isLinks) {
    pair.layout = drawLinks(pair.canvas, scene, look, pair.box.scrollTop);
    pair.sizer.style.height = `${pair.layout.height}px`;
  } else if (all) {
    pair.layout = drawHeatmap(pair.canvas, scene, look);
    pair.sizer.style.height = "";
  }
  pair.overlay.hidden = !focus;
  pair.sizer.classList.toggle("replaced", isLinks && !!focus);
  if (!focus) return;
  if (isLinks) drawLinks(pair.overlay, { ...scene, focus }, look, pair.box.scrollTop);
  else drawHeatmapFocus(pair.overlay, { ...scene, focus }, look, pair.layout);
}

// ---- Sentences about the spot under the pointer -------------------------------------------------------------

/** @type {(text: string) => HTMLElement} */
export const makeBold = (text) => make("b", {}, isolateText(text));
/** @type {(text: string) => HTMLElement} */
export const makeAmount = (text) => make("span", { class: "value" }, text);
/** @type {(...children: Children) => HTMLElement} */
export const makeSoft = (...children) => make("span", { class: "soft" }, ...children);
/** @type {(...children: Children) => HTMLElement} */
export const makeLinkText = (...children) => make("span", { class: "link" }, ...children);

/** @type {(view: Settings, unit: Unit) => Children} */
export function describeMissing(view, unit) {
  const kind = unit.special ? "special token" : view.unit === "words" ? "word" : "token";
  const isHidden = unit.special && view.special !== "keep";
  return [makeSoft(`no ${kind} “`, isolateText(unit.text), `” here${isHidden ? ": hidden" : ""}`)];
}

// Join the sentences of all panels for screen readers.
/** @type {(panelSet: Panels, panels: PanelElements[]) => string} */
export const joinPanelTexts = (panelSet, panels) =>
  panels.map((panel, i) => `${i + 1}, ${namePanel(panelSet, i).name}: ${panel.readout.textContent}`).join("; ");
