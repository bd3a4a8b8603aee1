// Classify characters as Python does, by the rules of text/characters.py, for texts that are read in the browser.

/** @typedef {string[]} Typed a text as its code points */

const ALSO_BLANK = "\x1c\x1d\x1e\x1f\x85"; // in Python, which does not include U+FEFF
const UNSEEN = /^[\p{Cf}\p{Cc}\p{Mn}\p{Zs}]+$/u;
const MARKS = /^\p{P}+$/u;
const IN_WORD = /^[\p{L}\p{N}\p{M}]$/u;
const ACCENT = /^\p{M}$/u;
const ATTACHED = /^[\p{M}\p{Cf}\u{1f3fb}-\u{1f3ff}]$/u;
const PICTURE = /^\p{So}$/u;
const SIGNS = /^[\p{P}\p{S}]+$/u;
const LINES = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029";

/** @type {(character: string) => boolean} */
export const isBlank = (character) =>
  (/^\s$/.test(character) && character !== "\ufeff") || (!!character && ALSO_BLANK.includes(character));
/** @type {(text: string) => boolean} */
export const isPunctuation = (text) => MARKS.test(text);
/** @type {(character: string) => boolean} */
export const isInWord = (character) => IN_WORD.test(character);
/** @type {(character: string) => boolean} */
export const isAccent = (character) => ACCENT.test(character);
// Whether a character is attached to the one before it.
/** @type {(character: string) => boolean} */
export const isAttached = (character) => ATTACHED.test(character);
// Whether a character is an emoji or similar symbol; neighbouring ones stay together.
/** @type {(character: string) => boolean} */
export const isPicture = (character) => PICTURE.test(character);
// Whether a text consists of punctuation, or signs such as + or $.
/** @type {(typed: Typed) => boolean} */
export const isSign = (typed) => SIGNS.test(typed.join("")) && !typed.some(isPicture);
// Whether a character is white space that is a word of its own.
/** @type {(character: string) => boolean} */
export const isLine = (character) => !!character && LINES.includes(character);

// Split a text into code points; those that no tokenizer or page can process become U+FFFD.
/** @type {(text: string) => Typed} */
export const clean = (text) => Array.from(text, (c) => (/^[\0\ud800-\udfff]$/.test(c) ? "\ufffd" : c));

/** @type {(typed: Typed) => Typed} */
export function strip(typed) {
  const first = typed.findIndex((c) => !isBlank(c));
  return first < 0 ? [] : typed.slice(first, 1 + typed.findLastIndex((c) => !isBlank(c)));
}

// Strip white space at the ends, and name invisible characters.
/** @type {(typed: Typed) => string} */
export function makeVisible(typed) {
  const inner = strip(typed);
  const text = inner.join("");
  if (text && !UNSEEN.test(text)) return text;
  const code = (/** @type {string} */ c) => /** @type {number} */ (c.codePointAt(0)).toString(16).toUpperCase();
  return (inner.length ? inner : typed).map((c) => `U+${code(c).padStart(4, "0")}`).join(" ");
}

// Return the start of a span without leading white space; a span of only white space is unchanged.
/** @type {(typed: Typed, start: number, end: number) => number} */
export function skipBlanks(typed, start, end) {
  const first = typed.slice(start, end).findIndex((c) => !isBlank(c));
  return first < 0 ? start : start + first;
}
