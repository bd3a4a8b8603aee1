// How the maps of all heads stand in the room of a stage: as large as they can be with all of them in the window.

/**
 * `high`: down to the bar with the button; `over`: height of the sentence when it stands over the maps; `label`: of the
 * words beside and above a map; `caption`: height of what stands over each map.
 *
 * @typedef {{ width: number, high: number, over: number, label: number, caption: number, gap: number }} Room
 */

// `rows`: how many rows of maps there must be, or 0.
/** @typedef {{ count: number, rows: number, words: number, isBare: boolean }} Maps */

/**
 * `hasRows`: whether maps have the words of their rows beside them, each its own (true), the first of each row of maps
 * for all of it (null), or none (false); `hasColumns`: the same of those above them. `isAside`: whether the sentence
 * stands beside the maps.
 *
 * @typedef {object} Arrangement
 * @property {number} columns
 * @property {number} cell
 * @property {number} gap
 * @property {boolean | null} hasRows
 * @property {boolean | null} hasColumns
 * @property {boolean} isAside
 */

/** @typedef {Arrangement & { wide: number, tall: number, least: number, worth: number }} Way */

const READABLE = 12; // the smallest cell of maps that have words, pixels: these have 11
const BARE = 72; // the least width of a map without words, pixels
const LOW = 180; // the width of a map in a window that is too low for all
const ASIDE = { width: 316, gap: 28, page: 900 }; // the sentence beside the maps, at least; gap as in player.css
const FEW = 8; // the most maps in rows of one length, and with words in a window that is too low for all
const APART = 60; // the most between two maps, pixels
// Words of their own are worth so much of the size of the maps, and maps under their sentence so much if they have the
// whole width.
const WORTH = { rows: 1.15, columns: 1.1, full: 1.06, empty: 0.85 };
const FILLED = 0.9; // of the width, so that no part of it is empty
/** @type {(boolean | null)[][]} */
const NAMES = [
  [true, true],
  [true, null],
  [null, true],
  [null, null],
  [false, false],
];

/** @type {(maps: Maps, room: Room) => Arrangement} */
export function arranged(maps, room) {
  const counts = maps.rows ? [maps.count / maps.rows] : columnsOf(maps.count);
  const ways = counts.flatMap((columns) => waysOf(columns, maps, room));
  const inWindow = ways.filter(({ cell, least }) => cell >= least).sort((one, other) => other.worth - one.worth);
  const named = inWindow.find(({ hasRows }) => hasRows !== false) ?? inWindow[0];
  const way = (maps.isBare ? null : named) ?? beyond(ways, maps);
  return way.isAside ? way : { ...way, gap: spread(way, maps, room) };
}

// Every number of columns without an empty one; four to eight maps stand in rows of one length.
/** @type {(count: number) => number[]} */
const columnsOf = (count) =>
  Array.from({ length: count }, (_, i) => i + 1).filter((columns) =>
    count > FEW || count < 4 ? columns === Math.ceil(count / Math.ceil(count / columns)) : count % columns === 0,
  );

/** @type {(columns: number, maps: Maps, room: Room) => Way[]} */
const waysOf = (columns, maps, room) =>
  [false, ...(room.width < ASIDE.page ? [] : [true])].flatMap((isAside) =>
    NAMES.map(([hasRows, hasColumns]) => wayOf({ columns, gap: room.gap, hasRows, hasColumns, isAside }, maps, room)),
  );

/** @type {(way: Omit<Arrangement, "cell">, maps: Maps, room: Room) => Way} */
function wayOf(way, { count, words }, { width, high, over, label, caption, gap }) {
  const { columns, hasRows, hasColumns, isAside } = way;
  const rows = Math.ceil(count / columns);
  /** @type {(has: boolean | null, each: number) => number} */
  const labels = (has, each) => label * (has ? each : has === null ? 1 : 0);
  const beside = labels(hasRows, columns) + (columns - 1) * gap + (isAside ? ASIDE.width + ASIDE.gap : 0);
  const above = labels(hasColumns, rows) + (rows - 1) * gap + rows * caption + (isAside ? 0 : over);
  const [wide, tall] = [(width - beside) / columns / words, (high - above) / rows / words];
  const cell = Math.floor(Math.min(wide, tall));
  const share = (beside + columns * cell * words) / width;
  const isEmpty = width >= ASIDE.page && share < FILLED; // where the sentence could stand
  const full = isAside ? 1 : Math.min(1, 0.15 + share) * (isEmpty ? WORTH.empty : WORTH.full);
  const worth = cell * (hasRows ? WORTH.rows : 1) * (hasColumns ? WORTH.columns : 1) * full;
  const least = hasRows === false ? BARE / words : READABLE;
  return { ...way, wide, tall, cell, worth, least };
}

// In a window that is too low for all maps: as many in a row as there is room for, of a size that can be read.
/** @type {(ways: Way[], maps: Maps) => Way} */
function beyond(ways, { count, words, isBare }) {
  const under = ways.filter(({ isAside }) => !isAside);
  const fit = under.filter(
    ({ wide, least, hasRows }) => wide >= least && (hasRows === false) === (isBare || count > FEW),
  );
  const way = fit.find(({ columns }) => columns === fit.at(-1)?.columns) ?? under[under.length - 1];
  return { ...way, cell: Math.max(2, Math.floor(Math.min(way.wide, Math.max(way.tall, LOW / words)))) };
}

// What is between two maps in a row: the rest of its width, up to a limit.
/** @type {(way: Way, maps: Maps, room: Room) => number} */
function spread({ columns, cell, hasRows, gap }, { words }, { width, label }) {
  const used = columns * cell * words + label * (hasRows ? columns : hasRows === null ? 1 : 0);
  return columns < 2 ? gap : Math.max(gap, Math.min(APART, (width - used) / (columns - 1)));
}
