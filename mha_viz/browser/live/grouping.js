// Group tokens into words, for texts that are read in the browser, by the rules of text/pieces.py.
// tests/test_live_rules.py checks that both give the same results.
import {
  isAccent,
  isAttached,
  isBlank,
  isInWord,
  isLineBreak,
  isPictograph,
  isPunctuation,
  isSign,
  strip,
  makeVisible,
  skipBlanks,
} from "./characters.js";
/** @import { Axis } from "../reading.js" */
/** @import { CodePoints } from "./characters.js" */

/**
 * A token from the tokenizer: its span in code points; its word number according to the tokenizer, null for special
 * tokens; and whether its text is not in the vocabulary.
 *
 * @typedef {{ id: number, name: string, start: number, end: number, word: number | null, isUnknown?: boolean }} Piece
 */

const UNKNOWN = "[UNK]";
const APOSTROPHES = "'’ʼ＇";
const MASKS = ["[MASK]", "<mask>"]; // words of their own
const JOINER = "\u200d"; // joins several emoji into one
const EMPTY = "∅"; // the name of an empty token
/** @type {Record<string, string>} */
const BLANK_LETTERS = { Ġ: " ", "▁": " ", ĉ: "\t", Ċ: "\n", ċ: "\v", Č: "\f", č: "\r" };

// Return the tokens and words of a text, and which tokens are punctuation.
/** @type {(points: CodePoints, pieces: Piece[]) => Axis & { marks: boolean[] }} */
export function groupTokens(points, pieces) {
  const adjustedPieces = adjustSpans(pieces, points);
  const numbers = numberWords(adjustedPieces, points);
  const groups = joinGroups(numbers);
  return {
    n: pieces.length,
    tokens: makeDrawnTexts(adjustedPieces, numbers, points).map((text, i) => formatWord(text, [adjustedPieces[i]])),
    segments: pieces.map(() => 0),
    special: numbers.map((number) => Number(number === null)),
    groups,
    words: groups.map((group) => {
      return formatWord(
        getWord(adjustedPieces, group, points),
        group.map((i) => adjustedPieces[i]),
      );
    }),
    marks: adjustedPieces.map(({ start, end }, i) => {
      return numbers[i] !== null && isPunctuation(strip(points.slice(start, end)).join(""));
    }),
  };
}

// Return the displayed text of a token or word, with the prefix [UNK] if the model reads that instead.
/** @type {(text: string, pieces: Piece[]) => string} */
const formatWord = (text, pieces) =>
  text !== UNKNOWN && pieces.some(({ isUnknown }) => isUnknown) ? `${UNKNOWN} ${text}` : text;

// Adjust the spans of the tokens. `adjust_spans` in text/pieces.py explains the rule.
/** @type {(pieces: Piece[], points: CodePoints) => Piece[]} */
function adjustSpans(pieces, points) {
  let [nextStart, limit] = [-1, points.length]; // starts of the next token, and of the next without overlap
  return pieces
    .toReversed()
    .map((piece) => {
      const { start, end, word } = piece;
      const isBeforeLetter = start === nextStart;
      if (word !== null && nextStart >= end) limit = nextStart;
      if (start < end || word !== null) nextStart = start;
      return word === null ? piece : adjustSpan(piece, points, limit, isBeforeLetter);
    })
    .reverse();
}

/** @type {(piece: Piece, points: CodePoints, limit: number, isBeforeLetter: boolean) => Piece} */
function adjustSpan(piece, points, limit, isBeforeLetter) {
  let { start, end } = piece;
  const { name } = piece;
  const inner = strip(points.slice(start, end)).join("");
  if (isBlankMark(name) && (isBeforeLetter || (inner && inner !== name))) end = start;
  if (start === end) {
    const { length } = listBlanks(name);
    for (let i = 0; i < length && start > 0 && isBlank(points[start - 1]); i++) start--;
  }
  while (start < end && end < limit && isAccent(points[end]) && !isBlank(points[end - 1])) end++;
  return { ...piece, start: skipBlanks(points, start, end), end };
}

/** @type {(name: string) => boolean} */
const isBlankMark = (name) => /^▁+$/.test(name);

// Return the white space that a name consists of; none for other names.
/** @type {(name: string) => CodePoints} */
function listBlanks(name) {
  const characters = Array.from(name, (letter) => BLANK_LETTERS[letter] ?? letter);
  return characters.every(isBlank) ? characters : [];
}

// Return the word number of each token; null for special tokens.
/** @type {(pieces: Piece[], points: CodePoints) => (number | null)[]} */
function numberWords(pieces, points) {
  let count = -1;
  /** @type {Piece | null} */
  let previous = null;
  return pieces.map((piece) => {
    if (piece.word === null) {
      previous = null;
      return null;
    }
    if (!previous || startsWord(previous, piece, points)) count++;
    previous = piece;
    return count;
  });
}

/** @type {(previous: Piece, piece: Piece, points: CodePoints) => boolean} */
function startsWord(previous, piece, points) {
  if (piece.start < previous.end) return false;
  const [previousCharacters, characters] = [
    points.slice(previous.start, previous.end),
    points.slice(piece.start, piece.end),
  ];
  const [gap, last] = [points.slice(previous.end, piece.start), previousCharacters[previousCharacters.length - 1]];
  if (previousCharacters.every(isBlank)) return previousCharacters.some(isLineBreak) && !isBlankMark(previous.name);
  if (gap.length && (isBlank(gap[0]) || isBlank(gap[gap.length - 1]))) return true;
  if (isBlank(last) || MASKS.includes(previous.name) || MASKS.includes(piece.name)) return true;
  if (isInsideContraction(previous, piece, points) || isAttached(characters[0] ?? "") || last === JOINER) return false;
  const baseLetters = dropAttached(points, previous);
  if (
    (characters.length && characters.every(isBlank)) ||
    isSign(characters.slice(0, 1)) ||
    isSign(baseLetters.slice(-1))
  )
    return true;
  if (
    baseLetters.length &&
    characters.length &&
    isPictograph(baseLetters[baseLetters.length - 1]) !== isPictograph(characters[0])
  )
    return true;
  return piece.word !== previous.word;
}

// Return the characters of a token without accents and joiners. If nothing else is left, include their base character.
/** @type {(points: CodePoints, piece: Piece) => CodePoints} */
function dropAttached(points, { start, end }) {
  while (start && points.slice(start, end).every(isAttached)) start--;
  return points.slice(start, end).filter((c) => !isAttached(c));
}

// Whether two tokens meet at an apostrophe between letters, as in didn|'|t and didn|'t.
/** @type {(previous: Piece, piece: Piece, points: CodePoints) => boolean} */
function isInsideContraction(previous, piece, points) {
  if (previous.end !== piece.start) return false;
  const position = [piece.start, piece.start - 1].find(
    (i) => APOSTROPHES.includes(points[i] ?? "none") && i > 0 && i < points.length - 1,
  );
  return position !== undefined && isInWord(points[position - 1]) && isInWord(points[position + 1]);
}

// Return the token indices of each word in order; each special token is alone.
/** @type {(numbers: (number | null)[]) => number[][]} */
function joinGroups(numbers) {
  /** @type {number[][]} */
  const groups = [];
  numbers.forEach((number, i) => {
    if (i && number !== null && number === numbers[i - 1]) groups[groups.length - 1].push(i);
    else groups.push([i]);
  });
  return groups;
}

const CONTINUATION_PREFIX = "##"; // prefix of a token that continues its word
const BLANK_PREFIXES = "Ġ▁ ";

// Return the displayed text of each token. `make_drawn_texts` in text/pieces.py explains the rule.
/** @type {(pieces: Piece[], numbers: (number | null)[], points: CodePoints) => string[]} */
function makeDrawnTexts(pieces, numbers, points) {
  const marksWordStarts = pieces.some(({ name }) => name && BLANK_PREFIXES.includes(name[0]));
  return pieces.map((piece, i) => {
    const continues =
      i > 0 && numbers[i] !== null && numbers[i] === numbers[i - 1] && isAfterLetters(pieces[i - 1], points);
    const isContinuation =
      piece.name.startsWith(CONTINUATION_PREFIX) ||
      (marksWordStarts
        ? !BLANK_PREFIXES.includes(piece.name[0] ?? "")
        : continues && meetInLetters(pieces[i - 1], piece, points));
    const text = getName(pieces, i, points);
    return (continues && isContinuation && text !== UNKNOWN ? CONTINUATION_PREFIX : "") + text;
  });
}

/** @type {(previous: Piece, points: CodePoints) => boolean} */
const isAfterLetters = ({ name, start, end }, points) =>
  end <= start ? !listBlanks(name).length : !points.slice(start, end).every(isBlank);

/** @type {(previous: Piece, piece: Piece, points: CodePoints) => boolean} */
const meetInLetters = ({ end }, { start }, points) =>
  end === start && [end - 1, start].every((i) => isInWord(points[i] ?? ""));

/** @type {(pieces: Piece[], index: number, points: CodePoints) => string} */
function getName(pieces, index, points) {
  const { name, start, end, word } = pieces[index];
  const text = points.slice(start, end);
  if (word !== null && isBlankMark(name) && text.every(isBlank)) return makeVisible(listBlanks(name));
  if (!text.length) return makeVisible(listBlanks(name)) || name || EMPTY;
  let part = 1; // byte-level tokens of one character share its span
  while (index >= part && pieces[index - part].start === start && pieces[index - part].end === end) part++;
  const visibleText = makeVisible(text);
  return part === 1 ? visibleText : `${visibleText}·${part}`;
}

/** @type {(pieces: Piece[], group: number[], points: CodePoints) => string} */
function getWord(pieces, group, points) {
  const spans = group.map((i) => pieces[i]).filter(({ start, end }) => end > start);
  if (group.length === 1 || !spans.length) return getName(pieces, group[0], points);
  const end = Math.max(...spans.map((span) => span.end));
  return makeVisible(points.slice(skipBlanks(points, spans[0].start, end), end));
}
