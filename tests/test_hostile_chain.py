"""Every hostile text goes once through the whole program, from one part to the next: it is read by a model, sent to the
browser, compared, sent through the pipe between the processes, saved and opened, exported, drawn in every format, and
put into a link.

Tests of one part of the program take ``hostile.KINDS``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import mha_viz as mv
from mha_viz import figures as figure_api
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.app.url import comparison
from mha_viz.app.url.address import MAX_ENCODED, fit_texts, read
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention import Attention, Head
from mha_viz.errors import EmptyText, MhaVizError
from mha_viz.figures import Figure, files
from mha_viz.figures.layout.packet import build_packet
from mha_viz.figures.layout.panels import Panel, pack_comparison
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import messages
from mha_viz.request import Request
from mha_viz.text import align, clean
from tests import hostile, lanes
from tests.files import FORMATS, check_opens
from tests.packets import unpack, unpack_panels
from tests.page_scripts import ask_packet

HEAD = Head(1, 2)
LETTERS = 300  # of a text that is drawn as one token
NOTHING = {"empty", "spaces", "line breaks", "no-break and ideographic spaces"}  # the texts in which nothing was typed
STEP = 8e-6  # the largest error of one weight in a packet


@pytest.fixture(scope="module")
def encoder(tiny: Callable[[str], Encoder]) -> Encoder:
    """A model that spells any character in bytes, and has special tokens."""
    return tiny("roberta")


@pytest.mark.filterwarnings("ignore::mha_viz.errors.MissingGlyphWarning")  # a machine may lack the fonts of a text
@pytest.mark.parametrize(("number", "name"), list(enumerate(hostile.TEXTS)), ids=hostile.TEXTS)
def test_a_hostile_text_goes_through_the_whole_program(
    number: int, name: str, encoder: Encoder, tmp_path: Path
) -> None:
    typed = hostile.TEXTS[name]
    goes_into_a_link(typed)
    is_drawn(number, typed)
    if name in NOTHING:
        is_refused(encoder, typed)
        return
    attention = encoder.encode(typed)
    is_what_was_typed(attention, typed)
    goes_to_the_browser(attention)
    is_compared(attention, typed, encoder.encode("so it is"))
    goes_through_the_pipe(attention)
    is_saved(attention, tmp_path)
    is_exported(attention.by_words().only([HEAD]))


def goes_into_a_link(typed: str) -> None:
    text, pair = fit_texts(typed, "")
    assert pair == ""
    assert clean(typed).startswith(text)
    assert len(quote(text)) <= MAX_ENCODED
    assert read({"text": text}).request.text == text
    pins = (ComparedHead(Request("minilm", clean(typed)[:100]), HEAD, clean(typed)[: comparison.MAX_NAME]),)
    assert comparison.read(comparison.write(pins)) == (pins, True)


def is_refused(encoder: Encoder, typed: str) -> None:
    with pytest.raises(EmptyText, match="Nothing was typed") as refused:
        encoder.encode(typed)
    sent = through_the_pipe(messages.pack_error(refused.value), [])
    error: MhaVizError = messages.parse_error(sent[0])
    assert (type(error), str(error)) == (EmptyText, str(refused.value))


def is_what_was_typed(attention: Attention, typed: str) -> None:
    text = attention.text
    assert text.text == clean(typed)[: len(text.text)]
    assert len(text.text) == len(typed)
    for unit in (text, attention.by_words().text):
        spans = [(t.start, t.end) for t in unit.tokens if t.start is not None and t.end is not None]
        assert all(0 <= start <= end <= len(typed) for start, end in spans)
        assert spans
        assert all(t.text for t in unit.tokens)
    np.testing.assert_allclose(attention.by_words().weights.sum(axis=3), 1, atol=1e-4)


def goes_to_the_browser(attention: Attention) -> None:
    header, matrices, _ = unpack(build_packet(attention, [HEAD]))
    assert header["tokens"] == [token.drawn for token in attention.text.tokens]
    assert header["words"] == [token.drawn for token in attention.text.by_words().tokens]
    number = HEAD.layer * attention.heads + HEAD.head
    assert np.abs(matrices[number] - attention[HEAD]).max() <= STEP


def is_compared(attention: Attention, typed: str, other: Attention) -> None:
    data = pack_comparison([Panel(attention, HEAD, typed[:LETTERS]), Panel(other, HEAD)])
    header = unpack_panels(data)
    assert header["readings"][0]["tokens"] == [token.drawn for token in attention.text.tokens]
    assert header["readings"][0]["text"] == attention.text.text[: len(header["readings"][0]["text"])]
    assert header["panels"][0]["name"] == clean(typed[:LETTERS])
    assert header["aligned"][0][1] == list(align(attention.text, other.text).matches)


def goes_through_the_pipe(attention: Attention) -> None:
    packed, arrays = CODEC.pack(attention)
    heading, arrays = through_the_pipe({"value": packed}, arrays)
    again = CODEC.parse(heading["value"], arrays)
    assert (again.key, again.tokens) == (attention.key, attention.tokens)


def through_the_pipe(heading: dict[str, Any], arrays: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    pipe = io.BytesIO()
    messages.send(pipe, heading, arrays)
    pipe.seek(0)
    return messages.receive(pipe)


def is_saved(attention: Attention, folder: Path) -> None:
    for suffix in (".npz", ".safetensors"):
        again = mv.load_attention(attention.save(folder / f"a{suffix}"))
        assert (again.key, again.text) == (attention.key, attention.text)
        np.testing.assert_array_equal(again.weights, attention.weights)


def is_exported(attention: Attention) -> None:
    """Every file of numbers has the same tokens, and calculates nothing."""
    written = {suffix: files.to_bytes(attention, suffix) for suffix in files.suffixes()}
    for suffix, data in written.items():
        check_opens(suffix, data)
    rows = csv.DictReader(io.StringIO(written[".csv"].decode(), newline=""))
    cells = {int(row["key_index"]): row["key_token"] for row in rows}
    assert all(cell in (t, f"'{t}") for cell, t in zip(cells.values(), attention.tokens, strict=True))
    assert [token["text"] for token in json.loads(written[".json"])["tokens"]] == list(attention.tokens)
    with np.load(io.BytesIO(written[".npz"]), allow_pickle=False) as arrays:
        assert arrays["tokens"].tolist() == list(attention.tokens)


def is_drawn(number: int, typed: str) -> None:
    """Of a reading with the text as one token: one figure in three formats, and the pictures of two others; other ones
    for each text. With --all, every figure, and one in every format."""
    figures = list(figures_of(typed[:LETTERS]).items())
    first = number % len(figures)
    ordered = figures[first:] + figures[:first]
    turn = number // len(figures) % len(FORMATS)
    in_turn = (FORMATS[turn:] + FORMATS[:turn])[: None if lanes.everything else 3]
    for kind, figure in ordered if lanes.everything else ordered[:3]:
        for suffix in in_turn if figure is ordered[0][1] else (".svg",):
            assert suffix in figure.suffixes
            check_opens(suffix, figure.to_bytes(suffix, 40))
        assert figure.caption, kind


def figures_of(label: str) -> dict[str, Figure]:
    one, two = ((Attention.from_tensors([np.full((1, 2, 2), 0.5)], (t, "x")), "L0H0") for t in (label, "a"))
    return {
        "heatmap": figure_api.heatmap(*one, pin="q0"),
        "links": figure_api.links(*one, pin="k1"),
        "grid": figure_api.grid(one[0]),
        "comparison": figure_api.compare([(*one, label), two]),
        "difference": figure_api.difference((*one, label), one),
    }


def test_the_browser_reads_the_tokens_of_every_hostile_text(encoder: Encoder) -> None:
    readings = {name: encoder.encode(text).only([HEAD]) for name, text in hostile.TEXTS.items() if name not in NOTHING}
    packets = [build_packet(attention, [Head(0, 0)]) for attention in readings.values()]
    headers = ask_packet(*[{"packet": data, "ask": "header"} for data in packets])
    for (name, attention), header in zip(readings.items(), headers, strict=True):
        assert header["tokens"] == [token.drawn for token in attention.text.tokens], name
        assert header["words"] == [token.drawn for token in attention.text.by_words().tokens], name
