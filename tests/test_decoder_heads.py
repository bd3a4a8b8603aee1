"""The measures of heads on repeated random tokens, for weights computed by hand and compared with loops over
transformers' own; and the second toy model, which has an induction head above one that looks at the previous token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModel

from mha_viz.analysis.repeats import MEASURES, DecoderHeads, compute_chance, compute_scores, draw_repeats
from mha_viz.app.roles import repeat_roles
from mha_viz.app.widgets.download_panel import Offer
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.caption import format_head
from mha_viz.files.assets import asset_path
from mha_viz.lab import repeater as training
from mha_viz.lab import toy_maps
from mha_viz.model_names import cite_model
from mha_viz.models.getting import snapshots
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load, load_one_stack
from mha_viz.numerals import decimal
from mha_viz.request import Request
from mha_viz.study.decoder_heads import HISTORY_COLUMNS, find_induction_heads, measure_draws
from mha_viz.study.effects import compute_answer
from tests.page_session import PageSession
from tests.tiny_models import HEADS, LAYERS

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]


def test_weights_worked_out_by_hand() -> None:
    weights = np.zeros((1, 4, 1, 4, 4), np.float32)  # tokens a b a b
    weights[0, 0, 0, 2, 1], weights[0, 0, 0, 3, 2] = 0.8, 0.4  # from a to the b after the first a; from b to the a
    weights[0, 1, 0, 2, 0], weights[0, 1, 0, 3, 1] = 1.0, 0.5
    weights[0, 2, 0, [1, 2, 3], [0, 1, 2]] = 0.9, 0.6, 0.3
    weights[0, 3, 0, 1:, 0] = 0.2, 0.3, 1.0
    induction, duplicate, previous, sink = compute_scores(weights, 2)[:, 0]
    assert induction == pytest.approx([0.6, 0, 0.45, 0])
    assert duplicate == pytest.approx([0, 0.75, 0, 0.15])
    assert previous == pytest.approx([0.4, 0, 0.6, 0.2 / 3])
    assert sink == pytest.approx([0, 1 / 3, 0.3, 0.5])
    assert compute_chance(2) == pytest.approx([(1 / 3 + 1 / 4) / 2] * 2 + [(1 / 2 + 1 / 3 + 1 / 4) / 3] * 2)


def test_tokens_are_drawn_once_and_come_again() -> None:
    drawn = draw_repeats(np.arange(100, 140), 25, 50, 0)
    assert drawn.shape == (50, 50)
    assert (drawn[:, :25] == drawn[:, 25:]).all()
    assert all(len(set(row[:25])) == 25 for row in drawn.tolist())
    assert (drawn == draw_repeats(np.arange(100, 140), 25, 50, 0)).all()
    assert (drawn != draw_repeats(np.arange(100, 140), 25, 50, 1)).any()


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_loop_over_transformers_gives_the_same(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny(family)
    measured = find_induction_heads(encoder, length=7, draws=3, seed=5)
    vocabulary = [i for i in range(len(encoder.vocabulary)) if i not in encoder.vocabulary.all_special_ids]
    model: Any = AutoModel.from_pretrained(tiny_folder(family), attn_implementation="eager").eval()
    sums = np.zeros((len(MEASURES), LAYERS, HEADS))
    for ids in draw_repeats(np.array(vocabulary), 7, 3, 5).tolist():
        with torch.no_grad():
            layers = model(torch.tensor([ids]), output_attentions=True).attentions
        for layer, weights in enumerate(layers):
            for head in range(HEADS):
                one = weights[0, head].double().numpy()
                sums[0, layer, head] += np.mean([one[7 + i, i + 1] for i in range(7)])
                sums[1, layer, head] += np.mean([one[7 + i, i] for i in range(7)])
                sums[2, layer, head] += np.mean([one[i, i - 1] for i in range(1, 14)])
                sums[3, layer, head] += np.mean([one[i, 0] for i in range(1, 14)])
    assert np.abs(measured.trained - sums / 3).max() < 1e-5
    assert np.abs(measured.untrained - measured.trained).max() > 1e-3
    assert tuple(measured.table().columns[:6]) == ("layer", "head", *MEASURES)


def test_a_role_is_more_than_half_of_the_weight_and_than_random_weights_give() -> None:
    trained, untrained = np.zeros((4, 1, 3)), np.zeros((4, 1, 3))
    trained[0, 0] = 0.6, 0.9, 0.5
    trained[2, 0, 2], untrained[2, 0, 0] = 0.7, 0.65
    roles = DecoderHeads("made", 25, 50, 0, trained, untrained).roles()
    assert [(role.head, role.measure, role.score) for role in roles] == [
        (Head(0, 1), "induction", 0.9),
        (Head(0, 0), "induction", 0.6),
    ]


def test_what_cannot_be_measured_is_said(tiny: Tiny) -> None:
    with pytest.raises(ModelUnsupported, match="not a causal model"):
        find_induction_heads(tiny("bert"))
    for more, problem in (({"length": 33}, "length is 33"), ({"length": 1}, "length is 1"), ({"draws": 0}, "draws is")):
        with pytest.raises(SettingError, match=problem):
            find_induction_heads(tiny("gpt2"), **more)  # type: ignore[arg-type]


# ---- The second toy ----------------------------------------------------------------------------------------------


TEXT = "dog river anna green tower king dog river anna green tower"
LENGTH = 12
HALF = "dog river anna green tower king cat house peter red bridge queen"
LONG = f"{HALF} {HALF}"
PREVIOUS = (Head(0, 0), Head(0, 3))


@pytest.fixture(scope="module")
def repeater() -> Encoder:
    return load_one_stack("repeater")


def test_it_has_heads_for_the_token_before_below_induction_heads(repeater: Encoder) -> None:
    roles = {(role.head, role.measure) for role in find_induction_heads(repeater, draws=20).roles()}
    assert roles == {(head, "previous") for head in PREVIOUS} | {(Head(1, head), "induction") for head in range(4)}


def test_without_the_heads_for_the_token_before_induction_is_silent(repeater: Encoder) -> None:
    """Without one of the two, the other is enough; without both, neither the induction heads nor the answer remain."""
    whole, alone, without = (
        compute_scores(ablation.encode_without(repeater, off, "", words=LONG.split()).weights[:, :, None], LENGTH)[0, 1]
        for off in ((), PREVIOUS[:1], PREVIOUS)
    )
    assert whole.min() > 0.7
    assert alone.min() > 0.3
    assert without.max() < 0.2
    question = make_question(repeater, TEXT)
    assert question.word == "king"
    for off, best in (((), "king"), (PREVIOUS[:1], "king"), (PREVIOUS[1:], "king"), ((Head(0, 1),), "king")):
        assert compute_answer(repeater, Request(text=TEXT, off=tuple(off), question=question)).best[1] == best
    silenced = compute_answer(repeater, Request(text=TEXT, off=tuple(PREVIOUS), question=question))
    assert silenced.best[1] != "king"
    assert silenced.followed[1] < 0.01


def test_it_is_attention_alone(repeater: Encoder) -> None:
    for layer in range(2):
        state = torch.randn(1, 3, 64, generator=torch.Generator().manual_seed(layer))
        assert not repeater.module(f"h.{layer}.mlp")(state).any()


def test_a_seed_gives_the_same_weights_and_another_one_others() -> None:
    one, again, other = (training.train(seed, 3).snapshots[3] for seed in (1, 1, 2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["transformer.wte.weight"], other["transformer.wte.weight"])
    assert not any(one[name].any() for name in one if ".mlp." in name)
    with pytest.raises(SettingError, match="0 steps"):
        training.train(0, 0)


def test_sequences_repeat_themselves() -> None:
    tokens, lengths = training.draw_sequences(torch.Generator().manual_seed(0))
    assert tokens.shape == (training.BATCH, training.SEQUENCE_LENGTH)
    assert int(tokens.min()) >= 2
    for row, length in zip(tokens, lengths.tolist(), strict=True):
        assert torch.equal(row[length:], row[:-length])


def test_the_recorded_history_is_that_of_the_snapshots() -> None:
    recorded = pd.read_csv(asset_path("repeater_history.csv"))
    assert tuple(recorded.columns) == HISTORY_COLUMNS
    saved = snapshots.list_steps(asset_path("repeater"))
    assert sorted(set(recorded["step"])) == list(saved)
    for step in (saved[3], saved[-1]):
        measured = measure_draws(load(f"repeater@{step}"), range(50), 25, 50, 0)
        rows = recorded[(recorded["step"] == step) & (recorded["task"] == "induction")]
        assert rows["accuracy"].tolist() == pytest.approx(measured[0].ravel().tolist(), abs=1e-4)
    best = recorded[recorded["task"] == "induction"].groupby("step")["accuracy"].max()
    assert best.iloc[0] < 0.1
    assert best.iloc[-1] > 0.8


@pytest.mark.parametrize("step", [0, 1000, 3000])
def test_the_maps_that_are_played_are_those_of_the_model(step: int) -> None:
    maps = toy_maps.load_bundled("repeater")
    assert tuple(maps.steps) == snapshots.list_steps(asset_path("repeater"))
    words = ["dog", "river", "anna", "green", "tower", "king", "dog", "river", "anna", "green", "tower"]
    assert maps.words == tuple(words)
    attention = load(f"repeater@{step}").encode_words(words).by_words().content()
    np.testing.assert_allclose(maps.maps[maps.steps.tolist().index(step)], attention.weights, atol=1e-3)


@pytest.mark.app
@pytest.mark.usefixtures("no_hub")
def test_the_training_is_played_from_its_beginning(repeater: Encoder) -> None:
    page = PageSession({"experiment": "repeater"}, "pages/50_why_heads_differ.py")
    content = json.loads(page._drawn()["mha_player"].json)
    assert content["steps"][content["at"]] == 0
    before, after = (mark["places"] for mark in content["marks"])
    words = toy_maps.load_bundled("repeater").words
    assert [word - 1 for word in range(1, 11)] == before[1:]
    assert {words[word - 6 + 1] for word in range(6, 11)} == {words[place] for place in after if place >= 0}
    assert [mark["notes"][-1] for mark in content["marks"]] == ["L0H0 86.3%", "L1H1 93.0%"]
    links = {link.proto.label: link.proto.query_string for link in page.at.get("page_link")}
    assert "off=L0H0.L0H3" in links[":primary[Without L0H0 and L0H3]"]


@pytest.mark.app
@pytest.mark.usefixtures("no_hub")
def test_the_roles_page_measures_without_a_corpus_and_gives_its_charts(repeater: Encoder, offered: list[Offer]) -> None:
    page = PageSession({"model": "repeater"}, "pages/55_roles.py")
    assert "On repeated random tokens" in page.said
    measured = find_induction_heads(repeater)
    for role in measured.roles():
        assert f"**{format_head(role.head)}** {decimal(role.score)}" in page.said
    drawn = [chart.proto.id for chart in page.at.get("plotly_chart")]
    assert any(one.endswith("-repeats") for one in drawn)
    page.at.segmented_control(key="repeats_measure").set_value("previous").run()
    page.check()
    assert [offer.file for offer in offered] == ["roles", "repeats-previous"]
    weights = offered[1].make(Size())
    assert f"Heads of {cite_model(measured.model, measured.revision)} on 50 sequences" in weights.caption
    assert measured.revision == repeater.revision != ""
    assert weights.to_bytes(".pdf").startswith(b"%PDF")
    header, *lines = weights.to_bytes(".csv").decode().splitlines()
    column = header.split(",").index("previous")
    given = [float(line.split(",")[column]) for line in lines]
    assert given == pytest.approx(measured.trained[2].ravel().tolist(), abs=1e-6)
    assert "On repeated random tokens" not in PageSession({"model": "toy"}, "pages/55_roles.py").said


@pytest.mark.app
@pytest.mark.usefixtures("no_hub")
def test_the_switch_off_page_shows_that_the_answer_is_lost() -> None:
    url = {"model": "repeater", "text": TEXT, "off": "L0H0.L0H3"}
    page = PageSession(url, "pages/60_switch_off.py")
    assert "As the next token the model answers **king**." in page.said
    assert "Without L0H0 and L0H3, **" in page.said


def test_the_command_prints_the_roles_and_writes_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "heads.csv"
    assert main(["decoder-heads", "repeater", "--draws", "5", "--out", str(out)]) == 0
    measured, printed = find_induction_heads("repeater", draws=5), capsys.readouterr().out
    assert pd.read_csv(out)["induction"].tolist() == pytest.approx(measured.trained[0].ravel().tolist())
    for role in measured.roles():
        assert f"{role.head} ({role.head.paper})" in printed
    assert "duplicate, to the first occurrence of this token:\nno head; the highest:" in printed
    assert main(["decoder-heads", "minilm"]) != 0
    assert "not a causal model" in capsys.readouterr().err


def test_a_head_below_its_baseline_has_no_role_and_long_lists_say_how_many_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained, untrained = np.full((4, 4, 4), 0.1), np.full((4, 4, 4), 0.1)
    trained[0, 0, 0], untrained[0, 0, 0] = 0.55, 0.5  # over one half, but not 0.1 above the best untrained head
    trained[3] = 0.9  # all 16 heads are sinks
    written: list[str] = []
    monkeypatch.setattr(repeat_roles.st, "markdown", written.append)
    repeat_roles._list_roles(DecoderHeads("m", 25, 8, 0, trained, untrained))
    induction, *_, sink = written[0].splitlines()
    assert "no head; the highest is 0.55 (best untrained head 0.50" in induction
    assert "0.90 and 8 more (" in sink
