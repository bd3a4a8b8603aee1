// What was read: a reading, and what is known of its heads.
import { keysOf, unpack } from "../reading.js";
import { byHead } from "./roles.js";
/** @import { Reading } from "../reading.js" */
/** @import { Arrow } from "./arrows.js" */
/** @import { Finding } from "./findings.js" */
/** @import { Recipes } from "./recipe.js" */
/** @import { HeadRoles, Mode } from "./roles.js" */

const KEEP_BYTES = 64e6; // the most matrices that are cached for heads opened before

/**
 * What is new about a reading. `isLed`: the server has written another view into the address.
 *
 * @typedef {{ isSame: boolean, isOfSameTokens: boolean, isStep: boolean, isLed: boolean }} Received
 */

export class Read {
  reading = /** @type {Reading} */ (/** @type {unknown} */ (null)); // none until the first bytes arrive
  roles = byHead({ kinds: {}, on: [], measured: false, roles: [] });
  tour = ""; // the step of the tour, as sent by the server
  opened = 0; // how often the server has opened a head by itself
  unusual = /** @type {Finding[]} */ ([]); // findings about this text
  turns = /** @type {Pick<Finding, "head" | "pin">[]} */ ([]); // what a first visit shows in turn
  mode = /** @type {Mode | null} */ (null); // what is known of heads that are switched off, null outside that mode
  recipes = /** @type {Recipes | null} */ (null); // null for a model without
  arrows = /** @type {Arrow[] | null} */ (null); // null unless they were asked for
  quiet = false; // the strongest link would give an answer away

  // Take a reading, or its bytes, and the roles of its heads. The matrices of `open` heads stay.
  /** @type {(data: Uint8Array | Reading, headRoles: HeadRoles | null, open: () => number[]) => Received} */
  receive(data, headRoles, open) {
    const next = data instanceof Uint8Array ? unpack(data) : data;
    const { reading } = this;
    const isStep = !!headRoles?.tour && headRoles.tour !== this.tour;
    const isOther = (/** @type {"opened" | "quiet"} */ name) => !!headRoles && headRoles[name] !== this[name];
    const isLed = isStep || isOther("opened") || isOther("quiet");
    if (headRoles) {
      const { tour, opened, quiet, unusual, turns, off, recipes, arrows } = headRoles;
      Object.assign(this, {
        roles: byHead(headRoles),
        tour,
        opened,
        quiet,
        unusual,
        turns,
        mode: off,
        recipes,
        arrows,
      });
    }
    const isSame = reading?.key === next.key;
    const isOfSameTokens = /** @type {const} */ (["of", "model", "heads"]).every(
      (name) => reading?.[name] === next[name],
    );
    if (isSame) keep(reading, next, open());
    else this.reading = next;
    return { isSame, isOfSameTokens, isStep, isLed };
  }
}

// More of the current reading: its matrices join the others; the oldest are dropped if there is no room.
/** @type {(reading: Reading, next: Reading, open: number[]) => void} */
function keep(reading, next, open) {
  if (next.link) reading.link = next.link;
  for (const [head, matrix] of next.matrices) reading.matrices.set(head, matrix);
  const room = Math.max(24, KEEP_BYTES / (4 * reading.n * keysOf(reading).n));
  for (const head of reading.matrices.keys()) {
    if (reading.matrices.size <= room) break;
    if (!open.includes(head)) reading.matrices.delete(head);
  }
}
