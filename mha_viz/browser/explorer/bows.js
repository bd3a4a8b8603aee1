// The weights of the open head between the words of one text, left for the sentence above, which draws them as arcs on
// a first visit and may come later. Another quantity, or another text as keys, has no arcs.
import { typedOf } from "../ink.js";
/** @import { Bows } from "../sentence/arched.js" */
/** @import { Stores } from "./explorer.js" */

const onPage = /** @type {{ mhaVizBows?: Bows }} */ (globalThis);
const LEAST = 0.1; // the smallest weight that has an arc
const MOST = 64; // words of a sentence that may stand on one line

/** @type {(stores: Stores) => void} */
export function tellBows({ shown, isAlone }) {
  if (isAlone || !shown.opened) return;
  const { rows, cols } = shown.axes;
  const { part, colour } = shown.opened;
  const has = !part.quantity && rows.length === cols.length && rows.length <= MOST;
  const ordinary = has ? rows.flatMap((unit, i) => (unit.special ? [] : [i])) : [];
  const words = ordinary.map((i) => typedOf(rows[i].text));
  /** @type {[number, number, number][]} */
  const links = [];
  ordinary.forEach((r, from) =>
    ordinary.forEach((c, to) => {
      const weight = part.w[r * part.C + c];
      if (r !== c && weight >= LEAST) links.push([from, to, weight]);
    }),
  );
  onPage.mhaVizBows = { words, links, colour };
  document.dispatchEvent(new Event("mha-bows"));
}
