// What is pointed at in one panel, as it is in the others. A spot is {at: panel, row, col} in units of that panel.
import { counterparts, partners } from "./together.js";

// What stands in reading j for each unit of reading i; while two panels are subtracted, replaced words do.
/** @type {(app: Pointed, i: number, j: number) => ([number, number] | null)[]} */
function standing({ set, derived, stage }, i, j) {
  const key = `${i}-${j}`;
  if (derived.standing[key]) return derived.standing[key];
  const [ours, theirs] = [derived.units[i], derived.units[j]];
  const isSubtracted = (reading) => stage.view.diff.some((panel) => set.panels[panel].reading === reading);
  const replaces = derived.diff?.partner && i !== j && isSubtracted(i) && isSubtracted(j);
  const { partner } = replaces ? partners(set, i, j, ours, theirs, stage.view) : {};
  derived.standing[key] = partner?.map((unit) => [unit, 1]) ?? counterparts(set, i, j, ours, theirs);
  return derived.standing[key];
}

// A spot as it is in a reading: {row, rows, col, cols}, or {missing: the unit that it lacks}.
/** @type {(app: Pointed, reading: number, spot: Spot | null) => Place | null} */
export function spotIn(app, reading, spot) {
  if (!spot) return null;
  const from = app.set.panels[spot.at].reading;
  const place = (index) => (index === null ? [null, 1] : standing(app, from, reading)[index]);
  const [rows, cols] = [place(spot.row), place(spot.col)];
  if (!rows || !cols) return { missing: app.derived.units[from][rows ? spot.col : spot.row] };
  return { row: rows[0], rows: rows[1], col: cols[0], cols: cols[1] };
}

/** @type {(app: CompareApp) => Spot | null} */
export function held({ set, derived, stage }) {
  if (!stage.view.pin || !derived) return null;
  const { at, query, key } = stage.view.pin;
  const units = derived.units[set.panels[at].reading];
  const find = (token) => (token === null ? null : units.findIndex((unit) => unit.tokens.includes(token)));
  const spot = { at, row: find(query), col: find(key) };
  return spot.row === -1 || spot.col === -1 ? null : spot;
}

/** @type {(app: CompareApp, spot: Spot) => Pin} */
export function pinAt({ set, derived }, { at, row, col }) {
  const units = derived.units[set.panels[at].reading];
  const token = (unit) => (unit === null ? null : units[unit].tokens[0]);
  return { at, query: token(row), key: token(col) };
}
