// Format numbers in all drawings, notes and tables, by the rules of mha_viz/numerals.py.
import { isShare } from "./view.js";
/** @import { NumberKind } from "./view.js" */

const MINUS = "−";

// Format a number with this many decimals, never as negative zero: "−0.06", "1,024.00".
/** @type {(value: number, digits: number) => string} */
export const formatDecimal = (value, digits) =>
  value
    .toFixed(digits)
    .replace(/^-(?=0(\.0*)?$)/, "")
    .replace("-", MINUS)
    .replace(/\d(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "$&,");

// Format a number of which only the order of magnitude matters: "0", "5 · 10⁻⁷" in one line.
/** @type {(value: number) => string} */
export function formatSmall(value) {
  if (!value) return "0";
  return formatPower(value.toExponential(0));
}

/** @type {(exponential: string) => string} */
function formatPower(exponential) {
  const [digits, exponent] = exponential.replace("+", "").split("e");
  const power = [...exponent].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]).join("");
  return `${digits.replace("-", MINUS)}\u00a0·\u00a010${power}`;
}

// Format a number with three significant digits, and a sign if it is negative or `isSigned`: "+0.00123".
/** @type {(value: number, isSigned?: boolean) => string} */
export function formatThreeDigits(value, isSigned = false) {
  if (!value) return "0";
  const rounded = Math.abs(value).toExponential(2);
  const power = +rounded.split("e")[1];
  const text = power < -4 || power > 5 ? formatPower(rounded) : formatDecimal(+rounded, Math.max(0, 2 - power));
  return (value < 0 ? MINUS : isSigned ? "+" : "") + text;
}

// Format a number of a reading: a share with three decimals, any other like `formatThreeDigits`.
/** @type {(value: number, kind?: NumberKind) => string} */
export const formatNumber = (value, kind = {}) => {
  if (!isShare(kind)) return formatThreeDigits(value, kind.signed);
  if (value <= -0.0005) return MINUS + formatNumber(-value);
  return value > 0 && value < 0.0005 ? "<.001" : Math.abs(value).toFixed(3);
};

// Format a difference between numbers of a reading, with its sign.
/** @type {(value: number, kind?: NumberKind) => string} */
export const formatSigned = (value, kind = {}) =>
  isShare(kind) ? (value < 0 ? MINUS : "+") + formatNumber(Math.abs(value)) : formatThreeDigits(value, true);

// Format a share of 1: "58.3%".
/** @type {(share: number) => string} */
export const formatPercent = (share) => `${(Math.round(1000 * share) / 10).toFixed(1)}%`;

// Format a divergence in nats as a share of its maximum, ln 2: equal rows give 0%.
/** @type {(nats: number) => string} */
export const formatDivergence = (nats) => formatPercent(nats / Math.LN2);

// Format an entropy.
/** @type {(nats: number, digits: number) => string} */
export const formatNats = (nats, digits) => `${nats.toFixed(digits)} nats`;
