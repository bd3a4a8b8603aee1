"""The pages as a script: a visitor's messages, the URL, drawings and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mha_viz.app.explore import badges
from mha_viz.app.service.caches import get_model_service
from mha_viz.app.url.address import MAX_ENCODED, load_examples
from mha_viz.attention import Head
from mha_viz.errors import Cancelled, ModelUnreachable
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import clean
from tests import hostile, lanes
from tests.page_session import PageSession
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
FIRST = load_examples()[0]["text"]


pytestmark = pytest.mark.usefixtures("no_hub")


# ---- The first visit -------------------------------------------------------------------------------------


def test_the_first_visit_shows_the_first_example_in_full() -> None:
    visit = PageSession()
    header, matrices, _ = visit.shown()
    assert (header["model"], header["layers"], header["heads"], header["n"]) == ("minilm", 6, 12, 16)
    assert list(matrices) == list(range(72))
    assert header["start"] == {"head": "L3H1", "pin": "q10"}
    assert header["tokens"][10] == "it"
    assert visit.typed["text"] == FIRST
    assert visit.url == {}
    assert visit.said == ""


def test_the_menus_say_what_there_is() -> None:
    typed = PageSession().typed
    assert [m["name"] for m in typed["models"]] == [m.name for m in catalog.list_offered()]
    assert typed["open"] is True
    assert len(typed["examples"]) >= 12
    assert all(e["text"] and e["look"] for e in typed["examples"])
    assert typed["look"] == typed["examples"][0]["look"]


def test_about_says_what_the_pictures_do_not_show() -> None:
    visit = PageSession()
    visit.at.switch_page("pages/90_about.py").run()
    visit.check()
    assert [t.value for t in visit.at.header[:1]] == ["What the pictures show, and what they do not"]
    assert "not how much it matters" in visit.said
    assert "CC BY-SA 4.0" in visit.said, "the licence of the sentences that the app shows"


# ---- What a visitor does ---------------------------------------------------------------------------------


def test_a_sentence_goes_into_the_url_and_is_drawn(minilm: Encoder) -> None:
    visit = PageSession({"head": "L2H3", "pin": "q3", "link": "1-2", "scale": "log"})
    visit.read("The cat sat on the mat.")
    assert visit.url == {"text": "The cat sat on the mat.", "head": "L2H3", "scale": "log"}
    header, matrices, _ = visit.shown()
    attention = minilm.encode("The cat sat on the mat.")
    assert header["tokens"] == list(attention.tokens)
    assert np.abs(matrices[2 * 12 + 3] - attention[Head(2, 3)]).max() <= 1e-5
    assert visit.typed["look"] == ""


def test_a_pair_goes_into_the_url_and_a_single_sentence_takes_it_out() -> None:
    visit = PageSession()
    visit.read("A man plays.", "Someone plays.")
    assert visit.url == {"text": "A man plays.", "pair": "Someone plays."}
    assert set(visit.shown().header["segments"]) == {0, 1}
    visit.at.query_params["side"] = "ab"
    visit.at.run()
    visit.read("A man plays.")
    assert visit.url == {"text": "A man plays."}
    assert set(visit.shown().header["segments"]) == {0}


def test_the_first_example_needs_no_parameter() -> None:
    visit = PageSession({"text": "Something else."})
    visit.read(FIRST)
    assert visit.url == {}
    assert visit.shown().header["n"] == 16


def test_the_first_example_with_a_second_sentence_is_restored_from_its_url() -> None:
    visit = PageSession()
    visit.read(FIRST, "It slept.")
    again = PageSession(visit.url)
    assert (again.typed["text"], again.typed["pair"]) == (FIRST, "It slept.")
    assert again.shown().header["tokens"] == visit.shown().header["tokens"]


def test_every_example_is_read_and_leaves_a_url_that_restores_it() -> None:
    visit = PageSession({"head": "L0H0", "on": "1", "pin": "q1"})
    for index, example in enumerate(load_examples()):
        visit.send("mha_sentence", "example", index)
        assert not {"head", "on", "pin", "link"} & set(visit.url)
        assert (visit.typed["text"], visit.typed["pair"]) == (example["text"], example.get("pair", ""))
        assert example["look"].startswith(visit.typed["look"] or "nothing")
        start = visit.shown().header["start"]
        if "pin" in example:
            pin = int(example["pin"][1:])
            assert start == {"head": example["head"], "pin": example["pin"]}
            assert visit.shown().header["special"][pin] == 0
        assert visit.said == ""
        assert [visit.url.get(name) for name in ("model", "arrows")] == [example.get(n) for n in ("model", "arrows")]
        assert PageSession(visit.url).typed["text"] == example["text"]
    assert (example["model"], visit.typed["look"]) == ("repeater", example["look"]), "composition, in the last one"
    assert visit.shown().header["start"]["head"] == example["head"]
    assert (visit.badges["arrows"][0]["from"], visit.badges["arrows"][0]["to"]) == (0, 6), "from L0H0 to L1H2"
    listed = [one["text"] for one in visit.typed["examples"]]
    assert listed == [example["text"], *(one["text"] for one in load_examples()[:-1])], (
        "the first where composition is drawn"
    )
    visit.send("mha_sentence", "example", 1)
    assert visit.typed["text"] == FIRST
    assert not {"model", "arrows"} & set(visit.url)


def test_messages_that_say_nothing_change_nothing() -> None:
    visit = PageSession({"text": "Kept."})
    examples_that_are_none: list[object] = [-1, 999, "0", None, 1.5, {}]
    sent: list[tuple[str, str, object]] = [("mha_sentence", "example", index) for index in examples_that_are_none]
    nothing: tuple[object, ...] = (None, {})
    sent += [("mha_sentence", "model", value) for value in nothing]
    sent += [("mha_explorer", "view", value) for value in nothing]
    for component, event, value in sent:
        visit.send(component, event, value)
        assert visit.typed["text"] == "Kept.", (event, value)
        assert visit.picture is not None, (event, value)
        assert visit.said == "", (event, value)


def test_the_view_goes_into_the_url_and_defaults_leave_it() -> None:
    visit = PageSession()
    visit.view(head="L2H7", on="3.4", unit="pieces", scale=None, pin="q3k4")
    assert visit.url == {"head": "L2H7", "on": "3.4", "unit": "pieces", "pin": "q3k4"}
    visit.view(head=None, on=None, unit=None, pin=None, links="top3")
    assert visit.url == {"links": "top3"}


def test_what_is_said_of_a_text_is_worked_out_once_for_all_its_views(monkeypatch: pytest.MonkeyPatch) -> None:
    visit, described = PageSession(), Mock(wraps=badges.encode_recipes)
    monkeypatch.setattr(badges, "encode_recipes", described)
    visit.read("Nobody knew why the old clock stopped.")
    assert described.call_count == 1
    visit.view(head="L2H4")
    visit.view(head="L5H0", off="none")
    assert described.call_count == 1
    visit.read("Nobody knew why the old clock struck.")
    assert described.call_count == 2


def test_the_model_of_a_reading_is_looked_up_by_its_name_for_the_menu_and_for_the_cache_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visit, resolve = PageSession(), Mock(wraps=catalog.resolve)
    monkeypatch.setattr(catalog, "resolve", resolve)
    visit.view(head="L1H2", arrows="on")
    assert visit.badges["arrows"]
    lookups = ("the menu", "the cache of readings", "the cache of arrows")
    assert [call.args for call in resolve.call_args_list] == [("minilm",)] * len(lookups)


def test_a_drawing_cannot_set_what_is_not_its_own() -> None:
    visit = PageSession({"text": "Kept."})
    visit.view(text="other", model="gpt2", head="<script>", scale="x" * 5000, x="1", unit=3)
    assert visit.url == {"text": "Kept."}


def test_a_view_of_the_text_before_says_nothing_of_this_one() -> None:
    visit = PageSession()
    old = visit.shown().header["of"]
    visit.read("The cat sat on the mat.")
    visit.send("mha_explorer", "view", {"of": old, "head": "L2H8", "pin": "q10"})
    assert visit.url == {"text": "The cat sat on the mat."}
    visit.view(head="L2H8")
    assert visit.url["head"] == "L2H8"


def test_another_head_of_the_start_layer_is_sent_for_a_long_text() -> None:
    visit = PageSession({"text": "cat sat mat " * 200, "on": "4.5"})
    assert list(visit.shown().matrices) == [37, 40, 41]


def test_a_long_text_shows_only_so_many_heads_together() -> None:
    visit = PageSession({"text": "cat sat mat " * 200, "head": "L1H0", "on": "1.2.3.4.5.6.7.8.9.10.11"})
    assert visit.shown().header["together"] == len(visit.shown().matrices) == 7


def test_a_head_of_a_long_text_comes_in_full_when_it_is_opened() -> None:
    visit = PageSession({"text": "cat sat mat " * 200})
    assert visit.shown().header["n"] == 512
    assert list(visit.shown().matrices) == [3 * 12 + 1]
    visit.view(head="L5H2", on="4", link="7-9")
    assert list(visit.shown().matrices) == [5 * 12 + 2, 5 * 12 + 4]
    link = visit.shown().header["link"]
    assert (link["query"], link["key"], len(link["weights"])) == (7, 9, 72)
    assert "512 of 602 tokens are read" in visit.said


# ---- Texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_a_hostile_text_gives_a_picture_or_a_message_and_stays(text: str) -> None:
    visit = PageSession()
    visit.read(text)
    shown_text = visit.typed["text"]
    assert clean(text).startswith(shown_text)
    assert shown_text == clean(text) or len(shown_text) >= 512
    assert visit.picture is not None or visit.said
    if shown_text.strip():
        assert visit.url["text"] == shown_text
    visit.read("", text)
    assert visit.picture is not None or visit.said
    visit.read("The cat sat.", text)  # and as the second sentence
    assert clean(text).startswith(visit.typed["pair"])
    assert visit.typed["text"] == "The cat sat."
    assert visit.picture is not None or visit.said


def test_nothing_typed_is_said_plainly_and_examples_are_still_there() -> None:
    visit = PageSession()
    for text in ("", "   ", "\u2028\n"):
        visit.read(text)
        assert visit.picture is None, text
        assert "Type a sentence, or choose an example." in visit.said, text
    visit.send("mha_sentence", "example", 2)
    assert visit.picture is not None
    assert visit.said == ""


def test_a_text_that_is_too_long_says_how_many_pieces_and_where_it_was_cut() -> None:
    visit = PageSession()
    visit.read("cat sat mat " * 200)
    assert "512 of 602 tokens are read" in visit.said
    assert "✂" in visit.said


def test_a_megabyte_is_shortened_to_what_a_link_can_carry() -> None:
    visit = PageSession()
    visit.read(hostile.TEXTS["one megabyte of words"])
    assert MAX_ENCODED * 0.85 < len(quote(visit.url["text"])) <= MAX_ENCODED
    assert visit.shown().header["n"] == 512
    for one in (visit, PageSession(visit.url)):  # the link says so too
        assert "characters were typed" in one.said
        assert "512 of more than" in one.said


# ---- URLs ------------------------------------------------------------------------------------------------


# What each of them means is asked of mha_viz.app.url.address, for all of them, in test_address.py.
ON_THE_PAGE = (
    *("head of a million digits", "head repeated", "text with script", "pair without text", "model elsewhere"),
    *("model repeated", "token negative", "other heads out of range", "side of a pair without a pair"),
    *("parameter unknown", "parameter named by markup", "replacement character", "many parameters"),
)


@pytest.mark.parametrize("name", lanes.some(list(hostile.URL_VALUES), *ON_THE_PAGE))
def test_a_hostile_url_gives_a_picture_or_a_message(name: str) -> None:
    visit = PageSession(hostile.URL_VALUES[name])
    assert visit.picture is not None or visit.said


def test_what_a_link_asks_for_in_vain_is_named() -> None:
    visit = PageSession({"head": "L99H99", "unit": "syllables"})
    assert "L99H99" in visit.said
    assert "unit=syllables" in visit.said
    assert visit.shown().header["start"]["head"] == "L3H1"


def test_a_full_url_restores_everything_the_server_needs(minilm: Encoder) -> None:
    visit = PageSession({"text": "A man plays.", "pair": "Someone plays.", "head": "L4H2", "on": "5.6", "link": "2-7"})
    attention = minilm.encode("A man plays.", "Someone plays.")
    assert (visit.typed["text"], visit.typed["pair"]) == ("A man plays.", "Someone plays.")
    assert visit.shown().header["tokens"] == list(attention.tokens)
    assert visit.said == ""


# ---- Models ----------------------------------------------------------------------------------------------


SENT_AS_MODELS = (
    *("empty", "blank", "parents", "absolute", "http", "three hundred with owner", "double hyphen", "line break"),
    *("nul", "surrogate", "look-alike letters", "script", "case"),
)


def test_a_hostile_model_name_gives_a_message_and_the_picture_stays() -> None:
    visit = PageSession()
    for kind in lanes.some(list(hostile.MODEL_IDS), *SENT_AS_MODELS):
        name = hostile.MODEL_IDS[kind]
        visit.send("mha_sentence", "model", "minilm")
        assert visit.said == ""
        visit.send("mha_sentence", "model", name)
        assert visit.shown().header["model"] == "minilm", kind
        assert visit.typed["text"] == FIRST, kind
        assert visit.said != "" or not name.strip(), kind


def test_the_picture_that_stays_is_of_the_sentence_that_was_there() -> None:
    visit = PageSession({"text": "The cat sat."})
    visit.send("mha_sentence", "model", "../../etc/passwd")
    assert "“../../etc/passwd” is not a model." in visit.said
    assert "Shown below instead" in visit.said
    assert visit.shown().header["tokens"] == ["[CLS]", "The", "cat", "sat", ".", "[SEP]"]
    assert visit.url == {"text": "The cat sat.", "model": "../../etc/passwd"}
    visit.send("mha_sentence", "model", "minilm")
    assert visit.url == {"text": "The cat sat."}
    assert visit.said == ""


def test_a_model_that_cannot_be_had_leaves_the_view_as_it_is() -> None:
    url = {"head": "L5H11", "on": "3", "pin": "q1", "link": "1-2", "unit": "pieces"}
    visit = PageSession(url)
    visit.send("mha_sentence", "model", "no-such/model")
    assert visit.url == url | {"model": "no-such/model"}
    visit.send("mha_sentence", "model", "../x")
    assert visit.url == url | {"model": "../x"}


def test_another_model_drops_heads_and_tokens_that_belong_to_the_last_one(tiny_folder: Any) -> None:
    visit = PageSession({"head": "L5H11", "on": "3", "pin": "q1", "link": "1-2", "unit": "pieces"})
    visit.send("mha_sentence", "model", str(tiny_folder("bert")))
    assert visit.url == {"model": str(tiny_folder("bert")), "unit": "pieces"}


def test_the_picture_before_a_model_that_cannot_be_had_is_the_last_good_one(tiny_folder: Any) -> None:
    visit = PageSession({"model": str(tiny_folder("gpt2"))})
    shape = visit.shown().header["heads"]
    for name in ("../x", "no-such/model"):  # an unknown name does not become the picture to go back to
        visit.send("mha_sentence", "model", name)
        assert visit.url == {"model": name, "before": str(tiny_folder("gpt2"))}
        assert visit.shown().header["heads"] == shape
    visit.send("mha_sentence", "model", "minilm")
    assert visit.url == {}


def test_a_model_without_special_tokens_is_drawn(tiny_folder: Any) -> None:
    visit = PageSession({"model": str(tiny_folder("gpt2")), "text": "A.", "special": "rescale"})
    for text in ("A.", "x", "The cat sat."):
        visit.read(text)
        assert visit.url["special"] == "rescale"
        assert set(visit.shown().header["special"]) == {0}, text
        assert visit.said == "", text


def test_a_model_folder_of_ones_own(tiny_folder: Any) -> None:
    visit = PageSession()
    visit.send("mha_sentence", "model", str(tiny_folder("bert")))
    header = visit.shown().header
    assert (header["layers"], header["heads"]) != (6, 12)
    assert header["start"] == {"head": "L0H0", "pin": None}
    assert visit.said == ""


def test_a_damaged_model_folder_gives_a_message_and_the_picture_stays(tiny_folder: Any, tmp_path: Path) -> None:
    for file in tiny_folder("bert").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    visit = PageSession({"text": "The cat sat."})
    visit.send("mha_sentence", "model", str(tmp_path))
    assert "damaged" in visit.said
    assert visit.shown().header["model"] == "minilm"
    assert visit.typed["text"] == "The cat sat."


def test_a_server_with_a_list_offers_it_and_refuses_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(catalog.SETTING, "minilm")
    visit = PageSession()
    assert [m["name"] for m in visit.typed["models"]] == ["minilm"]
    assert visit.typed["open"] is False
    for name in ("gpt2", str(tmp_path), "someone/else"):
        visit.send("mha_sentence", "model", name)
        assert "does not offer" in visit.said
        assert visit.shown().header["model"] == "minilm"


def test_a_server_whose_list_is_misspelled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "minilm,no such model")
    at = AppTest.from_file(ROOT / "app.py", default_timeout=PATIENCE).run()
    assert not at.exception
    assert any("no such model" in e.proto.body for e in at.get("html"))


# ---- Downloads -------------------------------------------------------------------------------------------


def test_why_a_model_could_not_be_had_is_remembered_for_a_while_and_a_stop_is_not() -> None:
    model = catalog.resolve("bert-base-cased")
    service = get_model_service()
    service.note_failure(model, Cancelled("stopped"))
    assert service.get_failure(model) is None
    service.note_failure(model, ModelUnreachable("gone"))
    visit = PageSession({"model": "bert-base-cased"})
    assert "gone" in visit.said
    assert visit.shown().header["model"] == "minilm"
    assert "Shown below instead" in visit.said
    service.forget_failure(model)
    assert service.get_failure(model) is None


SHARING = {
    "llama": "H0 and H1, H2 and H3 share a key",
    "falcon": "H0 to H3 share a key",
    "falcon in groups": "H0 and H1, H2 and H3 share a key",
    "falcon of two norms": "",
    "bert": "",
}


@pytest.mark.parametrize("family", lanes.some(list(SHARING), "llama", "falcon", "bert"))
def test_heads_that_share_a_key_are_named(family: str, tiny_folder: Any) -> None:
    said = SHARING[family]
    page = PageSession({"text": "The cat sat.", "model": str(tiny_folder(family))})
    assert ("share a key and a value" in page.said) == bool(said)
    assert said in page.said
