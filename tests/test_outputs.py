"""Compare outputs of heads, copying scores and directions with loops over transformers' own weights in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, GPT2Config, GPT2LMHeadModel, GPT2Tokenizer
from transformers.pytorch_utils import Conv1D

import mha_viz as mv
from mha_viz.attention.outputs import (
    BIAS,
    INPUT_EMBEDDINGS,
    OUTPUT_MATRIX,
    HeadOutput,
    WrittenWords,
    compute_copying_score,
)
from mha_viz.errors import ModelUnsupported, NeedsOneStack, SettingError, TooLarge, UnknownHead
from mha_viz.heads import list_heads
from mha_viz.models.decomposing import outputs
from mha_viz.models.decomposing.outputs import name_words_by_key, name_words_of_heads
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.study.tables import make_copying_table
from tests import lanes, tiny_encoder_decoders, tiny_models

Tiny = Callable[[str], Encoder]
Folder = Callable[[str], Path]
Numbers = npt.NDArray[np.float64]
TEXT = "The cat wasn't far."
CLOSE = 1e-4  # of the largest number
SIDE_BY_SIDE, BY_HEAD = "side by side", "by head"  # how one matrix holds queries, keys and values


class Paths(NamedTuple):
    """Where a model of transformers keeps the parts around the heads of a layer."""

    value: str
    output: str
    first: str  # the first norm on the way from words to the heads
    after: str  # the first norm behind their output
    joined: str = ""
    projection: str = ""
    first_of_0: str = ""  # in layer 0, if it differs


_BERT = Paths(
    "encoder.layer.{}.attention.self.value",
    "encoder.layer.{}.attention.output.dense",
    "embeddings.LayerNorm",
    "encoder.layer.{}.attention.output.LayerNorm",
)
_LLAMA = Paths(
    "layers.{}.self_attn.v_proj", "layers.{}.self_attn.o_proj", "layers.{}.input_layernorm", "norm"
)  # fmt: skip
PATHS = {
    "bert": _BERT,
    "distilbert": Paths(
        "transformer.layer.{}.attention.v_lin",
        "transformer.layer.{}.attention.out_lin",
        "embeddings.LayerNorm",
        "transformer.layer.{}.sa_layer_norm",
    ),
    "electra": _BERT._replace(projection="embeddings_project"),
    "roberta": _BERT,
    "modernbert": Paths(
        "layers.{}.attn.Wqkv", "layers.{}.attn.Wo", "layers.{}.attn_norm", "final_norm", SIDE_BY_SIDE, "",
        "embeddings.norm",
    ),
    "gpt2": Paths("h.{}.attn.c_attn", "h.{}.attn.c_proj", "h.{}.ln_1", "ln_f", SIDE_BY_SIDE),
    "llama": _LLAMA,
    "gemma": _LLAMA,
    "gpt_neox": Paths(
        "layers.{}.attention.query_key_value",
        "layers.{}.attention.dense",
        "layers.{}.input_layernorm",
        "final_layer_norm",
        BY_HEAD,
    ),
    "bloom": Paths(
        "h.{}.self_attention.query_key_value",
        "h.{}.self_attention.dense",
        "h.{}.input_layernorm",
        "ln_f",
        BY_HEAD,
    ),
}  # fmt: skip
ENCODERS = ("bert", "distilbert", "electra", "roberta", "modernbert")
PLACES = [(0, 1, 3), (1, 2, 6), (2, 0, 5)]  # layer, head, query
OF_FAMILIES = [
    (family, *place)
    for number, family in enumerate(PATHS)
    for turn, place in enumerate(PLACES)
    if lanes.everything or turn in (0, 1 + number % 2)
]


class ByHand:
    """A model of transformers in float64, and what hooks hear in one pass over some pieces."""

    def __init__(self, folder: Path, family: str, ids: list[int]) -> None:
        kind: Any = AutoModelForMaskedLM if family in ENCODERS else AutoModelForCausalLM
        whole = kind.from_pretrained(folder, attn_implementation="eager").double().eval()
        self.paths, self.model, self.heads = PATHS[family], whole.base_model, whole.config.num_attention_heads
        self.heard: dict[Any, Numbers] = {}  # by module: its input
        hooks = [module.register_forward_hook(self._hear) for module in self.model.modules()]
        with torch.no_grad():
            self.attentions = self.model(torch.tensor([ids]), output_attentions=True).attentions
        for hook in hooks:
            hook.remove()
        self.embeddings = array(self.model.get_input_embeddings().weight)
        self.projection = array(self.at(self.paths.projection).weight).T if self.paths.projection else None
        if family in ENCODERS:
            words = self.embeddings if self.projection is None else self.embeddings @ self.projection
        else:
            words = array(whole.get_output_embeddings().weight)
        self.words = words - words.mean(axis=0)

    def _hear(self, module: Any, arguments: Any, _: Any) -> None:
        if arguments and isinstance(arguments[0], torch.Tensor) and arguments[0].is_floating_point():
            self.heard.setdefault(module, array(arguments[0][0]))

    def at(self, path: str, layer: int = 0) -> Any:
        """The module at a path."""
        return self.model.get_submodule(path.format(layer))

    def slices(self, layer: int, head: int) -> tuple[Numbers, Numbers, Numbers]:
        """W_V, b_V and W_O of a head."""
        value, output = self.at(self.paths.value, layer), self.at(self.paths.output, layer)
        w_v, w_o = weights_of(value), weights_of(output)
        b_v = np.zeros(w_v.shape[1]) if value.bias is None else array(value.bias)
        d_head, start = len(w_o) // self.heads, head
        if self.paths.joined == SIDE_BY_SIDE:
            start = 2 * self.heads + head
        elif self.paths.joined == BY_HEAD:
            start = 3 * head + 2
        else:
            start = head // (self.heads * d_head // w_v.shape[1])  # heads may share values
        columns = slice(start * d_head, (start + 1) * d_head)
        return w_v[:, columns], b_v[columns], w_o[head * d_head : (head + 1) * d_head]

    def link(self, layer: int, head: int, query: int, key: int) -> Numbers:
        """Return the vector that a head moves from a key to a query."""
        w_v, b_v, w_o = self.slices(layer, head)
        x = self.heard[self.at(self.paths.value, layer)][key]
        moved: Numbers = float(self.attentions[layer][0, head, query, key]) * ((x @ w_v + b_v) @ w_o)
        return moved

    def bias(self, layer: int) -> Numbers:
        """b_O of a layer."""
        bias = self.at(self.paths.output, layer).bias
        return np.zeros(self.words.shape[1]) if bias is None else array(bias)

    def first_norm(self, layer: int) -> Any:
        """The first norm on the way from words to the heads of a layer."""
        return self.at((layer == 0 and self.paths.first_of_0) or self.paths.first, layer)

    def logits(self, layer: int, query: int, vector: Numbers) -> Numbers:
        """What a vector adds to the logit of every word, the norm divided by what it was at the query."""
        norm = self.at(self.paths.after, layer)
        x = self.heard[norm][query]
        deviation = np.sqrt(np.mean(centred(norm, x) ** 2) + epsilon(norm))
        result: Numbers = self.words @ (factor(norm) * centred(norm, vector) / deviation)
        return result

    def read(self, layer: int, vectors: Numbers) -> Numbers:
        """[piece, …], products of words behind the first norm, without its deviation, with vectors, [d_model, …]."""
        norm = self.first_norm(layer)
        words = factor(norm) * centred(norm, self.embeddings)
        return (words if self.projection is None else words @ self.projection) @ vectors

    def write(self, layer: int, vectors: Numbers) -> Numbers:
        """[…, piece], products of vectors, […, d_model], behind the norm, without its deviation, with words."""
        norm = self.at(self.paths.after, layer)
        return (factor(norm) * centred(norm, vectors)) @ self.words.T


def array(tensor: torch.Tensor) -> Numbers:
    numbers: Numbers = tensor.detach().double().numpy()
    return numbers


def weights_of(module: Any) -> Numbers:
    """[in, out]."""
    return array(module.weight if isinstance(module, Conv1D) else module.weight.T)


def centred(norm: Any, vectors: Numbers) -> Numbers:
    has_mean = "RMS" not in type(norm).__name__
    return vectors - vectors.mean(axis=-1, keepdims=True) if has_mean else vectors


def factor(norm: Any) -> Numbers:
    return array(norm.weight) + ("Gemma" in type(norm).__name__)


def epsilon(norm: Any) -> float:
    return float(getattr(norm, "variance_epsilon", None) or norm.eps)


def top(encoder: Encoder, logits: Numbers) -> WrittenWords:
    """The five words at each end, without special ones."""
    tokenizer = encoder.vocabulary
    pieces = [piece for piece in range(len(tokenizer)) if piece not in tokenizer.all_special_ids]
    order = sorted(pieces, key=lambda piece: logits[piece])
    names = [named(tokenizer, piece) for piece in (*order[:5], *order[::-1][:5])]
    return WrittenWords(tuple(names[5:]), tuple(names[:5]))


def named(tokenizer: Any, piece: int) -> str:
    raw = tokenizer.convert_ids_to_tokens(piece)
    if raw.startswith("▁"):
        return raw.removeprefix("▁").replace("▁", "␣") or "␣"
    name = tokenizer.decode([piece], clean_up_tokenization_spaces=False).replace(" ", "␣")
    name = name if name.isprintable() and name else raw
    return name.removeprefix("␣") or name


def farthest(ours: Any, expected: Any) -> float:
    """The largest difference, of the largest number."""
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert ours.shape == expected.shape
    return float(np.abs(ours - expected).max() / np.abs(expected).max())


def opened(family: str, tiny: Tiny, tiny_folder: Folder, text: str = TEXT) -> tuple[Encoder, ByHand]:
    encoder = tiny(f"{family} words")
    return encoder, ByHand(tiny_folder(f"{family} words"), family, list(encoder.pieces(text).ids))


# ---- one link --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "layer", "head", "query"), OF_FAMILIES)
def test_every_link_is_the_one_written_out_by_hand(
    family: str, layer: int, head: int, query: int, tiny: Tiny, tiny_folder: Folder
) -> None:
    encoder, by_hand = opened(family, tiny, tiny_folder)
    output = mv.explain_output(encoder, TEXT, (layer, head), query)
    n = len(output.text.tokens)
    links = np.array([[by_hand.link(layer, of, query, key) for key in range(n)] for of in range(by_hand.heads)])
    total = links.sum(axis=(0, 1)) + by_hand.bias(layer)
    assert farthest(output.vectors, links[head]) <= CLOSE
    assert farthest(output.norms, np.sqrt((links[head] ** 2).sum(axis=-1))) <= CLOSE
    shares = links @ total / (total @ total)  # [head, key]
    assert shares.sum() + by_hand.bias(layer) @ total / (total @ total) == pytest.approx(1)
    assert farthest(output.shares, shares[head]) <= CLOSE
    assert farthest(output.heads[:-1], shares.sum(axis=1)) <= CLOSE
    assert output.heads.sum() == pytest.approx(1, abs=CLOSE)
    assert output.matrix == (INPUT_EMBEDDINGS if family in ENCODERS else OUTPUT_MATRIX)
    for key, written in enumerate(output.written):
        expected = top(encoder, by_hand.logits(layer, query, links[head, key]))
        assert written == (expected if output.weights[key] else WrittenWords((), ())), key
    assert output.whole == top(encoder, by_hand.logits(layer, query, links[head].sum(axis=0)))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_words_have_the_order_that_the_norm_and_the_output_matrix_of_the_model_give_them(
    family: str, tiny: Tiny, tiny_folder: Folder
) -> None:
    encoder, by_hand = opened(family, tiny, tiny_folder)
    output = mv.explain_output(encoder, TEXT, "L2H1", 4)
    norm = by_hand.at(by_hand.paths.after)
    whole = torch.from_numpy(output.vectors.sum(axis=0).astype(np.float64))
    with torch.no_grad():  # the deviation does not change the order, and epsilon does not matter far from 0
        logits = by_hand.words @ (norm(whole * 1e6) - getattr(norm, "bias", torch.zeros(()))).numpy()
    assert top(encoder, logits) == output.whole


def test_tables_have_a_row_for_each_key_and_for_each_head(tiny: Tiny) -> None:
    output = mv.explain_output(tiny("bert"), TEXT, "L1H2", 3)
    table, layer = output.table(), output.table_of_layer()
    assert list(table.columns) == ["token", "weight", "norm", "share", "towards", "away"]
    assert list(table["token"]) == [token.text for token in output.text.tokens]
    assert table["share"].sum() == pytest.approx(layer["share"]["L1H2"], abs=1e-5)
    assert list(layer.index) == ["L1H0", "L1H1", "L1H2", "L1H3", BIAS]
    assert layer["share"].sum() == pytest.approx(1, abs=CLOSE)
    assert table["towards"][0].split(", ") == list(output.written[0].towards)
    assert output.weights.sum() == pytest.approx(1, abs=1e-5)


def test_a_masked_key_writes_nothing(tiny: Tiny) -> None:
    output = mv.explain_output(tiny("llama words"), TEXT, "L1H2", 3)
    later = slice(4, None)
    assert not output.vectors[later].any()
    assert not output.shares[later].any()
    assert set(output.written[later]) == {WrittenWords((), ())}
    assert all(len(written.towards) == len(written.away) == 5 for written in output.written[:4])


def test_texts_can_be_pairs_words_and_follow_a_prefix(tiny: Tiny) -> None:
    encoder = tiny("bert")
    head = mv.Head(1, 2)

    def weights(output: HeadOutput) -> Any:
        return output.weights[None], len(output.text.tokens)

    pair = mv.explain_output(encoder, "Is it far?", head, 8, pair="It isn't.")
    assert np.allclose(pair.weights, encoder.encode("Is it far?", "It isn't.")[head][8], atol=1e-5)
    words = mv.explain_output(encoder, "", head, 2, words=("The", "cat", "wasn't", "far"))
    assert np.allclose(words.weights, encoder.encode_words(["The", "cat", "wasn't", "far"])[head][2], atol=1e-5)
    prefixed = encoder.prefixed("query: ")
    output = mv.explain_output(prefixed, TEXT, head, 4)
    assert np.allclose(output.weights, prefixed.encode(TEXT)[head][4], atol=1e-5)
    assert len(output.weights) > len(mv.explain_output(encoder, TEXT, head, 4).weights)
    assert mv.copying_scores(prefixed).equals(mv.copying_scores(encoder))


@pytest.mark.parametrize("family", ["gpt2", "llama words", "bert"])
def test_the_words_of_all_heads_are_those_of_each(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    named = name_words_of_heads(encoder, TEXT, 3)
    heads = list_heads(encoder.layer_numbers, encoder.heads)
    assert named == tuple(name_words_by_key(encoder, TEXT, head, 3) for head in heads)


def test_the_words_of_all_heads_are_named_for_what_takes_seconds(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny("bert")
    pieces = len(encoder.encode(TEXT).text)
    of_a_token = encoder.layers * encoder.heads * encoder.word_vectors.numel()
    monkeypatch.setattr(outputs, "MAX_PRODUCTS", pieces * of_a_token)
    assert name_words_of_heads(encoder, TEXT, 1)
    monkeypatch.setattr(outputs, "MAX_PRODUCTS", pieces * of_a_token - 1)
    with pytest.raises(TooLarge, match=f"has {pieces} tokens; .* at most {pieces - 1}"):
        name_words_of_heads(encoder, TEXT, 1)


def test_words_are_neither_special_nor_unused_pieces(minilm: Encoder) -> None:
    output = mv.explain_output(minilm, TEXT, "L5H0", 3)
    words = {word for written in (*output.written, output.whole) for word in (*written.towards, *written.away)}
    assert not {word for word in words if word.startswith("[")}


# ---- copying ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", PATHS)
def test_copying_scores_are_those_of_the_circuit_from_words_to_words(
    family: str, tiny: Tiny, tiny_folder: Folder
) -> None:
    encoder, by_hand = opened(family, tiny, tiny_folder)
    scores = mv.copying_scores(encoder)
    assert list(scores.columns) == ["copying", "untrained"]
    assert scores.abs().max(axis=None) <= 1
    for layer, head in lanes.some([(layer, head) for layer in range(3) for head in range(4)], (0, 1), (2, 3)):
        w_v, _, w_o = by_hand.slices(layer, head)
        values = np.linalg.eigvals(by_hand.write(layer, by_hand.read(layer, w_v) @ w_o))  # of [piece, piece]
        expected = values.sum().real / np.abs(values).sum()
        assert scores["copying"][f"L{layer}H{head}"] == pytest.approx(expected, abs=CLOSE)


def planted(folder: Path) -> Encoder:
    """A model like GPT-2 with one head in each layer: that of layer 0 copies, that of layer 1 does the opposite."""
    tokenizer = tiny_models.byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=1, n_positions=64, **ends)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        model.transformer.wte.weight.normal_()
        model.transformer.wpe.weight.zero_()
        for layer, sign in enumerate((1, -1)):
            attention = model.transformer.h[layer].attn
            attention.c_attn.weight[:, -32:] = torch.eye(32)
            attention.c_proj.weight.copy_(sign * torch.eye(32))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_one_stack(from_folder(folder))


def test_a_head_that_was_made_to_copy_copies(tmp_path: Path) -> None:
    encoder = planted(tmp_path)
    assert mv.copying_scores(encoder)["copying"].tolist() == pytest.approx([1, -1], abs=1e-6)
    text = " the animal was too tired"
    for head, side in (("L0H0", "towards"), ("L1H0", "away")):
        output = mv.explain_output(encoder, text, head, len(encoder.tokenize(text)) - 1)
        first = [getattr(written, side)[0] for written in output.written]
        assert first == [token.text.strip("#") for token in output.text.tokens]


def test_heads_that_continue_a_repetition_copy_and_heads_before_them_do_not() -> None:
    repeater = load_one_stack("repeater")
    scores, heads = mv.copying_scores(repeater)["copying"], mv.find_induction_heads(repeater).table()
    heads.index = [f"L{layer}H{head}" for layer, head in zip(heads["layer"], heads["head"], strict=True)]
    induction, previous = (heads.index[heads[kind] > 0.5] for kind in ("induction", "previous"))
    assert len(induction) >= 2
    assert len(previous) == 2
    assert scores[induction].min() >= 0.99
    assert scores[previous].abs().max() < 0.1


@pytest.mark.parametrize("name", ["minilm", "toy", "repeater"])
def test_profiles_that_come_along_have_the_scores_of_their_models(name: str) -> None:
    table = mv.load_profile(name).tables["copying"]
    scores = mv.copying_scores(mv.load(name))
    assert [str(mv.Head(*row)) for row in table[["layer", "head"]].itertuples(index=False)] == list(scores.index)
    assert np.allclose(table[["copying", "copying_untrained"]], scores, atol=1e-6)


def test_a_model_without_scores_has_a_profile_without_the_table(tiny_folder: Folder) -> None:
    encoder = load_one_stack(from_folder(tiny_folder("gpt_neox")))
    assert make_copying_table(encoder) == {}


def test_random_weights_do_not_copy(minilm: Encoder) -> None:
    untrained = mv.copying_scores(minilm)["untrained"]
    assert abs(untrained.mean()) < 0.1


def test_scores_of_eigenvalues() -> None:
    assert compute_copying_score(np.diag([2.0, -1.0])) == pytest.approx(1 / 3)
    assert compute_copying_score(np.array([[0.0, -1.0], [1.0, 0.0]])) == pytest.approx(0)
    assert np.isnan(compute_copying_score(np.zeros((2, 2))))


# ---- directions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", PATHS)
def test_directions_are_the_singular_pairs_of_the_whole_matrix(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, by_hand = opened(family, tiny, tiny_folder)
    layer, head, most = 2, 1, 5
    table = mv.output_directions(encoder, (layer, head), most)
    w_v, _, w_o = by_hand.slices(layer, head)
    left, sizes, right = np.linalg.svd(w_v @ w_o)
    shares = sizes**2 / (sizes**2).sum()
    assert farthest(table["share"], shares[:most]) <= CLOSE
    assert list(table.index) == [1, 2, 3, 4, 5]
    for direction in range(most):
        read, written = by_hand.read(layer, left[:, direction]), by_hand.write(layer, right[direction])
        sign = 1 if written.max() >= -written.min() else -1
        (reads, reads_opposite), (writes, writes_opposite) = (top(encoder, sign * scores) for scores in (read, written))
        expected = [", ".join(words) for words in (reads, reads_opposite, writes, writes_opposite)]
        columns = ["reads", "reads_opposite", "writes", "writes_opposite"]
        assert table.loc[direction + 1, columns].tolist() == expected


def test_a_head_has_as_many_directions_as_dimensions(tiny: Tiny) -> None:
    table = mv.output_directions(tiny("bert"), "L0H0", 100)
    assert len(table) == 8
    assert table["share"].sum() == pytest.approx(1)
    assert table["share"].is_monotonic_decreasing


@pytest.mark.parametrize("most", [0, 101, 2.5, "3"])
def test_directions_are_counted(most: Any, tiny: Tiny) -> None:
    with pytest.raises(SettingError, match="directions were asked for"):
        mv.output_directions(tiny("bert"), "L0H0", most)


# ---- refused ---------------------------------------------------------------------------------------------------


MEASURES: dict[str, Callable[[Any], Any]] = {
    "output": lambda encoder: mv.explain_output(encoder, TEXT, "L1H1", 2),
    "copying": mv.copying_scores,
    "directions": lambda encoder: mv.output_directions(encoder, "L1H1"),
}
REFUSED = {
    "gemma2 words": "bends large",
    "gemma3_text words": "norm lies between",
    "mobilebert": "narrower vector",
    "olmo2 words": "more than one norm and one matrix",
    "opt behind": "more than one norm and one matrix",
    "falcon by distance": "depends on the distance",
    "xlnet": "two streams",
    "gpt_neox": "cannot predict words",
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("family", lanes.some(list(REFUSED), "gemma3_text words", "mobilebert", "olmo2 words"))
def test_families_that_do_not_allow_it_are_refused_with_the_reason(family: str, measure: str, tiny: Tiny) -> None:
    with pytest.raises(ModelUnsupported, match=REFUSED[family]):
        MEASURES[measure](tiny(family))


@pytest.mark.parametrize("measure", MEASURES)
def test_narrow_words_of_a_causal_model_are_refused(measure: str, tmp_path: Path) -> None:
    from transformers import OPTConfig, OPTForCausalLM

    sizes = {"hidden_size": 32, "word_embed_proj_dim": 16, "ffn_dim": 64, "num_hidden_layers": 2}
    config = OPTConfig(vocab_size=400, num_attention_heads=4, max_position_embeddings=64, **sizes)
    encoder = load_one_stack(from_folder(tiny_models.save_model(OPTForCausalLM(config), tmp_path)))
    with pytest.raises(ModelUnsupported, match="more than one norm and one matrix"):
        MEASURES[measure](encoder)


@pytest.mark.parametrize("measure", MEASURES)
def test_half_precision_and_two_stacks_are_refused(measure: str, tiny_folder: Folder, tmp_path: Path) -> None:
    half = from_folder(tiny_folder("bert"), dtype="bfloat16")
    with pytest.raises(ModelUnsupported, match="loaded in bfloat16"):
        MEASURES[measure](half)
    with pytest.raises(NeedsOneStack):
        MEASURES[measure](from_folder(tiny_encoder_decoders.build("t5", tmp_path)))
    with pytest.raises(SettingError):
        MEASURES[measure]("bert")


def test_tokens_and_heads_that_do_not_exist_are_refused(tiny: Tiny) -> None:
    encoder = tiny("bert")
    n = len(encoder.tokenize(TEXT))
    for query in (n, -1):
        with pytest.raises(SettingError, match=f"There is no query {query}: the text has {n} tokens"):
            mv.explain_output(encoder, TEXT, "L1H1", query)
    with pytest.raises(SettingError, match="not the number of a query"):
        mv.explain_output(encoder, TEXT, "L1H1", "first")  # type: ignore[arg-type]
    for head in ("L3H0", "L0H4"):
        with pytest.raises(UnknownHead, match=f"{head} does not exist"):
            mv.explain_output(encoder, TEXT, head, 0)
        with pytest.raises(UnknownHead, match=f"{head} does not exist"):
            mv.output_directions(encoder, head)
