// The settings of a drawing: the choices and their page elements, the same in every component.
import { closedByEscape, make } from "./dom.js";
import { linkRule } from "./geometry.js";
/** @import { Children } from "./dom.js" */
/** @import { Setting, Settings } from "./view.js" */

/** @typedef {(fields: Record<string, any>, delay?: number) => void} Change */

/**
 * A setting of the view on the page.
 *
 * @typedef {{ box: HTMLElement, set: (value: string) => void }} Control
 */

/**
 * What a component's page elements tell what a person does to, by name.
 *
 * @typedef {Record<string, (...values: any[]) => void>} Actions
 */

export const UNITS = [
  ["words", "words", "Attention to a word is the sum over its pieces, from a word the mean"],
  ["pieces", "pieces", "Exactly the tokens that the model reads"],
];
export const SPECIALS = [
  ["keep", "shown", "Every weight is shown"],
  ["hide", "hidden", "Special tokens are left out, nothing is rescaled"],
  ["rescale", "hidden, rescaled", "Special tokens are left out and each row is rescaled to sum to 1"],
];
const LINKS = [
  ["all", "all"],
  ["top", "top k per word"],
  ["min", "weight ≥ t"],
  ["mass", "cumulative mass"],
];
/** @type {Record<string, string>} */
const FIRST_LINKS = { all: "all", top: "top3", min: "min0.10", mass: "mass0.70" };
/** @type {Record<string, number[]>} */
const RANGES = { all: [0, 1, 1], top: [1, 10, 1], min: [0.02, 0.9, 0.01], mass: [0.1, 0.99, 0.01] };

// Radio buttons side by side with a caption; `change` is called with {name: value}.
/** @type {(caption: string, name: string, options: readonly string[][], change: Change) => Control} */
export function segments(caption, name, options, change) {
  const inputs = options.map(([value]) =>
    make("input", { type: "radio", name, value, onchange: () => change({ [name]: value }) }),
  );
  const labels = options.map(([, text, title = ""], i) => make("label", { title }, inputs[i], make("span", {}, text)));
  const box = make("fieldset", {}, make("legend", {}, caption), make("div", { class: "segments" }, ...labels));
  return {
    box,
    set: (value) =>
      inputs.forEach((input) => {
        input.checked = input.value === value;
      }),
  };
}

// The buttons of a bar as one tab stop, at `chosen`; arrow keys move inside.
/** @type {(bar: HTMLElement, chosen?: Element | null) => void} */
export function stopAt(bar, chosen = bar.querySelector("button")) {
  for (const button of bar.querySelectorAll("button")) button.tabIndex = button === chosen ? 0 : -1;
}

/** @type {(bar: HTMLElement) => void} */
export function roving(bar) {
  stopAt(bar);
  bar.addEventListener("focusin", ({ target }) => stopAt(bar, /** @type {Element} */ (target)));
  bar.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...bar.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    buttons[(at + step + buttons.length) % buttons.length].focus();
  };
}

// A menu with a caption; `choose` is called with the value.
/**
 * @type {(caption: string, options: readonly string[][], choose: (value: string) => void) => Control & { select:
 *   HTMLSelectElement }}
 */
export function choice(caption, options, choose) {
  const entries = options.map(([value, textContent]) => make("option", { value, textContent }));
  const select = make("select", { onchange: () => choose(select.value) }, ...entries);
  return {
    select,
    box: make("label", { class: "choice" }, make("span", {}, caption), select),
    set: (value) => {
      select.value = value;
    },
  };
}

// Menus in `box` are as wide as their chosen options; returns what makes them so again. Browsers that support
// `field-sizing` do it by themselves.
/** @type {(box: HTMLElement) => () => void} */
export function fitted(box) {
  if (CSS.supports("field-sizing", "content")) return () => {};
  const fitAll = () => box.querySelectorAll("select").forEach(fit);
  new ResizeObserver(() => requestAnimationFrame(fitAll)).observe(box); // what is folded away has no widths
  box.addEventListener("change", fitAll);
  return fitAll;
}

/** @type {(select: HTMLSelectElement) => void} */
function fit(select) {
  if (!select.offsetWidth) return;
  const alone = /** @type {HTMLSelectElement} */ (select.cloneNode());
  Object.assign(alone.style, { position: "absolute", visibility: "hidden", width: "auto" });
  alone.append(new Option(select.selectedOptions[0]?.text));
  select.after(alone);
  select.style.width = `${Math.ceil(alone.getBoundingClientRect().width)}px`;
  alone.remove();
}

// Which links are drawn: a rule, and its number if it has one.
/** @type {(change: Change) => Control} */
export function linksChoice(change) {
  const mode = choice("Links", LINKS, (rule) => change({ links: FIRST_LINKS[rule] }));
  const shown = make("output");
  const slider = make("input", { type: "range", "aria-label": "Value for the choice of links" });
  slider.oninput = () => {
    const [rule, value] = [mode.select.value, +slider.value];
    change({ links: rule + (rule === "top" ? value : value.toFixed(2)) }, 300);
  };
  /** @type {(links: string) => void} */
  const set = (links) => {
    const rule = linkRule(links);
    mode.set(rule.mode);
    slider.hidden = shown.hidden = rule.mode === "all";
    [slider.min, slider.max, slider.step] = RANGES[rule.mode].map(String);
    slider.value = String(rule.value);
    shown.textContent = rule.mode === "top" ? `${rule.value}` : rule.value.toFixed(2);
  };
  return { box: make("div", { class: "choice" }, mode.box, slider, shown), set };
}

// The menu *Drawing*, below its label.
/** @type {(label: HTMLElement, ...settings: Children) => HTMLDetailsElement} */
export function drawingMenu(label, ...settings) {
  const menu = make("details", { class: "drawing" }, label, ...settings);
  closedByEscape(
    label,
    menu,
    () => menu.open,
    () => (menu.open = false),
  );
  return menu;
}

// The label of the menu *Drawing*: which settings of a view differ from the `usual` ones, and what `more` is drawn.
/**
 * @type {(view: Settings, usual: Record<string, string>, options: Record<string, readonly string[][]>, more?:
 *   string[]) => string}
 */
export function differing(view, usual, options, more = []) {
  const { mode, value } = linkRule(view.links);
  /** @type {Record<string, string>} */
  const rules = {
    top: `${value} links per word`,
    min: `links ≥ ${value}`,
    mass: `links for ${value}`,
    all: "all links",
  };
  /** @type {Record<string, readonly string[][]>} */
  const all = { special: SPECIALS, ...options };
  /** @type {(name: Setting) => string} */
  const chosen = (name) => all[name]?.find(([option]) => option === view[name])?.[1] ?? view[name] ?? "";
  /** @type {Record<Setting, string>} */
  const words = {
    as: chosen("as"),
    unit: chosen("unit"),
    special: `special tokens ${chosen("special")}`,
    links: rules[mode],
    scale: `colour ${chosen("scale")}`,
    shown: chosen("shown"),
    side: chosen("side"),
  };
  const names = /** @type {Setting[]} */ (Object.keys(words)).filter((name) => name in usual && name in view);
  const changed = names.filter((name) => view[name] !== usual[name]).map((name) => words[name]);
  return ["Drawing", [...changed, ...more].join(", ")].filter(Boolean).join(": ");
}

// The settings with which a view begins, if they are not the `usual` ones: one line says what is left out, with a
// button to show all, and one back. Hidden as soon as anything else is chosen.
/** @type {(line: HTMLElement, first: Record<string, string>, usual: Record<string, string>, view: Settings,
 *   change: (settings: Record<string, string>) => void, words: string[]) => void} */
export function begin(line, first, usual, view, change, [says, back]) {
  const names = Object.keys(first).filter((name) => first[name] !== usual[name]);
  /** @type {(settings: Record<string, string>) => boolean} */
  const isAs = (settings) => names.every((name) => view[/** @type {Setting} */ (name)] === settings[name]);
  /** @type {(settings: Record<string, string>, words: string) => HTMLElement} */
  const turn = (settings, words) => {
    const onclick = () => change(Object.fromEntries(names.map((name) => [name, settings[name]])));
    return make("button", { type: "button", class: "quiet", onclick }, words);
  };
  line.hidden = !names.length || !(isAs(first) || isAs(usual));
  line.replaceChildren(
    ...(isAs(first)
      ? [says, turn(usual, "Show everything")]
      : ["Every weight of a long text is shown, in the links where one points at a word.", turn(first, back)]),
  );
}
