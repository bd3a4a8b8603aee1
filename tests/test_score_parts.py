"""The parts of a score: against the same numbers written out by hand, and against the models' own weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import mha_viz as mv
from mha_viz.attention.parts import GROUPS, HEADS, ScoreParts
from mha_viz.attention.shares import Why
from mha_viz.errors import ModelUnsupported, SettingError, TextError, UnknownHead
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from tests import lanes, tiny_encoder_decoders, tiny_models
from tests.oracles import SECOND, SENTENCE, load_plain
from tests.parts_by_hand import BY_HAND, T5

Tiny = Callable[[str], Encoder]
Folder = Callable[[str], Path]
REFUSED = {
    "gemma2": "bends large",
    "gemma3_text": "norm lies between",
    "mobilebert": "narrower vector",
    "olmo2": "norm lies between",
    "cohere of normed heads": "in its own way",
    "stablelm of normed heads": "in its own way",
    "xlnet": "two streams",
    "falcon by distance": "depends on the distance",
}
APART = [name for name in (*tiny_models.FAMILIES, *tiny_models.OTHERS) if name not in REFUSED and "xlnet" not in name]
ONE_OF_A_KIND = (
    *("albert", "bert", "bloom", "cohere", "deberta-v2", "electra", "gpt2", "gpt_neo", "gptj", "llama", "modernbert"),
    *("mpnet", "opt", "qwen3", "stablelm"),
)
KINDS = [family for family in APART if lanes.everything or family in ONE_OF_A_KIND]
PAIRS = [("", family) for family in KINDS] + [
    ("Is it?", family)
    for family in KINDS
    if family in (tiny_models.WITH_PAIRS if lanes.everything else ("albert", "bert", "deberta-v2"))
]
TEXT = "The cat wasn't far."
CLOSE = 1e-4  # of the largest number of a table


@pytest.fixture(scope="module")
def repeater() -> Encoder:
    return load_one_stack("repeater")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder_decoders.build("t5", tmp_path_factory.mktemp("t5"))


# ---- against what is written out by hand -----------------------------------------------------------------------


# The last layer, whose scores have parts of every kind, in each family; the others in turn.
PLACES = [(2, 0, 9, 1), (0, 1, 4, 2), (1, 3, 7, 7)]
OF_FAMILIES = [
    (family, *place)
    for number, family in enumerate(BY_HAND)
    for turn, place in enumerate(PLACES)
    if lanes.everything or turn in (0, 1 + number % 2)
]


@pytest.mark.parametrize(("family", "layer", "head", "query", "key"), OF_FAMILIES)
def test_every_part_is_the_one_written_out_by_hand(
    family: str, layer: int, head: int, query: int, key: int, tiny: Tiny, tiny_folder: Folder
) -> None:
    encoder = tiny(family)
    by_hand = BY_HAND[family](load_plain(tiny_folder(family))[0], list(encoder.pieces(TEXT).ids))
    table, score = by_hand.table(layer, head, query, key)
    ours = encoder.score_parts(TEXT, (layer, head), query, key)
    largest = max(map(abs, table.values()))
    made = {
        (a, b): value
        for a, row in zip(ours.names, ours.values, strict=True)
        for b, value in zip(ours.names, row, strict=True)
    }
    named = {name for pair in table for name in pair}
    assert set(ours.names) <= named
    wrong = {
        pair for pair in made.keys() | table.keys() if abs(made.get(pair, 0) - table.get(pair, 0)) > CLOSE * largest
    }
    assert not wrong
    assert abs(ours.score - score) <= CLOSE * largest
    assert len(ours.names) >= len(named) - 3, "only rotation, shifts and types of 0 are left out"


@pytest.mark.parametrize("family", ["bert", "llama", "deberta-v2"])
def test_shares_are_covariances_over_the_keys_that_a_query_sees(family: str, tiny: Tiny) -> None:
    encoder, text = tiny(family), TEXT if lanes.everything else "The cat."
    n = len(encoder.tokenize(text))
    seen = [query + 1 if encoder.causal else n for query in range(n)]
    _shares_are_covariances(encoder, text, seen)


@pytest.mark.parametrize("part", ["decoder", "cross"])
def test_shares_of_the_decoder_of_t5_are_covariances_too(part: str, t5: Path) -> None:
    encoder = mv.load(str(t5))
    reading = encoder.encode("The cat.", target="Die Katze.", part=part)
    n, keys = len(reading.queries), len(reading.keys)
    seen = [keys if part == "cross" else query + 1 for query in range(n)]
    why = _shares_are_covariances(encoder, "The cat.", seen, target="Die Katze.", part=part)
    assert {name.partition(" ")[0] for name in why.arrows(least=0)["from"]} == {
        "decoder": {"decoder", "cross"},
        "cross": {"decoder", "cross", "encoder"},
    }[part]


def _shares_are_covariances(encoder: Encoder | EncoderDecoder, text: str, seen: Sequence[int], **part: str) -> Why:
    """The shares of a head, against the parts of its scores one by one; ``seen``: how many keys each query sees."""
    head = (2, 1)
    why = mv.explain_scores(encoder, text, head=head, **part)
    shares, variance = why.parts(head), 0.0
    expected = {side: dict.fromkeys(shares.index, 0.0) for side in ("query", "key")}
    for query, count in enumerate(seen):
        made = [encoder.score_parts(text, head, query, key, **part) for key in range(count)]
        scores = np.array([each.score for each in made])
        variance += scores.var()
        for side, axis, names in (("query", 1, made[0].names), ("key", 0, made[0].key_names)):
            adds = np.array([each.values.sum(axis=axis) for each in made])  # [key, part]
            for name, value in zip(names, (adds * (scores - scores.mean())[:, None]).mean(axis=0), strict=True):
                expected[side][name] += value
    for side, of_side in expected.items():
        assert max(abs(shares[side][name] - value / variance) for name, value in of_side.items()) <= CLOSE
        assert sum(of_side.values()) == pytest.approx(variance, rel=CLOSE)
    return why


# ---- against the models' own weights ---------------------------------------------------------------------------


@pytest.mark.parametrize(("pair", "family"), PAIRS)
def test_all_parts_sum_to_the_score_whose_softmax_is_the_weight(family: str, pair: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    weights = encoder.encode(TEXT, pair).weights
    for layer, head, query in lanes.some([(0, 3, 5), (1, 0, 7), (2, 2, 2)], (1, 0, 7), (2, 2, 2)):
        keys = np.flatnonzero(weights[layer, :, query].max(axis=0))
        made = [encoder.score_parts(TEXT, (layer, head), query, int(key), pair=pair) for key in keys]
        sums, scores = (np.array([number(each) for each in made]) for number in (_sum, _score))
        assert np.abs(sums - scores).max() <= CLOSE * np.abs(scores).max()
        rows = np.exp(sums - sums.max())
        assert np.abs(rows / rows.sum() - weights[layer, head, query, keys]).max() <= 1e-5
        means = np.mean([each.values for each in made], axis=0)
        assert np.abs(made[0].means - means).max() <= 1e-9 + CLOSE * np.abs(means).max()


def _sum(parts: ScoreParts) -> float:
    return float(parts.values.sum())


def _score(parts: ScoreParts) -> float:
    return parts.score


@pytest.mark.parametrize("family", KINDS)
def test_shares_sum_to_one_by_both_sides(family: str, tiny: Tiny) -> None:
    why = mv.explain_scores(tiny(family), SENTENCE)
    assert np.allclose(why.table()[list(GROUPS)].sum(axis=1), 1, atol=CLOSE)
    for each in why.variations:
        assert np.allclose(each.query.sum(axis=1), each.variance, rtol=CLOSE)
        assert np.allclose(each.key.sum(axis=1), each.variance, rtol=CLOSE)


@pytest.mark.parametrize("family", ["llama", "modernbert", "qwen3"])
def test_turned_parts_alone_sum_to_the_score(family: str, tiny: Tiny) -> None:
    made = tiny(family).score_parts(SENTENCE, (1, 2), 8, 6)
    assert made.rotated is not None
    assert made.rotated.sum() == pytest.approx(made.score, rel=CLOSE)
    rotation = made.names.index("rotation")
    assert made.values[rotation, rotation] == pytest.approx(made.rotated.sum() - made.values[:-1, :-1].sum())


# ---- what is known of the models that come with the package ----------------------------------------------------


def test_the_head_for_the_token_before_finds_it_by_position(minilm: Encoder) -> None:
    made = minilm.score_parts(SENTENCE, "L0H2", 5, 4)
    position = made.names.index("position")
    assert made.score == pytest.approx(28.9, abs=0.1)
    assert made.above_mean[position, position] == pytest.approx(26.0, abs=0.1)
    first = made.table().iloc[0]
    assert (first.query_part, first.key_part, first.key_group) == ("position", "position", "position")
    assert made.by_group().stack().idxmax() == ("position", "position")
    assert mv.explain_scores(minilm, SENTENCE).table()["position"].idxmax() == "L0H2"


def test_the_head_from_it_to_animal_finds_the_word(minilm: Encoder) -> None:
    first = minilm.score_parts(SENTENCE, "L3H1", 10, 2).table().iloc[0]
    assert (first.query_group, first.key_part) == ("feed-forward", "word")


def test_induction_heads_find_their_keys_by_the_heads_below_that_look_at_the_token_before(repeater: Encoder) -> None:
    words = ["dog", "river", "anna", "green", "tower", "king", "cat", "house", "peter", "red", "bridge", "queen"]
    why = mv.explain_scores(repeater, "", words=words * 2)
    arrows = why.arrows()
    largest = arrows.iloc[0]
    assert (largest["from"], largest["to"][:2], largest["side"]) == ("L0H0", "L1", "key")
    assert set(arrows["from"][arrows["share"] > 0.2]) <= {"L0H0", "L0H3"}, "the two heads for the token before"
    assert largest["share"] > 0.4
    assert (why.table().loc[["L1H0", "L1H1", "L1H2", "L1H3"], HEADS] > 0.7).all()
    assert (why.table().loc[["L0H0", "L0H3"], "position"] > 0.9).all()
    assert why.arrows(least=2.0).empty


# ---- tables ----------------------------------------------------------------------------------------------------


def test_sides_and_groups_are_sums_of_the_table(minilm: Encoder) -> None:
    made = minilm.score_parts(SENTENCE, "L4H3", 6, 9)
    table = made.table()
    above = made.score - np.mean([minilm.score_parts(SENTENCE, "L4H3", 6, key).score for key in range(16)])
    for numbers in (table["above_mean"], made.of_query, made.of_key, made.by_group().to_numpy()):
        assert numbers.sum() == pytest.approx(above, rel=CLOSE)
    assert len(table) == len(made.names) ** 2
    assert table["above_mean"].abs().is_monotonic_decreasing
    row = table.iloc[3]
    place = made.names.index(row.query_part), made.names.index(row.key_part)
    assert (row["value"], row["mean"]) == (made.values[place], made.means[place])


def test_one_head_is_the_same_as_among_all(minilm: Encoder) -> None:
    alone, among = mv.explain_scores(minilm, SENTENCE, head="L2H5"), mv.explain_scores(minilm, SENTENCE)
    assert list(alone.table().index) == [f"L2H{head}" for head in range(12)]
    assert alone.parts("L2H5").equals(among.parts("L2H5"))
    assert alone.table().loc["L2H5"].equals(among.table().loc["L2H5"])
    assert mv.explain_scores(minilm, SENTENCE, (2, 5)).parts("L2H5").equals(alone.parts("L2H5"))
    pair = mv.explain_scores(minilm, SENTENCE, "L2H5", pair=SECOND).table()
    assert np.allclose(pair[list(GROUPS)].sum(axis=1), 1, atol=CLOSE)
    with pytest.raises(UnknownHead):
        mv.explain_scores(minilm, SENTENCE, SECOND)


def test_a_text_of_one_token_has_nothing_to_share(repeater: Encoder) -> None:
    why = mv.explain_scores(repeater, "dog")
    assert why.table()[list(GROUPS)].isna().all(axis=None)
    assert why.arrows().empty


def test_threads_do_not_hear_each_other(minilm: Encoder) -> None:
    texts = [SENTENCE, SECOND, "It slept.", "She said that it was far too cold to swim."]
    alone = [_shares(mv.explain_scores(minilm, text)) for text in texts] * 3
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: _shares(mv.explain_scores(minilm, text)), texts * 3))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(alone, together, strict=True))


def _shares(why: Why) -> np.ndarray:
    return why.table()[list(GROUPS)].to_numpy()


# ---- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", REFUSED)
def test_families_whose_scores_are_no_such_sum_are_refused_with_the_reason(family: str, tiny: Tiny) -> None:
    with pytest.raises(ModelUnsupported, match=REFUSED[family]):
        tiny(family).score_parts(SENTENCE, (0, 0), 1, 1)
    with pytest.raises(ModelUnsupported, match=REFUSED[family]):
        mv.explain_scores(tiny(family), SENTENCE)


def test_scaled_vectors_of_words_are_not_taken_for_positions(tiny_folder: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder("big_bird"), tmp_path / "scaled")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"rescale_embeddings": True}), "utf-8")
    with pytest.raises(ModelUnsupported, match="scales the vectors of words"):
        mv.explain_scores(load_one_stack(from_folder(folder)), TEXT)


def test_models_of_two_stacks_are_refused(tmp_path: Path) -> None:
    model = from_folder(tiny_encoder_decoders.build("bart", tmp_path))
    for why in (mv.explain_scores, lambda model, text: model.score_parts(text, (0, 0), 1, 1)):
        with pytest.raises(ModelUnsupported, match="only those of T5 and mT5 can"):
            why(model, SENTENCE)


@pytest.mark.parametrize("family", ["t5", "mt5"])
def test_the_encoder_of_t5_is_taken_apart_with_what_distances_add(family: str, tmp_path: Path) -> None:
    model = from_folder(tiny_encoder_decoders.build(family, tmp_path))
    assert isinstance(model, EncoderDecoder)
    weights = model.encode(TEXT, part="encoder").weights
    for layer, head, query in ((0, 1, 3), (1, 0, 2)):
        made = [model.score_parts(TEXT, (layer, head), query, key) for key in range(weights.shape[-1])]
        sums, scores = (np.array([number(each) for each in made]) for number in (_sum, _score))
        assert np.abs(sums - scores).max() <= CLOSE * np.abs(scores).max()
        rows = np.exp(scores - scores.max())
        assert np.abs(rows / rows.sum() - weights[layer, head, query]).max() <= 1e-5
        bias = model.score_parts(TEXT, (layer, head), query, 0).by_group().loc["position", "position"]
        assert bias != 0
        assert "position" not in made[0].names, "nothing but distances says where a token is"
    shares = mv.explain_scores(model, SENTENCE).table()[list(GROUPS)]
    assert np.allclose(shares.sum(axis=1), 1, atol=CLOSE)
    with pytest.raises(SettingError, match="encoder does not read the target"):
        model.score_parts(TEXT, "L0H0", 0, 0, target="The cat was tired.")
    for part in ("encoder", "decoder", "cross"):
        with pytest.raises(TextError, match="cannot read a list of words"):
            model.score_parts(TEXT, "L0H0", 0, 0, part=part, words=["The", "cat"])
    assert (shares[HEADS].iloc[-1] != 0).all()
    with pytest.raises(TextError):
        model.score_parts(TEXT, (0, 0), 1, 1, pair="Is it?")


@pytest.mark.parametrize(("part", "layer", "head", "query", "key"), [("decoder", 1, 2, 4, 2), ("cross", 2, 1, 3, 6)])
def test_the_decoder_of_t5_is_taken_apart_in_both_of_its_attentions(
    part: str, layer: int, head: int, query: int, key: int, t5: Path
) -> None:
    model, target, at = from_folder(t5), "The cat was tired.", (layer, head)
    assert isinstance(model, EncoderDecoder)
    ours = model.score_parts(TEXT, at, query, key, target=target, part=part)
    read = model.encode(TEXT, target=target, part=part)
    assert (ours.text, ours.keys) == (read.queries, read.keys)
    tokenizer = AutoTokenizer.from_pretrained(t5)
    source, typed = tokenizer(TEXT).input_ids, tokenizer(target).input_ids
    by_hand = T5(AutoModelForSeq2SeqLM.from_pretrained(t5), source, [0, *typed[:-1]])
    table, score = by_hand.table(part, layer, head, query, key)
    largest = max(map(abs, table.values()))
    made = {
        (a, b): value
        for a, row in zip(ours.names, ours.values, strict=True)
        for b, value in zip(ours.key_names, row, strict=True)
    }
    assert made.keys() >= table.keys()
    assert max(abs(value - table.get(pair, 0)) for pair, value in made.items()) <= CLOSE * largest
    assert abs(ours.score - score) + abs(ours.values.sum() - score) <= CLOSE * largest
    assert np.isclose(ours.by_group().to_numpy().sum(), ours.above_mean.sum())
    assert set(ours.table()["key_part"]) == set(ours.key_names)
    with pytest.raises(SettingError, match="source has" if part == "cross" else "does not see"):
        model.score_parts(TEXT, at, query, key + 3 if part == "decoder" else 99, target=target, part=part)


@pytest.mark.parametrize(
    ("query", "key", "says"),
    [(16, 0, "no query 16"), (0, -1, "no key -1"), (99, 99, "16 tokens. Tokens count from 0 to 15")],
)
def test_tokens_that_do_not_exist_are_refused(query: int, key: int, says: str, minilm: Encoder) -> None:
    with pytest.raises(SettingError, match=says):
        minilm.score_parts(SENTENCE, "L0H0", query, key)
    with pytest.raises(SettingError, match="it is not the number of a query"):
        minilm.score_parts(SENTENCE, "L0H0", "it", key)  # type: ignore[arg-type]


def test_a_key_that_is_not_seen_has_no_score(repeater: Encoder) -> None:
    with pytest.raises(SettingError, match="Token 1 does not see token 2 in layer 1"):
        repeater.score_parts("dog river anna", "L1H0", 1, 2)


def test_heads_that_do_not_exist_are_refused(minilm: Encoder) -> None:
    with pytest.raises(UnknownHead):
        minilm.score_parts(SENTENCE, "L6H0", 0, 0)
    with pytest.raises(UnknownHead):
        mv.explain_scores(minilm, SENTENCE, head="L0H12")
    with pytest.raises(UnknownHead):
        mv.explain_scores(minilm, SENTENCE, head="L0H1").parts("L1H0")
