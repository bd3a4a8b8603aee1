// The weights of one panel, or the difference, as a table.
import { make } from "../dom.js";
import { headName, number, paperName } from "../geometry.js";
import { table } from "../words.js";
import { differenceTable, shortName } from "./parts.js";
import { largest, readingOf, signed } from "./together.js";

const TABLED = 300;

export function drawTable(app) {
  const { set, derived, part } = app;
  if (!set.panels.length || !part.table.open) return;
  drawMenu(set, part, !!derived.diff?.partner);
  const which = part.tableOf.value;
  part.tableBox.replaceChildren(...(which === "diff" ? [tableOfDifference(app)] : tableOfPanel(app, +which)));
}

function drawMenu(set, part, hasDifference) {
  const panels = set.panels.map((_, i) => [String(i), shortName(set, i)]);
  const options = [...panels, ...(hasDifference ? [["diff", "the difference"]] : [])];
  const key = JSON.stringify(options);
  const before = part.tableOf.value || (hasDifference ? "diff" : "0");
  if (part.tableOf.key !== key) {
    part.tableOf.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
    part.tableOf.key = key;
  }
  part.tableOf.value = options.some(([value]) => value === before) ? before : "0";
}

function tableOfPanel({ set, derived }, index) {
  const units = derived.units[set.panels[index].reading];
  return units.length ? table(derived.heads[index], { rows: units, cols: units }, readingOf(set, index)) : [];
}

function tableOfDifference({ set, derived, stage }) {
  const { rows, d, C, first, second } = derived.diff;
  const named = (panel) => {
    const [reading, { head }] = [readingOf(set, panel), set.panels[panel]];
    return `${headName(reading, head)} (${paperName(reading, head)})`;
  };
  const [p, q] = stage.view.diff.map(named);
  const cells = largest(derived.diff, TABLED);
  const line = (cell) => {
    const words = [rows[Math.floor(cell / C)].text, rows[cell % C].text];
    return [...words, number(first[cell]), number(second[cell]), signed(d[cell])];
  };
  return differenceTable(`${q} minus ${p}: the ${cells.length} largest of ${d.length} differences`, cells.map(line));
}
