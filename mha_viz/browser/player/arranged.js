// Arrange the maps of all heads on a stage, as large as possible while all fit in the window.

/**
 * The available room, in pixels: `height` down to the bar with the button; `sentenceHeight` of the sentence above the
 * maps; `label`: size of the words beside and above a map; `caption`: height of the captions above each map.
 *
 * @typedef {{ width: number, height: number, sentenceHeight: number, label: number, caption: number, gap: number }}
 *   Room
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

/** @typedef {Arrangement & { cellWidth: number, cellHeight: number, minCell: number, score: number }} Candidate */

const MIN_CELL = 12; // of maps with words, pixels; the words are 11 pixels high
const MIN_BARE_WIDTH = 72; // of a map without words, pixels
const SCROLLING_WIDTH = 180; // width of a map if the window is too low for all
const ASIDE = { width: 316, gap: 28, page: 900 }; // minimum sizes for the sentence beside the maps; see player.css
const MAX_EQUAL = 8; // maps in equal rows, or with words in a window that is too low for all
const MAX_GAP = 60; // between two maps, pixels
// Factors for the score of an arrangement: maps with words of their own, and maps below the sentence that use the whole
// width (full) or leave much of it empty.
const WEIGHTS = { rows: 1.15, columns: 1.1, full: 1.06, empty: 0.85 };
const MIN_FILLED = 0.9; // share of the width below which it counts as empty
/** @type {(boolean | null)[][]} */
const LABEL_CHOICES = [
  [true, true],
  [true, null],
  [null, true],
  [null, null],
  [false, false],
];

/** @type {(maps: Maps, room: Room) => Arrangement} */
export function arrangeMaps(maps, room) {
  const counts = maps.rows ? [maps.count / maps.rows] : listColumnCounts(maps.count);
  const candidates = counts.flatMap((columns) => listCandidates(columns, maps, room));
  const fittingCandidates = candidates.filter(({ cell, minCell }) => cell >= minCell).sort((a, b) => b.score - a.score);
  const bestCandidate = fittingCandidates.find(({ hasRows }) => hasRows !== false) ?? fittingCandidates[0];
  const arrangement = (maps.isBare ? null : bestCandidate) ?? fillRows(candidates, maps);
  return arrangement.isAside ? arrangement : { ...arrangement, gap: computeGap(arrangement, maps, room) };
}

// Return all numbers of columns that leave no column empty; four to eight maps are arranged in rows of equal length.
/** @type {(count: number) => number[]} */
const listColumnCounts = (count) =>
  Array.from({ length: count }, (_, i) => i + 1).filter((columns) =>
    count > MAX_EQUAL || count < 4 ? columns === Math.ceil(count / Math.ceil(count / columns)) : count % columns === 0,
  );

/** @type {(columns: number, maps: Maps, room: Room) => Candidate[]} */
const listCandidates = (columns, maps, room) =>
  [false, ...(room.width < ASIDE.page ? [] : [true])].flatMap((isAside) =>
    LABEL_CHOICES.map(([hasRows, hasColumns]) =>
      makeCandidate({ columns, gap: room.gap, hasRows, hasColumns, isAside }, maps, room),
    ),
  );

/** @type {(layout: Omit<Arrangement, "cell">, maps: Maps, room: Room) => Candidate} */
function makeCandidate(layout, { count, words }, { width, height, sentenceHeight, label, caption, gap }) {
  const { columns, hasRows, hasColumns, isAside } = layout;
  const rows = Math.ceil(count / columns);
  /** @type {(isShown: boolean | null, mapCount: number) => number} */
  const measureLabels = (isShown, mapCount) => label * (isShown ? mapCount : isShown === null ? 1 : 0);
  const usedWidth = measureLabels(hasRows, columns) + (columns - 1) * gap + (isAside ? ASIDE.width + ASIDE.gap : 0);
  const usedHeight =
    measureLabels(hasColumns, rows) + (rows - 1) * gap + rows * caption + (isAside ? 0 : sentenceHeight);
  const [cellWidth, cellHeight] = [(width - usedWidth) / columns / words, (height - usedHeight) / rows / words];
  const cell = Math.floor(Math.min(cellWidth, cellHeight));
  const usedShare = (usedWidth + columns * cell * words) / width;
  const isEmpty = width >= ASIDE.page && usedShare < MIN_FILLED; // the sentence could stand in the free space
  const widthFactor = isAside ? 1 : Math.min(1, 0.15 + usedShare) * (isEmpty ? WEIGHTS.empty : WEIGHTS.full);
  const score = cell * (hasRows ? WEIGHTS.rows : 1) * (hasColumns ? WEIGHTS.columns : 1) * widthFactor;
  const minCell = hasRows === false ? MIN_BARE_WIDTH / words : MIN_CELL;
  return { ...layout, cellWidth, cellHeight, cell, score, minCell };
}

// Arrange maps in a window that is too low for all: fill each row with maps of a readable size.
/** @type {(candidates: Candidate[], maps: Maps) => Candidate} */
function fillRows(candidates, { count, words, isBare }) {
  const candidatesBelow = candidates.filter(({ isAside }) => !isAside);
  const wideCandidates = candidatesBelow.filter(
    ({ cellWidth, minCell, hasRows }) => cellWidth >= minCell && (hasRows === false) === (isBare || count > MAX_EQUAL),
  );
  const chosenCandidate =
    wideCandidates.find(({ columns }) => columns === wideCandidates.at(-1)?.columns) ??
    candidatesBelow[candidatesBelow.length - 1];
  return {
    ...chosenCandidate,
    cell: Math.max(
      2,
      Math.floor(Math.min(chosenCandidate.cellWidth, Math.max(chosenCandidate.cellHeight, SCROLLING_WIDTH / words))),
    ),
  };
}

// Return the gap between two maps in a row: the unused width, up to a limit.
/** @type {(arrangement: Candidate, maps: Maps, room: Room) => number} */
function computeGap({ columns, cell, hasRows, gap }, { words }, { width, label }) {
  const usedWidth = columns * cell * words + label * (hasRows ? columns : hasRows === null ? 1 : 0);
  return columns < 2 ? gap : Math.max(gap, Math.min(MAX_GAP, (width - usedWidth) / (columns - 1)));
}
