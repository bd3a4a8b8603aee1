// The settings of a drawing and their controls, which all components share.
import { closeOnEscape, make } from "./dom.js";
import { findChoice, listChoices, listControls, describeValue, listOptions } from "./view.js";
/** @import { Children } from "./dom.js" */
/** @import { Choice, DrawingName, Setting, Settings } from "./view.js" */

/** @typedef {(fields: Record<string, any>, delay?: number) => void} Change */

/**
 * A view setting as shown on the page.
 *
 * @typedef {{ box: HTMLElement, set: (value: string) => void }} Control
 */

/**
 * The callbacks to which a component's page elements report user actions, by name.
 *
 * @typedef {Record<string, (...values: any[]) => void>} Actions
 */

// Make radio buttons side by side with a caption; `change` is called with {name: value}.
/** @type {(caption: string, name: string, options: readonly string[][], change: Change) => Control} */
function makeSegments(caption, name, options, change) {
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

// Make the buttons of a bar one tab stop, at `chosen`; arrow keys move inside.
/** @type {(bar: HTMLElement, chosen?: Element | null) => void} */
export function setTabStop(bar, chosen = bar.querySelector("button")) {
  for (const button of bar.querySelectorAll("button")) button.tabIndex = button === chosen ? 0 : -1;
}

/** @type {(bar: HTMLElement) => void} */
export function enableRoving(bar) {
  setTabStop(bar);
  bar.addEventListener("focusin", ({ target }) => setTabStop(bar, /** @type {Element} */ (target)));
  bar.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...bar.querySelectorAll("button")];
    const index = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    buttons[(index + step + buttons.length) % buttons.length].focus();
  };
}

// Make a menu with a caption; `choose` is called with the value.
/**
 * @type {(caption: string, options: readonly string[][], choose: (value: string) => void) => Control & { select:
 *   HTMLSelectElement }}
 */
export function makeMenu(caption, options, choose) {
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

// Make the menus in `box` as wide as their chosen options; return a function that does so again. Browsers that
// support `field-sizing` need no help.
/** @type {(box: HTMLElement) => () => void} */
export function keepMenusFitted(box) {
  if (CSS.supports("field-sizing", "content")) return () => {};
  const fitAll = () => box.querySelectorAll("select").forEach(fitSelect);
  new ResizeObserver(() => requestAnimationFrame(fitAll)).observe(box); // folded elements have no width
  box.addEventListener("change", fitAll);
  return fitAll;
}

/** @type {(select: HTMLSelectElement) => void} */
function fitSelect(select) {
  if (!select.offsetWidth) return;
  const clone = /** @type {HTMLSelectElement} */ (select.cloneNode());
  Object.assign(clone.style, { position: "absolute", visibility: "hidden", width: "auto" });
  clone.append(new Option(select.selectedOptions[0]?.text));
  select.after(clone);
  select.style.width = `${Math.ceil(clone.getBoundingClientRect().width)}px`;
  clone.remove();
}

// Make a menu of rules, with a slider for the number of a rule that has one.
/** @type {(caption: string, name: string, drawing: DrawingName, change: Change) => Control} */
function makeRuleChoice(caption, name, drawing, change) {
  const rules = Object.fromEntries(listChoices(name, drawing));
  /** @type {(rule: string) => Required<Pick<Choice, "first" | "range">>} */
  const getRange = (rule) => ({ first: rule, range: [0, 1, 1], ...rules[rule] });
  const ruleMenu = makeMenu(caption, listOptions(name, drawing), (rule) => change({ [name]: getRange(rule).first }));
  const output = make("output");
  const slider = make("input", { type: "range", "aria-label": `Value of ${caption.toLowerCase()}` });
  /** @type {(rule: string, value: number) => string} */
  const formatValue = (rule, value) => (getRange(rule).range[2] < 1 ? value.toFixed(2) : String(value));
  slider.oninput = () => {
    const rule = ruleMenu.select.value;
    change({ [name]: rule + formatValue(rule, +slider.value) }, 300);
  };
  /** @type {(value: string) => void} */
  const set = (value) => {
    const { value: rule, number } = findChoice(name, value) ?? { value, number: "" };
    ruleMenu.set(rule);
    slider.hidden = output.hidden = !number;
    [slider.min, slider.max, slider.step] = getRange(rule).range.map(String);
    slider.value = number || "0";
    output.textContent = number && formatValue(rule, +number);
  };
  return { box: make("div", { class: "choice" }, ruleMenu.box, slider, output), set };
}

// Make the controls for the settings of a drawing, by name.
/** @type {(drawing: DrawingName, change: Change) => Record<string, Control & { select?: HTMLSelectElement }>} */
export const makeControls = (drawing, change) =>
  Object.fromEntries(
    listControls(drawing).map(({ name, label, control }) => {
      if (control === "rule") return [name, makeRuleChoice(label, name, drawing, change)];
      const options = listOptions(name, drawing);
      if (control === "segments") return [name, makeSegments(label, name, options, change)];
      return [name, makeMenu(label, options, (value) => change({ [name]: value }))];
    }),
  );

// Make the menu *Drawing*, below its label.
/** @type {(label: HTMLElement, ...settings: Children) => HTMLDetailsElement} */
export function makeDrawingMenu(label, ...settings) {
  const menu = make("details", { class: "drawing" }, label, ...settings);
  closeOnEscape(
    label,
    menu,
    () => menu.open,
    () => (menu.open = false),
  );
  return menu;
}

// Label the menu *Drawing* with the settings that differ from the `defaults`, and the additional drawings `more`.
/** @type {(view: Settings, defaults: Record<string, string>, drawing: DrawingName, more?: string[]) => string} */
export function describeChanges(view, defaults, drawing, more = []) {
  const names = /** @type {Setting[]} */ (Object.keys(defaults)).filter((name) => name in view);
  const changedValues = names.flatMap((name) => {
    const value = view[name] ?? "";
    return value === defaults[name] ? [] : [describeValue(name, value, drawing)];
  });
  return ["Drawing", [...changedValues, ...more].join(", ")].filter(Boolean).join(": ");
}

// If the initial settings differ from the `defaults`, say in one line what is left out, with a button that shows all
// or goes back. Hide the line as soon as anything else is chosen.
/** @type {(line: HTMLElement, initial: Record<string, string>, defaults: Record<string, string>, view: Settings,
 *   change: (settings: Record<string, string>) => void, words: string[]) => void} */
export function showInitialSettings(line, initial, defaults, view, change, [note, backLabel]) {
  const names = Object.keys(initial).filter((name) => initial[name] !== defaults[name]);
  /** @type {(settings: Record<string, string>) => boolean} */
  const matches = (settings) => names.every((name) => view[/** @type {Setting} */ (name)] === settings[name]);
  /** @type {(settings: Record<string, string>, words: string) => HTMLElement} */
  const makeButton = (settings, words) => {
    const onclick = () => change(Object.fromEntries(names.map((name) => [name, settings[name]])));
    return make("button", { type: "button", class: "quiet", onclick }, words);
  };
  line.hidden = !names.length || !(matches(initial) || matches(defaults));
  line.replaceChildren(
    ...(matches(initial)
      ? [note, makeButton(defaults, "Show all weights")]
      : ["All weights of this long text are shown; for links, hover over a word.", makeButton(initial, backLabel)]),
  );
}
