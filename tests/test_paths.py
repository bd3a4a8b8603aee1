"""Paths between heads, against hooks written out by hand in float64, and beside composition."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import mha_viz as mv
from mha_viz.attention.answers import SIDES
from mha_viz.cli import main
from mha_viz.errors import ModelUnsupported, SettingError, UnknownHead
from mha_viz.heads import Head
from mha_viz.models.intervening import paths
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.models.reading.probe import find_attention_modules
from tests import lanes, oracles

ENDS = ("A cat is a dog.", "A dog is a cat.")
TO = 1  # the head of the last layer at which paths end
ONCE = "reach sees animals horse them stands reach sees animals"
OTHERWISE = "reach sees horse animals them stands reach sees animals"
Change = Callable[[torch.Tensor], torch.Tensor]


class ByHand:
    """A model of transformers whose modules can be listened to, and given other tensors."""

    def __init__(self, model: Any, side: str) -> None:
        config = model.config
        self.model, self.layers, self.heads = model, config.num_hidden_layers, config.num_attention_heads
        self.size = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        inputs = find_attention_modules(model, self.layers - 1).inputs
        keys = getattr(config, "num_key_value_heads", self.heads) if side != "query" else self.heads
        first = TO * keys // self.heads * self.size
        if len(inputs) == 1:  # queries, keys and values side by side
            first += SIDES.index(side) * config.hidden_size
        self.projection = inputs[0 if len(inputs) == 1 else SIDES.index(side)]
        self.columns = slice(first, first + self.size)

    def w_o(self, layer: int) -> Any:
        return find_attention_modules(self.model, layer).output

    def run(self, text: Any, given: dict[int, Change] = {}, put_out: Change | None = None) -> torch.Tensor:  # noqa: B006
        """The mean of the last states; ``given`` changes what W_O of a layer gets, ``put_out`` the projection."""
        with ExitStack() as hooks:
            for layer, change in given.items():
                hook = self.w_o(layer).register_forward_pre_hook(lambda _, x, change=change: (change(x[0]), *x[1:]))
                hooks.callback(hook.remove)
            if put_out is not None:
                hooks.callback(self.projection.register_forward_hook(lambda _, __, y: put_out(y)).remove)
            states: torch.Tensor = self.model(**text).last_hidden_state[0].mean(0)
            return states

    def kept(self, text: Any, **more: Any) -> list[torch.Tensor]:
        """What W_O of each layer gets."""
        inputs: list[torch.Tensor] = []

        def keep(x: torch.Tensor) -> torch.Tensor:
            inputs.append(x.clone())
            return x

        self.run(text, dict.fromkeys(range(self.layers), keep), **more)
        return inputs

    def replaced(self, x: torch.Tensor, other: torch.Tensor, columns: slice) -> torch.Tensor:
        mixed = x.clone()
        mixed[..., columns] = other[..., columns]
        return mixed

    def of_head(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    def share(self, texts: list[Any], layer: int, head: int) -> float:
        """How much of the way from the first text to the second the mean goes by one path."""
        (mine, theirs), last = [self.kept(text) for text in texts], self.layers - 1
        put_out = list(mine)
        put_out[layer] = self.replaced(mine[layer], theirs[layer], self.of_head(head))
        sent: dict[int, Change] = {at: partial(lambda at, _: put_out[at], at) for at in range(last)}
        arrived: list[torch.Tensor] = []

        def keep(y: torch.Tensor) -> torch.Tensor:
            arrived.append(y.clone())
            return y

        self.run(texts[0], sent, keep)
        outputs = self.kept(texts[0], put_out=lambda y: self.replaced(y, arrived[0], self.columns))[last]
        moved = self.run(texts[0], {last: lambda x: self.replaced(x, outputs, self.of_head(TO))})
        start, end = map(self.run, texts)
        line = end - start
        return float((moved - start) @ line / line.square().sum())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "opt", "qwen3"])
def test_paths_are_those_of_hooks_in_float64(
    family: str,
    tiny: Callable[[str], Encoder],
    tiny_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "can_predict", lambda *_: False)  # words of random weights tell nothing apart
    encoder = tiny(family)
    model, tokenizer = oracles.load_plain(tiny_folder(family))
    model, texts = deepcopy(model).double(), [tokenizer(text, return_tensors="pt") for text in ENDS]
    for side in SIDES:
        ours = mv.activation_patching(encoder, *ENDS, to=(encoder.layers - 1, TO), side=side)
        assert np.isnan(ours.shares[-1]).all()
        assert len(ours.table()) == (encoder.layers - 1) * encoder.heads
        hand = ByHand(model, side)
        with torch.no_grad():
            for layer, head in product(range(encoder.layers - 1), (0, 2)):
                assert ours.shares[layer, head] == pytest.approx(hand.share(texts, layer, head), abs=1e-4)


def test_what_composition_names_is_the_path_that_carries_the_answer() -> None:
    """The induction heads of the repeater find their keys by what the head on the previous token wrote there."""
    model = mv.load("repeater")
    largest = mv.explain_scores(model, ONCE).arrows().iloc[0]
    assert (largest["from"], largest["side"]) == ("L0H0", "key")
    by_side = {
        side: mv.activation_patching(model, ONCE, OTHERWISE, to=largest["to"], side=side).table()["share"]
        for side in SIDES
    }
    assert {side: shares.abs().idxmax() for side, shares in by_side.items()}["key"] == "L0H0"
    assert by_side["key"]["L0H0"] > 10 * max(by_side[side].abs().max() for side in ("query", "value"))
    assert by_side["key"]["L0H0"] > 5 * by_side["key"].drop("L0H0").abs().max()
    assert mv.activation_patching(model, ONCE, OTHERWISE).shares[0, 0] > 0.9


def rows_moved(encoder: Encoder, text: str, to: Head, side: str) -> dict[Head, float]:
    """How far the rows of a head move, in nats, if an earlier head's output does not reach one side of it."""
    read = encoder.pieces(text)
    _, whole = encoder.last_states(read, partial(paths._PathTap, to=to))
    assert isinstance(whole, paths._PathTap)
    earlier = [Head(layer, head) for layer in range(to.layer) for head in range(encoder.heads)]
    outputs = [output.repeat(len(earlier), 1, 1, 1) for output in whole.outputs]
    for variant, head in enumerate(earlier):
        outputs[head.layer][variant, :, head.head] = 0
    _, sent = encoder.last_states(read, partial(paths._PathTap, to=to, outputs=outputs), len(earlier))
    assert isinstance(sent, paths._PathTap)
    received = SIDES.index(side), sent.sides[SIDES.index(side)]
    _, moved = encoder.last_states(
        read, partial(paths._PathTap, to=to, outputs=whole.outputs, patched_side=received), len(earlier)
    )
    rows = whole.weights[to.layer, to.head].double().numpy()
    return {
        head: float(np.mean([jensenshannon(*pair) ** 2 for pair in zip(rows, other, strict=True)]))
        for head, other in zip(earlier, moved.weights[to.layer, to.head].double().numpy(), strict=True)
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [("repeater", ONCE), ("toy", "The girl smiles because [MASK] sings ."), ("minilm", "The cat sat on it.")],
)
def test_every_arrow_of_composition_is_a_path_that_moves_rows(name: str, text: str) -> None:
    encoder = load_one_stack(name)
    last = encoder.layers if lanes.everything else 2
    arrows = {(of, to, side) for of, to, side, _ in mv.explain_scores(encoder, text).composed() if to.layer <= last}
    ends = product(sorted({to for _, to, _ in arrows}), ("query", "key"))
    drawn, others, above = [], [], []
    for to, side in ends:
        moved = rows_moved(encoder, text, to, side)
        without = [by for of, by in moved.items() if (of, to, side) not in arrows]
        with_arrow = [by for of, by in moved.items() if (of, to, side) in arrows]
        drawn += with_arrow
        others += without
        above += [by > np.mean(without) for by in with_arrow if without]
    assert len(drawn) == len(arrows) > 4
    assert min(drawn) > 5e-5, "nats, of rows that changed"
    assert np.mean(drawn) > np.mean(others)
    assert np.mean(above) >= 0.8, "of the arrows, those above the mean of the same head's paths without one"


def test_paths_that_do_not_exist_are_refused(tiny: Callable[[str], Encoder]) -> None:
    encoder = tiny("bert")
    with pytest.raises(SettingError, match="No head is earlier than L0H1"):
        mv.activation_patching(encoder, *ENDS, to="L0H1", side="key")
    with pytest.raises(SettingError, match=r"“keys” is not a side of a head.*query, key, value"):
        mv.activation_patching(encoder, *ENDS, to="L1H1", side="keys")
    with pytest.raises(SettingError, match="The head where paths end is missing"):
        mv.activation_patching(encoder, *ENDS, side="key")
    with pytest.raises(UnknownHead):
        mv.activation_patching(encoder, *ENDS, to="L9H1", side="key")
    with pytest.raises(ModelUnsupported, match=r"queries and keys of .* cannot be replaced"):
        mv.activation_patching(tiny("deberta-v2"), *ENDS, to="L1H1", side="key")


def test_the_command_prints_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patch", ONCE, OTHERWISE, "--model", "repeater", "--to", "L1H2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("restores, if it reaches only the key of L1H2 (2-3):")
    assert lines[2].startswith("L0H0 (1-1) 26.")
    assert len(lines) == 6
    assert main(["patch", ONCE, OTHERWISE, "--model", "repeater", "--side", "key"]) == 2
    assert "Add --to" in capsys.readouterr().err
