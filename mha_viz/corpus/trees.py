"""Dependency trees of words, and their linearisation to sentences with dependencies and mentions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mha_viz.corpus.treebank import Mention, Sentence, Word


@dataclass
class Node:
    """A word with its dependents ``before`` and ``after`` it. ``chain`` is set for the head of a mention."""

    form: str
    upos: str
    relation: str = ""
    features: str = ""
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    chain: str = ""

    def attach_as(self, relation: str) -> Node:
        """Set the relation to the head, and return this node."""
        self.relation = relation
        return self

    def walk(self) -> Iterator[Node]:
        """Yield every node of this tree in sentence order."""
        for node in self.before:
            yield from node.walk()
        yield self
        for node in self.after:
            yield from node.walk()


def linearise(root: Node) -> Sentence:
    """Turn a tree into a sentence, capitalised, with its noun phrases as mentions."""
    nodes = list(root.walk())
    positions = {id(node): index for index, node in enumerate(nodes)}
    heads = {id(child): positions[id(node)] for node in nodes for child in (*node.before, *node.after)}
    forms = [
        "an" if node.form == "a" and next_node.form[0] in "aeiou" else node.form
        for node, next_node in zip(nodes, [*nodes[1:], root], strict=True)
    ]
    forms[0] = forms[0][0].upper() + forms[0][1:]
    words = tuple(
        Word(form, node.upos, heads.get(id(node)), node.relation, node.features)
        for form, node in zip(forms, nodes, strict=True)
    )
    mentions = []
    for node in nodes:
        if node.chain:  # a noun phrase: all its dependents except a preposition in front
            first_node = next((n for n in node.before if n.relation != "case"), node)
            start, *_ = first_node.walk()
            *_, last_node = node.walk()
            mentions.append(
                Mention(node.chain, positions[id(start)], positions[id(last_node)] + 1, positions[id(node)])
            )
    return Sentence(words, tuple(sorted(mentions, key=lambda mention: (mention.start, -mention.end))))
