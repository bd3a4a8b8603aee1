// Group tokens into words, for texts that are read in the browser, by the rules of text/pieces.py.
// tests/test_live_rules.py checks that both give the same results.
import {
  isAccent,
  isAttached,
  isBlank,
  isInWord,
  isLine,
  isPicture,
  isPunctuation,
  isSign,
  strip,
  makeVisible,
  skipBlanks,
} from "./characters.js";
/** @import { Axis } from "../reading.js" */
/** @import { Typed } from "./characters.js" */

/**
 * A token from the tokenizer: its span in code points; its word number according to the tokenizer, null for [CLS],
 * [SEP] and similar tokens; and whether the tokenizer has no token for that text.
 *
 * @typedef {{ id: number, name: string, start: number, end: number, word: number | null, isUnknown?: boolean }} Piece
 */

const UNKNOWN = "[UNK]";
const APOSTROPHES = "'’ʼ＇";
const MASKS = ["[MASK]", "<mask>"]; // a word of its own
const JOINER = "\u200d"; // joins several emoji into one
const EMPTY = "∅"; // the name of an empty token
/** @type {Record<string, string>} */
const BLANK_LETTERS = { Ġ: " ", "▁": " ", ĉ: "\t", Ċ: "\n", ċ: "\v", Č: "\f", č: "\r" };

// Return the tokens and words of a text, and which tokens are punctuation.
/** @type {(typed: Typed, pieces: Piece[]) => Axis & { marks: boolean[] }} */
export function groupTokens(typed, pieces) {
  const trimmed = setPlaces(pieces, typed);
  const numbers = numberWords(trimmed, typed);
  const groups = joinGroups(numbers);
  return {
    n: pieces.length,
    tokens: makeDrawnTexts(trimmed, numbers, typed).map((text, i) => formatWord(text, [trimmed[i]])),
    segments: pieces.map(() => 0),
    special: numbers.map((number) => Number(number === null)),
    groups,
    words: groups.map((group) => {
      return formatWord(
        getWord(trimmed, group, typed),
        group.map((i) => trimmed[i]),
      );
    }),
    marks: trimmed.map(({ start, end }, i) => {
      return numbers[i] !== null && isPunctuation(strip(typed.slice(start, end)).join(""));
    }),
  };
}

// Return the displayed text of a token or word: after [UNK] if the model reads that.
/** @type {(text: string, pieces: Piece[]) => string} */
const formatWord = (text, pieces) =>
  text !== UNKNOWN && pieces.some(({ isUnknown }) => isUnknown) ? `${UNKNOWN} ${text}` : text;

// Set the spans of the tokens, by the rule of `set_places` in text/pieces.py, which explains it.
/** @type {(pieces: Piece[], typed: Typed) => Piece[]} */
function setPlaces(pieces, typed) {
  let [behind, limit] = [-1, typed.length]; // where the next token begins, and the next one that shares no character
  return pieces
    .toReversed()
    .map((piece) => {
      const { start, end, word } = piece;
      const isBeforeLetter = start === behind;
      if (word !== null && behind >= end) limit = behind;
      if (start < end || word !== null) behind = start;
      return word === null ? piece : placePiece(piece, typed, limit, isBeforeLetter);
    })
    .reverse();
}

/** @type {(piece: Piece, typed: Typed, limit: number, isBeforeLetter: boolean) => Piece} */
function placePiece(piece, typed, limit, isBeforeLetter) {
  let { start, end } = piece;
  const { name } = piece;
  const inner = strip(typed.slice(start, end)).join("");
  if (isBlankMark(name) && (isBeforeLetter || (inner && inner !== name))) end = start;
  if (start === end) {
    const { length } = listBlanks(name);
    for (let i = 0; i < length && start > 0 && isBlank(typed[start - 1]); i++) start--;
  }
  while (start < end && end < limit && isAccent(typed[end]) && !isBlank(typed[end - 1])) end++;
  return { ...piece, start: skipBlanks(typed, start, end), end };
}

/** @type {(name: string) => boolean} */
const isBlankMark = (name) => /^▁+$/.test(name);

// Return the white space that a name consists of; none for other names.
/** @type {(name: string) => Typed} */
function listBlanks(name) {
  const written = Array.from(name, (letter) => BLANK_LETTERS[letter] ?? letter);
  return written.every(isBlank) ? written : [];
}

/** @type {(pieces: Piece[], typed: Typed) => (number | null)[]} */
function numberWords(pieces, typed) {
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
  const [between, last] = [typed.slice(previous.end, piece.start), before[before.length - 1]];
  if (before.every(isBlank)) return before.some(isLine) && !isBlankMark(previous.name);
  if (between.length && (isBlank(between[0]) || isBlank(between[between.length - 1]))) return true;
  if (isBlank(last) || MASKS.includes(previous.name) || MASKS.includes(piece.name)) return true;
  if (isInsideContraction(previous, piece, typed) || isAttached(written[0] ?? "") || last === JOINER) return false;
  const base = dropAttached(typed, previous);
  if ((written.length && written.every(isBlank)) || isSign(written.slice(0, 1)) || isSign(base.slice(-1))) return true;
  if (base.length && written.length && isPicture(base[base.length - 1]) !== isPicture(written[0])) return true;
  return piece.word !== previous.word;
}

// Return the characters of a token without accents and joiners. If nothing else is left, include their base character.
/** @type {(typed: Typed, piece: Piece) => Typed} */
function dropAttached(typed, { start, end }) {
  while (start && typed.slice(start, end).every(isAttached)) start--;
  return typed.slice(start, end).filter((c) => !isAttached(c));
}

// Whether two tokens meet at an apostrophe between letters: didn|'|t, didn|'t.
/** @type {(previous: Piece, piece: Piece, typed: Typed) => boolean} */
function isInsideContraction(previous, piece, typed) {
  if (previous.end !== piece.start) return false;
  const position = [piece.start, piece.start - 1].find(
    (i) => APOSTROPHES.includes(typed[i] ?? "none") && i > 0 && i < typed.length - 1,
  );
  return position !== undefined && isInWord(typed[position - 1]) && isInWord(typed[position + 1]);
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

const CONTINUES = "##"; // prefix of a token that continues its word
const BLANKS = "Ġ▁ ";

// Return the displayed text of each token, by the rule of `make_drawn_texts` in text/pieces.py, which explains it.
/** @type {(pieces: Piece[], numbers: (number | null)[], typed: Typed) => string[]} */
function makeDrawnTexts(pieces, numbers, typed) {
  const marksBeginnings = pieces.some(({ name }) => name && BLANKS.includes(name[0]));
  return pieces.map((piece, i) => {
    const continues =
      i > 0 && numbers[i] !== null && numbers[i] === numbers[i - 1] && isAfterLetters(pieces[i - 1], typed);
    const isMarked =
      piece.name.startsWith(CONTINUES) ||
      (marksBeginnings
        ? !BLANKS.includes(piece.name[0] ?? "")
        : continues && meetInLetters(pieces[i - 1], piece, typed));
    const written = getName(pieces, i, typed);
    return (continues && isMarked && written !== UNKNOWN ? CONTINUES : "") + written;
  });
}

/** @type {(before: Piece, typed: Typed) => boolean} */
const isAfterLetters = ({ name, start, end }, typed) =>
  end <= start ? !listBlanks(name).length : !typed.slice(start, end).every(isBlank);

/** @type {(before: Piece, piece: Piece, typed: Typed) => boolean} */
const meetInLetters = ({ end }, { start }, typed) =>
  end === start && [end - 1, start].every((at) => isInWord(typed[at] ?? ""));

/** @type {(pieces: Piece[], index: number, typed: Typed) => string} */
function getName(pieces, index, typed) {
  const { name, start, end, word } = pieces[index];
  const text = typed.slice(start, end);
  if (word !== null && isBlankMark(name) && text.every(isBlank)) return makeVisible(listBlanks(name));
  if (!text.length) return makeVisible(listBlanks(name)) || name || EMPTY;
  let part = 1; // byte-level tokens of one character share its span
  while (index >= part && pieces[index - part].start === start && pieces[index - part].end === end) part++;
  const written = makeVisible(text);
  return part === 1 ? written : `${written}·${part}`;
}

/** @type {(pieces: Piece[], group: number[], typed: Typed) => string} */
function getWord(pieces, group, typed) {
  const spans = group.map((i) => pieces[i]).filter(({ start, end }) => end > start);
  if (group.length === 1 || !spans.length) return getName(pieces, group[0], typed);
  const end = Math.max(...spans.map((span) => span.end));
  return makeVisible(typed.slice(skipBlanks(typed, spans[0].start, end), end));
}
