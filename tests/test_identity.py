"""A reading knows its identity: readings that differ have different keys in every cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.app.service import caches as service_module
from mha_viz.app.service.caches import ModelService
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import comparison
from mha_viz.app.url.annotated_texts import read_words
from mha_viz.attention import Attention, Head
from mha_viz.figures.layout import Size, figure_code
from mha_viz.figures.layout.difference import distinguish_panels
from mha_viz.figures.layout.packet import OpenHead
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from mha_viz.models.getting import catalog
from mha_viz.models.intervening.ablation import compute_means
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Question, Request
from mha_viz.view.quantities import QUANTITIES
from tests import lanes
from tests.given_words import CONLLU, SPLIT, TYPED, WHOLE, WORDS
from tests.packets import unpack, unpack_panels
from tests.page_session import PageSession
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent


class Silenced(Tap):
    """A tap that changes nothing but is not the default one."""


@cache
def readings(minilm: Encoder, tiny: Callable[[str], Encoder]) -> dict[str, Attention]:
    """More than twenty readings that all differ; nothing changes them."""
    typed, given = minilm.encode(TYPED), minilm.encode_words(WORDS)
    pair = minilm.encode(TYPED, "He sat.")
    bert, means = tiny("bert"), compute_means(minilm, [TYPED])
    two = np.full((1, 1, len(typed.text), len(pair.text)), 1 / len(pair.text), np.float32)
    one = np.full((1, 1, len(pair.text), len(typed.text)), 1 / len(typed.text), np.float32)
    cross = Attention("minilm", minilm.revision, typed.text, two, keys=pair.text)
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
        "the same heads in another order": typed.only([Head(3, 2), Head(3, 1)]),
        "untrained minilm": minilm.untrained().encode(TYPED),
        "without a head": mv.ablate(minilm, ["L3H1"], TYPED),
        "without another head": mv.ablate(minilm, ["L3H2"], TYPED),
        "without two heads": mv.ablate(minilm, ["L3H1", "L3H2"], TYPED),
        "without a head, uniform, given": mv.ablate(minilm, ["L3H1"], "", method="uniform", words=WORDS),
        "without a head, its mean": mv.ablate(minilm, ["L3H1"], TYPED, method="mean", means=means),
        "without a head, another mean": mv.ablate(minilm, ["L3H1"], TYPED, method="mean", means=means + 1),
        "without a head, another text": mv.ablate(
            minilm, ["L3H1"], TYPED, method="text", source=TYPED[::-1].capitalize()
        ),
        "without a head, random sentences": mv.ablate(minilm, ["L3H1"], TYPED, method="resample"),
        "norm-weighted": mv.quantities.norm_weighted(minilm, TYPED),
        "norm-weighted pair, words": mv.quantities.norm_weighted(minilm, TYPED, "He sat.").by_words(),
        "norm-weighted, given": mv.quantities.norm_weighted(minilm, "", words=WORDS),
        "rollout": mv.quantities.rollout(typed),
        "some layers": mv.quantities.rollout(typed).by_words().only(["L4", "L2"]),
        "rollout, given, words": mv.quantities.rollout(given).by_words(),
        "rollout without a head": mv.quantities.rollout(mv.ablate(minilm, ["L3H1"], TYPED)),
        "gradient × weight of a cosine": mv.quantities.gradient_weighted(minilm, TYPED, other="He sat."),
        "gradient × weight of another cosine": mv.quantities.gradient_weighted(minilm, TYPED, other="She sat."),
        "to another text": cross,
        "to another text, words": cross.by_words(),
        "from the other text": Attention("minilm", minilm.revision, pair.text, one, keys=typed.text),
    }


def test_readings_that_differ_have_different_keys(minilm: Encoder, tiny: Callable[[str], Encoder]) -> None:
    each = readings(minilm, tiny)
    assert len(each) >= 20
    same = [(a, b) for a, b in combinations(each, 2) if each[a].key == each[b].key]
    assert same == []


def test_equal_readings_have_equal_keys(minilm: Encoder) -> None:
    typed = minilm.encode(TYPED)
    assert minilm.encode(TYPED).key == typed.key
    assert minilm.encode(TYPED) == typed
    assert {minilm.encode(TYPED), typed} == {typed}
    assert typed != typed.by_words()
    assert typed != typed.key
    assert minilm.encode(TYPED).by_words().key == typed.by_words().key
    assert minilm.encode_words(list(WORDS)).key == minilm.encode_words(WORDS).key
    stacked = list(typed.weights)
    one, two = (Attention.from_tensors(stacked, SPLIT[: len(typed.text)]) for _ in range(2))
    assert one.key == two.key


def test_readings_of_a_file_have_the_keys_that_they_were_saved_with(
    minilm: Encoder, tiny: Callable[[str], Encoder], tmp_path: Path
) -> None:
    """Opened in a new process, which has loaded no model; hashes of texts differ from those of this one."""
    each = list(readings(minilm, tiny).values())
    files = [attention.save(tmp_path / f"{number}.npz") for number, attention in enumerate(each)]
    code = "import sys, mha_viz as mv; print(*(mv.load_attention(path).key for path in sys.argv[1:]))"
    command, place = [sys.executable, "-c", code, *files], {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=place)
    assert run.stdout.split() == [attention.key for attention in each]


def test_pasted_words_and_typed_words_share_nothing_that_is_kept(minilm: Encoder) -> None:
    """One word, `well-known`, as CoNLL-U; then three, typed: each packet contains its own words."""
    service, model = ModelService(), catalog.resolve("minilm")
    pasted, typed = (
        service.ask_cached(verbs.read, Request(model.name, text)).result(PATIENCE) for text in (CONLLU, TYPED)
    )
    head = (Head(0, 0),)
    headers = [unpack(service.pack_reading(a, head, None, OpenHead())).header for a in (pasted, typed)]
    assert [header["words"] for header in headers] == [WHOLE, SPLIT]
    assert headers[0]["key"] != headers[1]["key"]
    assert headers[0]["of"] != headers[1]["of"]
    panels = [service.pack_panels([Panel(a, Head(0, 0))], None) for a in (pasted, typed)]
    assert panels[0] != panels[1]
    traces = [
        service.ask_cached(verbs.trace, Request(model.name, text), 0).result(PATIENCE) for text in (CONLLU, TYPED)
    ]
    assert [[t.text for t in trace.text.by_words().tokens] for trace in traces] == [WHOLE, SPLIT]


def test_what_a_service_keeps_of_one_reading_is_never_anothers(minilm: Encoder, tiny: Callable[[str], Encoder]) -> None:
    """Each of the service's caches, used in turn by all readings: the second request returns the same as the first."""
    service = ModelService()
    each = [attention for attention in readings(minilm, tiny).values() if not attention.is_cross]

    def asked(service: ModelService, attention: Attention) -> list[Any]:
        packet = service.pack_reading(attention, (Head(0, 0),), None, OpenHead())
        panels = service.pack_panels([Panel(attention, Head(0, 0))], None)
        return [packet, panels]

    for attention, first in zip(each, [asked(service, attention) for attention in each], strict=True):
        for answer, expected in zip(first, asked(ModelService(), attention), strict=True):
            np.testing.assert_array_equal(answer, expected)
    assert service.find_similar_heads(each[0], Head(0, 0), 3) != service.find_similar_heads(each[9], Head(0, 0), 3)


class Echo:
    """Stands in for the process with the models: the answer to a request is the request itself."""

    loaded = frozenset[str]()

    def ask(self, verb: Callable[..., object], *values: object) -> SimpleNamespace:
        return SimpleNamespace(request=(verb.__name__, *values), bytes=8, weights=np.zeros(1))


def test_the_answer_to_one_request_is_never_that_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every two requests that differ in one property, sent twice in turn."""
    monkeypatch.setattr(service_module, "_get_reader", Echo)
    service, requests = ModelService(), list[Callable[[], Any]]()
    questions = [Question("next", 2, word) for word in ("cat", "dog")]
    of_words = ((None, "", ""), (1, "", ""), (2, "", ""), (1, "cat", ""), (1, "", "cat"))
    questions_of_words = [Request(place=place, word=word, other=other) for place, word, other in of_words]
    off = ((Head(0, 1),), (Head(1, 0),), (Head(0, 1), Head(1, 0)))
    for model in ("minilm", "toy"):
        for text, pair in ((CONLLU, ""), (TYPED, ""), ("A man .", ""), ("A man", "."), (".", "A man")):
            of = {"model": model, "text": text, "pair": pair}
            requests += [
                partial(service.ask_cached, verbs.read, Request(**of, quantity=quantity)) for quantity in QUANTITIES
            ]
            requests += [
                partial(service.ask_cached, verbs.prepare_question, replace(one, **of)) for one in questions_of_words
            ]
            for question in questions:
                whole = Request(**of, question=question)
                requests.append(partial(service.ask_cached, verbs.read, replace(whole, quantity="gradient")))
            for method, question_asked, heads in product(("zero", "uniform"), (None, *questions), off):
                without = Request(**of, off=heads, method=method, question=question_asked)
                requests += [partial(service.ask_cached, verb, without) for verb in (verbs.read, verbs.answer_question)]
    for _ in range(2):
        answers = [request().result(PATIENCE).request for request in requests]
        assert len(set(map(repr, answers))) == len(requests) > 300


def test_one_visitor_never_sees_the_words_of_another() -> None:
    before = PageSession({"text": CONLLU})
    after = PageSession({"text": TYPED})
    assert before.shown().header["words"] == WHOLE
    assert after.shown().header["words"] == SPLIT
    assert PageSession({"text": CONLLU}).shown().header["words"] == WHOLE


def test_a_view_of_the_pasted_words_is_not_taken_for_one_of_the_typed_words() -> None:
    visit = PageSession({"text": TYPED})
    pasted = PageSession({"text": CONLLU})
    visit.send("mha_explorer", "view", {"of": pasted.shown().header["of"], "pin": "q2"})
    assert "pin" not in visit.url
    pasted.view(pin="q2")
    assert pasted.url["pin"] == "q2"


RECIPES = {
    "typed": ".encode('A well-known man .')",
    "pair": ".encode('A well-known man .', 'He sat.')",
    "given": ".encode_words(['A', 'well-known', 'man', '.'])",
    "typed, words": ".encode('A well-known man .').by_words()",
    "given, words": ".encode_words(['A', 'well-known', 'man', '.']).by_words()",
    "given, special hidden": ".without_special()",
    "typed, words, special hidden": ".by_words().without_special()",
    "typed, special hidden, words": ".without_special().by_words()",
    "other heads": ".only(['L3H1', 'L3H2'])",
    "some layers": "mv.quantities.rollout(mv.load('minilm').encode('A well-known man .'))"
    ".by_words().only(['L4', 'L2'])",
    "untrained minilm": ".untrained(0).encode('A well-known man .')",
    "through another tap": "mv.load_attention(",
    "without two heads": "mv.ablate(mv.load('minilm'), ['L3H1', 'L3H2'], 'A well-known man .', method='zero')",
    "without a head, uniform, given": "['L3H1'], '', words=['A', 'well-known', 'man', '.'], method='uniform')",
    "without a head, its mean": "mv.load_attention(",
    "norm-weighted": "mv.quantities.norm_weighted(mv.load('minilm'), 'A well-known man .')",
    "norm-weighted pair, words": "mv.quantities.norm_weighted(mv.load('minilm'), 'A well-known man .', 'He sat.')"
    ".by_words()",
    "norm-weighted, given": "mv.quantities.norm_weighted(mv.load('minilm'), '', words=['A', 'well-known', 'man', '.'])",
    "rollout": "mv.quantities.rollout(mv.load('minilm').encode('A well-known man .'))",
    "rollout, given, words": "mv.quantities.rollout(mv.load('minilm').encode_words(['A', 'well-known', 'man', '.']))"
    ".by_words()",
    "to another text": "mv.load_attention(",
    "other numbers for the same text": "mv.load_attention(",
}


@pytest.mark.filterwarnings("ignore:All weights shown are below:mha_viz.errors.FigureWarning")
@pytest.mark.parametrize("turn", lanes.some(range(3), 0))
def test_the_recipe_says_what_was_done_and_makes_the_same_bytes(
    turn: int, minilm: Encoder, tiny: Callable[[str], Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each reading a figure of one kind: in three turns, each reading meets each kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mv, "load", cache(mv.load))  # each recipe loads its model anew, twenty times the same ones
    each = readings(minilm, tiny)
    for number, (made, call) in enumerate(RECIPES.items(), turn):
        attention, kind = each[made], ("heatmap", "links", "grid")[number % 3]
        heads = [] if kind == "grid" else [Head(0, 1)]
        if attention.heads == 1:
            heads = [Head(0, 0)] if heads else []
        code = figure_code.write_head_code(attention, kind, heads, View(), Size(), "again.svg")
        assert call in code, made
        if call == "mv.load_attention(":
            attention.save(tmp_path / f"{attention.key[:8]}.npz")  # as the line above it states
        exec(code, {})
        figure = getattr(attention, kind)(**({"heads": heads} if heads else {}))
        assert (tmp_path / "again.svg").read_bytes() == figure.to_bytes(".svg"), made


def test_the_recipe_of_a_comparison_tells_readings_of_one_text_apart(
    minilm: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed, given = minilm.encode(TYPED), minilm.encode_words(WORDS)
    panels = [Panel(a, Head(3, 1)) for a in (typed, given, typed.without_special(), minilm.encode(TYPED))]
    code = figure_code.write_panels_code(panels, View(), Size(), {}, "compare", "again.svg")
    assert code.count("mv.load(") == 3
    exec(code, {})
    assert (tmp_path / "again.svg").read_bytes() == mv.compare(panels).to_bytes(".svg")


# ---- Captions ----------------------------------------------------------------------------------------------


def test_a_caption_says_how_a_reading_was_made(minilm: Encoder, tiny: Callable[[str], Encoder]) -> None:
    each = readings(minilm, tiny)
    captions = {made: each[made].heatmap(0, 0).caption for made in RECIPES}
    assert "reading “A well-known man .” Attention to a split word" in captions["typed"]
    assert "reading “A well-known man .”, given as words. " in captions["given"]
    assert "reading “A well-known man .”, given as words, by words. " in captions["given, words"]
    assert "”, only L3H1, L3H2. " in captions["other heads"]
    assert "”, without L3H1 L3H2: zero. " in captions["without two heads"]
    assert "Norm of the value vector" in captions["norm-weighted"]
    about = each["given, words"].heatmap(0, 0).drawing.about
    assert about["made"] == "given words; by words"
    assert "made" not in each["typed"].heatmap(0, 0).drawing.about


def test_what_a_reading_hides_is_said_whatever_the_view_keeps(minilm: Encoder) -> None:
    attention = minilm.encode(TYPED).without_special()
    share = 100 * attention.hidden[3, 1].mean()
    note = f"{share:.1f}% of this head’s attention went to hidden tokens"
    sentence = f"Special tokens are hidden and rows rescaled to sum to 1; {note}."
    assert sentence in attention.heatmap(3, 1, unit="pieces").caption


def test_panels_of_one_text_say_what_tells_them_apart(minilm: Encoder) -> None:
    typed, given = minilm.encode(TYPED), minilm.encode_words(WORDS)
    texts = mv.compare([(typed, "L3H1"), (typed.without_special(), "L3H1"), (given, "L3H1")]).drawing.texts()
    assert [text for text in texts if text in ("as read", "special hidden", "given as words")] == [
        "as read",
        "special hidden",
        "given as words",
    ]
    hidden = mv.compare([(typed, "L3H1"), (given, "L3H1")]).caption
    assert "reading “A well-known man .”; L3H1 (4-2) of" in hidden


MINILM = "all-MiniLM-L6-v2"
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "revision": ({"revision": "untrained, seed 0"}, f"L3H1 (4-2) of {MINILM} (untrained, seed 0)"),
    "model": ({"model": "other"}, "L3H1 (4-2) of other"),
    "steps": ({"made": ("typed", "without L0H0 (zero)")}, "L3H1 (4-2) without L0H0 (zero)"),
    "all": ({"model": "other", "made": ("typed", "without L0H0 (zero)")}, "L3H1 (4-2) of other without L0H0 (zero)"),
}


@pytest.mark.parametrize("differs", OTHERS)
def test_a_difference_of_two_readings_of_one_text_says_how_they_differ(differs: str, minilm: Encoder) -> None:
    typed = minilm.encode(TYPED)
    changes, named = OTHERS[differs]
    figure = mv.difference((typed, "L3H1"), (replace(typed, **changes), "L3H1"), width_mm=300)
    shown = " ".join(figure.drawing.texts())
    assert f"{named} minus L3H1 (4-2) " in shown
    assert f"more in {named}" in shown
    assert f"Colour: {named} minus L3H1 (4-2) " in figure.caption
    one, other = distinguish_panels(Panel(typed, Head(3, 1)), Panel(replace(typed, **changes), Head(3, 1)))
    assert len({one, other, "the first", "the second"}) == 4


def test_a_long_title_of_a_difference_takes_a_second_line(minilm: Encoder) -> None:
    typed = minilm.encode(TYPED)
    other = replace(typed, revision="untrained, seed 0")
    drawing = mv.difference((typed, "L3H1"), (other, "L3H1"), width_mm=85).drawing
    title = f"L3H1 (4-2) of {MINILM} (untrained, seed 0) minus L3H1 (4-2) of {MINILM} (weights SHA-256 53aa5117…)"
    assert " ".join(drawing.texts()).startswith(title)
    same = mv.difference((typed, "L3H1"), (typed, "L0H0"), width_mm=85).drawing
    assert drawing.height > same.height


def test_a_pinned_head_is_read_again_from_the_words_that_were_given() -> None:
    page = PageSession({"text": CONLLU})
    page.send("mha_explorer", "compare", {"model": "minilm", "head": "L3H1"})
    compared = PageSession({"tray": page.url["tray"], "show": "tray"}, "pages/20_compare.py")
    (reading,) = unpack_panels(compared._drawn()["mha_compare"].bytes)["readings"]
    assert reading["words"] == WHOLE
    compared = PageSession({"text": CONLLU, "show": "layer"}, "pages/20_compare.py")
    compared.send(
        "mha_compare", "edit", {"action": "pin", "text": TYPED, "pair": "", "model": "minilm", "head": "L0H0"}
    )
    ((pin,), _) = comparison.read(compared.url["tray"])
    assert read_words(pin.request.text) == WORDS
    compared.send("mha_compare", "edit", {"action": "pin", "text": "It rains.", "model": "minilm", "head": "L0H0"})
    assert comparison.read(compared.url["tray"])[0][1].request.text == "It rains."
