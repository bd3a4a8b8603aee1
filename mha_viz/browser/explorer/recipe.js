// The recipe of a head: a bar under its square, its rules in words, and the cells that a rule predicts.
import { make } from "../dom.js";
import { decimal } from "../numerals.js";
/** @import { Axes } from "../geometry.js" */
/** @import { Children } from "../dom.js" */

/** @typedef {{ name: string, says: string, kind: string, needs: string, cells: string }} Rule */
/**
 * @typedef {{ parts: [number, number][], explained: number, interval: [number, number] | null, isEven: boolean,
 *   here?: number[] }} HeadRecipe
 */

/**
 * As figures/known.py sends them, and ui/explore/badges.py with what they say of a text: `on`, the corpora; `colours`,
 * the places of kinds among the colours of heads; `heads`, the parts of each head, largest first, as the number of a
 * rule and its share, the 95 % interval of what they explain, if it is known, and what each takes of this text; `here`,
 * how much each recipe explains of it; `annotated`, whether rules that need annotation were applied.
 *
 * @typedef {{ on: string, colours: Record<string, number>, rules: Rule[], heads: HeadRecipe[], here: number[] | null,
 *   annotated: boolean }} Recipes
 */

const KINDS = ["position", "special", "grammar", "form", "even"]; // in the order of a bar
export const UNEXPLAINED = "unexplained";
const NAMED = { most: 2, least: 0.05 }; // rules in the line of a head
const HARDLY = 0.005; // shares below it are 0%
/** @type {(share: number) => string} */
const whole = (share) => `${decimal(100 * share, 0)}%`;
/** @type {(share: number | undefined) => string} */
const now = (share) => (share === undefined ? "" : ` (here ${whole(share)})`);
const EVEN = "Usually attends evenly to all tokens.";

// The share of each kind of rule, in the order of a bar; what is not explained comes last.
/** @type {(recipes: Recipes, head: number) => [string, number][]} */
export function byKind({ rules, heads }, head) {
  const { parts, explained } = heads[head];
  const sums = new Map(KINDS.map((kind) => [kind, 0]));
  for (const [rule, share] of parts) sums.set(rules[rule].kind, (sums.get(rules[rule].kind) ?? 0) + share);
  return [...sums, /** @type {[string, number]} */ ([UNEXPLAINED, 1 - explained])].filter(([, share]) => share > 0);
}

// A sample of the colour and the pattern of a kind.
/** @type {(recipes: Recipes, kind: string, colours: string[]) => HTMLElement} */
function sample(recipes, kind, colours) {
  const box = make("u", { class: kind });
  if (kind in recipes.colours) box.style.setProperty("--colour", colours[recipes.colours[kind] % colours.length]);
  return box;
}

/** @type {(recipes: Recipes, head: number, colours: string[]) => HTMLElement} */
export function barOf(recipes, head, colours) {
  const parts = byKind(recipes, head).map(([kind, share]) => {
    const part = sample(recipes, kind, colours);
    part.style.flexGrow = String(share);
    return part;
  });
  return make("b", { class: "recipe" }, ...parts);
}

/** @type {(rule: Rule, share: number) => string} */
const going = ({ says, kind }, share) => `${whole(share)} ${kind === "even" ? "" : "to "}${says}`;
/** @type {(head: HeadRecipe) => string} */
const leftBy = ({ explained, interval }) =>
  whole(1 - explained) + (interval ? ` [${whole(1 - interval[1])}, ${whole(1 - interval[0])}]` : "");

// What a head does over all text, and here: the numbers of its largest rules, and null for what is left over, in words.
/** @type {(recipes: Recipes, head: number) => [number | null, string][]} */
export function wordsOf(recipes, head) {
  const { parts, explained, here } = recipes.heads[head];
  const named = parts.filter(([, share], place) => !place || share >= NAMED.least).slice(0, NAMED.most); // in order
  const line = named.map(([rule, share], place) => {
    const shown = recipes.rules[rule].needs && isLeftOut(recipes) ? undefined : here?.[place];
    return /** @type {[number | null, string]} */ ([rule, going(recipes.rules[rule], share) + now(shown)]);
  });
  const more = explained - named.reduce((sum, [, share]) => sum + share, 0);
  if (more >= HARDLY && line.length) line[line.length - 1][1] += `, ${whole(more)} otherwise`;
  const left = now(recipes.here ? 1 - recipes.here[head] : undefined);
  return 1 - explained < HARDLY ? line : [...line, [null, `${leftBy(recipes.heads[head])} ${UNEXPLAINED}${left}`]];
}

// The same in a line; `point` is told which rule is pointed at.
/** @type {(recipes: Recipes, head: number, colours: string[], point: (rule: number | null) => void) => Children} */
export function lineOf(recipes, head, colours, point) {
  if (recipes.heads[head].isEven) return [EVEN];
  const words = wordsOf(recipes, head);
  const line = words.map(([rule, text]) => {
    const kind = rule === null ? UNEXPLAINED : recipes.rules[rule].kind;
    return make("span", rule === null ? {} : pointing(rule, point), sample(recipes, kind, colours), text);
  });
  /** @type {(place: number) => string} */
  const before = (place) => (words[place][0] === null ? "; " : ", ");
  return ["Usually attends ", ...line.flatMap((part, i) => (i ? [before(i), part] : [part]))];
}

/** @type {(recipes: Recipes, head: number) => string} */
export function spokenRecipe(recipes, head) {
  const { parts, explained, isEven } = recipes.heads[head];
  const named = parts.slice(0, NAMED.most).map(([rule, share]) => going(recipes.rules[rule], share));
  const left = 1 - explained < HARDLY ? "" : `; ${leftBy(recipes.heads[head])} ${UNEXPLAINED}`;
  return isEven ? `${EVEN} ` : `Usually attends ${named.join(", ")}${left}. `;
}

// Every rule of a head with its share; `rest` is the name of what they do not explain.
/**
 * @type {(recipes: Recipes, head: number, colours: string[], point: (rule: number | null) => void,
 *   rest: HTMLElement) => Children}
 */
export function rowsOf(recipes, head, colours, point, rest) {
  const { parts, explained } = recipes.heads[head];
  const rows = parts.map(([rule, share]) => {
    const { says, kind, needs } = recipes.rules[rule];
    const written = needs && isLeftOut(recipes) ? `${says} *` : says;
    const button = make(
      "button",
      { type: "button", ...pointing(rule, point) },
      sample(recipes, kind, colours),
      written,
    );
    return rowOf(button, recipes, kind, colours, share);
  });
  rest.replaceChildren(sample(recipes, UNEXPLAINED, colours), UNEXPLAINED);
  return [...rows, rowOf(rest, recipes, UNEXPLAINED, colours, 1 - explained, leftBy(recipes.heads[head]))];
}

/**
 * @type {(name: HTMLElement, recipes: Recipes, kind: string, colours: string[], share: number, says?: string) =>
 *   HTMLElement}
 */
function rowOf(name, recipes, kind, colours, share, says = whole(share)) {
  const part = sample(recipes, kind, colours);
  part.style.width = `${100 * share}%`;
  const bar = make("dd", { class: "bar part", "aria-hidden": true }, part);
  return make("div", {}, make("dt", {}, name), bar, make("dd", {}, says));
}

// Which text the shares are of, and what the star of a rule says.
/** @type {(recipes: Recipes, head: number) => string} */
export function remarkOf(recipes, head) {
  const { on, rules, heads } = recipes;
  const isLeft = isLeftOut(recipes) && heads[head].parts.some(([rule]) => rules[rule].needs);
  return `Recipe of ${on}: described, not caused.${isLeft ? " * needs annotation: left out here." : ""}`;
}

// Whether rules that need annotation are not applied to this text.
/** @type {(recipes: Recipes) => boolean} */
const isLeftOut = ({ here, annotated }) => !!here && !annotated;

/** @type {(rule: number, point: (rule: number | null) => void) => Record<string, any>} */
const pointing = (rule, point) => ({
  onpointerenter: () => point(rule),
  onpointerleave: () => point(null),
  onfocus: () => point(rule),
  onblur: () => point(null),
});

// Which cells of a drawing a rule predicts; null where that was not sent.
/** @type {(rule: Rule, n: number, axes: Axes) => boolean[] | null} */
export function cellsOf({ cells }, n, { rows, cols }) {
  if (!cells) return null;
  const bytes = atob(cells);
  /** @type {(query: number, key: number) => boolean} */
  const isMarked = (query, key) => {
    const at = query * n + key;
    return !!((bytes.charCodeAt(at >> 3) >> (7 - (at & 7))) & 1);
  };
  return rows.flatMap((row) =>
    cols.map((col) => row.tokens.some((query) => col.tokens.some((key) => isMarked(query, key)))),
  );
}
