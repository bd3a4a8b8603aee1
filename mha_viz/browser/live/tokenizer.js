// Tokenize a typed text and locate the tokens in it, which Hugging Face's JavaScript library does not do. The library
// splits a text and finds the tokens of a word; the mapping of characters comes from the model's own tokenizer
// (models/reading/tokenizer_rules.py), so that browser and server read a text alike.
import { isBlank } from "./characters.js";
/** @import { CodePoints } from "./characters.js" */
/** @import { Piece } from "./grouping.js" */

/**
 * The part of Hugging Face's library that is used here.
 *
 * @typedef {object} Library
 * @property {((text: string) => string[]) | null} pre_tokenizer
 * @property {{ encode: (words: string[]) => string[], tokens_to_ids: Map<string, number> }} model
 */

/** @typedef {{ content: string, id: number, lstrip: boolean, rstrip: boolean }} AddedToken */
/** @typedef {{ id: number, name: string }} SpecialToken */
/** @typedef {[first: number, last: number, becomes: string | number]} CharacterRun */

/**
 * A tokenizer as data (models/reading/tokenizer_rules.py). `becomes` and `splits` are runs of code points: characters
 * that are replaced, and characters that separate words or are words.
 *
 * @typedef {object} Rules
 * @property {number} limit maximum number of tokens, including special ones
 * @property {number} characters maximum number of characters that are read
 * @property {number | null} unknown the id of unknown tokens
 * @property {number[]} delimiters the ids of special tokens
 * @property {SpecialToken[]} before added before a text
 * @property {SpecialToken[]} after added after a text
 * @property {AddedToken[]} added special tokens that users can type
 * @property {CharacterRun[]} becomes
 * @property {CharacterRun[] | null} splits word boundaries; the library may split words further
 * @property {boolean} bytes whether tokens are made of bytes
 * @property {boolean} blankFirst whether a space is added before a text
 */

/** @typedef {{ pieces: Piece[], count: number }} Tokens `count`: the number of tokens before the text was cut */
/** @typedef {{ text: string, spans: [number, number][] }} AlignedText and where each code unit was typed */

const PADDED = 0; // replace a character by itself between two spaces
const DECOMPOSED = 1; // replace a character by its decomposition
const BLANK = 0; // separates words

export class Reader {
  #library;
  #rules;
  #added;

  /** @param {Library} library @param {Rules} rules */
  constructor(library, rules) {
    this.#library = library;
    this.#rules = rules;
    const names = rules.added.map(({ content }) => content).toSorted((a, b) => b.length - a.length);
    this.#added = names.length ? new RegExp(names.map(escapePattern).join("|"), "gu") : null;
  }

  // Return the tokens of a text, cut to the model's limit.
  /** @type {(points: CodePoints) => Tokens} */
  read(points) {
    const { limit, characters, before, after } = this.#rules;
    const textTokens = this.#tokenize(points.slice(0, characters));
    const room = limit - before.length - after.length;
    /** @type {(token: SpecialToken) => Piece} */
    const makeSpecial = ({ id, name }) => ({ id, name, start: 0, end: 0, word: null });
    const pieces = [...before.map(makeSpecial), ...textTokens.slice(0, room), ...after.map(makeSpecial)];
    return { pieces, count: textTokens.length + before.length + after.length };
  }

  /** @type {(points: CodePoints) => Piece[]} */
  #tokenize(points) {
    /** @type {Piece[]} */
    const pieces = [];
    let [begin, wordNumber] = [0, 0];
    /** @type {(end: number) => void} */
    const addWords = (end) => {
      for (const { text, spans } of this.#splitWords(points, begin, end))
        pieces.push(...this.#makePieces(text, spans, wordNumber++));
    };
    for (const { added, start, end } of this.#findAdded(points)) {
      addWords(start);
      pieces.push(this.#makePiece(added.id, added.content, [start, end], wordNumber++));
      begin = end;
    }
    addWords(points.length);
    return pieces;
  }

  // Find typed special tokens such as [MASK], with the white space that belongs to them.
  /** @type {(points: CodePoints) => { added: AddedToken, start: number, end: number }[]} */
  #findAdded(points) {
    if (!this.#added) return [];
    const text = points.join("");
    let [unitIndex, pointIndex, previousEnd] = [0, 0, 0];
    return [...text.matchAll(this.#added)].map(({ 0: content, index }) => {
      for (; unitIndex < index; pointIndex++) unitIndex += points[pointIndex].length;
      const added = /** @type {AddedToken} */ (this.#rules.added.find((token) => token.content === content));
      let [start, end] = [pointIndex, pointIndex + [...content].length];
      if (added.lstrip) while (start > previousEnd && isBlank(points[start - 1])) start--;
      if (added.rstrip) while (end < points.length && isBlank(points[end])) end++;
      previousEnd = end;
      return { added, start, end };
    });
  }

  // Return the words of a part of the text, as the model reads them.
  /** @type {(points: CodePoints, from: number, to: number) => AlignedText[]} */
  #splitWords(points, from, to) {
    const { splits, blankFirst } = this.#rules;
    const alignedText = this.#normalizeSpan(points, from, to);
    if (!alignedText.text) return [];
    const parts = splits ? split(alignedText, splits) : [blankFirst ? prependBlank(alignedText) : alignedText];
    return this.#library.pre_tokenizer ? parts.flatMap((part) => this.#cutText(part)) : parts;
  }

  // Split an aligned text with the library, which returns consecutive parts.
  /** @type {(alignedText: AlignedText) => AlignedText[]} */
  #cutText(alignedText) {
    const words = /** @type {(text: string) => string[]} */ (this.#library.pre_tokenizer)(alignedText.text);
    const spans = this.#rules.bytes ? splitIntoBytes(alignedText) : alignedText.spans;
    let position = 0;
    return words.map((text) => ({ text, spans: spans.slice(position, (position += text.length)) }));
  }

  /** @type {(points: CodePoints, from: number, to: number) => AlignedText} */
  #normalizeSpan(points, from, to) {
    let text = "";
    /** @type {[number, number][]} */
    const spans = [];
    for (let i = from; i < to; i++) {
      const replacement = replaceCharacter(this.#rules.becomes, points[i]);
      text += replacement;
      for (let unit = 0; unit < replacement.length; unit++) spans.push([i, i + 1]);
    }
    return { text, spans };
  }

  /** @type {(word: string, spans: [number, number][], number: number) => Piece[]} */
  #makePieces(word, spans, number) {
    const names = this.#library.model.encode([word]);
    const ids = names.map((name) => this.#library.model.tokens_to_ids.get(name) ?? this.#rules.unknown ?? 0);
    if (names.length === 1) return [this.#makePiece(ids[0], names[0], joinSpans(spans), number)];
    let position = 0;
    return names.map((name, i) => {
      const length = name.length - (position && name.startsWith("##") && !this.#rules.bytes ? 2 : 0);
      const span = joinSpans(spans.slice(position, (position += length)));
      return this.#makePiece(ids[i], name, span, number);
    });
  }

  /** @type {(id: number, name: string, span: [number, number], wordNumber: number) => Piece} */
  #makePiece(id, name, [start, end], wordNumber) {
    const isSpecial = this.#rules.delimiters.includes(id);
    const number = isSpecial ? null : this.#rules.bytes ? 0 : wordNumber; // byte-level tokens mark blanks themselves
    const isUnknown = number !== null && id === this.#rules.unknown;
    return { id, name: isUnknown ? "[UNK]" : name, start, end, word: number, isUnknown };
  }
}

/** @type {(text: string) => string} */
const escapePattern = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/** @type {(spans: [number, number][]) => [number, number]} */
const joinSpans = (spans) => [spans[0][0], spans[spans.length - 1][1]];

// Return the characters to which the tokenizer maps a character.
/** @type {(runs: CharacterRun[], character: string) => string} */
function replaceCharacter(runs, character) {
  const replacement = findRun(runs, /** @type {number} */ (character.codePointAt(0)))?.[2] ?? character;
  if (replacement === PADDED) return ` ${character} `;
  return replacement === DECOMPOSED ? character.normalize("NFD") : String(replacement);
}

// Find the run that contains a character; runs are sorted.
/** @type {(runs: CharacterRun[], code: number) => CharacterRun | undefined} */
function findRun(runs, code) {
  let [low, high] = [0, runs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle][1] < code) low = middle + 1;
    else high = middle;
  }
  return low < runs.length && runs[low][0] <= code ? runs[low] : undefined;
}

// Split an aligned text into words by the class of each character.
/** @type {(alignedText: AlignedText, splits: CharacterRun[]) => AlignedText[]} */
function split({ text, spans }, splits) {
  /** @type {AlignedText[]} */
  const words = [];
  let [position, isInWord] = [0, false];
  for (const character of text) {
    const run = findRun(splits, /** @type {number} */ (character.codePointAt(0)));
    const characterSpans = spans.slice(position, (position += character.length));
    if (isInWord && !run) {
      const word = words[words.length - 1];
      word.text += character;
      word.spans.push(...characterSpans);
    } else if (run?.[2] !== BLANK) words.push({ text: character, spans: characterSpans });
    isInWord = !run;
  }
  return words;
}

/** @type {(alignedText: AlignedText) => AlignedText} */
function prependBlank({ text, spans }) {
  const [start] = spans[0];
  return text.startsWith(" ") ? { text, spans } : { text: ` ${text}`, spans: [[start, start], ...spans] };
}

// Return the span of each byte of an aligned text, for byte-level tokens, in which each character stands for one byte.
/** @type {(alignedText: AlignedText) => [number, number][]} */
function splitIntoBytes({ text, spans }) {
  const encoder = new TextEncoder();
  let position = 0;
  return [...text].flatMap((character) => {
    const span = spans[position];
    position += character.length;
    return Array.from(encoder.encode(character), () => span);
  });
}
