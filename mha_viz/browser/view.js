// The settings of a drawing, from a table that Python reads too: values, defaults, and how the address represents them.
import TABLE from "../view/view.json" with { type: "json" };

/** @typedef {"head" | "on" | "pin" | "link" | "roles" | "arrows" | "diff" | "at"} SettingWithoutControl */
/** @typedef {Exclude<keyof typeof TABLE.settings, SettingWithoutControl>} Setting */

/**
 * The settings of a picture that have a control, with values as in the page's address.
 *
 * @typedef {{ unit: string, special: string, links: string, scale: string } &
 *   Partial<Record<Setting, string>>} Settings
 */

/** @typedef {"explorer" | "compare"} DrawingName */

/**
 * A value of a setting: its label and tip and, for a family with numbers, its pattern, first value and range.
 *
 * @typedef {object} Choice
 * @property {string} label
 * @property {string} [title]
 * @property {Record<string, string>} [labels] by drawing
 * @property {string} [pattern]
 * @property {string} [first]
 * @property {number[]} [range]
 * @property {string} [changed] its description in the label of the menu; {} is its number
 * @property {string[]} [not_in] drawings that do not accept it
 */

/**
 * @typedef {object} SettingRow
 * @property {string} [values]
 * @property {string} [default]
 * @property {string} [long] the default for long texts
 * @property {string} [not_shares] the default for numbers that are not shares
 * @property {Record<string, Choice> | string} [choices] or the quantities
 * @property {string} [label]
 * @property {Record<string, string>} [labels] by drawing
 * @property {string} [control] the kind of control, if there is one
 * @property {string} [changed] the description of any value; {} is its label
 * @property {string[]} drawings
 */

/**
 * The kind of some numbers: the quantity, by default the weight, and whether they are signed.
 *
 * @typedef {{ quantity?: string, signed?: boolean }} NumberKind
 */

/** @type {Record<string, SettingRow>} */
const SETTINGS = TABLE.settings;
/** @type {Record<string, { label: string, numbers: string, of_layers?: boolean }>} */
const QUANTITIES = TABLE.quantities;

/** @type {(kind: NumberKind) => boolean} */
export const isShare = ({ quantity }) => QUANTITIES[quantity ?? "weight"].numbers === "shares";

// Whether a quantity has one map per layer, which joins its heads.
/** @type {(kind: NumberKind) => boolean} */
export const isOfLayers = ({ quantity }) => !!QUANTITIES[quantity ?? "weight"].of_layers;

/** @type {(kind: NumberKind) => string} */
export const getLabel = ({ quantity }) => QUANTITIES[quantity ?? "weight"].label;

// Return the plural name of the units of rows and columns.
/** @type {(unit: string) => string} */
export const nameUnits = (unit) => (unit === "words" ? "words" : "tokens");

// Return the values of a setting that a drawing accepts.
/** @type {(name: string, drawing?: DrawingName) => [string, Choice][]} */
export function listChoices(name, drawing) {
  const { choices = {} } = SETTINGS[name];
  const table = typeof choices === "string" ? QUANTITIES : choices;
  return Object.entries(table).filter(([, choice]) => !choice.not_in?.includes(drawing ?? ""));
}

// Return the settings of a drawing that have a control, in order, with their controls.
/** @type {(drawing: DrawingName) => { name: Setting, label: string, control: string }[]} */
export const listControls = (drawing) =>
  Object.entries(SETTINGS)
    .filter(([, { control, drawings }]) => control && drawings.includes(drawing))
    .map(([name, { label = "", labels = {}, control = "" }]) => ({
      name: /** @type {Setting} */ (name),
      label: labels[drawing] ?? label,
      control,
    }));

// Return [value, label, tip] for each value of a setting, with the drawing's own labels.
/** @type {(name: string, drawing: DrawingName) => string[][]} */
export const listOptions = (name, drawing) =>
  listChoices(name, drawing).map(([value, { label, labels = {}, title = "" }]) => [
    value,
    labels[drawing] ?? label,
    title,
  ]);

// Split a value into its choice and its number.
/** @type {(name: string, value: string) => { value: string, choice: Choice, number: string } | null} */
export function findChoice(name, value) {
  const match = listChoices(name).find(([key, { pattern }]) => new RegExp(`^(${pattern ?? key})$`).test(value));
  return match ? { value: match[0], choice: match[1], number: value.slice(match[0].length) } : null;
}

// Describe a value of a setting in words, for the menu of the drawing.
/** @type {(name: string, value: string, drawing: DrawingName) => string} */
export function describeValue(name, value, drawing) {
  const match = findChoice(name, value);
  if (!match) return value;
  const { choice, number } = match;
  if (choice.changed) return choice.changed.replace("{}", number);
  return (SETTINGS[name].changed ?? "{}").replace("{}", choice.labels?.[drawing] ?? choice.label);
}

// ---- Initial views ---------------------------------------------------------------------------------------------

// Readings with more tokens than this begin with the settings for long texts, unless the address states others.
/** @type {number} */
export const LONG_TOKENS = TABLE.long.tokens;

// Return the initial settings of a drawing for readings of these kinds, some of which may be long. Numbers that are not
// shares of 1 have no common scale. Settings for long texts that the drawing does not accept are ignored.
/** @type {(drawing: DrawingName, kinds?: NumberKind[], isLong?: boolean) => Record<string, string>} */
export function getDefaults(drawing, kinds = [], isLong = false) {
  const defaults = /** @type {Record<string, string>} */ ({});
  for (const { name } of listControls(drawing)) {
    const { default: defaultValue = "", long, not_shares: notSharesValue } = SETTINGS[name];
    const longTextValue =
      isLong && long ? [long, notSharesValue].find((value) => value && isAccepted(name, value, drawing)) : undefined;
    defaults[name] = longTextValue ?? (notSharesValue && !kinds.every(isShare) ? notSharesValue : defaultValue);
  }
  return defaults;
}

/** @type {(name: string, value: string, drawing: DrawingName) => boolean} */
const isAccepted = (name, value, drawing) => !findChoice(name, value)?.choice.not_in?.includes(drawing);

// ---- The address -----------------------------------------------------------------------------------------------

// Return the last value of a repeated parameter, like the server.
/** @type {(params: URLSearchParams, name: string) => string | null} */
export const getLastParameter = (params, name) => params.getAll(name).at(-1) ?? null;

// Read the settings from the address. A setting that is missing, unknown or not for this drawing keeps its value in
// `defaults`. Never throws.
/** @type {(params: URLSearchParams, defaults: Record<string, string>, drawing: DrawingName) => Settings} */
export function parseSettings(params, defaults, drawing) {
  /** @type {(name: string) => string} */
  const valueOf = (name) => {
    const value = getLastParameter(params, name);
    return value !== null && findChoice(name, value) && isAccepted(name, value, drawing) ? value : defaults[name];
  };
  return /** @type {Settings} */ (Object.fromEntries(Object.keys(defaults).map((name) => [name, valueOf(name)])));
}

// Serialize the settings of a drawing, except those `omitted`. The text is a cache key for everything derived from
// them.
/** @type {(view: Settings, drawing: DrawingName, omitted?: Setting[]) => string} */
export const serializeSettings = (view, drawing, omitted = []) =>
  JSON.stringify(listControls(drawing).flatMap(({ name }) => (omitted.includes(name) ? [] : [[name, view[name]]])));

// Settings that affect which links are drawn and how strongly, but not which tokens are shown.
/** @type {Setting[]} */
export const STRENGTH_SETTINGS = ["links", "scale"];

// Return the address parameters of settings that differ from the defaults; null removes a parameter.
/** @type {(view: Settings, defaults: Record<string, string>) => Record<string, string | null>} */
export const encodeSettings = (view, defaults) =>
  Object.fromEntries(
    /** @type {Setting[]} */ (Object.keys(defaults)).map((name) => [
      name,
      view[name] === defaults[name] ? null : (view[name] ?? null),
    ]),
  );
