// The grammar of a view, which Python reads from the same file: the allowed values of its settings and their defaults.
import GRAMMAR from "./view.json" with { type: "json" };

/**
 * The settings of a picture, in the values of the page's address.
 *
 * @typedef {object} Settings
 * @property {string} unit
 * @property {string} special
 * @property {string} links
 * @property {string} scale
 * @property {string} [side] of a reading, not of panels
 * @property {string} [shown]
 * @property {string} [as]
 */

/** @typedef {keyof Settings} Setting */

/**
 * What numbers are: the quantity, by default the weight, and whether they have signs.
 *
 * @typedef {{ quantity?: string, signed?: boolean }} Kind
 */

/** @type {(names: string[]) => Record<string, string>} */
export const defaultsOf = (names) => pick(names, (name) => GRAMMAR.defaults[/** @type {Setting} */ (name)]);

// A view of more tokens than this begins with these settings, unless the address states others, so that it is readable.
/** @type {{ tokens: number, defaults: Record<string, string> }} */
export const LONG = GRAMMAR.long;

/** @type {Record<string, { label: string, numbers: string, of_layers?: boolean }>} */
const ROWS = GRAMMAR.quantities;

/** @type {(kind: Kind) => boolean} */
export const isShare = ({ quantity }) => ROWS[quantity ?? "weight"].numbers === "shares";

// True for a quantity with one map per layer, which joins its heads.
/** @type {(kind: Kind) => boolean} */
export const isOfLayers = ({ quantity }) => !!ROWS[quantity ?? "weight"].of_layers;

// Defaults for readings of these kinds: numbers that are no shares of 1 have no common scale.
/** @type {(defaults: Record<string, string>, kinds: Kind[]) => Record<string, string>} */
export const defaultsFor = (defaults, kinds) =>
  kinds.every(isShare) ? defaults : { ...defaults, ...GRAMMAR.not_shares.defaults };

/** @type {(kind: Kind) => string} */
export const labelOf = ({ quantity }) => ROWS[quantity ?? "weight"].label;

// The quantities that can be drawn, with what the page calls them.
export const QUANTITIES = Object.entries(ROWS).map(([name, { label }]) => [name, label]);

/** @type {Record<string, string>} */
const VALUES = { ...GRAMMAR.values, shown: Object.keys(ROWS).join("|") };

// The pattern for the complete value of each setting.
/** @type {(names: string[]) => Record<string, RegExp>} */
export const patternsOf = (names) => pick(names, (name) => new RegExp(`^(${VALUES[name]})$`));

/** @type {<T>(names: string[], valueOf: (name: string) => T) => Record<string, T>} */
function pick(names, valueOf) {
  return Object.fromEntries(names.map((name) => [name, valueOf(name)]));
}
