// Numbers in every drawing, note and table: one rule for each kind, the same as in mha_viz/numerals.py.

const MINUS = "−";

// A number with this many decimals, never a negative zero: "−0.06", "1,024.00".
/** @type {(value: number, digits: number) => string} */
export const decimal = (value, digits) =>
  value
    .toFixed(digits)
    .replace(/^-(?=0(\.0*)?$)/, "")
    .replace("-", MINUS)
    .replace(/\d(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "$&,");

// A number so small that only its size matters: "0", "5 · 10⁻⁷" in one line.
/** @type {(value: number) => string} */
export function small(value) {
  if (!value) return "0";
  const [digit, exponent] = value.toExponential(0).replace("+", "").split("e");
  const raised = [...exponent].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)]).join("");
  return `${digit.replace("-", MINUS)}\u00a0·\u00a010${raised}`;
}

// A weight in pictures: three decimals, and a sign if it is negative.
/** @type {(weight: number) => string} */
export const number = (weight) => {
  if (weight <= -0.0005) return MINUS + number(-weight);
  return weight > 0 && weight < 0.0005 ? "<.001" : Math.abs(weight).toFixed(3);
};

// A difference of weights, with its sign.
/** @type {(value: number) => string} */
export const signed = (value) => (value < 0 ? MINUS : "+") + number(Math.abs(value));

// A share of 1: "58.3%".
/** @type {(share: number) => string} */
export const percent = (share) => `${(Math.round(1000 * share) / 10).toFixed(1)}%`;

// An entropy or a divergence.
/** @type {(nats: number, digits?: number) => string} */
export const inNats = (nats, digits = 3) => `${nats.toFixed(digits)} nats`;
