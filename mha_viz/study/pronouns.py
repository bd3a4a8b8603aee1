"""Pronouns whose antecedent is in the same sentence."""

from __future__ import annotations

from collections.abc import Iterator

from mha_viz.corpus.treebank import Sentence


def anaphoric(sentence: Sentence) -> Iterator[int]:
    """The pronouns that have an earlier mention of their chain in the sentence, as numbers of words."""
    chains: set[str] = set()
    for mention in sorted(sentence.mentions, key=lambda mention: mention.word):
        if mention.chain in chains and sentence.words[mention.word].upos == "PRON":
            yield mention.word
        chains.add(mention.chain)
