"""Read CoNLL-U line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Sentence:
    document: str
    forms: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)  # from 0; -1 for the root
    relations: list[str] = field(default_factory=list)
    mentions: list[tuple[str, int]] = field(default_factory=list)  # (chain, head word)


def read(text: str) -> list[Sentence]:
    """Parse CoNLL-U with the documents and the ``Entity=`` attributes of its sentences."""
    sentences, document = [], ""
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        for line in lines:
            if line.startswith("# newdoc id = "):
                document = line.removeprefix("# newdoc id = ")
        sentence, entities = Sentence(document), []
        for line in lines:
            columns = line.split("\t")
            if line.startswith("#") or not columns[0].isdigit():
                continue
            sentence.forms.append(columns[1])
            sentence.upos.append(columns[3])
            sentence.features.append(columns[5])
            sentence.heads.append(int(columns[6]) - 1)
            sentence.relations.append(columns[7])
            entities.append(next((p[7:] for p in columns[9].split("|") if p.startswith("Entity=")), ""))
        sentence.mentions = sorted({(c, _head_word(sentence, span)) for c, span in _spans(entities)})
        sentences.append(sentence)
    return sentences


def _spans(entities: list[str]) -> Iterator[tuple[str, range]]:
    """Yield the chain and the words of each mention, given the ``Entity`` of each word, such as "(e1-x" or "e1)"."""
    open_mentions: list[tuple[str, int]] = []
    for word, entity in enumerate(entities):
        name, begins = "", False
        for letter in entity + "\n":
            if letter in "()\n":
                if begins and name:
                    open_mentions.append((name.split("-")[0], word))
                if letter == ")":
                    chain = open_mentions[-1][0] if begins else name
                    index = max(i for i, (c, _) in enumerate(open_mentions) if c == chain)
                    yield chain, range(open_mentions.pop(index)[1], word + 1)
                name, begins = "", letter == "("
            else:
                name += letter


def _head_word(sentence: Sentence, span: range) -> int:
    return next(i for i in span if sentence.heads[i] not in span)
