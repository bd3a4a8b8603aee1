"""The Compare page as a script: the tray in the URL, ready-made comparisons, the map, and what can go wrong."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from mha_viz import figure as figure_api
from mha_viz.attention import Head
from mha_viz.drawing.marks import Drawing, Text
from mha_viz.figure import Figure
from mha_viz.figures.theme import LIGHT
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.text import clean
from mha_viz.ui import address, takeaway, tray
from mha_viz.ui.address import LONG, MAX_ENCODED
from mha_viz.ui.cache import office
from mha_viz.ui.request import examples
from mha_viz.ui.tray import Pin
from tests import hostile
from tests.page_scripts import ask_packet, ask_panels
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

FIRST = examples()[0]["text"]
WIDE = FIRST.replace("tired", "wide")
PAGE = "pages/20_compare.py"
SOME = [clean(text) for text in hostile.KINDS.values() if 0 < len(text) < 1500]  # what a URL can carry
L3H1, L0H2 = Pin(FIRST, "", "minilm", Head(3, 1)), Pin(FIRST, "", "minilm", Head(0, 2), "previous")


def visit(**url: Any) -> PageSession:
    return PageSession(url, PAGE)


def panels(of: PageSession) -> dict[str, Any]:
    """The header of what the component was given."""
    data = of._drawn()["mha_compare"].bytes
    (length,) = struct.unpack("<I", data[:4])
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    return header


def heads(of: PageSession) -> list[str]:
    return [str(Head(*divmod(p["head"], 12))) for p in panels(of)["panels"]]


def kept(of: PageSession) -> tuple[Pin, ...]:
    pins, whole = tray.read(of.url.get("tray"))
    assert whole
    return pins


def edit(of: PageSession, action: str, index: int, **more: Any) -> None:
    of.send("mha_compare", "edit", {"action": action, "index": index, **more})


# ---- The tray --------------------------------------------------------------------------------------------


def test_a_head_is_set_aside_on_explore_and_stands_on_compare() -> None:
    explore = PageSession({"head": "L0H2"})
    explore.send("mha_explorer", "tray", {"model": "minilm", "head": "L0H2"})
    assert kept(explore) == (Pin(FIRST, "", "minilm", Head(0, 2)),)
    compare = visit(tray=explore.url["tray"])
    assert heads(compare) == ["L0H2"]
    assert panels(compare)["editable"]


def test_the_tray_is_changed_and_the_url_with_it() -> None:
    here = visit(tray=tray.write([L3H1, L0H2]))
    edit(here, "duplicate", 1)
    assert kept(here) == (L3H1, L0H2, L0H2)
    edit(here, "move", 2, to=0)
    assert kept(here) == (L0H2, L3H1, L0H2)
    edit(here, "rename", 1, name=" the cat’s\nhead ")
    assert kept(here)[1].name == "the cat’s head"
    assert panels(here)["panels"][1]["name"] == "the cat’s head"
    edit(here, "remove", 0, view={"diff": "0-1", "unit": "pieces", "evil": "x"})
    assert [pin.head for pin in kept(here)] == [Head(3, 1), Head(0, 2)]
    assert (here.url["diff"], here.url["unit"]) == ("0-1", "pieces")
    assert "evil" not in here.url
    edit(here, "remove", 0)
    edit(here, "remove", 0)
    assert "tray" not in here.url
    assert "mha_compare" in here._drawn() or "No heads chosen yet" in here.said


def test_a_ninth_head_is_refused_and_the_eight_stay() -> None:
    here = visit(tray=tray.write([L3H1] * 8))
    edit(here, "duplicate", 0)
    assert "At most 8 heads can be compared" in here.said
    assert len(kept(here)) == 8
    edit(here, "duplicate", 0)
    assert here.said.count("At most 8 heads can be compared") == 1


@pytest.mark.parametrize(
    "said",
    [[], "x", 3, None, {"action": "remove"}, {"action": "remove", "index": "0"}, {"action": "remove", "index": 99},
     {"action": "move", "index": 0, "to": "x"}, {"action": "explode", "index": 0}],
    ids=str,
)  # fmt: skip
def test_a_message_that_makes_no_sense_changes_nothing(said: Any) -> None:
    here = visit(tray=tray.write([L3H1, L0H2]))
    here.send("mha_compare", "edit", said)
    assert kept(here) == (L3H1, L0H2)


def test_open_leads_to_the_head_on_explore() -> None:
    here = visit(tray=tray.write([Pin(WIDE, "", "minilm", Head(5, 11))]), scale="log", pin="q1", at="0")
    edit(here, "open", 0, text=WIDE, pair="", model="minilm", head="L5H11")
    assert here.picture is not None
    assert here.url["head"] == "L5H11"
    assert here.url["text"] == WIDE
    assert here.url["scale"] == "log"
    assert "pin" not in here.url


def test_two_compared_heads_open_with_their_difference_where_it_can_be_taken() -> None:
    other = Pin("Cats sleep.", "", "minilm", Head(3, 1))
    assert panels(visit(tray=tray.write([L3H1, L0H2])))["start"] == {"diff": "0-1"}
    assert panels(visit(tray=tray.write([L3H1, Pin(WIDE, "", "minilm", Head(3, 1))])))["start"] == {"diff": "0-1"}
    for pins in ([L3H1], [L3H1, other], [L3H1, L0H2, L3H1]):
        assert "start" not in panels(visit(tray=tray.write(pins)))


def test_sentences_and_names_of_all_kinds_stand_side_by_side(minilm: Encoder) -> None:
    here = visit(tray=tray.write([L3H1, Pin("Cats sleep.", "Dogs too.", "minilm", Head(0, 0), "<b>mine</b>")]))
    header = panels(here)
    assert [p["reading"] for p in header["panels"]] == [0, 1]
    assert header["panels"][1]["name"] == "<b>mine</b>"
    assert header["divergence"][0][1] is None


def test_a_head_that_cannot_be_read_is_explained_and_can_be_taken_out() -> None:
    broken = [Pin(FIRST, "", "minilm", Head(50, 0)), Pin(FIRST, "", "../../etc/passwd", Head(0, 0)),
              Pin("", "", "minilm", Head(0, 0)), Pin(FIRST, "", "gpt2", Head(0, 0))]  # fmt: skip
    here = visit(tray=tray.write([*broken, L3H1]))
    assert heads(here) == ["L3H1"]
    for said in ("L50H0 does not exist", "is not a model", "Nothing was typed", "not on this machine yet"):
        assert said in here.said
    assert panels(here)["panels"][0]["source"] == 4
    here.at.button(key="remove_0").click().run()
    here.check()
    assert len(kept(here)) == 4
    edit(here, "remove", 3)
    assert [pin.model for pin in kept(here)] == ["../../etc/passwd", "minilm", "gpt2"]


@pytest.mark.parametrize("value", ["x", '{"of":[],"heads":[["L0H0",0,""]]}', *SOME[:6]], ids=ascii)
def test_a_tray_that_cannot_be_read_is_said(value: str) -> None:
    here = visit(tray=value)
    assert not here.at.exception
    assert ("could not be read" in here.said) is bool(value)


def test_texts_of_every_kind_are_pinned_and_read_again() -> None:
    for text in SOME:
        here = visit(tray=tray.write([Pin(text, "", "minilm", Head(0, 0))]))
        assert "mha_compare" in here._drawn() or here.said, text


# ---- Ready-made comparisons ------------------------------------------------------------------------------


def test_an_empty_tray_shows_the_most_similar_heads() -> None:
    here = visit()
    found = heads(here)
    assert found[0] == "L3H1"
    attention = office().readings.get(("minilm", FIRST, ""))
    assert attention is not None
    expected = office().similar(attention, Head(3, 1), 5)
    assert found[1:] == [str(head) for head, _ in expected]
    assert [p["name"] for p in panels(here)["panels"]][1] == f"{expected[0][1]:.3f} nats"
    assert "No heads chosen yet" in visit(show="tray").said


def test_a_whole_layer() -> None:
    assert heads(visit(show="layer", head="L2H5")) == [f"L2H{i}" for i in range(12)]


def test_a_word_replaced_is_edited_in_place_and_opens_with_its_difference() -> None:
    here = visit()
    here.at.segmented_control(key="show").select("word").run()
    here.check()
    assert (here.url["show"], here.url["diff"]) == ("word", "0-1")
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
    assert panels(visit(show="word"))["start"] == {"diff": "0-1"}
    assert "start" not in panels(visit(show="layer"))
    for url, offered in (({}, True), ({"diff": "none"}, False), ({"diff": "1-0"}, True)):
        labels = taken(visit(show="word", **url)).at.radio(key="take_figure").options
        assert any("difference" in label for label in labels) is offered


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
    assert "second" not in address.OF_THIS_MODEL  # another model reads the same two


def test_a_second_sentence_that_no_link_could_hold_is_refused_and_nothing_changes() -> None:
    long = "word " * 900
    here = visit(show="word", text=long, second="word.")
    here.at.text_input(key="second").set_value("x y " * 300).run()
    here.check()
    assert "too long for the page’s link" in here.said
    assert here.url["second"] == "word."
    assert encoded(here) <= MAX_ENCODED


def encoded(of: PageSession) -> int:
    return sum(len(quote(of.url.get(name, ""))) for name in LONG)


def test_the_texts_of_a_link_share_one_room() -> None:
    long = "猫" * 330  # 2,970 bytes
    here = visit(text=long, show="word")
    here.at.text_input(key="second").set_value(long[1:]).run()
    assert here.url["second"] == long[1:]
    edit(here, "pin", 0, text=long, pair="", model="minilm", head="L0H0")
    assert "too long for it" in here.said
    assert "tray" not in here.url
    assert encoded(here) <= MAX_ENCODED
    full = PageSession({"tray": tray.write([Pin(long, "", "minilm", Head(0, 0))])})
    full.read("x" * 9000)
    assert MAX_ENCODED / 2 <= encoded(full) <= MAX_ENCODED
    assert kept(full)[0].text == long


def test_another_sentence_starts_from_itself() -> None:
    here = visit(show="word", text="Cats sleep.")
    assert here.at.text_input(key="second").value == "Cats sleep."
    assert heads(here) == ["L0H0"] or len(heads(here)) == 1


@pytest.mark.parametrize("text", ["", "   ", *SOME], ids=ascii)
def test_whatever_is_typed_as_the_second_sentence(text: str) -> None:
    here = visit(show="word", second=text)
    assert not here.at.exception
    assert len(heads(here)) in (1, 2)


def test_two_models_by_the_head_that_does_the_same(tiny_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, f"minilm,{tiny_folder('bert')}")
    here = visit(show="models")
    assert len(heads(here)) == 2
    assert "most similar word by word" in here.said


def test_a_menu_names_models_as_they_are_and_no_sentence_says_where_a_folder_lies(
    tiny_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder("bert")
    monkeypatch.setenv(catalog.SETTING, f"{folder},minilm,gpt2")
    assert visit(show="models", model="minilm").at.selectbox(key="with").options[1:] == ["GPT-2"]
    here = visit(show="similar", model=str(folder))
    assert heads(here)
    said = here.said + " ".join(block.proto.body for block in here.at.get("html"))
    assert str(folder.parent) not in said
    assert f"L0H0 (1-1) of {folder.name}<" in said


def test_a_server_with_one_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "minilm")
    here = visit(show="models")
    assert "one model only" in here.said
    assert heads(here) == ["L3H1"]


def test_a_model_that_is_not_here_is_one_click_away() -> None:
    here = visit(show="models", **{"with": "gpt2"})
    assert "not on this machine yet" in here.said
    assert heads(here) == ["L3H1"]


def test_any_panel_of_a_comparison_can_be_pinned() -> None:
    here = visit(show="similar")
    edit(here, "pin", 1, text=FIRST, pair="", model="minilm", head="L5H11")
    assert kept(here) == (Pin(FIRST, "", "minilm", Head(5, 11)),)
    edit(here, "pin", 1, text=FIRST, pair="", model="minilm", head="<b>")
    assert len(kept(here)) == 1
    assert "not the name of a head" in here.said


def test_the_view_is_kept_in_the_url_and_only_what_a_view_may_say() -> None:
    here = visit(show="layer")
    here.send(
        "mha_compare", "view", {"as": "links", "links": "top2", "diff": "0-3", "tray": "x", "text": "y", "unit": "z"}
    )
    assert (here.url["as"], here.url["links"], here.url["diff"]) == ("links", "top2", "0-3")
    assert not {"tray", "text", "unit"} & set(here.url)


@pytest.mark.parametrize("show", ["", "nothing", "TRAY", *SOME[:5]], ids=ascii)
def test_a_choice_that_does_not_exist_is_the_usual_one(show: str) -> None:
    assert len(heads(visit(show=show))) == 6


# ---- The map ---------------------------------------------------------------------------------------------


def test_the_map_has_a_point_for_every_head_and_lists_the_nearest() -> None:
    here = visit(show="map", head="L0H2")
    chart = json.loads(here.at.get("plotly_chart")[0].proto.spec)
    named = [name for trace in chart["data"] for name in trace["customdata"]]
    assert sorted(named) == sorted(str(Head(i, j)) for i in range(6) for j in range(12))
    assert "stress" in here.said
    config = json.loads(here.at.get("plotly_chart")[0].proto.config)
    assert config["toImageButtonOptions"]["format"] == "svg"
    here.at.button(key=next(b.key for b in here.at.button if b.key.startswith("pin_M"))).click().run()
    here.check()
    assert len(kept(here)) == 1


def test_the_map_also_stands_upright_for_a_phone_and_leaves_plotlys_buttons_their_room() -> None:
    lying, standing = (json.loads(chart.proto.spec) for chart in visit(show="map").at.get("plotly_chart"))
    spans = [
        [np.ptp([v for t in chart["data"] for v in _numbers(t[axis])]) for axis in "xy"] for chart in (lying, standing)
    ]
    assert spans[0] == pytest.approx(spans[1][::-1])
    assert spans[0][0] > spans[0][1]
    for chart in (lying, standing):
        assert chart["layout"]["margin"]["t"] >= 30
        assert (chart["layout"]["legend"]["y"], chart["layout"]["legend"]["yanchor"]) == (0, "bottom")


def _numbers(values: Any) -> list[float]:
    """What Plotly wrote, either way."""
    if isinstance(values, dict):
        return [float(v) for v in np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])]
    return [float(v) for v in values]


def test_a_map_of_a_pair_and_of_one_word() -> None:
    for text, pair in (("Cats", ""), ("Cats sleep.", "Dogs too.")):
        assert visit(show="map", text=text, pair=pair).at.get("plotly_chart")


# ---- Taking it away --------------------------------------------------------------------------------------


def taken(here: PageSession) -> PageSession:
    here.at.session_state["takeaway"] = True
    here.at.run()
    here.check()
    return here


def on_screen(here: PageSession) -> dict[str, Any]:
    """What the page's own script makes of the panels and the address that it is given."""
    ask = {"packet": here._drawn()["mha_compare"].bytes, "ask": "shown", "query": list(here.url.items())}
    answer: dict[str, Any] = ask_panels(ask)[0]
    return answer


@pytest.mark.parametrize(
    "url",
    [
        {"pin": "q2", "at": "1"},
        {"pin": "q2", "at": "0"},
        {"pin": "q13k3", "at": "1", "diff": "1-0"},
        {"pin": "q13", "at": "1", "diff": "0-1"},
        {"pin": "q13", "at": "1"},
        {"pin": "q13", "at": "0", "diff": "0-2"},
        {"pin": "q2", "at": "2", "diff": "0-1"},
        {"pin": "q3", "at": "2", "diff": "1-0"},
        {"pin": "q3", "at": "2", "diff": "2-0"},
        {"pin": "q2", "at": "7"},
        {"pin": "q9", "at": "2"},
        {"pin": "q2", "at": "x"},
        {"side": "ab", "scale": "row", "links": "top3", "as": "links"},
        {"side": "ab", "scale": "head", "links": "top3", "special": "hide", "unit": "pieces", "diff": "0-1"},
    ],
    ids=str,
)
def test_files_of_a_comparison_show_what_the_screen_shows(url: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings, the scale and what is held in every panel, as the script computes them and as the file says."""
    made = figures_made(monkeypatch)
    three = [L3H1, Pin(WIDE, "", "minilm", Head(3, 1)), Pin("A street, an animal.", "", "minilm", Head(0, 2))]
    here = taken(visit(tray=tray.write(three), **url))
    screen = on_screen(here)
    offers = here.at.radio(key="take_figure").options
    assert len(offers) == (2 if screen["diff"] else 1)
    assert held_in_file(made[-1].drawing, 3) == screen["held"]
    about = made[-1].drawing.about
    assert {name: about[name] for name in ("unit", "special", "links", "scale", "as")} == screen["view"]
    assert about["side"] == "all"
    assert made[-1].drawing.caption.count("Held: ") == bool(screen["held"][screen["at"]])
    if screen["diff"] and screen["subtracted"] is not None:
        here.at.radio(key="take_figure").set_value(offers[1]).run()
        here.check()
        assert held_in_file(made[-1].drawing, 1) == [screen["subtracted"]]
    lines = next(c.value for c in here.at.code if c.value.startswith("import mha_viz"))
    assert "side=" not in lines
    monkeypatch.undo()
    written: list[bytes] = []
    monkeypatch.setattr(Figure, "save", lambda self, path: written.append(self.to_bytes(".svg")))
    exec(lines, {})  # as shown
    assert written == [made[-1].to_bytes(".svg")]


def figures_made(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that a page makes from now on."""
    made: list[Figure] = []
    for name in ("heatmap", "links", "grid", "compare", "difference"):
        real = getattr(figure_api, name)
        monkeypatch.setattr(
            figure_api, name, lambda *given, real=real, **options: made.append(real(*given, **options)) or made[-1]
        )
    return made


def held_in_file(drawing: Drawing, panels: int) -> list[list[str]]:
    """The accented tokens of each panel, panels standing from left to right in one row: rows first, then columns."""
    found: list[list[str]] = [[] for _ in range(panels)]
    for mark in drawing.marks:
        if isinstance(mark, Text) and mark.colour == LIGHT.accent:
            found[min(panels - 1, int(mark.x / drawing.width * panels))].append(mark.text)
    return found


def test_a_png_beyond_all_bounds_is_not_offered_and_the_page_says_why() -> None:
    here = taken(visit(tray=tray.write([L3H1])))
    here.at.selectbox(key="take_dpi").select("600 dpi").run()
    here.at.selectbox(key="take_width").select("Other").run()
    here.at.number_input(key="take_mm").set_value(500).run()
    here.check()
    assert "No PNG: At 600 dpi the picture would have" in here.said
    labels = [b.proto.label for b in here.at.get("download_button")]
    assert "PNG" not in labels
    assert {"SVG", "PDF", "CSV"} <= set(labels)


def test_the_zip_is_made_as_it_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        figure_api, "archive", lambda panels, dpi, **options: asked.append(options | {"dpi": dpi}) or b""
    )
    made: list[Any] = []
    monkeypatch.setattr(takeaway, "_zip", made.append)
    wide = Pin(WIDE, "", "minilm", Head(3, 1))
    here = taken(visit(tray=tray.write([L3H1, wide]), diff="1-0", pin="q2", at="1", **{"as": "links"}))
    here.at.selectbox(key="take_dpi").select("150 dpi").run()
    here.at.selectbox(key="take_look").select("dark").run()
    here.at.selectbox(key="take_width").select_index(0).run()
    here.check()
    made[-1]()
    expected = {"dpi": 150, "kind": "links", "diff": (1, 0), "pin_of": 1, "look": "dark", "width_mm": 85.0, "pin": "q2"}
    assert asked[-1] | expected == asked[-1]
    here = taken(visit(tray=tray.write([L3H1, Pin("Cats sleep.", "", "minilm", Head(0, 0))]), diff="0-1"))
    made[-1]()
    assert asked[-1]["diff"] is None  # which the page refuses, too


@pytest.mark.parametrize(("page", "url"), [
    (None, {"head": "L3H1", "on": "2.4", "special": "rescale", "pin": "q8"}),
    (None, {"text": "Cats sleep.", "pair": "Dogs too.", "side": "ab", "scale": "row"}),
    (PAGE, {"show": "word", "diff": "0-1", "as": "links", "scale": "head"}),
    (PAGE, {"tray": tray.write([L3H1, L0H2]), "scale": "row", "special": "hide"}),
])  # fmt: skip
def test_the_figure_on_screen_can_be_taken_away(
    page: str | None, url: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = figures_made(monkeypatch)
    here = taken(PageSession(url, page))
    code = [c.value for c in here.at.code]
    assert any("L3H1" in c or "L0H0" in c for c in code)
    assert any(c.startswith("import mha_viz as mv") for c in code)
    for label in here.at.radio(key="take_figure").options:
        here.at.radio(key="take_figure").set_value(label).run()
        here.check()
        assert not [m for m in here.at.get("html") if '<div class="mha-problem"' in m.proto.body]
        screen = settings_on_screen(here, page)
        assert settings_in_file(made[-1], screen) == screen


def settings_on_screen(here: PageSession, page: str | None) -> dict[str, Any]:
    """The settings that the page's own script reads from the address, and the heads that it draws."""
    if page:
        return on_screen(here)["view"] | {"side": "all", "heads": heads(here)}
    ask = {"packet": here._drawn()["mha_explorer"].bytes, "ask": "view", "query": list(here.url.items())}
    view = ask_packet(ask)[0]
    shown = {name: view[name] for name in ("unit", "special", "links", "scale", "side")}
    return shown | {"heads": [str(Head(*divmod(head, 12))) for head in view["on"]]}


def settings_in_file(figure: Figure, screen: dict[str, Any]) -> dict[str, Any]:
    """What a file says of the same: a heatmap is of the first head, the grid of all."""
    about = figure.drawing.about
    found = {name: about.get(name, screen[name]) for name in screen} | {"heads": about["heads"].split()}
    of_first = {"heatmap": screen["heads"][:1], "grid": ["all"]}.get(about["figure"], screen["heads"])
    return found | ({"heads": screen["heads"]} if found["heads"] == of_first else {})
