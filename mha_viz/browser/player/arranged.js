// Arrange the maps of all heads on a stage, as large as possible while all fit in the window.

/**
 * `high`: height down to the bar with the button; `over`: height of the sentence above the maps; `label`: size of the
 * words beside and above a map; `caption`: height of the captions above each map.
 *
 * @typedef {{ width: number, high: number, over: number, label: number, caption: number, gap: number }} Room
 */

// `rows`: the required number of rows of maps, or 0.
/** @typedef {{ count: number, rows: number, words: number, isBare: boolean }} Maps */

/**
 * `hasRows`: whether the words of the rows stand beside each map (true), only beside the first map in a row (null), or
 * nowhere (false); `hasColumns`: likewise for the words above the maps. `isAside`: whether the sentence stands beside
 * the maps.
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

const READABLE = 12; // minimum cell size of maps with words, pixels; the words are 11 pixels high
const BARE = 72; // minimum width of a map without words, pixels
const LOW = 180; // width of a map if the window is too low for all
const ASIDE = { width: 316, gap: 28, page: 900 }; // minimum sizes for the sentence beside the maps; see player.css
const FEW = 8; // maximum number of maps in equal rows, or with words in a window that is too low for all
const APART = 60; // maximum space between two maps, pixels
// Factors by which the size of the maps is weighted if they have words of their own, or stand under their sentence and
// use the whole width.
const WORTH = { rows: 1.15, columns: 1.1, full: 1.06, empty: 0.85 };
const FILLED = 0.9; // of the width, to leave no part of it empty
/** @type {(boolean | null)[][]} */
const NAMES = [
  [true, true],
  [true, null],
  [null, true],
  [null, null],
  [false, false],
];

/** @type {(maps: Maps, room: Room) => Arrangement} */
export function arrangeMaps(maps, room) {
  const counts = maps.rows ? [maps.count / maps.rows] : listColumnCounts(maps.count);
  const ways = counts.flatMap((columns) => listWays(columns, maps, room));
  const inWindow = ways.filter(({ cell, least }) => cell >= least).sort((one, other) => other.worth - one.worth);
  const named = inWindow.find(({ hasRows }) => hasRows !== false) ?? inWindow[0];
  const arrangement = (maps.isBare ? null : named) ?? fillRows(ways, maps);
  return arrangement.isAside ? arrangement : { ...arrangement, gap: computeGap(arrangement, maps, room) };
}

// Return all numbers of columns that leave no column empty; four to eight maps stand in rows of equal length.
/** @type {(count: number) => number[]} */
const listColumnCounts = (count) =>
  Array.from({ length: count }, (_, i) => i + 1).filter((columns) =>
    count > FEW || count < 4 ? columns === Math.ceil(count / Math.ceil(count / columns)) : count % columns === 0,
  );

/** @type {(columns: number, maps: Maps, room: Room) => Way[]} */
const listWays = (columns, maps, room) =>
  [false, ...(room.width < ASIDE.page ? [] : [true])].flatMap((isAside) =>
    NAMES.map(([hasRows, hasColumns]) => makeWay({ columns, gap: room.gap, hasRows, hasColumns, isAside }, maps, room)),
  );

/** @type {(way: Omit<Arrangement, "cell">, maps: Maps, room: Room) => Way} */
function makeWay(way, { count, words }, { width, high, over, label, caption, gap }) {
  const { columns, hasRows, hasColumns, isAside } = way;
  const rows = Math.ceil(count / columns);
  /** @type {(has: boolean | null, each: number) => number} */
  const labels = (has, each) => label * (has ? each : has === null ? 1 : 0);
  const usedWidth = labels(hasRows, columns) + (columns - 1) * gap + (isAside ? ASIDE.width + ASIDE.gap : 0);
  const usedHeight = labels(hasColumns, rows) + (rows - 1) * gap + rows * caption + (isAside ? 0 : over);
  const [cellWidth, cellHeight] = [(width - usedWidth) / columns / words, (high - usedHeight) / rows / words];
  const cell = Math.floor(Math.min(cellWidth, cellHeight));
  const share = (usedWidth + columns * cell * words) / width;
  const isEmpty = width >= ASIDE.page && share < FILLED; // the sentence could stand in the free space
  const full = isAside ? 1 : Math.min(1, 0.15 + share) * (isEmpty ? WORTH.empty : WORTH.full);
  const worth = cell * (hasRows ? WORTH.rows : 1) * (hasColumns ? WORTH.columns : 1) * full;
  const minCell = hasRows === false ? BARE / words : READABLE;
  return { ...way, wide: cellWidth, tall: cellHeight, cell, worth, least: minCell };
}

// Arrange maps in a window that is too low for all: fill each row with maps of a readable size.
/** @type {(ways: Way[], maps: Maps) => Way} */
function fillRows(ways, { count, words, isBare }) {
  const under = ways.filter(({ isAside }) => !isAside);
  const fit = under.filter(
    ({ wide, least, hasRows }) => wide >= least && (hasRows === false) === (isBare || count > FEW),
  );
  const widest = fit.find(({ columns }) => columns === fit.at(-1)?.columns) ?? under[under.length - 1];
  return { ...widest, cell: Math.max(2, Math.floor(Math.min(widest.wide, Math.max(widest.tall, LOW / words)))) };
}

// Return the gap between two maps in a row: the rest of its width, up to a limit.
/** @type {(way: Way, maps: Maps, room: Room) => number} */
function computeGap({ columns, cell, hasRows, gap }, { words }, { width, label }) {
  const usedWidth = columns * cell * words + label * (hasRows ? columns : hasRows === null ? 1 : 0);
  return columns < 2 ? gap : Math.max(gap, Math.min(APART, (width - usedWidth) / (columns - 1)));
}
