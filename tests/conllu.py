"""Write annotated files for tests: lines and sentences of CoNLL-U, and the heading of GAP files."""

from __future__ import annotations

GAP_HEADING = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"


def line(number: int | str, form: str, head: int | str = "_", relation: str = "_", misc: str = "_") -> str:
    return "\t".join([str(number), form, form.lower(), "NOUN", "_", "Number=Sing", str(head), relation, "_", misc])


def conllu(*lines: str) -> str:
    return "\n".join(lines) + "\n\n"
