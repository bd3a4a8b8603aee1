// Characters as Python sees them: what text/tokens.py says of them, for texts that are read in the browser.

/** @typedef {string[]} Typed a text as its code points */

const ALSO_BLANK = "\x1c\x1d\x1e\x1f\x85"; // in Python, which has no U+FEFF among them
const UNSEEN = /^[\p{Cf}\p{Cc}\p{Mn}\p{Zs}]+$/u;
const MARKS = /^\p{P}+$/u;
const IN_WORD = /^[\p{L}\p{N}\p{M}]$/u;

/** @type {(character: string) => boolean} */
export const isBlank = (character) =>
  (/^\s$/.test(character) && character !== "\ufeff") || (!!character && ALSO_BLANK.includes(character));
/** @type {(text: string) => boolean} */
export const isPunctuation = (text) => MARKS.test(text);
/** @type {(character: string) => boolean} */
export const isInWord = (character) => IN_WORD.test(character);

// The code points of a text; those that no tokenizer or page can process are U+FFFD.
/** @type {(text: string) => Typed} */
export const cleaned = (text) => Array.from(text, (c) => (/^[\0\ud800-\udfff]$/.test(c) ? "\ufffd" : c));

/** @type {(typed: Typed) => Typed} */
export function stripped(typed) {
  const first = typed.findIndex((c) => !isBlank(c));
  return first < 0 ? [] : typed.slice(first, 1 + typed.findLastIndex((c) => !isBlank(c)));
}

// Without white space at the ends, and with invisible characters named.
/** @type {(typed: Typed) => string} */
export function visible(typed) {
  const inner = stripped(typed);
  const text = inner.join("");
  if (text && !UNSEEN.test(text)) return text;
  const code = (/** @type {string} */ c) => /** @type {number} */ (c.codePointAt(0)).toString(16).toUpperCase();
  return (inner.length ? inner : typed).map((c) => `U+${code(c).padStart(4, "0")}`).join(" ");
}

// Where a span begins without leading white space, at least one character long.
/** @type {(typed: Typed, start: number, end: number) => number} */
export function withoutBlanks(typed, start, end) {
  while (start < end - 1 && isBlank(typed[start])) start++;
  return start;
}
