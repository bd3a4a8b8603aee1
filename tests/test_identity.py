"""A reading knows what it is: readings that differ have different keys, in every cache that keeps something of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mha_viz.attention import Attention, Head
from mha_viz.figures import recipe
from mha_viz.figures.compare import Panel
from mha_viz.figures.layout import Size
from mha_viz.figures.packet import Start
from mha_viz.figures.view import View
from mha_viz.models import catalog
from mha_viz.models.capture import Tap
from mha_viz.models.encoder import Encoder
from mha_viz.ui import tray
from mha_viz.ui.annotated import words_of
from mha_viz.ui.cache import Office
from tests.test_packet import unpack
from tests.test_panels import unpack as unpack_panels
from tests.visit import Visit

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds
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


class Silenced(Tap):
    """A tap that changes nothing but is not the usual one."""


def readings(minilm: Encoder, tiny: Callable[[str], Encoder]) -> dict[str, Attention]:
    """Twenty readings, each of which says something else."""
    typed, given = minilm.encode(TYPED), minilm.encode_words(WORDS)
    pair = minilm.encode(TYPED, "He sat.")
    bert = tiny("bert")
    elsewhere = Attention("minilm", minilm.revision, typed.text, typed.weights)
    others = np.ascontiguousarray(typed.weights[::-1])
    return {
        "typed": typed,
        "typed, words": typed.by_words(),
        "typed, special hidden": typed.without_special(),
        "typed, words, special hidden": typed.by_words().without_special(),
        "typed, special hidden, words": typed.without_special().by_words(),
        "given": given,
        "given, words": given.by_words(),
        "given, special hidden": given.without_special(),
        "given as other words with the same blanks": minilm.encode_words(("A well-known", "man .")),
        "other text": minilm.encode("A well-known man!"),
        "pair": pair,
        "pair the other way round": minilm.encode("He sat.", TYPED),
        "two sentences as one": minilm.encode(f"{TYPED} He sat."),
        "model": bert.encode(TYPED),
        "revision": replace(typed, revision="another"),
        "untrained": bert.untrained().encode(TYPED),
        "through another tap": minilm.through(TYPED, tap=Silenced)[0],
        "other numbers for the same text": Attention("minilm", minilm.revision, typed.text, others),
        "the same numbers from elsewhere": replace(elsewhere, model="tensors"),
        "some heads": typed.only([Head(3, 1)]),
        "other heads": typed.only([Head(3, 1), Head(3, 2)]),
    }


def test_readings_that_differ_have_different_keys(minilm: Encoder, tiny: Callable[[str], Encoder]) -> None:
    each = readings(minilm, tiny)
    assert len(each) >= 20
    same = [(a, b) for a, b in combinations(each, 2) if each[a].key == each[b].key]
    assert same == []


def test_equal_readings_have_equal_keys(minilm: Encoder) -> None:
    typed = minilm.encode(TYPED)
    assert minilm.encode(TYPED).key == typed.key
    assert minilm.encode(TYPED).by_words().key == typed.by_words().key
    assert minilm.encode_words(list(WORDS)).key == minilm.encode_words(WORDS).key
    stacked = list(typed.weights)
    one, two = (Attention.from_tensors(stacked, SPLIT[: len(typed.text)]) for _ in range(2))
    assert one.key == two.key


def test_a_key_is_the_same_in_another_process(minilm: Encoder) -> None:
    code = (
        "import mha_viz as mv; e = mv.load('minilm');"
        f"print(e.encode({TYPED!r}).key, e.encode_words({WORDS!r}).by_words().key)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert printed.stdout.split() == [minilm.encode(TYPED).key, minilm.encode_words(WORDS).by_words().key]


def test_pasted_words_and_typed_words_share_nothing_that_is_kept(minilm: Encoder) -> None:
    """One word, `well-known`, as CoNLL-U; then three, typed: each packet carries its own."""
    office, model = Office(), catalog.resolve("minilm")
    pasted, typed = (office.reading(model, text, "").result(PATIENCE) for text in (CONLLU, TYPED))
    head = (Head(0, 0),)
    headers = [unpack(office.packet(a, head, None, Start())).header for a in (pasted, typed)]
    assert [header["words"] for header in headers] == [WHOLE, SPLIT]
    assert headers[0]["key"] != headers[1]["key"]
    assert headers[0]["of"] != headers[1]["of"]
    panels = [office.panels([Panel(a, Head(0, 0))], None) for a in (pasted, typed)]
    assert panels[0] != panels[1]
    traces = [office.trace(model, text, "", 0).result(PATIENCE) for text in (CONLLU, TYPED)]
    assert [[t.text for t in trace.text.by_words().tokens] for trace in traces] == [WHOLE, SPLIT]


def test_what_an_office_keeps_of_one_reading_is_never_anothers(minilm: Encoder, tiny: Callable[[str], Encoder]) -> None:
    """Each of the office's shelves, asked in turn by all readings: the second asking gives what the first one did."""
    office = Office()
    each = list(readings(minilm, tiny).values())

    def asked(office: Office, attention: Attention) -> list[Any]:
        packet = office.packet(attention, (Head(0, 0),), None, Start())
        panels = office.panels([Panel(attention, Head(0, 0))], None)
        return [packet, panels, office.distances(attention)]

    for attention, first in zip(each, [asked(office, attention) for attention in each], strict=True):
        for kept, expected in zip(first, asked(Office(), attention), strict=True):
            np.testing.assert_array_equal(kept, expected)
    assert not np.array_equal(*(office.plane(attention).points for attention in (each[0], each[9])))


def test_one_visitor_never_sees_the_words_of_another() -> None:
    before = Visit({"text": CONLLU})
    after = Visit({"text": TYPED})
    assert before.shown().header["words"] == WHOLE
    assert after.shown().header["words"] == SPLIT
    assert Visit({"text": CONLLU}).shown().header["words"] == WHOLE


def test_a_view_of_the_pasted_words_is_not_taken_for_one_of_the_typed_words() -> None:
    visit = Visit({"text": TYPED})
    pasted = Visit({"text": CONLLU})
    visit.send("mha_explorer", "view", {"of": pasted.shown().header["of"], "pin": "q2"})
    assert "pin" not in visit.url
    pasted.view(pin="q2")
    assert pasted.url["pin"] == "q2"


@pytest.mark.parametrize(
    "made", ["typed", "given", "typed, words", "given, words", "given, special hidden", "typed, words, special hidden"]
)
def test_the_recipe_makes_the_same_bytes(
    made: str, minilm: Encoder, tiny: Callable[[str], Encoder], tmp_path: Path
) -> None:
    import mha_viz as mv

    attention = readings(minilm, tiny)[made]
    code = recipe.of_head(attention, "heatmap", [Head(3, 1)], View(), Size(), str(tmp_path / "again.svg"))
    exec(code, {})
    attention.heatmap(3, 1).save(tmp_path / "first.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "first.svg").read_bytes()
    assert ("encode_words" in code) == made.startswith("given")
    assert mv.__name__ in code


def test_a_pinned_head_is_read_again_from_the_words_that_were_given() -> None:
    page = Visit({"text": CONLLU})
    page.send("mha_explorer", "tray", {"model": "minilm", "head": "L3H1"})
    compared = Visit({"tray": page.url["tray"], "show": "tray"}, "pages/20_compare.py")
    (reading,) = unpack_panels(compared._drawn()["mha_compare"].bytes)["readings"]
    assert reading["words"] == WHOLE
    compared = Visit({"text": CONLLU, "show": "layer"}, "pages/20_compare.py")
    compared.send(
        "mha_compare", "edit", {"action": "pin", "text": TYPED, "pair": "", "model": "minilm", "head": "L0H0"}
    )
    ((pin,), _) = tray.read(compared.url["tray"])
    assert words_of(pin.text) == WORDS
    compared.send("mha_compare", "edit", {"action": "pin", "text": "It rains.", "model": "minilm", "head": "L0H0"})
    assert tray.read(compared.url["tray"])[0][1].text == "It rains."
