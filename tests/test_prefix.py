"""A prefix that a model wants before a text: read by the model, and no part of the text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.app.url import address, comparison
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention.steps import parse_wordings
from mha_viz.cli import main
from mha_viz.errors import EmptyText, SettingError
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.figure_code import write_head_code
from mha_viz.figures.layout.view import View
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.request import FIELDS, Request
from tests import tiny_encoder_decoders
from tests.page_session import PageSession

PREFIX, TEXT = "query: ", "The animal was too tired to cross the street."


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_the_model_reads_prefix_and_text_as_one_text(tiny: Callable[[str], Encoder], family: str) -> None:
    model = tiny(family)
    whole, apart = model.encode(PREFIX + TEXT), model.encode(TEXT, prefix=PREFIX)
    np.testing.assert_array_equal(apart.weights, whole.weights)
    assert apart.text.text == TEXT
    # Of the whole text, the tokens that begin before the text are those of the prefix.
    of_prefix = [one.start is not None and one.end <= len(PREFIX) for one in whole.text.tokens]  # type: ignore[operator]
    assert sum(of_prefix) >= 2
    for token, one, is_prefix in zip(apart.text.tokens, whole.text.tokens, of_prefix, strict=True):
        assert token.special == (one.special or is_prefix)
        if is_prefix:
            assert (token.start, token.end) == (None, None)
        elif one.start is not None and one.end is not None:
            assert (token.start, token.end) == (max(0, one.start - len(PREFIX)), one.end - len(PREFIX))
            assert token.text.removeprefix("##") == one.text.removeprefix("##")
    words = [token.text for token in apart.by_words().queries.tokens if not token.special]
    assert words == [token.text for token in model.encode(TEXT).by_words().queries.tokens if not token.special]


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_given_words_follow_it_too(tiny: Callable[[str], Encoder], family: str) -> None:
    model, words = tiny(family), ["The", "animal", "was", "tired"]
    apart, whole = model.prefixed(PREFIX).encode_words(words), model.encode_words(["query:", *words])
    np.testing.assert_array_equal(apart.weights, whole.weights)
    assert apart.queries.given == tuple(words)
    assert [token.word for token in apart.queries.tokens] == [
        None if token.word in (None, 0) else token.word - 1 for token in whole.queries.tokens
    ]
    shift = len("query: ")
    ours = [(t.text, t.start, t.end) for t in apart.queries.tokens if not t.special]
    assert ours == [
        (t.text, t.start - shift, t.end - shift)
        if t.start is not None and t.end is not None and t.start >= shift
        # The blank that GPT-2 reads before the first word is one of the prefix.
        else (t.text, None, None)
        for t in whole.queries.tokens
        if t.word not in (None, 0)
    ]


def test_the_pieces_of_minilm_are_drawn_as_they_are_written(minilm: Encoder) -> None:
    reading = minilm.encode("Dogs bark.", prefix=PREFIX)
    assert [token.text for token in reading.text.tokens] == ["[CLS]", "query", ":", "Dogs", "bark", ".", "[SEP]"]
    assert reading.text.special == (True, True, True, False, False, False, True)
    assert reading.without_special().weights.shape[-1] == 3
    assert reading.made == ("typed", "after the prefix “query: ”")
    assert "after the prefix “query: ”" in reading.heatmap("L0H0").caption
    assert reading.request == Request("minilm", "Dogs bark.", prefix=PREFIX)
    assert reading.key != minilm.encode("Dogs bark.").key
    assert parse_wordings(map(str, reading.made))[1].row == reading.made[1].row
    pair = minilm.encode("Dogs bark.", "Cats sleep.", prefix=PREFIX)
    assert [token.text for token in pair.text.tokens if token.special] == ["[CLS]", "query", ":", "[SEP]", "[SEP]"]
    assert minilm.prefixed("") is minilm
    with pytest.raises(EmptyText):
        minilm.encode("\u200b", prefix=PREFIX)


def test_a_long_text_is_cut_as_much_earlier(tiny: Callable[[str], Encoder]) -> None:
    model, text = tiny("bert"), "the animal " * 400
    with pytest.warns(mv.errors.TextCutWarning):
        reading = model.encode(text, prefix=PREFIX)
    assert len(reading.text.tokens) == model.limit
    cut = reading.text.cut
    assert cut is not None
    assert cut.kept[0] == max(token.end or 0 for token in reading.text.tokens)


def test_all_that_is_asked_of_a_text_takes_it(minilm: Encoder) -> None:
    """As of the prefix and the text in one, whose numbers are the same where tokens need not be told apart."""
    model, whole = minilm.prefixed(PREFIX), PREFIX + TEXT
    for request in (
        Request(text=TEXT, prefix=PREFIX, quantity="norm"),
        Request(text=TEXT, prefix=PREFIX, quantity="rollout"),
        Request(text=TEXT, prefix=PREFIX, off=(mv.Head(0, 1),), method="uniform"),
        Request(text=TEXT, prefix=PREFIX, off=(mv.Head(0, 1),), method="mean"),
    ):
        reading = mv.read(minilm, request)
        plain = Request(text=whole, quantity=request.quantity, off=request.off, method=request.method)
        np.testing.assert_allclose(reading.weights, mv.read(minilm, plain).weights, atol=1e-6)
        assert reading.request is not None
        assert reading.request.prefix == PREFIX
    np.testing.assert_allclose(
        mv.ablation_effects(model, TEXT).sentence, mv.ablation_effects(minilm, whole).sentence, atol=1e-6
    )
    left = mv.read(minilm, Request(text=TEXT, prefix=PREFIX, quantity="unexplained"))
    assert left.text.special[:3] == (True, True, True)
    code = write_head_code(left, "heatmap", [mv.Head(0, 0)], View(), Size(), "a.svg")
    assert f"mv.load('minilm').prefixed({PREFIX!r})" in code


def test_it_is_in_links_commands_and_refused_where_it_has_no_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    request = Request("minilm", TEXT, prefix=PREFIX)
    assert request.parameters()["prefix"] == PREFIX
    assert address.read({"text": TEXT, "prefix": PREFIX}).request.prefix == PREFIX
    assert Request.parse(request.pack()) == request
    assert FIELDS["prefix"].option == "--prefix"
    file = tmp_path / "a.npz"
    assert main(["attention", TEXT, "--prefix", PREFIX, "--out", str(file)]) == 0
    assert mv.load_attention(file).request == request
    figure = ["figure", "heatmap", TEXT, "--prefix", PREFIX, "--head", "L0H0", "--caption"]
    assert main([*figure, "--out", str(tmp_path / "a.svg")]) == 0
    assert "after the prefix “query: ”" in capsys.readouterr().out
    t5 = mv.load(str(tiny_encoder_decoders.build("t5", tmp_path_factory.mktemp("t5"))))
    with pytest.raises(SettingError, match=r"has no separate prefix. Write it into the text"):
        t5.encode(TEXT, prefix=PREFIX)
    with pytest.raises(SettingError, match="prefix does not go with part"):
        Request(text=TEXT, prefix=PREFIX, part="cross").checked()


@pytest.mark.usefixtures("no_hub", "empty_home")
def test_the_page_reads_it_and_its_findings_are_of_the_text_alone() -> None:
    page = PageSession({"text": TEXT, "prefix": "cross street : ", "head": "L3H1"}, "pages/10_explore.py")
    header = page.shown().header
    reading = load_one_stack("minilm").encode(TEXT, prefix="cross street : ")
    assert header["tokens"] == list(reading.tokens)
    assert header["tokens"][1:4] == ["cross", "street", ":"]
    assert "The texts of My heads" not in PageSession({"text": TEXT, "prefix": "x : "}, "pages/20_compare.py").said
    tray = comparison.write([ComparedHead(Request("minilm", TEXT), mv.Head(0, 1))])
    heads = PageSession({"text": TEXT, "prefix": "x : ", "tray": tray}, "pages/20_compare.py")
    assert "The texts of My heads are read without the prefix in this link." in heads.said
