// What is set as a formula has a name in words: Streamlit gives the accessible name of a control as it was written, and
// TeX cannot be read aloud.
const FORMULA = /(?<!\\)\$((?:\\[^$]|[^$\\])+)\$/g; // no escaped sign, which is one of money
/** @type {[RegExp, string][]} */
const WORDS = [
  [/\\(?:text|mathrm|mathbf)\{([^{}]*)\}/g, "$1"],
  [/\\sqrt\{((?:[^{}]|\{[^{}]*\})*)\}/g, "the square root of $1"],
  [/\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}/g, "$1 divided by $2"],
  [/\^\{?\\top\}?/g, " transposed"],
  [/\\cdot|\\times/g, " times "],
  [/\\lambda/g, "λ"],
  [/\\[ ,;!]/g, " "],
  [/[{}\\]/g, ""],
  [/\s+/g, " "],
];

// "Without the division by $\sqrt{d_k}$" -> "Without the division by the square root of d_k".
/** @type {(label: string) => string} */
export const inWords = (label) =>
  label.replace(FORMULA, (_, tex) =>
    WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), tex).trim(),
  );

// Gives every control below `root` whose name has a formula one in words.
/** @type {(root: ParentNode) => void} */
export function speakFormulas(root) {
  for (const control of root.querySelectorAll('[aria-label*="$"]')) {
    const label = control.getAttribute("aria-label") ?? "";
    const words = inWords(label);
    if (words !== label) control.setAttribute("aria-label", words);
  }
}
