"""One sentence as typed text, and as the words of a treebank: equal text, different tokens."""

from __future__ import annotations

TYPED = "A well-known man ."
WORDS = ("A", "well-known", "man", ".")
ROWS = (
    ("A", "DET", 3, "det"),
    ("well-known", "ADJ", 3, "amod"),
    ("man", "NOUN", 0, "root"),
    (".", "PUNCT", 3, "punct"),
)
CONLLU = "\n".join(
    f"{number}\t{form}\t_\t{upos}\t_\t_\t{head}\t{relation}\t_\t_"
    for number, (form, upos, head, relation) in enumerate(ROWS, 1)
)
SPLIT = ["[CLS]", "A", "well", "-", "known", "man", ".", "[SEP]"]
WHOLE = ["[CLS]", "A", "well-known", "man", ".", "[SEP]"]
