"""Treebanks with documents, and corpora cut into shards in this process, for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import as_conllu
from mha_viz.corpus.cutting import cut
from mha_viz.corpus.treebank import Sentence
from mha_viz.study.cluster.layout import Layout, lay_out, survey


def document_sentences(count: int, per_document: int, seed: int = 0) -> list[Sentence]:
    """Sentences of the grammar, in documents of ``per_document`` sentences."""
    sentences = grammar.corpus(count, seed).sentences
    return [replace(one, document=f"d{at // per_document}") for at, one in enumerate(sentences)]


def treebank(count: int, per_document: int = 5, seed: int = 0) -> str:
    """The same as CoNLL-U, each document with one heading."""
    text, before = [], None
    for sentence in document_sentences(count, per_document, seed):
        text.append(as_conllu([sentence if sentence.document != before else replace(sentence, document="")]))
        before = sentence.document
    return "".join(text)


def laid_out(name: str, files: list[Path], size: int) -> Layout:
    """A corpus of these files in shards of at least ``size`` bytes."""
    cuts = [cut(str(file), size) for file in files]
    return lay_out(name, cuts, [[survey(shard, one.kind) for shard in one.shards] for one in cuts])
