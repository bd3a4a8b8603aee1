"""Open a corpus from a path, several paths, the name of a built-in corpus, or a Corpus object."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

from mha_viz.corpus import BUILT_IN, GRAMMAR, REPEATS, corpus_files, grammar, limits, reading
from mha_viz.corpus.lexicon import VOCABULARY
from mha_viz.corpus.treebank import Corpus, Gap, Sentence, Word
from mha_viz.errors import CorpusError, shorten_value

__all__ = ["Source", "iterate", "open_sentences", "read_corpus"]

AnyPath: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = AnyPath | Sequence[AnyPath] | Corpus | Gap

MIN_WORDS, MAX_WORDS = 4, 25  # words of the built-in random corpus before their repetition


def read_corpus(source: Source, name: str | None = None) -> Corpus | Gap:
    """Read a corpus from a file, or from several files in order.

    A file is CoNLL-U, a GAP table, or text with one sentence per line. "grammar" and "repeats" are built in. A Corpus
    object is returned unchanged. ``name`` renames the corpus. Files may be compressed (.gz, .zst) or Parquet with a
    column of text; a folder or a pattern such as ``corpus/*.conllu`` stands for its files. Raises CorpusError, with the
    line number if there is one.
    """
    if isinstance(source, Corpus | Gap):
        corpus: Corpus | Gap = source
    else:
        built_in: dict[str, Callable[[], Corpus]] = {GRAMMAR: grammar.corpus, REPEATS: make_repeats}
        parts = list[Corpus | Gap]()
        for path in _list_paths(source):
            builder = built_in.get(os.fspath(path))
            parts += [builder()] if builder else [_read_file(file) for file in corpus_files.find_files(path)]
        corpus = dataclasses.replace(parts[0] if len(parts) == 1 else _join_corpora(parts), name=name_source(source))
    return corpus if name is None else dataclasses.replace(corpus, name=name)


def open_sentences(source: Source) -> Corpus:
    """Read a corpus as :func:`read_corpus` does. Raises CorpusError, also for a GAP table."""
    corpus = read_corpus(source)
    if isinstance(corpus, Gap):
        raise CorpusError(f"{corpus.name} is a GAP table, which has no sentences.", "Give a treebank or text.")
    return corpus


def iterate(source: Source) -> Iterator[Sentence]:
    """Iterate over the sentences of a corpus in order, with words and annotations.

    ``source`` is as in :func:`read_corpus`. ``sentence.forms`` are the words as text. Each of ``sentence.words`` has
    ``upos``, ``head`` (an index, None for the root), ``relation`` and ``features``. ``sentence.mentions`` are the spans
    of coreference chains. Raises CorpusError.
    """
    corpus = read_corpus(source)
    if isinstance(corpus, Gap):
        raise CorpusError(f"{corpus.name} is a GAP table, which has no sentences.", "Use read_corpus(…).rows.")
    return iter(corpus.sentences)


def list_source_files(source: Source) -> tuple[Path, ...]:
    """Return the files in which a corpus is stored. Raises CorpusError for a corpus that is not in files."""
    if isinstance(source, Corpus | Gap) or any(os.fspath(path) in BUILT_IN for path in _list_paths(source)):
        raise CorpusError(
            "A cluster reads files, but this corpus is not in a file.",
            "Measure it without a cluster (client=, --workers, --cluster), or give a file.",
        )
    return tuple(file for path in _list_paths(source) for file in corpus_files.find_files(path))


def name_source(source: Source) -> str:
    """Return the name of a corpus that is stored in a file, a folder, the files of a pattern, or several of these."""
    return " + ".join(_name_path(path) for path in _list_paths(source))


def _list_paths(source: Source) -> Sequence[AnyPath]:
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, Sequence) and source and all(isinstance(path, str | os.PathLike) for path in source):
        return source
    raise CorpusError(f"{shorten_value(source)!r} is not a corpus.", f"Give a path, a list of paths, or {GRAMMAR!r}.")


def _name_path(path: AnyPath) -> str:
    file = Path(path)
    if path in BUILT_IN or not file.exists():
        return os.fspath(path)
    return file.resolve().name if file.is_dir() else corpus_files.strip_compression(file)


def make_repeats(count: int = 400, seed: int = 0) -> Corpus:
    """Make the second built-in corpus: ``count`` sentences of random words, without annotation.

    Each sentence consists of words of the built-in grammar, repeated once in the same order, so that only an earlier
    position in the text tells which word comes next. Equal seeds give equal corpora on every machine.
    """
    rng = Random(f"{REPEATS} {seed}")
    words = [Word(form) for form in sorted({form.lower() for form in VOCABULARY})]
    sentences = []
    for line in range(1, count + 1):
        sequence = tuple(rng.choices(words, k=rng.randint(MIN_WORDS, MAX_WORDS)))
        sentences.append(Sentence(sequence * 2, (), f"sentence {line}", line))
    text = "\n".join(" ".join(sentence.forms) for sentence in sentences)
    return Corpus(REPEATS, tuple(sentences), hashlib.sha256(text.encode()).hexdigest())


def _read_file(path: Path) -> Corpus | Gap:
    if path.is_file() and path.stat().st_size > limits.MAX_BYTES:
        limits.raise_too_large(path.name, path.stat().st_size)
    with corpus_files.open_file(path) as stream:
        data = stream.read(limits.MAX_BYTES + 1)
    return reading.parse_file(data, corpus_files.strip_compression(path))


def _join_corpora(parts: Sequence[Corpus | Gap]) -> Corpus | Gap:
    """Join several corpora. Documents stay separate, even those with the same name in two files."""
    corpora = [part for part in parts if isinstance(part, Corpus)]
    if len(corpora) < len(parts):
        raise CorpusError("A GAP table cannot be measured together with other files.", "Give it alone.")
    sentences = (
        dataclasses.replace(  # a file that names no documents is one document if chains connect its sentences
            sentence, document=f"{number}:{sentence.document}" if sentence.document or corpus.has_chains else ""
        )
        for number, corpus in enumerate(corpora)
        for sentence in corpus.sentences
    )
    return Corpus(
        " + ".join(corpus.name for corpus in corpora),
        tuple(sentences),
        hashlib.sha256(" ".join(corpus.digest for corpus in corpora).encode()).hexdigest(),
        any(corpus.has_trees for corpus in corpora),
        any(corpus.has_chains for corpus in corpora),
        tuple(f"{corpus.name}, {line}" for corpus in corpora for line in corpus.left_out),
    )
