// The links of the open head between words, told to the sentence above, which draws them as arcs on a first visit.
/** @import { Bows } from "../sentence/arched.js" */
/** @import { Stores } from "./explorer.js" */

const LEAST = 0.1; // the smallest weight that has an arc

/** @type {(stores: Stores) => void} */
export function tellBows({ shown, isAlone }) {
  if (isAlone || !shown.opened) return;
  const { rows, cols } = shown.axes;
  const { part, colour } = shown.opened;
  const ordinary = rows.flatMap((unit, i) => (unit.special ? [] : [i]));
  const words = ordinary.map((i) => rows[i].text);
  /** @type {[number, number, number][]} */
  const links = [];
  ordinary.forEach((r, from) =>
    ordinary.forEach((c, to) => {
      const weight = c < cols.length ? part.w[r * part.C + c] : 0;
      if (r !== c && weight >= LEAST) links.push([from, to, weight]);
    }),
  );
  /** @type {Bows} */
  const detail = { words, links, colour };
  document.dispatchEvent(new CustomEvent("mha-bows", { detail }));
}
