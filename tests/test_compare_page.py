"""The Compare page as a script: the compared heads in the URL, ready-made comparisons, the map, and errors."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

import mha_viz as mv
from mha_viz.app.service.caches import get_model_service
from mha_viz.app.url import address, comparison, minimal_pair
from mha_viz.app.url.address import LONG_PARAMETERS, MAX_ENCODED
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.app.widgets.download_panel import Offer
from mha_viz.attention import Head
from mha_viz.figures.layout import Size
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.numerals import format_divergence
from mha_viz.request import Request
from mha_viz.text import clean
from tests import hostile, lanes
from tests.compare_visits import FIRST, L0H2, L3H1, WIDE, heads, open_downloads, panels, visit
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

MARKUP = hostile.KINDS["closing script"]
SOME = [clean(text) for text in hostile.KINDS.values() if 0 < len(text) < 1500]  # bytes that a URL can carry


def pinned(of: PageSession) -> tuple[ComparedHead, ...]:
    pins, whole = comparison.read(of.url.get("tray"))
    assert whole
    return pins


def edit(of: PageSession, action: str, index: int, **more: Any) -> None:
    of.send("mha_compare", "edit", {"action": action, "index": index, **more})


# ---- The compared heads --------------------------------------------------------------------------------------------


def test_a_head_is_set_aside_on_explore_and_stands_on_compare() -> None:
    explore = PageSession({"head": "L0H2"})
    explore.send("mha_explorer", "compare", {"model": "minilm", "head": "L0H2"})
    assert pinned(explore) == (ComparedHead(Request("minilm", FIRST), Head(0, 2)),)
    compare = visit(tray=explore.url["tray"])
    assert heads(compare) == ["L0H2"]
    assert panels(compare)["editable"]


def test_the_compared_heads_are_changed_and_the_url_with_them() -> None:
    here = visit(tray=comparison.write([L3H1, L0H2]))
    edit(here, "duplicate", 1)
    assert pinned(here) == (L3H1, L0H2, L0H2)
    edit(here, "move", 2, to=0)
    assert pinned(here) == (L0H2, L3H1, L0H2)
    edit(here, "rename", 1, name=" the cat’s\nhead ")
    assert pinned(here)[1].name == "the cat’s head"
    assert panels(here)["panels"][1]["name"] == "the cat’s head"
    edit(here, "remove", 0, view={"diff": "0-1", "unit": "pieces", "evil": "x"})
    assert [pin.head for pin in pinned(here)] == [Head(3, 1), Head(0, 2)]
    assert (here.url["diff"], here.url["unit"]) == ("0-1", "pieces")
    assert "evil" not in here.url
    edit(here, "remove", 0)
    edit(here, "remove", 0)
    assert "tray" not in here.url
    assert "mha_compare" in here._drawn() or "No heads chosen yet" in here.said


@pytest.mark.parametrize(
    "odd",
    [
        *({"as": "pie"}, {"at": "x"}, {"at": "7"}, {"diff": "0"}, {"diff": "7-8"}, {"unit": "letters"}),
        *(
            {"pin": "first"},
            {"special": "x"},
            {"links": "some"},
            {"scale": "big"},
            {"shown": "x"},
            {"off": "x"},
            {"show": "nothing"},
            {"scale": "row"},
            {"side": "ab"},
        ),
        *({"head": "first"}, {"head": "L9H9"}, {"show": "models", "with": "no model"}),
    ],
    ids=lambda odd: "=".join(next(reversed(odd.items()))),
)
def test_a_part_of_a_link_that_the_page_cannot_use_is_said(odd: dict[str, str]) -> None:
    name = next(reversed(odd))
    shown = "; L3H1 (4-2) is shown" if name == "head" else ""
    page_text = visit(**odd, order="backwards", on="y", divide="no", step="x").said  # the last are of other pages
    assert f"Ignored in this link: {name}={odd[name]}{shown}." in page_text
    assert page_text.count("Ignored in this link") == 1


def test_a_ninth_head_is_refused_and_the_eight_stay() -> None:
    here = visit(tray=comparison.write([L3H1] * 8))
    edit(here, "duplicate", 0)
    assert "At most 8 heads can be compared" in here.said
    assert len(pinned(here)) == 8
    edit(here, "duplicate", 0)
    assert here.said.count("At most 8 heads can be compared") == 1


def test_a_message_that_makes_no_sense_changes_nothing() -> None:
    here = visit(tray=comparison.write([L3H1, L0H2]))
    messages: tuple[Any, ...] = (
        *([], "x", 3, None, {"action": "remove"}, {"action": "remove", "index": "0"}),
        *({"action": "remove", "index": 99}, {"action": "move", "index": 0, "to": "x"}),
        {"action": "explode", "index": 0},
    )
    for value in messages:
        here.send("mha_compare", "edit", value)
        assert pinned(here) == (L3H1, L0H2), value


def test_open_leads_to_the_head_on_explore() -> None:
    here = visit(
        tray=comparison.write([ComparedHead(Request("minilm", WIDE), Head(5, 11))]), scale="log", pin="q1", at="0"
    )
    edit(here, "open", 0, text=WIDE, pair="", model="minilm", head="L5H11")
    assert here.picture is not None
    assert here.url["head"] == "L5H11"
    assert here.url["text"] == WIDE
    assert here.url["scale"] == "log"
    assert "pin" not in here.url


def test_two_compared_heads_open_with_their_difference_where_it_can_be_taken() -> None:
    other = ComparedHead(Request("minilm", "Cats sleep."), Head(3, 1))
    assert panels(visit(tray=comparison.write([L3H1, L0H2])))["start"]["diff"] == "0-1"
    assert (
        panels(visit(tray=comparison.write([L3H1, ComparedHead(Request("minilm", WIDE), Head(3, 1))])))["start"]["diff"]
        == "0-1"
    )
    for pins in ([L3H1], [L3H1, other], [L3H1, L0H2, L3H1]):
        assert not panels(visit(tray=comparison.write(pins)))["start"]["diff"]


def test_sentences_and_names_of_all_kinds_stand_side_by_side(minilm: Encoder) -> None:
    here = visit(
        tray=comparison.write(
            [L3H1, ComparedHead(Request("minilm", "Cats sleep.", "Dogs too."), Head(0, 0), "<b>mine</b>")]
        )
    )
    header = panels(here)
    assert [p["reading"] for p in header["panels"]] == [0, 1]
    assert header["panels"][1]["name"] == "<b>mine</b>"
    assert header["divergence"][0][1] is None


def test_a_head_that_cannot_be_read_is_explained_and_can_be_taken_out() -> None:
    broken = [
        ComparedHead(Request("minilm", FIRST), Head(50, 0)),
        ComparedHead(Request("../../etc/passwd", FIRST), Head(0, 0)),
        ComparedHead(Request("minilm", ""), Head(0, 0)),
        ComparedHead(Request("gpt2", FIRST), Head(0, 0)),
    ]
    here = visit(tray=comparison.write([*broken, L3H1]))
    assert heads(here) == ["L3H1"]
    for message in ("L50H0 does not exist", "is not a model", "Nothing was typed", "not been downloaded yet"):
        assert message in here.said
    assert panels(here)["panels"][0]["source"] == 4
    here.at.button(key="remove_0").click().run()
    here.check()
    assert len(pinned(here)) == 4
    edit(here, "remove", 3)
    assert [pin.request.model for pin in pinned(here)] == ["../../etc/passwd", "minilm", "gpt2"]


NOT_COMPARED = ["x", '{"of":[],"heads":[["L0H0",0,""]]}', MARKUP, *SOME[:6]]


@pytest.mark.parametrize("value", lanes.some(NOT_COMPARED, *NOT_COMPARED[:2], MARKUP), ids=ascii)
def test_compared_heads_that_cannot_be_read_are_said(value: str) -> None:
    here = visit(tray=value)
    assert not here.at.exception
    assert ("could not be read" in here.said) is bool(value)


def test_texts_of_every_kind_are_pinned_and_read_again() -> None:
    for text in SOME:
        here = visit(tray=comparison.write([ComparedHead(Request("minilm", text), Head(0, 0))]))
        assert "mha_compare" in here._drawn() or here.said, text


# ---- Ready-made comparisons ------------------------------------------------------------------------------


def test_the_most_similar_heads_are_shown() -> None:
    here = visit(show="similar")
    shown = heads(here)
    assert shown[0] == "L3H1"
    attention = get_model_service().readings.get(("read", Request("minilm", FIRST)))
    assert attention is not None
    expected = get_model_service().find_similar_heads(attention, Head(3, 1), 5)
    assert shown[1:] == [str(head) for head, _ in expected]
    assert [p["name"] for p in panels(here)["panels"]][1] == f"{format_divergence(expected[0][1])} different"
    assert "nats" not in here.said
    assert "No heads chosen yet" in visit(show="tray").said


def test_a_whole_layer() -> None:
    assert heads(visit(show="layer", head="L2H5")) == [f"L2H{i}" for i in range(12)]


@pytest.mark.parametrize("chosen", ["word", "models"])
def test_both_panels_are_read_while_the_model_in_the_link_is_unavailable(chosen: str) -> None:
    here = visit(show=chosen, model="/nowhere/at/all", second=WIDE)
    assert "Shown below instead: MiniLM" in here.said
    assert len(panels(here)["panels"]) == 2


def test_a_word_replaced_is_edited_in_place_and_opens_with_its_difference() -> None:
    here = visit(show="layer")
    here.at.segmented_control(key="show").select("word").run()
    here.check()
    assert here.url["diff"] == "0-1"
    assert heads(visit()) == heads(here), "the page begins so"
    header = panels(here)
    assert len(header["panels"]) == 2
    assert here.at.text_input(key="second").value == WIDE
    here.at.text_input(key="second").set_value(FIRST.replace("tired", "old")).run()
    here.check()
    assert here.url["second"] == FIRST.replace("tired", "old")
    assert here.url["diff"] == "0-1"  # both are shown with the difference, which stays open
    assert panels(here)["panels"]
    assert panels(here)["key"] != header["key"]
    here.send("mha_compare", "view", {"diff": "none", "pin": "q3"})
    here.at.text_input(key="second").set_value(WIDE).run()
    assert here.url["diff"] == "0-1"
    assert "pin" not in here.url


def test_a_link_to_two_panels_opens_with_their_difference_unless_it_was_closed() -> None:
    assert panels(visit(show="word"))["start"] == {"diff": "0-1", "pin": "q10", "special": "hide"}  # "it"
    assert panels(visit(show="layer"))["start"] == {"diff": "", "pin": "", "special": "hide"}
    for url, offered in (({}, True), ({"diff": "none"}, False), ({"diff": "1-0"}, True)):
        labels = open_downloads(visit(show="word", **url)).at.radio(key="take_figure").options
        assert any("difference" in label for label in labels) is offered


def test_with_and_without_heads_opens_without_the_layer_before() -> None:
    here = visit(show="off", head="L5H3")
    assert "the same head with layer 4 (5) switched off" in here.said
    assert heads(here) == ["L5H3", "L5H3"]
    assert panels(here)["start"]["diff"] == "0-1"
    first = visit(show="off", head="L0H2")  # no layer is before it
    assert "No head is switched off." in first.said
    assert any("Choose heads to switch off" in link.proto.label for link in first.at.get("page_link"))
    assert heads(first) == ["L0H2"]


def test_another_model_opens_with_the_difference(tiny_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [str(tiny_folder(family)) for family in ("bert", "distilbert")]
    monkeypatch.setenv(catalog.SETTING, ",".join(["minilm", *both]))
    here = visit(show="models", diff="none", pin="q2", at="1")
    assert len(heads(here)) == 2
    here.at.selectbox(key="with").select_index(1).run()
    here.check()
    assert here.url["diff"] == "0-1"
    assert not {"pin", "at"} & set(here.url)
    assert len(heads(here)) == 2


def test_a_new_sentence_is_not_compared_with_the_twin_of_the_one_before() -> None:
    here = PageSession({"second": WIDE})
    here.read("Cats sleep.")
    assert "second" not in here.url
    assert "second" not in address.MODEL_PARAMETERS  # another model reads the same two


def test_a_second_sentence_that_no_link_could_hold_is_refused_and_nothing_changes() -> None:
    long = "word " * 900
    here = visit(show="word", text=long, second="word.")
    here.at.text_input(key="second").set_value("x y " * 300).run()
    here.check()
    assert "too long for the page’s link" in here.said
    assert here.url["second"] == "word."
    assert encoded(here) <= MAX_ENCODED


def encoded(of: PageSession) -> int:
    return sum(len(quote(of.url.get(name, ""))) for name in LONG_PARAMETERS)


def test_the_texts_of_a_link_share_one_room() -> None:
    long = "猫" * 330  # 2,970 bytes
    here = visit(text=long, show="word")
    here.at.text_input(key="second").set_value(long[1:]).run()
    assert here.url["second"] == long[1:]
    edit(here, "pin", 0, text=long, pair="", model="minilm", head="L0H0")
    assert "too long for it" in here.said
    assert "tray" not in here.url
    assert encoded(here) <= MAX_ENCODED
    full = PageSession({"tray": comparison.write([ComparedHead(Request("minilm", long), Head(0, 0))])})
    full.read("x" * 9000)
    assert MAX_ENCODED / 2 <= encoded(full) <= MAX_ENCODED
    assert pinned(full)[0].request.text == long


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Cats sleep.", "Dogs sleep."),
        ("The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."),
        ("Look at [MASK] .", "Look it [MASK] ."),
        ("It was cold.", "She was cold."),
        ("Anna left and he stayed.", "Anna left and she stayed."),
    ],
)
def test_another_sentence_opens_with_a_word_replaced(text: str, other: str) -> None:
    here = visit(show="word", text=text)
    assert here.at.text_input(key="second").value == other
    assert len(heads(here)) == 2
    assert minimal_pair.replace_word("?!") == "?!"
    assert minimal_pair.replace_word("Paris is <mask>.") == "Paris it <mask>."


SECOND = ["", "   ", *SOME]


@pytest.mark.parametrize("text", lanes.some(SECOND, "", MARKUP, SOME[-1]), ids=ascii)
def test_whatever_is_typed_as_the_second_sentence(text: str) -> None:
    here = visit(show="word", second=text)
    assert not here.at.exception
    assert len(heads(here)) in (1, 2)


def test_two_models_by_the_head_that_does_the_same(tiny_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, f"minilm,{tiny_folder('bert')}")
    here = visit(show="models")
    assert len(heads(here)) == 2
    assert re.search(r"most similar head, compared word by word \(\d+\.\d% different\)", here.said)


def test_a_menu_names_models_as_they_are_and_no_sentence_says_where_a_folder_lies(
    tiny_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder("bert")
    monkeypatch.setenv(catalog.SETTING, f"{folder},minilm,gpt2")
    assert visit(show="models", model="minilm").at.selectbox(key="with").options[1:] == ["GPT-2"]
    here = visit(show="similar", model=str(folder))
    assert heads(here)
    page_text = here.said + " ".join(block.proto.body for block in here.at.get("html"))
    assert str(folder.parent) not in page_text
    assert f"L0H0 (1-1) of {folder.name}<" in page_text


def test_a_server_with_one_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "minilm")
    here = visit(show="models")
    assert "only one model" in here.said
    assert heads(here) == ["L3H1"]


def test_a_model_that_is_not_here_is_one_click_away() -> None:
    here = visit(show="models", **{"with": "gpt2"})
    assert "not been downloaded yet" in here.said
    assert heads(here) == ["L3H1"]


def test_any_panel_of_a_comparison_can_be_pinned() -> None:
    here = visit(show="similar")
    edit(here, "pin", 1, text=FIRST, pair="", model="minilm", head="L5H11")
    assert pinned(here) == (ComparedHead(Request("minilm", FIRST), Head(5, 11)),)
    edit(here, "pin", 1, text=FIRST, pair="", model="minilm", head="<b>")
    assert len(pinned(here)) == 1
    assert "not the name of a head" in here.said


def test_the_view_is_kept_in_the_url_and_only_what_a_view_may_say() -> None:
    here = visit(show="layer")
    here.send(
        "mha_compare", "view", {"as": "links", "links": "top2", "diff": "0-3", "tray": "x", "text": "y", "unit": "z"}
    )
    assert (here.url["as"], here.url["links"], here.url["diff"]) == ("links", "top2", "0-3")
    assert not {"tray", "text", "unit"} & set(here.url)


@pytest.mark.parametrize("show", lanes.some(["", "nothing", "COMPARED", *SOME[:5]], "nothing", "COMPARED"), ids=ascii)
def test_a_choice_that_does_not_exist_is_the_usual_one(show: str) -> None:
    assert len(heads(visit(show=show))) == 2


def test_a_link_to_the_map_of_heads_that_was_opens_the_most_similar() -> None:
    assert len(heads(visit(show="map", head="L0H2"))) == 6


def test_a_replaced_word_says_which_heads_carry_the_difference() -> None:
    girl, boy = "The girl slept because [MASK] ran .", "The boy slept because [MASK] ran ."
    here = visit(model="toy", show="word", text=girl, second=boy)
    assert "L1H1 (2-2)** brings" not in here.said
    here.unfold("patched")
    assert "one head’s output taken from the second: **L1H1 (2-2)** restores 100% of the other answer" in here.said
    assert "log p of “she” minus log p of “he”: 3.41 (0%) on the first text, −2.11 (100%) on the second" in here.said
    assert "Backward-pass estimates correlate at 1.00" in here.said
    here.pick("patched_heads", {"customdata": "L1H1"})
    assert here.url["head"] == "L1H1"


def test_both_sentences_are_compared_with_a_third(offered: list[Offer]) -> None:
    """For a model that answers with no word: which head carries how alike they are to it."""
    here = visit(show="word", text="The cat sat on the mat.", second="The dog sat on the mat.").unfold("patched")
    assert "The answer is where the sentence vector lies" in here.said
    field = next(one for one in here.at.text_input if one.label.startswith("Measure the similarity"))
    field.set_value("A kitten sleeps.").run()
    assert here.url["like"] == "A kitten sleeps."
    patched = mv.activation_patching(
        mv.load("minilm"), "The cat sat on the mat.", "The dog sat on the mat.", similar_to="A kitten sleeps."
    )
    carries = patched.table()["share"].idxmax()
    assert f"first text with one head’s output taken from the second: **{carries} (" in here.said
    assert f"The answer is the cosine with “A kitten sleeps.”: {patched.before:.2f} (0%)" in here.said
    offer = next(offer for offer in offered if offer.file == "patched_heads_the-cat-sat-on")
    assert "sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…)." in offer.make(Size()).caption
    code = offer.code
    assert code is not None
    assert "similar_to='A kitten sleeps.'" in code()


def test_texts_are_patched_with_the_prefix_of_the_page(offered: list[Offer]) -> None:
    texts = ("the dog sees the girl .", "the cat sees the girl .")
    visit(model="toy", show="word", prefix="the : ", text=texts[0], second=texts[1]).unfold("patched")
    offer = next(offer for offer in offered if offer.file.startswith("patched_heads"))
    assert offer.code is not None
    assert "mv.load('toy').prefixed('the : ')" in offer.code()
    shares = [float(line.split(",")[1]) for line in offer.make(Size()).to_bytes(".csv").decode().splitlines()[1:]]
    expected = mv.activation_patching(mv.load("toy").prefixed("the : "), *texts).table()["share"]
    assert shares == pytest.approx([*expected], abs=1e-6)


def test_a_held_head_shows_the_paths_into_it() -> None:
    """Those into the key of an induction head, from the head on the previous token."""
    once = "reach sees animals horse them stands reach sees animals"
    texts = {"text": once, "second": once.replace("animals horse", "horse animals")}
    here = visit(model="repeater", show="word", head="L1H2", path="key", **texts).unfold("patched")
    paths = "output of one earlier head reach only the key of L1H2 (2-3): **L0H0 (1-1)** restores 27%"
    assert paths in here.said
    here.pick("patched_paths", {"customdata": "L0H0"})
    assert here.url["head"] == "L0H0"
    assert "reach only" not in here.said, "no head is earlier"


def test_what_is_not_read_of_a_third_sentence_is_said() -> None:
    girl, boy = "The girl slept because [MASK] ran .", "The boy slept because [MASK] ran ."
    here = visit(model="toy", show="word", text=girl, second=boy, like="The zebra slept .").unfold("patched")
    assert "reads each as [UNK]: “zebra”" in here.said
    here = visit(model="toy", show="word", text=girl, second=boy, like="The girl slept . " * 100).unfold("patched")
    assert "tokens of the third sentence are read" in here.said
    next(one for one in here.at.text_input if one.label.startswith("Measure the similarity")).set_value(" ").run()
    assert "like" not in here.url


def test_a_replaced_text_of_another_length_says_so() -> None:
    here = visit(model="toy", show="word", text="The girl slept .", second="The girl slept on .").unfold("patched")
    assert "“The girl slept .” has 4 words, “The girl slept on .” has 5" in here.said
