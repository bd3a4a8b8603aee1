// Pieces grouped into words: the rules of text/grouping.py and text/tokens.py, for texts that are read in the browser.
// tests/test_live_rules.py holds both to the same answers.
import { isBlank, isInWord, isPunctuation, stripped, visible, withoutBlanks } from "./characters.js";
/** @import { Axis } from "../reading.js" */
/** @import { Typed } from "./characters.js" */

/**
 * One piece according to the tokenizer: its span in code points, the tokenizer's own word number, null for [CLS], [SEP]
 * and similar tokens, and whether the tokenizer has no piece there.
 *
 * @typedef {{ id: number, name: string, start: number, end: number, word: number | null, isUnknown?: boolean }} Piece
 */

const UNKNOWN = "[UNK]";
const APOSTROPHES = "'’ʼ＇";

// The tokens and words of a text, and which tokens are punctuation.
/** @type {(typed: Typed, pieces: Piece[]) => Axis & { marks: boolean[] }} */
export function grouped(typed, pieces) {
  const trimmed = pieces.map((piece) => trim(piece, typed));
  const numbers = numbered(trimmed, typed);
  const groups = joined(numbers);
  return {
    n: pieces.length,
    tokens: drawnTexts(trimmed, numbers, typed).map((text, i) => drawn(text, [trimmed[i]])),
    segments: pieces.map(() => 0),
    special: numbers.map((number) => Number(number === null)),
    groups,
    words: groups.map((group) => {
      return drawn(
        wordOf(trimmed, group, typed),
        group.map((i) => trimmed[i]),
      );
    }),
    marks: trimmed.map(({ start, end }, i) => {
      return numbers[i] !== null && isPunctuation(stripped(typed.slice(start, end)).join(""));
    }),
  };
}

// A token or word as it is drawn, from its pieces: after [UNK] if that is what the model reads.
/** @type {(text: string, pieces: Piece[]) => string} */
const drawn = (text, pieces) =>
  text !== UNKNOWN && pieces.some(({ isUnknown }) => isUnknown) ? `${UNKNOWN} ${text}` : text;

/** @type {(piece: Piece, typed: Typed) => Piece} */
function trim(piece, typed) {
  let { start } = piece;
  const { end, word } = piece;
  if (start === end && word !== null && start > 0 && isBlank(typed[start - 1])) start--;
  return { ...piece, start: withoutBlanks(typed, start, end) };
}

/** @type {(pieces: Piece[], typed: Typed) => (number | null)[]} */
function numbered(pieces, typed) {
  let count = -1;
  /** @type {Piece | null} */
  let previous = null;
  return pieces.map((piece) => {
    if (piece.word === null) {
      previous = null;
      return null;
    }
    if (!previous || startsWord(previous, piece, typed)) count++;
    previous = piece;
    return count;
  });
}

/** @type {(previous: Piece, piece: Piece, typed: Typed) => boolean} */
function startsWord(previous, piece, typed) {
  if (piece.start < previous.end) return false;
  const [before, written] = [typed.slice(previous.start, previous.end), typed.slice(piece.start, piece.end)];
  if (before.every(isBlank)) return false; // a space piece belongs to the word that follows it
  const between = typed.slice(previous.end, piece.start);
  if (between.length && (isBlank(between[0]) || isBlank(/** @type {string} */ (between.at(-1))))) return true;
  if (isInsideContraction(previous, piece, typed)) return false;
  if (isPunctuation(written.join("")) || isPunctuation(before.join(""))) return true;
  if (written.length && written.every(isBlank)) return true;
  return piece.word !== previous.word;
}

// The two pieces meet at an apostrophe between letters: didn|'|t, didn|'t.
/** @type {(previous: Piece, piece: Piece, typed: Typed) => boolean} */
function isInsideContraction(previous, piece, typed) {
  if (previous.end !== piece.start) return false;
  const at = [piece.start, piece.start - 1].find(
    (i) => APOSTROPHES.includes(typed[i] ?? "none") && i > 0 && i < typed.length - 1,
  );
  return at !== undefined && isInWord(typed[at - 1]) && isInWord(typed[at + 1]);
}

// The token indices of each word in order; each special token is alone.
/** @type {(numbers: (number | null)[]) => number[][]} */
function joined(numbers) {
  /** @type {number[][]} */
  const groups = [];
  numbers.forEach((number, i) => {
    if (i && number !== null && number === numbers[i - 1]) groups[groups.length - 1].push(i);
    else groups.push([i]);
  });
  return groups;
}

const CONTINUES = "##"; // before the text of a piece that continues its word
const BLANKS = "Ġ▁ ";

// The text of each piece as it is drawn, by the rule of `drawn_texts` in text/tokens.py, which says why.
/** @type {(pieces: Piece[], numbers: (number | null)[], typed: Typed) => string[]} */
function drawnTexts(pieces, numbers, typed) {
  const marksBeginnings = pieces.some(({ name }) => name && BLANKS.includes(name[0]));
  return pieces.map((piece, i) => {
    const continues =
      i > 0 && numbers[i] !== null && numbers[i] === numbers[i - 1] && isAfterLetters(pieces[i - 1], typed);
    const isMarked =
      piece.name.startsWith(CONTINUES) ||
      (marksBeginnings
        ? !BLANKS.includes(piece.name[0] ?? "")
        : continues && meetInLetters(pieces[i - 1], piece, typed));
    return (continues && isMarked ? CONTINUES : "") + nameOf(pieces, i, typed);
  });
}

/** @type {(before: Piece, typed: Typed) => boolean} */
const isAfterLetters = ({ start, end }, typed) => end <= start || !typed.slice(start, end).every(isBlank);

/** @type {(before: Piece, piece: Piece, typed: Typed) => boolean} */
const meetInLetters = ({ end }, { start }, typed) =>
  end === start && [end - 1, start].every((at) => isInWord(typed[at] ?? ""));

/** @type {(pieces: Piece[], index: number, typed: Typed) => string} */
function nameOf(pieces, index, typed) {
  const { name, start, end } = pieces[index];
  if (end <= start) return name;
  let part = 1; // byte-level pieces of one character share its span
  while (index >= part && pieces[index - part].start === start && pieces[index - part].end === end) part++;
  const written = visible(typed.slice(start, end));
  return part === 1 ? written : `${written}·${part}`;
}

/** @type {(pieces: Piece[], group: number[], typed: Typed) => string} */
function wordOf(pieces, group, typed) {
  const spans = group.map((i) => pieces[i]).filter(({ start, end }) => end > start);
  if (group.length === 1 || !spans.length) return nameOf(pieces, group[0], typed);
  const end = Math.max(...spans.map((span) => span.end));
  return visible(typed.slice(withoutBlanks(typed, spans[0].start, end), end));
}
