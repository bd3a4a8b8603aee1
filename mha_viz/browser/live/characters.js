// Classify characters as Python does, by the rules of text/characters.py, for texts that are read in the browser.

/** @typedef {string[]} CodePoints a text as its code points */

const PYTHON_BLANKS = "\x1c\x1d\x1e\x1f\x85"; // also white space in Python, where U+FEFF is not
const INVISIBLE = /^[\p{Cf}\p{Cc}\p{Mn}\p{Zs}]+$/u;
const PUNCTUATION = /^\p{P}+$/u;
const IN_WORD = /^[\p{L}\p{N}\p{M}]$/u;
const ACCENT = /^\p{M}$/u;
const ATTACHED = /^[\p{M}\p{Cf}\u{1f3fb}-\u{1f3ff}]$/u;
const PICTOGRAPH = /^\p{So}$/u;
const SIGNS = /^[\p{P}\p{S}]+$/u;
const LINE_BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029";

/** @type {(character: string) => boolean} */
export const isBlank = (character) =>
  (/^\s$/.test(character) && character !== "\ufeff") || (!!character && PYTHON_BLANKS.includes(character));
/** @type {(text: string) => boolean} */
export const isPunctuation = (text) => PUNCTUATION.test(text);
/** @type {(character: string) => boolean} */
export const isInWord = (character) => IN_WORD.test(character);
/** @type {(character: string) => boolean} */
export const isAccent = (character) => ACCENT.test(character);
// Whether a character is attached to the one before it.
/** @type {(character: string) => boolean} */
export const isAttached = (character) => ATTACHED.test(character);
// Whether a character is an emoji or similar symbol; neighbouring ones stay together.
/** @type {(character: string) => boolean} */
export const isPictograph = (character) => PICTOGRAPH.test(character);
// Whether a text consists of punctuation or of signs such as + or $.
/** @type {(points: CodePoints) => boolean} */
export const isSign = (points) => SIGNS.test(points.join("")) && !points.some(isPictograph);
// Whether a character is white space that is a word of its own.
/** @type {(character: string) => boolean} */
export const isLineBreak = (character) => !!character && LINE_BREAKS.includes(character);

// Split a text into code points; replace NUL and lone surrogates by U+FFFD.
/** @type {(text: string) => CodePoints} */
export const splitCodePoints = (text) => Array.from(text, (c) => (/^[\0\ud800-\udfff]$/.test(c) ? "\ufffd" : c));

/** @type {(points: CodePoints) => CodePoints} */
export function strip(points) {
  const first = points.findIndex((c) => !isBlank(c));
  return first < 0 ? [] : points.slice(first, 1 + points.findLastIndex((c) => !isBlank(c)));
}

// Strip white space at the ends, and name invisible characters.
/** @type {(points: CodePoints) => string} */
export function makeVisible(points) {
  const inner = strip(points);
  const text = inner.join("");
  if (text && !INVISIBLE.test(text)) return text;
  const code = (/** @type {string} */ c) => /** @type {number} */ (c.codePointAt(0)).toString(16).toUpperCase();
  return (inner.length ? inner : points).map((c) => `U+${code(c).padStart(4, "0")}`).join(" ");
}

// Return the start of a span after its leading white space; for a span of only white space, its start.
/** @type {(points: CodePoints, start: number, end: number) => number} */
export function skipBlanks(points, start, end) {
  const offset = points.slice(start, end).findIndex((c) => !isBlank(c));
  return offset < 0 ? start : start + offset;
}
