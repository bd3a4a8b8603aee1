// Two panels subtracted: the second minus the first, as a signed heatmap and as the largest differences.
import { make, typedText } from "../dom.js";
import { thinned } from "../heatmap.js";
import { heatmapSpotAt } from "../layouts.js";
import { apart, number, signed } from "../numerals.js";
import { pointOn } from "../stage.js";
import { entry } from "./parts.js";
import { drawCanvasPair } from "./canvas_pair.js";
import { allSay, amount, bold, differenceSays, softly } from "./says.js";
import { spotIn } from "./spots.js";
import { difference, largest, signedShades, toldApart } from "./together.js";
/** @import { Children, Parts } from "../dom.js" */
/** @import { Unit } from "../geometry.js" */
/** @import { HeatScene, Pictured } from "../heatmap.js" */
/** @import { Span, Spot } from "../layouts.js" */
/** @import { Settings } from "../view.js" */
/** @import { Stage } from "../stage.js" */
/** @import { Stores } from "./compare.js" */
/** @import { PanelPart } from "./parts.js" */
/** @import { Panels } from "./set.js" */
/** @import { Difference, PanelsView, Refusal } from "./together.js" */

/**
 * A difference ready to be drawn, and its largest cells.
 *
 * @typedef {Difference & { head: Pictured, largest: number[] }} DrawnDifference
 */

const LARGEST = 12;
const NO_DIVERGENCE =
  "Only what is shown is subtracted. No divergence is given: it needs every row, but special tokens do not correspond.";
const MIXED = "These two cannot be subtracted: one leads from one text to another, the other from a text to itself.";
const REPLACED = "Compare two sentences that differ only in words replaced one for one.";

// The difference that a view asks for, ready to draw; null if it asks for none.
/** @type {(set: Panels, view: PanelsView) => DrawnDifference | Refusal | null} */
export function subtracted(set, view) {
  const result = view.diff && difference(set, view, view.diff);
  if (!result?.partner) return result;
  const head = { part: { w: result.d, R: result.R, C: result.C }, shade: signedShades(result), largest: result.top };
  return { ...result, head, largest: largest(result, LARGEST) };
}

// Everything except the heatmap, which shows what is pointed at.
/** @type {(stores: Stores, part: Parts) => void} */
export function drawDifference({ read, stage, look }, part) {
  const { set, derived } = read;
  const { diff } = stage.view;
  part.diff.hidden = !diff;
  if (!diff) return;
  part.diffTitle.replaceChildren(...title(set, diff));
  const result = /** @type {DrawnDifference | Refusal} */ (derived.diff);
  part.diffBody.hidden = !result.partner;
  part.diffText.replaceChildren(...(result.partner ? meaning(set, diff) : refusal(stage, diff, result)));
  if (!result.partner) return;
  part.diffRamp.style.background = `linear-gradient(90deg, ${look.signed.join()})`;
  const end = number(result.top, { quantity: result.kind.quantity });
  part.diffLess.replaceChildren(
    `more in panel ${diff[0] + 1}${look.hasMinus ? ", marked −" : ""}  `,
    amount(`−${end}`),
  );
  part.diffMore.replaceChildren(amount(`+${end}`), `  more in panel ${diff[1] + 1}`);
  part.list.replaceChildren(...result.largest.map((cell) => listed(stage, diff, result, cell)));
  if (!result.largest.length) part.list.append(make("li", { class: "soft" }, "None: the two are the same."));
}

/** @type {(set: Panels, diff: [number, number]) => Children} */
function title(set, diff) {
  /** @type {(panel: { name: string, more: string }) => Children} */
  const named = ({ name, more }) => [make("code", {}, name), ...(more ? [" ", typedText(more)] : [])];
  const [first, second] = toldApart(set, diff).map(named);
  return [...second, " minus ", ...first, softly(` panel ${diff[1] + 1} minus panel ${diff[0] + 1}`)];
}

/** @type {(set: Panels, diff: [number, number]) => Children} */
function meaning(set, [p, q]) {
  const nats = set.divergence[p][q];
  if (nats === null) return [NO_DIVERGENCE];
  const unit = set.compared[set.panels[p].reading][set.panels[q].reading] === "words" ? "words" : "pieces";
  const over = ` (100%: nothing in common; Jensen–Shannon divergence over all ${unit}, special tokens included).`;
  return ["Difference ", bold(apart(nats)), over];
}

// Why two panels cannot be subtracted, with a button that helps, if there is one.
/** @type {(stage: Stage<PanelsView>, diff: [number, number], result: Refusal) => Children} */
function refusal(stage, [p, q], { ours, theirs, remedy, isMixed }) {
  if (isMixed) return [MIXED];
  if (!remedy) {
    const list = [...onlyIn(ours, p), ...onlyIn(theirs, q)].flatMap((span, i) => [i ? "; " : "", span]);
    return ["These two cannot be subtracted: their words do not correspond one to one. ", ...list, `. ${REPLACED}`];
  }
  const [does, why] = remedyWords(remedy);
  const button = make("button", { type: "button", class: "quiet", onclick: () => stage.change(remedy) }, does);
  return [`As shown, these two cannot be subtracted: ${why}. `, button];
}

/** @type {(units: Unit[], panel: number) => HTMLElement[]} */
function onlyIn(units, panel) {
  if (!units.length) return [];
  const words = units.slice(0, 5).flatMap((unit, i) => [i ? ", " : "", "“", typedText(unit.text), "”"]);
  const rest = units.length > 5 ? ` and ${units.length - 5} more` : "";
  return [make("span", {}, ...words, rest, ` only in panel ${panel + 1}`)];
}

/** @type {(remedy: Partial<Settings>) => [string, string]} */
function remedyWords({ unit, special }) {
  const [pieces, tokens] = ["they are cut into different pieces", "their special tokens differ"];
  if (unit && special) return ["Compare by words, without special tokens", `${pieces}, and ${tokens}`];
  return unit ? ["Compare by words", pieces] : ["Hide special tokens", tokens];
}

/** @type {(stage: Stage<PanelsView>, diff: [number, number], result: DrawnDifference, cell: number) => HTMLElement} */
function listed(stage, [at], { rows, cols, d, C, first, second, top, kind }, cell) {
  const spot = { at, row: Math.floor(cell / C), col: cell % C };
  const [come, leave] = [() => stage.hover(spot), () => stage.hover(null)];
  const numbers = [number(first[cell], kind), number(second[cell], kind), signed(d[cell], kind)];
  const on = {
    onclick: () => stage.press(spot),
    onpointerenter: come,
    onpointerleave: leave,
    onfocus: come,
    onblur: leave,
  };
  return entry(rows[spot.row].text, cols[spot.col].text, numbers, d[cell] / top, on);
}

// ---- What is pointed at ---------------------------------------------------------------------------------------

// The panel whose rows and columns the difference has.
/** @type {(stage: Stage<PanelsView>) => number} */
const subtractedFrom = (stage) => stage.view.diff?.[0] ?? 0;

/** @type {(stores: Stores, part: Parts, spot: Spot | null, all: boolean) => void} */
export function refreshDifference(stores, part, spot, all) {
  const { read, stage, look } = stores;
  const { set, derived } = read;
  const result = derived?.diff;
  if (!result?.partner || part.diff.hidden) return;
  const here = spotIn(stores, set.panels[subtractedFrom(stage)].reading, spot);
  const key = JSON.stringify(here);
  if (!all && key === part.drawn) return;
  part.drawn = key;
  const focus = here?.missing ? null : here;
  /** @type {HeatScene} */
  const scene = { rows: result.rows, cols: result.cols, head: result.head, focus: null };
  const width = all ? Math.min(680, part.map.box.clientWidth - 12) : 0;
  const size = { width, height: Math.max(380, look.height), most: 0 };
  drawCanvasPair(part.map, scene, focus, all, { ...look, colours: look.signedColours, label: undefined, ...size });
  part.diffSays.replaceChildren(...differenceSays(stores, here));
  part.diffMissing.textContent = thinned(part.map.layout?.cell);
  part.map.canvas.setAttribute("aria-label", `Difference. ${part.diffSays.textContent}`);
  markEntries(part.list, result, focus);
}

/** @type {(list: HTMLElement, result: DrawnDifference, focus: Span | null) => void} */
function markEntries(list, { largest: cells, C }, focus) {
  const isCell = focus && focus.row !== null && focus.col !== null;
  const cell = isCell ? focus.row * C + focus.col : -1;
  [...list.querySelectorAll("button")].forEach((item, i) =>
    item.setAttribute("aria-current", String(cells[i] === cell)),
  );
}

/** @type {(stores: Stores, part: Parts & { panels: PanelPart[] }) => void} */
export function listenToDifference(stores, part) {
  const { read, stage } = stores;
  /** @type {(event: MouseEvent) => Spot | null} */
  const cell = (event) => {
    const result = read.derived?.diff;
    if (!part.map.layout || !result?.partner) return null;
    const spot = heatmapSpotAt(part.map.layout, result.R, result.C, ...pointOn(part.map.canvas, event));
    return spot && { ...spot, at: subtractedFrom(stage) };
  };
  const about = () => {
    const at = subtractedFrom(stage);
    const spot = spotIn(stores, read.set.panels[at].reading, stage.focused());
    const from = spot && !spot.missing ? /** @type {Spot} */ ({ at, row: spot.row, col: spot.col }) : null;
    const { R, C } = /** @type {DrawnDifference} */ (read.derived.diff);
    return { from, isHeat: true, R, C, start: { at }, walked };
  };
  const walked = () => {
    part.announcement.textContent = `${part.diffSays.textContent}. ${allSay(read.set, part.panels)}`;
  };
  stage.attend(part.map.canvas, cell, about);
}
