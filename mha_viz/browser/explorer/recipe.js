// The recipe of a head: a bar under its square, its rules in words, and the cells that a rule predicts.
import { make } from "../dom.js";
import { decimal } from "../numerals.js";
/** @import { Axes } from "../geometry.js" */
/** @import { Children } from "../dom.js" */

/** @typedef {{ name: string, kind: string, needs: string, cells: string }} Rule */
/** @typedef {{ parts: [number, number][], explained: number, isEven: boolean }} HeadRecipe */

/**
 * As figures/known.py sends them, and ui/explore/badges.py with what they say of a text: `on`, the corpus; `colours`,
 * the places of kinds among the colours of heads; `heads`, the parts of each head, largest first, as the number of a
 * rule and its share; `here`, how much each recipe explains of this text.
 *
 * @typedef {{ on: string, colours: Record<string, number>, rules: Rule[], heads: HeadRecipe[], here: number[] | null }}
 *   Recipes
 */

const KINDS = ["position", "special", "grammar", "form", "even"]; // in the order of a bar
export const UNEXPLAINED = "unexplained";
const NAMED = { most: 2, least: 0.05 }; // rules in the line of a head
/** @type {(share: number) => string} */
const whole = (share) => `${decimal(100 * share, 0)}%`;
const EVEN = "Mostly even: nothing to explain.";

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

// What a head does over all text: its largest rules, and what is left over. `point` is told which rule is pointed at.
/** @type {(recipes: Recipes, head: number, colours: string[], point: (rule: number | null) => void) => Children} */
export function lineOf(recipes, head, colours, point) {
  const { parts, explained, isEven } = recipes.heads[head];
  if (isEven) return [EVEN];
  const named = parts.filter(([, share]) => share >= NAMED.least).slice(0, NAMED.most);
  const line = named.map(([rule, share]) => {
    const { kind, name } = recipes.rules[rule];
    return make("span", pointing(rule, point), sample(recipes, kind, colours), `${whole(share)} ${name}`);
  });
  const now = recipes.here ? `, here ${whole(1 - recipes.here[head])}` : "";
  const left = `${whole(1 - explained)} ${UNEXPLAINED}${now}`;
  const rest = make("span", {}, sample(recipes, UNEXPLAINED, colours), left);
  return [...line, rest].flatMap((part, i) => (i ? [" · ", part] : [part]));
}

/** @type {(recipes: Recipes, head: number) => string} */
export function spokenRecipe(recipes, head) {
  const { parts, explained, isEven } = recipes.heads[head];
  const named = parts.slice(0, NAMED.most).map(([rule, share]) => `${whole(share)} ${recipes.rules[rule].name}`);
  return isEven ? `${EVEN} ` : `Over a corpus ${named.join(", ")}, ${whole(1 - explained)} ${UNEXPLAINED}. `;
}

// Every rule of a head with its share; `rest` is the name of what they do not explain.
/**
 * @type {(recipes: Recipes, head: number, colours: string[], point: (rule: number | null) => void,
 *   rest: HTMLElement) => Children}
 */
export function rowsOf(recipes, head, colours, point, rest) {
  const { parts, explained } = recipes.heads[head];
  const rows = parts.map(([rule, share]) => {
    const { name, kind, needs } = recipes.rules[rule];
    const written = needs && recipes.here ? `${name} *` : name;
    const button = make(
      "button",
      { type: "button", ...pointing(rule, point) },
      sample(recipes, kind, colours),
      written,
    );
    return rowOf(button, recipes, kind, colours, share);
  });
  rest.replaceChildren(sample(recipes, UNEXPLAINED, colours), UNEXPLAINED);
  return [...rows, rowOf(rest, recipes, UNEXPLAINED, colours, 1 - explained)];
}

/** @type {(name: HTMLElement, recipes: Recipes, kind: string, colours: string[], share: number) => HTMLElement} */
function rowOf(name, recipes, kind, colours, share) {
  const part = sample(recipes, kind, colours);
  part.style.width = `${100 * share}%`;
  const bar = make("dd", { class: "bar part", "aria-hidden": true }, part);
  return make("div", {}, make("dt", {}, name), bar, make("dd", {}, whole(share)));
}

// Which text the shares are of, and what the star of a rule says.
/** @type {(recipes: Recipes, head: number) => string} */
export function remarkOf({ on, rules, heads, here }, head) {
  const isLeft = here && heads[head].parts.some(([rule]) => rules[rule].needs);
  return `Over ${on}: described, not caused.${isLeft ? " * needs annotation: left out here." : ""}`;
}

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
