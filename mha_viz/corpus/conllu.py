"""Read a treebank from CoNLL-U, and write one: dependencies, and coreference where MISC holds ``Entity=``.

Words are the lines whose id is a plain integer. Ranges ("3-4") and empty nodes ("8.1") have no head and are skipped.
``# global.columns`` names the columns of all lines, ``# global.Entity`` the fields of a bracket of ``Entity=``.

Errors discard as little as possible. A line that cannot be parsed discards its sentence, an invalid dependency tree
only the dependencies (the words are still read), and brackets that do not match only their mention.
:attr:`Corpus.left_out` says where and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mha_viz.corpus.coreference import BracketParser
from mha_viz.corpus.limits import Labels, check_line, check_sentences, check_text
from mha_viz.corpus.rows import (
    NumberedLines,
    WordLine,
    find_new_document,
    iter_blocks,
    parse_words,
    update_declarations,
)
from mha_viz.corpus.treebank import (
    EMPTY_FORM,
    FILE_START,
    Corpus,
    PartStart,
    Sentence,
    Word,
    check_withheld_words,
    count_empty_forms,
    digest_text,
)
from mha_viz.errors import CorpusError

TREE_NOTE = "The sentence’s words are used, its dependencies are not."
SENTENCE_NOTE = "The sentence is left out."


def read_conllu(text: str, name: str = "corpus", start: PartStart = FILE_START, is_part: bool = False) -> Corpus:
    """Parse a treebank in CoNLL-U, with coreference where MISC holds ``Entity=`` as in GUM.

    ``start`` says where in its file the text begins. Raises CorpusError, with the line number, if no sentence can be
    read, if a limit is exceeded, or if the file withholds most of its words. Part of a file (``is_part``) is never
    refused: sentences beyond a limit are left out.
    """
    reader = _Reader(name, start, is_part)
    for block in iter_blocks(text, start.lines):
        reader.read(block)
    reader.brackets.close(reader.sentences)
    if not (is_part or reader.sentences or reader.withheld_words):
        raise reader.first_error or CorpusError(
            f"{name} contains no sentence.", "Expected CoNLL-U: ten columns separated by tabs, one word per line."
        )
    has_trees = any(word.relation for sentence in reader.sentences for word in sentence.words)
    sentences, left_out = tuple(reader.sentences), tuple(reader.left_out)
    has_chains = reader.brackets.has_mentions
    corpus = Corpus(name, sentences, digest_text(text), has_trees, has_chains, left_out, reader.withheld_words)
    if not is_part:
        check_withheld_words(name, *count_empty_forms(corpus))
    return corpus


class _Reader:
    """Reads a file sentence by sentence and keeps what it has read so far.

    ``first_error`` is the error of the first sentence that could not be read.
    """

    def __init__(self, name: str, start: PartStart, is_part: bool) -> None:
        self.sentences: list[Sentence] = []
        self.left_out: list[str] = []
        self.first_error: CorpusError | None = None
        self.withheld_words = 0  # in sentences that are left out
        self.brackets = BracketParser(self.left_out)
        self._name, self._sentences_before, self._is_part = name, start.sentences, is_part
        self._document, self._declarations = start.document, start.declarations
        self._relations, self._tags = Labels("relation", name), Labels("part of speech", name)

    def read(self, block: NumberedLines) -> None:
        """Add the sentence in these lines. Raises CorpusError."""
        document = find_new_document(block)
        if document is not None:
            self.brackets.close(self.sentences)
            self._document = document or f"document {self._sentences_before + len(self.sentences)}"
        self._declarations = update_declarations((line for _, line in block), self._declarations)
        try:
            for number, line in block:
                check_line(line, number, self._name)
                if self._is_part:  # a whole file was checked when it was decoded
                    check_text(line, number, self._name)
            lines = parse_words(block, self._declarations.columns, self._name)
            problem = _find_tree_problem(lines.words)
            words = tuple(Word(row.form, row.upos) if problem else _make_word(row) for row in lines.words)
            for row, word in zip(lines.words, words, strict=True):
                self._relations.add(word.relation, row.line)
                self._tags.add(word.upos, row.line)
        except CorpusError as error:
            self.first_error = self.first_error or error
            self.left_out.append(f"{error.problem.removeprefix(f'{self._name}, ')} {SENTENCE_NOTE}")
            if not self._is_part and (self._relations.is_full or self._tags.is_full):
                raise
            return
        first_line, forms = block[0][0], {word.form for word in words}
        if len(words) > 1 and forms == {EMPTY_FORM}:
            self.withheld_words += len(words)
            self.left_out.append(f"line {first_line}: all words of the sentence are withheld (“_”). {SENTENCE_NOTE}")
            return
        if problem:
            self.left_out.append(f"line {first_line}: {problem} {TREE_NOTE if words else ''}".rstrip())
        heads = None if problem else [row.head - 1 if row.head else -1 for row in lines.words]
        self.brackets.read(lines.entities, heads, len(self.sentences), self._declarations.chain)
        if words:
            self.sentences.append(Sentence(words, (), self._document, first_line))
            check_sentences(len(self.sentences), first_line, self._name)


def _find_tree_problem(rows: Sequence[WordLine]) -> str:
    """Return why a sentence's tree is invalid; empty if it is valid.

    A sentence without any head is unannotated, which is valid.
    """
    ids = [row.id for row in rows]
    if not rows:
        return "a sentence without a word."
    if 1 in ids[1:]:
        return f"the ids begin again at word {ids.index(1, 1) + 1}; a blank line must separate two sentences."
    if ids != list(range(1, len(ids) + 1)):
        return f"the ids are not 1 to {len(ids)} in order."
    heads = [row.head for row in rows if row.head is not None]
    if not heads:
        return ""
    for number, row in enumerate(rows, 1):
        if row.head is None:
            return f"word {number} has no head."
        if len(row.relation.split()) != 1 or row.relation.strip() == "_":
            return f"word {number} has a head but no single-word relation."
        if not 0 <= row.head <= len(ids):
            return f"the head of word {number} does not exist."
    return _find_cycle(heads)


def _find_cycle(heads: Sequence[int]) -> str:
    """Describe a cycle in a tree; empty if all heads lead to a root. Every word is visited once."""
    reached_from = [0] * (len(heads) + 1)  # for each word, the start from which it was first reached
    for start in range(1, len(heads) + 1):
        word = start
        while word and not reached_from[word]:
            reached_from[word], word = start, heads[word - 1]
        if word and reached_from[word] == start:
            return f"the heads form a cycle through word {start}."
    return ""


def _make_word(row: WordLine) -> Word:
    head = row.head - 1 if row.head else None
    return Word(row.form, row.upos, head, row.relation if row.head is not None else "", row.features)


def format_conllu(sentences: Sequence[Sentence]) -> str:
    """Format sentences as CoNLL-U, with coreference chains as in GUM.

    Each sentence that names a document becomes a document of its own.
    """
    heading = "# newdoc id = {}\n".format
    return "".join(heading(s.document) * bool(s.document) + "\n".join(_format_lines(s)) + "\n\n" for s in sentences)


def _format_lines(sentence: Sentence) -> Iterator[str]:
    for index, word in enumerate(sentence.words):
        head = "_" if not word.relation else 0 if word.head is None else word.head + 1
        # Brackets such as "(1)(2" and "2)": wider mentions open first and close last.
        opening = [f"({m.chain}" + ")" * (m.end == index + 1) for m in sentence.mentions if m.start == index]
        closing = [f"{m.chain})" for m in reversed(sentence.mentions) if m.end == index + 1 and m.start < index]
        entity = f"Entity={''.join(opening + closing)}" if opening or closing else "_"
        tags = word.upos or "_", "_", word.features or "_"
        fields = (index + 1, word.form, "_", *tags, head, word.relation or "_", "_", entity)
        yield "\t".join(map(str, fields))
