// The panels: one size, one layout and one scale for all, and the focus of any panel shown in each.
import { fewLinks, linksOf } from "../drawn_links.js";
import { block } from "../geometry.js";
import { EDGE, heatmapLabel, thinned } from "../heatmap.js";
import { signColours } from "../ink.js";
import { heatmapLayout, heatmapSpotAt, linksSpotAt } from "../layouts.js";
import { lineRamp, linksLabel } from "../links.js";
import { keysOf } from "../reading.js";
import { pointOn, reveal } from "../stage.js";
import { isShare } from "../view.js";
import { hiddenNote, offNote, scaleWords } from "../words.js";
import { refreshDifference, subtracted } from "./difference.js";
import { drawCanvasPair } from "./canvas_pair.js";
import { allSay, panelSays } from "./says.js";
import { nameOf, readingOf } from "./set.js";
import { spotIn } from "./spots.js";
import { columns, sharedShades, topOf, unitsOf } from "./together.js";
/** @import { Unit } from "../geometry.js" */
/** @import { Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { Kind } from "../view.js" */
/** @import { Parts } from "../dom.js" */
/** @import { Stores } from "./compare.js" */
/** @import { PanelPart } from "./parts.js" */
/** @import { DrawnDifference } from "./difference.js" */
/** @import { Place } from "./spots.js" */
/** @import { Refusal } from "./together.js" */

/** @typedef {Parts & { panels: PanelPart[] }} Sheet */
/**
 * What the view shows of every panel.
 *
 * @typedef {{ key: string, units: Unit[][], columns: Unit[][], heads: ShownHead[], top: number, standing:
 *   Record<string, ([number, number] | null)[]>, diff: DrawnDifference | Refusal | null }} Derived
 */

const GAP = 32; // gaps between panels, pixels
const LEAST = 292; // the least width of a panel, pixels
const LINKS_WIDTH = 560; // the greatest width of a link diagram

// What the view shows of every panel, computed once per view.
/** @type {(stores: Stores) => void} */
export function derive({ read, stage: { view }, look }) {
  const { set, derived } = read;
  const { unit, special, links, scale, diff, as } = view;
  const key = JSON.stringify([set.key, unit, special, links, scale, diff, as, look.theme]);
  if (derived?.key === key) return;
  const units = set.readings.map((reading) => unitsOf(reading, view));
  const cols = set.readings.map((reading, i) => (reading.keys ? unitsOf(keysOf(reading), view) : units[i]));
  const parts = set.panels.map(({ reading, head }) =>
    block(set.readings[reading], head, view, { rows: units[reading], cols: cols[reading] }),
  );
  const top = topOf(parts);
  const heads = set.panels.map(({ reading, head }, index) => {
    const [part, axes] = [parts[index], { rows: units[reading], cols: cols[reading] }];
    return {
      head,
      part,
      shade: sharedShades(part, scale, top),
      ...(as === "links" ? linksOf([part], axes, links, scale, top)[0] : {}),
      colour: look.heads[(head % set.readings[reading].heads) % look.heads.length],
      dash: /** @type {number[]} */ ([]),
      ...(part.signed ? signColours(look) : {}),
    };
  });
  read.derived = { key, units, columns: cols, heads, top, standing: {}, diff: subtracted(set, view) };
}

// What the numbers of all panels are: with signs if any has, and no shares if any are none.
/** @type {(heads: ShownHead[]) => Kind} */
const kindOf = (heads) => {
  const parts = heads.map(({ part }) => part);
  return parts.find(({ signed }) => signed) ?? parts.find((part) => !isShare(part)) ?? {};
};

/** @type {(stores: Stores, part: Parts) => void} */
export function drawScale({ read: { set, derived }, stage, look }, part) {
  const { as, scale } = stage.view;
  const isSigned = derived.heads.some((head) => head.part.signed);
  const { colour, below } = isSigned ? signColours(look) : { colour: look.ink };
  const colours = `linear-gradient(90deg, ${(isSigned ? look.signed : look.ramp).join()})`;
  part.ramp.style.background = as === "links" ? lineRamp(colour, below) : colours;
  const whose = set.panels.length > 1 ? "One scale for all panels" : "Scale";
  const few = derived.units
    .map((rows, i) => fewLinks({ rows, cols: derived.columns[i] }, stage.view.unit))
    .find(Boolean);
  const which = few ? `. At rest, ${few}${set.panels.length > 1 ? " of each panel" : ""}` : "";
  const how = as === "links" ? `, as width and darkness of the line${which}` : "";
  part.scaleText.textContent = `${whose}: ${scaleWords(scale, derived.top, kindOf(derived.heads))}${how}`;
}

// All panels have one size and one layout, whatever they show, so that cells can be compared by position.
/** @type {(stores: Stores, part: Sheet) => void} */
export function measure({ read: { set, derived }, stage, look }, part) {
  const isLinks = stage.view.as === "links";
  const { units, columns: others } = derived;
  const most = Math.max(1, ...[...units, ...others].map((each) => each.length));
  const label = Math.max(...units.map((rows, i) => (isLinks ? linksLabel : heatmapLabel)(rows, others[i], look)));
  const width = part.sheet.clientWidth;
  const wanted = isLinks ? LEAST : Math.max(LEAST, Math.min(width, label + 2 * most));
  const across = columns(width, set.panels.length, width < 600 ? width : wanted, GAP);
  const column = Math.floor((width - (across - 1) * GAP) / across);
  part.sheet.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
  const height = Math.max(300, Math.min(Math.max(680, window.innerHeight - 370), window.innerHeight - 230));
  const largest = Math.min(64, Math.max(44, (window.innerHeight - 350 - label) / most)); // in a large window
  const size = { width: isLinks ? Math.min(column, LINKS_WIDTH) : column, height, largest };
  Object.assign(look, { most, label, ...size });
  const drawn = isLinks
    ? look.width
    : heatmapLayout(column - EDGE, most, most, height - EDGE, label, label, largest).width + EDGE;
  for (const panel of part.panels) {
    panel.all.style.maxWidth = `${Math.max(drawn, LEAST)}px`; // its tools are above the end of the drawing
    panel.box.style.maxHeight = `${isLinks ? height : Math.max(height, column) + 12}px`;
  }
}

// Draw what has changed: a panel with an unchanged focus keeps its picture.
/** @type {(stores: Stores, part: Sheet, all?: boolean) => void} */
export function refresh(stores, part, all = false) {
  const { set } = stores.read;
  if (!set) return;
  const spot = stores.stage.focused();
  part.panels.forEach((panel, index) => {
    const here = spotIn(stores, set.panels[index].reading, spot);
    const key = JSON.stringify(here);
    if (!all && key === panel.drawn) return;
    panel.drawn = key;
    drawPanel(stores, panel, index, here, all);
  });
  refreshDifference(stores, part, spot, all);
}

/** @type {(stores: Stores, panel: PanelPart, index: number, here: Place | null, all: boolean) => void} */
function drawPanel(stores, panel, index, here, all) {
  const { set, derived } = stores.read;
  const { stage, look } = stores;
  const { view } = stage;
  const { reading } = set.panels[index];
  const [rows, cols] = [derived.units[reading], derived.columns[reading]];
  const [head, focus] = [derived.heads[index], here?.missing ? null : here];
  const links = view.as === "links" ? { heads: [head] } : {};
  drawCanvasPair(panel, { rows, cols, head, ...links, focus: null }, focus, all, look);
  panel.says.replaceChildren(...panelSays(stores, index, here));
  panel.says.classList.toggle("rest", !here);
  const hidden = view.special === "keep" ? "" : hiddenNote(head, { rows }, focus, view, readingOf(set, index));
  const off = offNote(readingOf(set, index), [set.panels[index].head]);
  const note = [off, hidden, view.as === "links" ? "" : thinned(panel.layout?.cell)].filter(Boolean).join(" ");
  if (panel.note.textContent !== note) panel.note.textContent = note;
  const what = `${view.as === "links" ? "Token links" : "Heatmap"} of panel ${index + 1}, ${nameOf(set, index).name}`;
  panel.canvas.setAttribute("aria-label", `${what}. ${panel.says.textContent}`);
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------

/** @type {(stores: Stores, part: Sheet, index: number) => void} */
export function listenTo(stores, part, index) {
  const { read, stage } = stores;
  const panel = part.panels[index];
  const { reading } = read.set.panels[index];
  const isLinks = () => stage.view.as === "links";
  /** @type {() => [number, number]} */
  const counts = () => [read.derived.units[reading].length, read.derived.columns[reading].length];
  /** @type {(event: MouseEvent) => Spot | null} */
  const where = (event) => {
    if (!panel.layout || !read.derived) return null;
    const [x, y] = pointOn(panel.canvas, event);
    const spot = isLinks()
      ? linksSpotAt(panel.layout, ...counts(), x, y + panel.box.scrollTop)
      : heatmapSpotAt(panel.layout, ...counts(), x, y);
    return spot && { at: index, ...spot };
  };
  const about = () => {
    const here = spotIn(stores, reading, stage.focused());
    const from = here && !here.missing ? /** @type {Spot} */ ({ at: index, row: here.row, col: here.col }) : null;
    const [R, C] = counts();
    return { from, isHeat: !isLinks(), R, C, start: { at: index }, walked };
  };
  /** @type {(spot: Spot) => void} */
  const walked = (spot) => {
    part.announcement.textContent = allSay(read.set, part.panels);
    if (isLinks()) reveal(panel.box, (spot.row ?? spot.col) * panel.layout.rowHeight);
  };
  stage.attend(panel.canvas, where, about);
  panel.box.onscroll = () => follow(stores, part, index);
}

// Panels with the same layout scroll together.
/** @type {(stores: Stores, part: Sheet, index: number) => void} */
function follow(stores, part, index) {
  const panel = part.panels[index];
  const { scrollTop, scrollLeft } = panel.box;
  for (const other of part.panels) {
    if (other === panel) continue;
    if (other.box.scrollTop !== scrollTop) other.box.scrollTop = scrollTop;
    if (other.box.scrollLeft !== scrollLeft) other.box.scrollLeft = scrollLeft;
  }
  if (stores.stage.view.as === "links") drawPanel(stores, panel, index, JSON.parse(panel.drawn), true);
}
