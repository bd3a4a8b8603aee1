// The settings of a drawing, which Python reads from the same table: their values, their defaults, how they are read
// from the address and written there.
import ROWS from "../view/view.json" with { type: "json" };

/** @typedef {"head" | "on" | "pin" | "link" | "roles" | "arrows" | "diff" | "at"} WithoutControl */
/** @typedef {Exclude<keyof typeof ROWS.settings, WithoutControl>} Setting */

/**
 * The settings of a picture, in the values of the page's address: those with a control.
 *
 * @typedef {{ unit: string, special: string, links: string, scale: string } &
 *   Partial<Record<Setting, string>>} Settings
 */

/** @typedef {"explorer" | "compare"} Drawing */

/**
 * One value of a setting: its label and tip, and, of a family with numbers, its pattern, first value and range.
 *
 * @typedef {object} Choice
 * @property {string} label
 * @property {string} [title]
 * @property {Record<string, string>} [labels] by drawing
 * @property {string} [pattern]
 * @property {string} [first]
 * @property {number[]} [range]
 * @property {string} [changed]
 * @property {string[]} [not_in]
 */

/**
 * @typedef {object} Row
 * @property {string} [values]
 * @property {string} [default]
 * @property {string} [long]
 * @property {string} [not_shares]
 * @property {Record<string, Choice> | string} [choices] or the quantities
 * @property {string} [label]
 * @property {Record<string, string>} [labels] by drawing
 * @property {string} [control]
 * @property {string} [changed]
 * @property {string[]} drawings
 */

/**
 * What numbers are: the quantity, by default the weight, and whether they have signs.
 *
 * @typedef {{ quantity?: string, signed?: boolean }} Kind
 */

/** @type {Record<string, Row>} */
const SETTINGS = ROWS.settings;
/** @type {Record<string, { label: string, numbers: string, of_layers?: boolean }>} */
const QUANTITIES = ROWS.quantities;

/** @type {(kind: Kind) => boolean} */
export const isShare = ({ quantity }) => QUANTITIES[quantity ?? "weight"].numbers === "shares";

// True for a quantity with one map per layer, which joins its heads.
/** @type {(kind: Kind) => boolean} */
export const isOfLayers = ({ quantity }) => !!QUANTITIES[quantity ?? "weight"].of_layers;

/** @type {(kind: Kind) => string} */
export const labelOf = ({ quantity }) => QUANTITIES[quantity ?? "weight"].label;

// What rows and columns are, in words.
/** @type {(unit: string) => string} */
export const unitsInWords = (unit) => (unit === "words" ? "words" : "tokens");

// The values of a setting that a drawing takes.
/** @type {(name: string, drawing?: Drawing) => [string, Choice][]} */
export function choicesOf(name, drawing) {
  const { choices = {} } = SETTINGS[name];
  const all = typeof choices === "string" ? QUANTITIES : choices;
  return Object.entries(all).filter(([, choice]) => !choice.not_in?.includes(drawing ?? ""));
}

// The settings with a control in a drawing, in order, and the control of each.
/** @type {(drawing: Drawing) => { name: Setting, label: string, control: string }[]} */
export const controlled = (drawing) =>
  Object.entries(SETTINGS)
    .filter(([, { control, drawings }]) => control && drawings.includes(drawing))
    .map(([name, { label = "", labels = {}, control = "" }]) => ({
      name: /** @type {Setting} */ (name),
      label: labels[drawing] ?? label,
      control,
    }));

// [value, label, tip] of each value of a setting, as a drawing calls them.
/** @type {(name: string, drawing: Drawing) => string[][]} */
export const optionsOf = (name, drawing) =>
  choicesOf(name, drawing).map(([value, { label, labels = {}, title = "" }]) => [
    value,
    labels[drawing] ?? label,
    title,
  ]);

// The choice that a value is, and the number in it.
/** @type {(name: string, value: string) => { value: string, choice: Choice, number: string } | null} */
export function choiceOf(name, value) {
  const one = choicesOf(name).find(([each, { pattern }]) => new RegExp(`^(${pattern ?? each})$`).test(value));
  return one ? { value: one[0], choice: one[1], number: value.slice(one[0].length) } : null;
}

// A value of a setting in words, for the menu of the drawing.
/** @type {(name: string, value: string, drawing: Drawing) => string} */
export function inWords(name, value, drawing) {
  const chosen = choiceOf(name, value);
  if (!chosen) return value;
  const { choice, number } = chosen;
  if (choice.changed) return choice.changed.replace("{}", number);
  return (SETTINGS[name].changed ?? "{}").replace("{}", choice.labels?.[drawing] ?? choice.label);
}

// ---- Where a view begins ---------------------------------------------------------------------------------------

// A view of more tokens than this begins with the settings for a long text, unless the address states others, so that
// it is readable.
/** @type {number} */
export const LONG_TOKENS = ROWS.long.tokens;

// The settings with which a drawing begins, for readings of these kinds, of which some may be long: numbers that are no
// shares of 1 have no common scale; what a drawing does not take of a long text is as for these.
/** @type {(drawing: Drawing, kinds?: Kind[], isLong?: boolean) => Record<string, string>} */
export function firstValues(drawing, kinds = [], isLong = false) {
  const first = /** @type {Record<string, string>} */ ({});
  for (const { name } of controlled(drawing)) {
    const { default: usual = "", long, not_shares: other } = SETTINGS[name];
    const ofLong = isLong && long ? [long, other].find((value) => value && isTaken(name, value, drawing)) : undefined;
    first[name] = ofLong ?? (other && !kinds.every(isShare) ? other : usual);
  }
  return first;
}

/** @type {(name: string, value: string, drawing: Drawing) => boolean} */
const isTaken = (name, value, drawing) => !choiceOf(name, value)?.choice.not_in?.includes(drawing);

// ---- The address -----------------------------------------------------------------------------------------------

// The last value of a repeated parameter, as on the server.
/** @type {(params: URLSearchParams, name: string) => string | null} */
export const lastOf = (params, name) => params.getAll(name).at(-1) ?? null;

// The settings in the address; any that is missing, unknown or not for this drawing is as it is `first`. Never throws.
/** @type {(params: URLSearchParams, first: Record<string, string>, drawing: Drawing) => Settings} */
export function settingsIn(params, first, drawing) {
  /** @type {(name: string) => string} */
  const valueOf = (name) => {
    const value = lastOf(params, name);
    return value !== null && choiceOf(name, value) && isTaken(name, value, drawing) ? value : first[name];
  };
  return /** @type {Settings} */ (Object.fromEntries(Object.keys(first).map((name) => [name, valueOf(name)])));
}

// The values of the settings of a drawing as text, `without` some: while it is the same, so is what follows from them.
/** @type {(view: Settings, drawing: Drawing, without?: Setting[]) => string} */
export const stateOf = (view, drawing, without = []) =>
  JSON.stringify(controlled(drawing).flatMap(({ name }) => (without.includes(name) ? [] : [[name, view[name]]])));

// The settings that say how strong links and cells are drawn, and which, but not of which tokens.
/** @type {Setting[]} */
export const OF_STRENGTH = ["links", "scale"];

// The parameters of the address that state what differs from the `first` settings; null removes one.
/** @type {(view: Settings, first: Record<string, string>) => Record<string, string | null>} */
export const settingsOut = (view, first) =>
  Object.fromEntries(
    /** @type {Setting[]} */ (Object.keys(first)).map((name) => [
      name,
      view[name] === first[name] ? null : (view[name] ?? null),
    ]),
  );
