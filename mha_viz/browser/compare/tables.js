// The weights of one panel, or the difference, as a table.
import { make } from "../dom.js";
import { number, signed } from "../numerals.js";
import { mapName, paperMapName } from "../reading.js";
import { table } from "../words.js";
import { differenceTable, shortName } from "./parts.js";
import { readingOf } from "./set.js";
import { largest } from "./together.js";
/** @import { Parts } from "../dom.js" */
/** @import { Stores } from "./compare.js" */
/** @import { DrawnDifference } from "./difference.js" */
/** @import { Panels } from "./set.js" */

const TABLED = 300;

/** @type {(stores: Stores, part: Parts) => void} */
export function drawTable({ read, stage }, part) {
  const { set, derived } = read;
  if (!set.panels.length || !part.table.open) return;
  const { diff } = stage.view;
  const result = derived.diff?.partner ? derived.diff : null;
  drawMenu(set, part, !!result);
  const which = part.tableOf.value;
  const isDifference = which === "diff" && diff && result;
  part.tableBox.replaceChildren(
    ...(isDifference ? [tableOfDifference(set, diff, result)] : tableOfPanel(read, stage.view, +which)),
  );
}

/** @type {(set: Panels, part: Parts, hasDifference: boolean) => void} */
function drawMenu(set, part, hasDifference) {
  const panels = set.panels.map((_, i) => [String(i), shortName(set, i)]);
  const options = [...panels, ...(hasDifference ? [["diff", "the difference"]] : [])];
  const key = JSON.stringify(options);
  const before = part.tableOf.value || (hasDifference ? "diff" : "0");
  if (part.tabled !== key) {
    part.tableOf.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
    part.tabled = key;
  }
  part.tableOf.value = options.some(([value]) => value === before) ? before : "0";
}

/** @type {(read: Stores["read"], view: Stores["stage"]["view"], index: number) => HTMLElement[]} */
function tableOfPanel({ set, derived }, view, index) {
  const { reading } = set.panels[index];
  const [rows, cols] = [derived.units[reading], derived.columns[reading]];
  return rows.length && cols.length ? table(derived.heads[index], { rows, cols }, readingOf(set, index), view) : [];
}

/** @type {(set: Panels, diff: [number, number], result: DrawnDifference) => HTMLElement} */
function tableOfDifference(set, diff, result) {
  const { rows, cols, d, C, first, second, kind } = result;
  /** @type {(panel: number) => string} */
  const named = (panel) => {
    const [reading, { head }] = [readingOf(set, panel), set.panels[panel]];
    return `${mapName(reading, head)} (${paperMapName(reading, head)})`;
  };
  const [p, q] = diff.map(named);
  const cells = largest(result, TABLED);
  /** @type {(cell: number) => string[]} */
  const line = (cell) => {
    const words = [rows[Math.floor(cell / C)].text, cols[cell % C].text];
    return [...words, number(first[cell], kind), number(second[cell], kind), signed(d[cell], kind)];
  };
  return differenceTable(`${q} minus ${p}: the ${cells.length} largest of ${d.length} differences`, cells.map(line));
}
