// The data of the explorer: a reading, facts about its heads, and the state that is drawn.
import { computeBlock, computeShades, computeUnits } from "../geometry.js";
import { getSignColours, getTypedPart } from "../ink.js";
import { makeLinks } from "../links.js";
import { getKeys, formatMapName, unpack } from "../reading.js";
import { STRENGTH_SETTINGS, serializeSettings } from "../view.js";
import { listDrawnHeads, getHeadColour, getHeadDash } from "./heads.js";
import { indexByHead } from "./roles.js";
/** @import { Axes, Pin, Unit } from "../geometry.js" */
/** @import { Spot } from "../layouts.js" */
/** @import { ShownHead } from "../links.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Look } from "../stage.js" */
/** @import { Arcs } from "../sentence/arched.js" */
/** @import { Finding, Stores } from "./explorer.js" */
/** @import { ReadingStage } from "./heads.js" */
/** @import { Arrow } from "./overview.js" */
/** @import { Recipes } from "./recipe.js" */
/** @import { OtherCases, HeadRoles, Ablation, ShowcaseHead } from "./roles.js" */

const CACHE_BYTES = 64e6; // for the matrices of heads opened earlier

/**
 * How a new reading differs from the last one. `isNewTourStep`: the tour has moved on. `hasSameTokens`: it has the same
 * text, model and number of heads. `isViewReplaced`: the server has changed the view in the address.
 *
 * @typedef {{ isSameReading: boolean, hasSameTokens: boolean, isNewTourStep: boolean, isViewReplaced: boolean }}
 *   ReadingChange
 */

// No head has cases. Also the default in exported files, which have no server that sends others.
const NO_CASES = /** @type {OtherCases} */ ({ head: -1, cases: [] });

export class ReadingData {
  reading = /** @type {Reading} */ (/** @type {unknown} */ (null)); // null until data arrive
  roles = indexByHead({ kinds: {}, on: [], measured: false, roles: [] });
  tour = ""; // the step of the tour, as sent by the server
  opened = 0; // how many times the server has opened a head by itself, as sent by the server
  findings = /** @type {Finding[]} */ ([]); // findings about this text
  showcaseHeads = /** @type {ShowcaseHead[]} */ ([]); // the heads shown in turn on a first visit
  ablation = /** @type {Ablation | null} */ (null); // the heads switched off and their effects; null if all are on
  otherCases = NO_CASES; // other sentences in which the open head plays its role
  recipes = /** @type {Recipes | null} */ (null); // null for models without recipes
  arrows = /** @type {Arrow[] | null} */ (null); // null unless requested
  canExplainLinks = false; // whether the server explains links
  quiet = false; // whether the strongest link is hidden, because it would reveal an answer

  // Receive a reading, as an object or as bytes, and facts about its heads. Keep the matrices of open heads. Return
  // what has changed.
  /**
   * @type {(data: Uint8Array | Reading, headRoles: HeadRoles | null, getOpenHeads: () => number[]) =>
   *   ReadingChange}
   */
  receive(data, headRoles, getOpenHeads) {
    const newReading = data instanceof Uint8Array ? unpack(data) : data;
    const { reading } = this;
    const isNewTourStep = !!headRoles?.tour && headRoles.tour !== this.tour;
    const hasChanged = (/** @type {"opened" | "quiet"} */ name) => !!headRoles && headRoles[name] !== this[name];
    const isViewReplaced = isNewTourStep || hasChanged("opened") || hasChanged("quiet");
    if (headRoles) {
      const {
        tour,
        opened,
        quiet,
        unusual: findings,
        turns: showcaseHeads,
        off: ablation,
        elsewhere: otherCases = NO_CASES,
        explains: canExplainLinks = false,
        recipes,
        arrows,
      } = headRoles;
      Object.assign(this, {
        roles: indexByHead(headRoles),
        tour,
        opened,
        quiet,
        findings,
        showcaseHeads,
        ablation,
        otherCases,
        canExplainLinks,
        recipes,
        arrows,
      });
    }
    const isSameReading = reading?.key === newReading.key;
    // `of`: the key of the text
    const hasSameTokens = /** @type {const} */ (["of", "model", "heads"]).every(
      (name) => reading?.[name] === newReading[name],
    );
    if (isSameReading) mergeMatrices(reading, newReading, getOpenHeads());
    else this.reading = newReading;
    return { isSameReading, hasSameTokens, isNewTourStep, isViewReplaced };
  }
}

// Add the matrices of further heads of the current reading. If the cache is full, drop the oldest, but no open heads.
/** @type {(reading: Reading, next: Reading, openHeads: number[]) => void} */
function mergeMatrices(reading, next, openHeads) {
  if (next.link) reading.link = next.link; // the weights of the chosen link in all heads
  for (const [head, matrix] of next.matrices) reading.matrices.set(head, matrix);
  const maxMatrices = Math.max(24, CACHE_BYTES / (4 * reading.n * getKeys(reading).n));
  for (const head of reading.matrices.keys()) {
    if (reading.matrices.size <= maxMatrices) break;
    if (!openHeads.includes(head)) reading.matrices.delete(head);
  }
}

// ---- The visible state --------------------------------------------------------------------------------------

// Compute the rows, columns and open heads of a view, cached until it changes, and the pinned spot.

/** @typedef {{ key: string, reading: Reading, rowsKey: string, axes: Axes, heads: ShownHead[] }} DrawnState */

export class VisibleState {
  #state = /** @type {DrawnState | null} */ (null);
  #data;
  #stage;
  #look;

  /** @param {ReadingData} data @param {ReadingStage} stage @param {Look} look */
  constructor(data, stage, look) {
    this.#data = data;
    this.#stage = stage;
    this.#look = look;
  }

  get axes() {
    return this.#update().axes;
  }

  get heads() {
    return this.#update().heads;
  }

  // Return the open head, which is named above the drawings; undefined while its weights are loading.
  get openHead() {
    return this.heads.find(({ head }) => head === this.#stage.view.head);
  }

  #update() {
    const { reading } = this.#data;
    const { view } = this.#stage;
    const { links: linkSetting, scale } = view;
    const loadedHeads = listDrawnHeads(view).filter((head) => reading.matrices.has(head));
    const key = JSON.stringify([serializeSettings(view, "explorer"), loadedHeads, this.#look.theme]);
    if (this.#state?.key === key && this.#state.reading === reading) return this.#state;
    const rowsKey = serializeSettings(view, "explorer", STRENGTH_SETTINGS);
    const axes = this.#getAxes(rowsKey);
    const headsWithoutLinks = loadedHeads.map((head) => this.#makeHead(head, axes));
    const blocks = headsWithoutLinks.map(({ block }) => block);
    const links = makeLinks(blocks, axes, linkSetting, scale);
    const heads = headsWithoutLinks.map((head, i) => ({ ...head, ...links[i] }));
    return (this.#state = { key, reading, rowsKey, axes, heads });
  }

  // Return the rows and columns: the same objects while they are unchanged, so that cached measurements stay valid.
  /** @type {(rowsKey: string) => Axes} */
  #getAxes(rowsKey) {
    const { reading } = this.#data;
    const previous = this.#state;
    return previous?.reading === reading && previous.rowsKey === rowsKey
      ? previous.axes
      : computeUnits(reading, this.#stage.view);
  }

  /** @type {(head: number, axes: Axes) => ShownHead} */
  #makeHead(head, axes) {
    const { reading } = this.#data;
    const { view } = this.#stage;
    const look = this.#look;
    const block = computeBlock(reading, head, view, axes);
    const dash = getHeadDash(look, view, head);
    const colours = reading.signed ? getSignColours(look) : { colour: getHeadColour(look, reading, head) };
    return { head, dash, block, shade: computeShades(block, view.scale), ...colours };
  }

  // Return the pinned spot, or null if its tokens are not shown.
  findPinnedSpot() {
    const { pin } = this.#stage.view;
    if (!pin || !this.#state) return null;
    const { rows, cols } = this.axes;
    /** @type {(list: Unit[], token: number | null) => number | null} */
    const find = (list, token) => (token === null ? null : list.findIndex((unit) => unit.tokens.includes(token)));
    const spot = /** @type {Spot} */ ({ row: find(rows, pin.query), col: find(cols, pin.key) });
    return spot.row === -1 || spot.col === -1 ? null : spot;
  }

  /** @type {(spot: Spot) => Pin} */
  makePin({ row, col }) {
    const { rows, cols } = this.axes;
    /** @type {(list: Unit[], index: number | null) => number | null} */
    const token = (list, index) => (index === null ? null : list[index].tokens[0]);
    return { query: token(rows, row), key: token(cols, col) };
  }
}

// ---- Arcs under the sentence --------------------------------------------------------------------------------

const sharedGlobals = /** @type {{ mhaVizArcs?: Arcs }} */ (globalThis);
const MIN_WEIGHT = 0.1; // the smallest weight drawn as an arc
const MAX_WORDS = 64; // maximum number of words of a sentence with arcs

// Whether the sentence above can have arcs: only on the page, for attention weights from a text to itself, if it has at
// most MAX_WORDS words.
/** @type {(stores: Stores) => boolean} */
export function hasArcs({ visible, data, isStandalone }) {
  const { reading } = data;
  const { rows, cols } = visible.axes;
  if (isStandalone || reading.quantity || reading.keys) return false;
  const areKeysRows = rows.length === cols.length && rows.every(({ tokens }, i) => tokens[0] === cols[i].tokens[0]);
  return areKeysRows && rows.length <= MAX_WORDS;
}

// Publish the open head's weights between the words of the text for the sentence component, which draws them as arcs
// and may load later. If a word is pinned, publish only its weights. `description` is of the head.
/** @type {(stores: Stores, description: string) => void} */
export function publishArcs(stores, description) {
  const { visible, data, isStandalone } = stores;
  if (isStandalone || !visible.openHead) return;
  const { rows } = visible.axes;
  const { block, colour, head } = visible.openHead;
  const wordRows = hasArcs(stores) ? rows.flatMap((unit, i) => (unit.special ? [] : [i])) : [];
  const spot = visible.findPinnedSpot() ?? { row: null, col: null };
  /** @type {(row: number, col: number) => boolean} */
  const isShown = (row, col) => (spot.row === null || spot.row === row) && (spot.col === null || spot.col === col);
  /** @type {[number, number, number][]} */
  const arcs = [];
  wordRows.forEach((row, from) =>
    wordRows.forEach((col, to) => {
      const weight = block.w[row * block.C + col];
      if (row !== col && weight >= MIN_WEIGHT && isShown(row, col)) arcs.push([from, to, weight]);
    }),
  );
  const roleWords = data.roles.byHead
    .get(head)
    ?.find(({ active }) => active)
    ?.words.split(/[,.] /)[0];
  const name = formatMapName(data.reading, head);
  sharedGlobals.mhaVizArcs = {
    words: wordRows.map((i) => getTypedPart(rows[i].text)),
    links: arcs,
    colour,
    says: description || (roleWords ? `${name}: ${roleWords}` : name),
  };
  document.dispatchEvent(new Event("mha-arcs"));
}
