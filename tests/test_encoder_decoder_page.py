"""Encoder–decoders on the pages: part, target, and the remarks where nothing can be shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mha_viz.app.url import comparison
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention import Head
from mha_viz.request import PARTS, Request
from tests import lanes, tiny_encoder_decoders
from tests.compare_visits import panels
from tests.page_session import PageSession
from tests.tiny_encoder_decoders import ENCODER_LAYERS
from tests.tiny_models import HEADS, LAYERS

SOURCE = "The animal was tired."
TARGET = "Das Tier war müde."
Visit = Callable[..., PageSession]

pytestmark = pytest.mark.usefixtures("no_hub")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("t5")
    return str(tiny_encoder_decoders.build("t5", folder))


@pytest.fixture
def visit(model: str) -> Visit:
    def begin(page: str | None = None, **url: str) -> PageSession:
        return PageSession({"text": SOURCE, "model": model, **url}, page)

    return begin


def _words(axis: dict[str, list[str]]) -> list[str]:
    """Keep it as typed: the model of these tests knows few letters."""
    return [word.removeprefix("[UNK] ") for word in axis["words"] if not word.startswith("<")]


def test_cross_attention_of_a_written_target_comes_first(visit: Visit) -> None:
    page = visit()
    header, matrices, _ = page.shown()
    assert (header["layers"], header["heads"]) == (LAYERS, HEADS)
    assert _words(header["keys"]) == ["The", "animal", "was", "tired", "."]
    assert header["tokens"][0] == "<pad>"
    assert next(iter(matrices.values())).shape == (header["n"], header["keys"]["n"])
    assert "Target, written by the model one token at a time: “" in page.said
    assert "are not defined here" in page.said
    assert page.at.segmented_control(key="part").value == "cross"
    assert page.at.text_input(key="target_").value == ""
    page.view(head="L1H1", pin="q1")
    assert (page.url["head"], page.url["pin"]) == ("L1H1", "q1")


def test_a_target_is_typed_and_stands_in_the_address(visit: Visit) -> None:
    page = visit(pin="q1")
    page.at.text_input(key="target_").set_value(f"  {TARGET} ").run()
    page.check()
    assert page.url["target"] == TARGET
    assert "pin" not in page.url  # which counted tokens of another target
    assert _words(page.shown().header) == ["Das", "Tier", "war", "müde", "."]
    assert "written by the model" not in page.said
    field = page.at.text_input(key=f"target_{TARGET}")
    assert field.proto.default == TARGET, "also in a browser that misses the first message about it"
    field.set_value("").run()
    page.check()
    assert "target" not in page.url


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_drawn_from_its_link(part: str, visit: Visit) -> None:
    page = visit(target=TARGET, part=part)
    header, matrices, _ = page.shown()
    shape = (ENCODER_LAYERS, HEADS) if part == "encoder" else (LAYERS, HEADS)
    assert (header["layers"], header["heads"]) == shape
    assert ("keys" in header) == (part == "cross")
    words = ["The", "animal", "was", "tired", "."] if part == "encoder" else ["Das", "Tier", "war", "müde", "."]
    assert _words(header) == words
    assert len(matrices) == shape[0] * shape[1]
    assert "not defined" in page.said
    assert page.badges["measured"] is True  # nothing offers to measure them
    assert page.badges["roles"] == []
    page.view(head="L1H1", pin="q1")
    assert (page.url["head"], page.url["pin"]) == ("L1H1", "q1")


def test_another_part_changes_the_address_and_forgets_what_it_has_not(visit: Visit) -> None:
    page = visit(target=TARGET, head="L2H3", pin="q2")
    page.at.segmented_control(key="part").set_value("decoder").run()
    page.check()
    assert page.url["part"] == "decoder"
    assert page.url["head"] == "L2H3"
    assert "pin" not in page.url
    page.at.segmented_control(key="part").set_value("encoder").run()
    page.check()
    assert "head" not in page.url
    assert page.shown().header["layers"] == ENCODER_LAYERS
    assert not any(one.key and one.key.startswith("target_") for one in page.at.text_input)
    page.at.segmented_control(key="part").set_value("cross").run()
    page.check()
    assert "part" not in page.url
    assert page.url["target"] == TARGET


def test_a_new_source_forgets_the_target(visit: Visit) -> None:
    page = visit(target=TARGET)
    page.read("A dog slept.")
    assert "target" not in page.url
    assert _words(page.shown().header["keys"]) == ["A", "dog", "slept", "."]


@pytest.mark.parametrize("part", lanes.some(["decoder", "cross"], "cross"))
def test_a_view_of_the_target_before_says_nothing_of_this_one(part: str, visit: Visit) -> None:
    page = visit(part=part, target=TARGET)
    before = page.shown().header["of"]
    page.at.text_input(key=f"target_{TARGET}").set_value("Es schlief.").run()
    page.send("mha_explorer", "view", {"of": before, "pin": "q3"})
    assert "pin" not in page.url
    page.view(pin="q1")
    assert page.url["pin"] == "q1"


@pytest.mark.parametrize("part", lanes.some(["decoder", "cross"], "decoder"))
def test_a_source_that_was_cut_is_told_whatever_the_part(part: str, visit: Visit) -> None:
    page = visit(text=f"{SOURCE} " * 20, part=part, target=TARGET)
    assert "is longer than the model can read" in page.said
    assert page.said.count(" ✂ ") == 1
    page.view(head="L1H1")
    assert page.url["head"] == "L1H1"
    assert "is longer than" not in visit(text=f"  {SOURCE} ", part=part, target=TARGET).said


def test_a_link_between_the_texts_ranks_heads(visit: Visit) -> None:
    page = visit(target=TARGET, link="2-1", pin="q2k1")
    assert "Ignored in this link" not in page.said
    page = visit(target=TARGET, link="2-99")
    assert "Ignored in this link" in page.said


def test_a_target_beyond_the_limit_is_told_and_stays_in_its_field(visit: Visit) -> None:
    long = "müde " * 80
    page = visit(target=long.strip())
    assert "The target is longer than" in page.said
    assert page.at.text_input(key=f"target_{long.strip()}").value == long.strip()


def test_a_part_that_there_is_not_is_named(visit: Visit) -> None:
    page = visit(part="both")
    assert "part=both" in page.said
    assert "keys" in page.shown().header


def test_what_needs_one_stack_is_told_in_place_and_the_drawing_stays(visit: Visit) -> None:
    for url in ({"shown": "norm"}, {"off": "L0H0"}, {"shown": "rollout"}, {"shown": "gradient"}):
        page = visit(**url)
        assert page.shown().header["layers"] == LAYERS
        assert "encoder–decoder" in page.said or "Rollout needs" in page.said, url


def test_sentences_with_annotation_and_several_lines_are_read_as_a_source(visit: Visit) -> None:
    pasted = "1\tAnna\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tslept\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    page = visit(text=pasted)
    assert _words(page.shown().header["keys"]) == ["Anna", "slept"]
    page = visit(text="One line.\nAnother one.")
    assert _words(page.shown().header["keys"]) == ["One", "line", ".", "Another", "one", "."]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("pages/55_roles.py", "roles are measured only for models with one stack"),
        ("pages/40_inside_a_head.py", "the inside of a head is shown only for models with one stack"),
        ("pages/60_switch_off.py", "heads are switched off only for models with one stack"),
    ],
)
def test_other_pages_say_what_they_cannot_do(page: str, words: str, visit: Visit) -> None:
    assert words in visit(page).said


@pytest.mark.parametrize(("part", "show"), lanes.pair_values(PARTS[::-1], ("similar", "layer", "word")))
def test_heads_of_one_part_are_compared(part: str, show: str, visit: Visit) -> None:
    page = visit("pages/20_compare.py", show=show, part=part, target=TARGET, second="The dog was tired.")
    assert page.at.segmented_control(key="part").value == part
    assert ("columns" in panels(page)) == (part == "cross")


@pytest.mark.parametrize(
    ("part", "target"),
    lanes.some(
        [(part, target) for part in PARTS for target in ("", TARGET)],
        *(("encoder", TARGET), ("decoder", TARGET), ("cross", "")),
    ),
)
def test_a_head_is_put_among_the_compared_ones_and_opened_again(
    part: str, target: str, visit: Visit, model: str
) -> None:
    page = visit(part=part, **({"target": target} if target else {}))
    page.send("mha_explorer", "compare", {"model": model, "head": "L1H1", "of": page.shown().header["of"]})
    pinned_target = "" if part == "encoder" else target
    (pin,), whole = comparison.read(page.url["tray"])
    assert whole
    assert pin == ComparedHead(Request(model, SOURCE, target=pinned_target, part=part), Head(1, 1))
    beside = PageSession({"tray": page.url["tray"]}, "pages/20_compare.py")
    header = panels(beside)
    assert len(header["panels"]) == 1
    asked = {"text": SOURCE, "pair": "", "model": model, "head": "L1H1", "target": pinned_target, "part": part}
    beside.send("mha_compare", "edit", {"action": "pin", **asked})
    assert len(comparison.read(beside.url["tray"])[0]) == 2


def test_a_compared_head_of_a_part_that_there_is_not_is_lost_alone() -> None:
    good = ComparedHead(Request("minilm", SOURCE), Head(0, 0))
    value = comparison.write([good, ComparedHead(Request("t5", SOURCE, target=TARGET, part="cross"), Head(0, 0))])
    assert comparison.read(value) == (
        (good, ComparedHead(Request("t5", SOURCE, target=TARGET, part="cross"), Head(0, 0))),
        True,
    )
    assert value
    assert comparison.read(value.replace('"cross"', '"both"')) == ((good,), False)


def test_a_model_of_one_stack_shows_none_of_it() -> None:
    page = PageSession({"text": SOURCE, "target": TARGET, "part": "encoder"})
    assert "keys" not in page.shown().header
    assert not any(one.key and one.key.startswith("target_") for one in page.at.text_input)


def test_heads_that_are_off_are_told_on_compare(visit: Visit) -> None:
    page = visit("pages/20_compare.py", show="off", off="L0H0", target=TARGET)
    assert "only in models with one stack of layers" in page.said
    assert len(panels(page)["panels"]) == 1


def test_pinned_heads_of_two_parts_keep_their_parts_in_another_quantity(model: str, visit: Visit) -> None:
    pins = [ComparedHead(Request(model, SOURCE, part=part), Head(0, 0)) for part in ("encoder", "decoder")]
    page = visit("pages/20_compare.py", tray=comparison.write(tuple(pins)), shown="rollout", part="encoder")
    assert "also reads the source" in page.said
