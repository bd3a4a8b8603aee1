"""A treebank from CoNLL-U, and back: dependencies, and coreference where MISC holds ``Entity=``.

Words are the lines whose id is a plain integer; ranges ("3-4") and empty nodes ("8.1") have no head and are skipped. A
file with a line that cannot be parsed is refused, and the error gives the line's number. An invalid dependency tree,
and the coreference of a document whose brackets do not match, are left out; :attr:`Corpus.left_out` says where and
why. Their words are still read, so sentence numbers match the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mha_viz.corpus.coreference import Brackets
from mha_viz.corpus.limits import Labels, check_line, check_sentences, check_text
from mha_viz.corpus.rows import NumberedLines, WordLine, blocks, new_document, word_lines
from mha_viz.corpus.treebank import START, Corpus, PartStart, Sentence, Word, check_forms, empty_forms, text_digest
from mha_viz.errors import CorpusError

WITHOUT_TREE = "Its words count; its dependencies do not."
WITHOUT_SENTENCE = "The sentence is left out."


def read_conllu(text: str, name: str = "corpus", start: PartStart = START, lenient: bool = False) -> Corpus:
    """Parse a treebank in CoNLL-U, with coreference where MISC holds ``Entity=`` as in GUM.

    ``start``: where in its file the text begins. Raises CorpusError, with the line number, for invalid CoNLL-U and
    above a limit; also for a file without a sentence, and for one whose words are not given. ``lenient``: what cannot
    be parsed is left out, one sentence at a time.
    """
    reader = _Reader(name, start, lenient)
    for block in blocks(text, name, start.lines, strict=not lenient):
        reader.read(block)
    reader.brackets.close(reader.sentences)
    if not reader.sentences and not lenient:
        raise CorpusError(
            f"{name} contains no sentence.", "Expected CoNLL-U: ten columns separated by tabs, one word per line."
        )
    if not lenient:
        check_forms(name, *empty_forms(reader.sentences))
    has_trees = any(word.relation for sentence in reader.sentences for word in sentence.words)
    sentences, left_out = tuple(reader.sentences), tuple(reader.left_out)
    return Corpus(name, sentences, text_digest(text), has_trees, reader.brackets.any_mentions, left_out)


class _Reader:
    """The content of a file that has been read so far, sentence by sentence."""

    def __init__(self, name: str, start: PartStart, lenient: bool) -> None:
        self.sentences: list[Sentence] = []
        self.left_out: list[str] = []
        self.brackets = Brackets(self.left_out)
        self._name, self._before, self._lenient = name, start.sentences, lenient
        self._document = start.document
        self._relations, self._tags = Labels("relation", name), Labels("part of speech", name)

    def read(self, block: NumberedLines) -> None:
        """Add the lines of one sentence. Raises CorpusError."""
        begun = new_document(block, self._name)
        if begun is not None:
            self.brackets.close(self.sentences)
            self._document = begun or f"document {self._before + len(self.sentences)}"
        try:
            if self._lenient:
                for number, line in block:
                    check_line(line, number, self._name)
                    check_text(line, number, self._name)
            self._sentence(block[0][0], word_lines(block, self._name))
        except CorpusError as error:
            if not self._lenient:
                raise
            self.left_out.append(f"{error.problem.removeprefix(f'{self._name}, ')} {WITHOUT_SENTENCE}")
            if any("Entity=" in line for _, line in block):
                self.brackets.fail(f"line {block[0][0]}: a sentence that is left out")

    def _sentence(self, line: int, rows: list[WordLine]) -> None:
        problem = _tree_problem(rows)
        words = tuple(Word(row.form, row.upos) if problem else _word(row) for row in rows)
        for row, word in zip(rows, words, strict=True):
            self._relations.add(word.relation, row.line)
            self._tags.add(word.upos, row.line)
        if problem:
            self.left_out.append(f"line {line}: {problem} {WITHOUT_TREE if rows else ''}".rstrip())
            if any(row.entity for row in rows):
                self.brackets.fail(f"line {line}: a sentence without a tree")
        else:
            self.brackets.read(rows, len(self.sentences))
        if words:
            self.sentences.append(Sentence(words, (), self._document, line))
            check_sentences(len(self.sentences), line, self._name)


def _tree_problem(rows: Sequence[WordLine]) -> str:
    """Why a sentence's tree is invalid; empty when it is valid. A sentence without any head is unannotated, which is
    valid."""
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
        if len(row.relation.split()) != 1:
            return f"word {number} has a head but no single-word relation."
        if not 0 <= row.head <= len(ids):
            return f"the head of word {number} does not exist."
    return _cycle(heads)


def _cycle(heads: Sequence[int]) -> str:
    """The problem of a tree with a cycle; empty when all heads lead to a root. Every word is visited once."""
    passed_from = [0] * (len(heads) + 1)  # the word from which each was first reached
    for start in range(1, len(heads) + 1):
        at = start
        while at and not passed_from[at]:
            passed_from[at], at = start, heads[at - 1]
        if at and passed_from[at] == start:
            return f"the heads form a cycle through word {start}."
    return ""


def _word(row: WordLine) -> Word:
    head = row.head - 1 if row.head else None
    return Word(row.form, row.upos, head, row.relation if row.head is not None else "", row.features)


def as_conllu(sentences: Sequence[Sentence]) -> str:
    """The sentences as CoNLL-U, each one a document if it names one, with coreference chains as in GUM."""
    heading = "# newdoc id = {}\n".format
    return "".join(heading(s.document) * bool(s.document) + "\n".join(_lines(s)) + "\n\n" for s in sentences)


def _lines(sentence: Sentence) -> Iterator[str]:
    for index, word in enumerate(sentence.words):
        head = "_" if not word.relation else 0 if word.head is None else word.head + 1
        # Brackets such as "(1)(2" and "2)": wider mentions open first and close last.
        opening = [f"({m.chain}" + ")" * (m.end == index + 1) for m in sentence.mentions if m.start == index]
        closed = [f"{m.chain})" for m in reversed(sentence.mentions) if m.end == index + 1 and m.start < index]
        entity = f"Entity={''.join(opening + closed)}" if opening or closed else "_"
        tags = word.upos or "_", "_", word.features or "_"
        fields = (index + 1, word.form, "_", *tags, head, word.relation or "_", "_", entity)
        yield "\t".join(map(str, fields))
