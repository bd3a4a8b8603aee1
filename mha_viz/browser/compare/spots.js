// The spot under the pointer in one panel, mapped to the others. A spot is {at: panel, row, col} in units of that
// panel.
import { sideOf } from "./set.js";
import { counterparts, partners } from "./together.js";
/** @import { Pin, Unit } from "../geometry.js" */
/** @import { Span, Spot } from "../layouts.js" */
/** @import { Stores } from "./compare.js" */
/** @import { Derived } from "./panels.js" */
/** @import { Panels } from "./set.js" */
/** @import { PanelsView } from "./together.js" */

/**
 * A spot as it is in one reading, or the unit that this reading lacks.
 *
 * @typedef {(Span & { missing?: undefined }) | { missing: Unit }} Place
 */

/**
 * What is needed to tell where a spot is in other panels.
 *
 * @typedef {{ read: { set: Panels, derived: Pick<Derived, "units" | "standing"> & { columns?: Unit[][], diff: {
 *   partner?: number[] } | null } }, stage: { view: PanelsView } }} Pointed
 */

// The rows, or the columns, of every reading.
/** @type {(derived: Pointed["read"]["derived"], side: "rows" | "cols") => Unit[][]} */
const unitsOn = ({ units, columns }, side) => (side === "cols" && columns) || units;

// The units of reading j that correspond to each unit of reading i along one axis; while two panels are subtracted,
// replaced words correspond too.
/** @type {(stores: Pointed, side: "rows" | "cols", i: number, j: number) => ([number, number] | null)[]} */
function standing({ read: { set, derived }, stage }, side, i, j) {
  const key = `${side} ${i}-${j}`;
  if (derived.standing[key]) return derived.standing[key];
  const [ours, theirs] = [i, j].map((reading) => unitsOn(derived, side)[reading]);
  /** @type {(reading: number) => boolean} */
  const isSubtracted = (reading) => !!stage.view.diff?.some((panel) => set.panels[panel].reading === reading);
  const replaces = derived.diff?.partner && i !== j && isSubtracted(i) && isSubtracted(j);
  const { partner } = replaces ? partners(sideOf(set, side), i, j, ours, theirs, stage.view) : {};
  derived.standing[key] = partner?.map((unit) => [unit, 1]) ?? counterparts(sideOf(set, side), i, j, ours, theirs);
  return derived.standing[key];
}

// A spot in another reading: {row, rows, col, cols}, or {missing: the unit that it lacks}.
/** @type {(stores: Pointed, reading: number, spot: Spot | null) => Place | null} */
export function spotIn(stores, reading, spot) {
  if (!spot) return null;
  const { set, derived } = stores.read;
  const from = set.panels[spot.at ?? 0].reading;
  /** @type {(side: "rows" | "cols", index: number | null) => [number | null, number] | null} */
  const place = (side, index) => (index === null ? [null, 1] : standing(stores, side, from, reading)[index]);
  const [rows, cols] = [place("rows", spot.row), place("cols", spot.col)];
  if (!rows) return { missing: unitsOn(derived, "rows")[from][spot.row ?? 0] };
  if (!cols) return { missing: unitsOn(derived, "cols")[from][spot.col ?? 0] };
  return /** @type {Span} */ ({ row: rows[0], rows: rows[1], col: cols[0], cols: cols[1] });
}

/** @type {(stores: Stores) => Spot | null} */
export function held({ read: { set, derived }, stage }) {
  if (!stage.view.pin || !derived) return null;
  const { at, query, key } = stage.view.pin;
  const [rows, cols] = [unitsOn(derived, "rows"), unitsOn(derived, "cols")].map(
    (units) => units[set.panels[at ?? 0].reading],
  );
  /** @type {(units: Unit[], token: number | null) => number | null} */
  const find = (units, token) => (token === null ? null : units.findIndex((unit) => unit.tokens.includes(token)));
  const spot = /** @type {Spot} */ ({ at, row: find(rows, query), col: find(cols, key) });
  return spot.row === -1 || spot.col === -1 ? null : spot;
}

/** @type {(stores: Stores, spot: Spot) => Pin} */
export function pinAt({ read: { set, derived } }, { at = 0, row, col }) {
  const { reading } = set.panels[at];
  /** @type {(units: Unit[], unit: number | null) => number | null} */
  const token = (units, unit) => (unit === null ? null : units[unit].tokens[0]);
  const [query, key] = [token(derived.units[reading], row), token(derived.columns[reading], col)];
  return { at, query, key };
}
