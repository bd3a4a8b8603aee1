// Show the recipe of a head: its rules in words and as bars, and the cells that a rule predicts.
import { make } from "../dom.js";
import { formatDecimal } from "../numerals.js";
/** @import { Axes } from "../geometry.js" */
/** @import { Children } from "../dom.js" */

/**
 * A rule in words (`says`), the annotation that it `needs`, and the cells that it predicts, as bits in base64.
 *
 * @typedef {{ name: string, says: string, kind: string, needs: string, cells: string }} Rule
 */
/**
 * @typedef {{ parts: [number, number][], explained: number, interval: [number, number] | null, isEven: boolean,
 *   here?: number[] }} HeadRecipe
 */

/**
 * Recipes as sent by figures/words/known_facts.py, with their results on a text from app/explore/badges.py. `on`: the
 * corpora; `colours`: the positions of kinds among the head colours; `heads`: the parts of each head, largest first,
 * each with the number of a rule and its share, the 95 % interval of the share explained, if known, and the shares on
 * this text; `here`: how much of this text each recipe explains; `annotated`: whether rules that need annotation were
 * applied.
 *
 * @typedef {{ on: string, colours: Record<string, number>, rules: Rule[], heads: HeadRecipe[], here: number[] | null,
 *   annotated: boolean }} Recipes
 */

export const UNEXPLAINED = "unexplained";
const MAX_SPOKEN = 2; // rules read out by screen readers
const MIN_SHOWN_SHARE = 0.005; // shares below this are shown as 0%
/** @type {(share: number) => string} */
const formatShare = (share) => `${formatDecimal(100 * share, 0)}%`;
/** @type {(share: number | undefined) => string} */
const formatShareHere = (share) => (share === undefined ? "" : `, here ${formatShare(share)}`);
const EVEN_TEXT = "On average it attends evenly to all tokens.";

// Make a sample of the colour and the pattern of a kind of rule.
/** @type {(recipes: Recipes, kind: string, colours: string[]) => HTMLElement} */
function makeSample(recipes, kind, colours) {
  const box = make("u", { class: kind });
  if (kind in recipes.colours) box.style.setProperty("--colour", colours[recipes.colours[kind] % colours.length]);
  return box;
}

/** @type {(rule: Rule, share: number) => string} */
const describeRule = ({ says, kind }, share) => `${formatShare(share)} ${kind === "even" ? "" : "to "}${says}`;
/** @type {(head: HeadRecipe) => string} */
const describeRemainder = ({ explained, interval }) =>
  formatShare(1 - explained) + (interval ? ` [${formatShare(1 - interval[1])}, ${formatShare(1 - interval[0])}]` : "");

/** @type {(recipes: Recipes, head: number) => string} */
export function describeRecipe(recipes, head) {
  const { parts, explained, isEven } = recipes.heads[head];
  const ruleWords = parts.slice(0, MAX_SPOKEN).map(([rule, share]) => describeRule(recipes.rules[rule], share));
  const remainder =
    1 - explained < MIN_SHOWN_SHARE ? "" : `; no rule explains ${describeRemainder(recipes.heads[head])}`;
  return isEven ? `${EVEN_TEXT} ` : `On average it attends ${ruleWords.join(", ")}${remainder}. `;
}

// List every rule of a head with its share, and the share that no rule explains, named by `remainderLabel`.
/**
 * @type {(recipes: Recipes, head: number, colours: string[], markRule: (rule: number | null) => void,
 *   remainderLabel: HTMLElement) => Children}
 */
export function makeRows(recipes, head, colours, markRule, remainderLabel) {
  const { parts, explained, here } = recipes.heads[head];
  const rows = parts.map(([rule, share], index) => {
    const { says, kind, needs } = recipes.rules[rule];
    const isSkipped = needs && areRulesSkipped(recipes);
    const label = isSkipped ? `${says} *` : says;
    const button = make(
      "button",
      { type: "button", ...makePointerHandlers(rule, markRule) },
      makeSample(recipes, kind, colours),
      label,
    );
    return makeRow(
      button,
      recipes,
      kind,
      colours,
      share,
      formatShare(share) + formatShareHere(isSkipped ? undefined : here?.[index]),
    );
  });
  remainderLabel.replaceChildren(makeSample(recipes, UNEXPLAINED, colours), UNEXPLAINED);
  const remainderText =
    describeRemainder(recipes.heads[head]) + formatShareHere(recipes.here ? 1 - recipes.here[head] : undefined);
  return [...rows, makeRow(remainderLabel, recipes, UNEXPLAINED, colours, 1 - explained, remainderText)];
}

/**
 * @type {(name: HTMLElement, recipes: Recipes, kind: string, colours: string[], share: number, text: string) =>
 *   HTMLElement}
 */
function makeRow(name, recipes, kind, colours, share, text) {
  const part = makeSample(recipes, kind, colours);
  part.style.width = `${100 * share}%`;
  const bar = make("dd", { class: "bar part", "aria-hidden": true }, part);
  return make("div", {}, make("dt", {}, name), bar, make("dd", {}, text));
}

// Say which text the shares belong to, and what the star of a rule means.
/** @type {(recipes: Recipes, head: number) => string} */
export function writeRemark(recipes, head) {
  const { on, rules, heads } = recipes;
  const hasSkipped = areRulesSkipped(recipes) && heads[head].parts.some(([rule]) => rules[rule].needs);
  const starNote = hasSkipped ? " * needs annotation: left out here." : "";
  return `Measured on ${on}: described, not explained.${starNote}`;
}

// Whether rules that need annotation are not applied to this text.
/** @type {(recipes: Recipes) => boolean} */
const areRulesSkipped = ({ here, annotated }) => !!here && !annotated;

/** @type {(rule: number, markRule: (rule: number | null) => void) => Record<string, any>} */
const makePointerHandlers = (rule, markRule) => ({
  onpointerenter: () => markRule(rule),
  onpointerleave: () => markRule(null),
  onfocus: () => markRule(rule),
  onblur: () => markRule(null),
});

// Return the cells of a drawing that a rule predicts, or null if they were not sent.
/** @type {(rule: Rule, n: number, axes: Axes) => boolean[] | null} */
export function findCells({ cells }, n, { rows, cols }) {
  if (!cells) return null;
  const bytes = atob(cells);
  /** @type {(query: number, key: number) => boolean} */
  const isMarked = (query, key) => {
    const cell = query * n + key;
    return !!((bytes.charCodeAt(cell >> 3) >> (7 - (cell & 7))) & 1);
  };
  return rows.flatMap((row) =>
    cols.map((col) => row.tokens.some((query) => col.tokens.some((key) => isMarked(query, key)))),
  );
}
