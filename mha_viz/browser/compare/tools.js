// The buttons of a panel: what each does to the compared heads, as one stop of the Tab key.
import { roving } from "../controls.js";
import { make } from "../dom.js";
import { svg } from "../svg.js";
/** @import { Actions } from "../controls.js" */
/** @import { Panels } from "./set.js" */
/** @import { Edit } from "./comparison.js" */

/**
 * A button of a panel: what it does to the compared heads, where it can.
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

/** @type {(set: Panels, index: number, on: Actions) => HTMLElement} */
export function toolbar(set, index, on) {
  const buttons = toolsOf(set, index).map((tool) => toolButton(tool, index, on));
  const bar = make("div", { class: "tools", role: "toolbar", "aria-label": `Panel ${index + 1}` }, ...buttons);
  roving(bar);
  return bar;
}

/** @type {(set: Panels, index: number) => Tool[]} */
function toolsOf({ panels, editable }, index) {
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

/** @type {(tool: Tool, index: number, on: Actions) => HTMLElement} */
function toolButton({ name, label, change }, index, on) {
  const named = { type: "button", title: label, "aria-label": `${label}: panel ${index + 1}` };
  const button = make("button", named, icon(name), ...(name === "pin" ? [label] : []));
  button.dataset.tool = name;
  if (change) button.onclick = () => on.edit({ ...change, index });
  else button.setAttribute("aria-disabled", "true");
  return button;
}

/** @type {(name: string) => SVGElement} */
export const icon = (name) =>
  svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
