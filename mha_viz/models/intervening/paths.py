"""Paths between heads: the output of one head on another text reaches only the query, key or value of a later head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.attention.answers import SIDES
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.model_names import quote_model
from mha_viz.models.reading.capture import Tap, Triple
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.process.steps import ranges
from mha_viz.quotes import quoted
from mha_viz.text import WordPieces


def ending(encoder: Encoder, to: AnyHead, side: str, exact: bool) -> Head | None:
    """The head in which paths end; None if neither it nor a side was named. Raises SettingError, UnknownHead."""
    if to == "" and not side:
        return None
    if not exact:
        raise SettingError("Paths have no first-order estimate.", "Leave out exact=False or to= (--estimate or --to).")
    if to == "" or side not in SIDES:
        missing = "No head was named at which paths end."
        raise SettingError(
            missing if to == "" else f"{quoted(str(side))} is not a side of a head.",
            f"Name a head (to=, --to) and one of {', '.join(SIDES)} (side=, --side).",
        )
    head = Head.among(to, encoder.layer_numbers, encoder.heads, encoder.name)
    if not head.layer:
        raise SettingError(f"No head is earlier than {head}.", "Choose one of a later layer.")
    return head


def states(
    encoder: Encoder, read: TextPieces | WordPieces, theirs: Weights, to: Head, side: str, at_once: int
) -> Iterator[tuple[list[Head], Weights]]:
    """Some earlier heads, and for each of them the last states [head, n, d_model] if its output, as in ``theirs``
    [layer, n, head, d_head], reaches only one side of ``to``. Raises ModelUnsupported."""
    _, whole = encoder.last_states(read, partial(_Path, to=to))
    assert isinstance(whole, _Path)
    if not whole.sides:
        raise ModelUnsupported(
            f"The queries and keys of {quote_model(encoder.name)} cannot be replaced.",
            "Choose a model such as BERT or GPT-2.",
        )
    heads = [Head(layer, head) for layer in range(to.layer) for head in range(encoder.heads)]
    for chunk in ranges(0, len(heads), at_once):
        some, number = [heads[place] for place in chunk], SIDES.index(side)
        outputs = [output.repeat(len(some), 1, 1, 1) for output in whole.outputs]
        for variant, head in enumerate(some):
            outputs[head.layer][variant, :, head.head] = torch.from_numpy(theirs[head.layer][:, head.head])
        _, sent = encoder.last_states(read, partial(_Path, to=to, outputs=outputs), len(some))
        assert isinstance(sent, _Path)
        received = partial(_Path, to=to, outputs=whole.outputs, received=(number, sent.sides[number]))
        yield some, encoder.last_states(read, received, len(some))[0].cpu().numpy()


class _Path(Tap):
    """Records the outputs of each layer's heads up to that of ``to``, [sentence, n, head, d_head], and the queries,
    keys and values of its layer, ``sides``, [sentence, head, n, d_head]. Given ``outputs``, heads of earlier layers
    have these; ``received``: a side of ``to``, as its place in SIDES, and what it is there."""

    stop_after_last = False

    def __init__(
        self,
        weights: torch.Tensor,
        to: Head,
        outputs: Sequence[torch.Tensor] = (),
        received: tuple[int, torch.Tensor] | None = None,
    ) -> None:
        super().__init__(weights)
        self.outputs: list[torch.Tensor] = []
        self.sides: tuple[torch.Tensor, ...] = ()
        self._to, self._given, self._received = to, outputs, received

    def attends(self, index: int, *sides: torch.Tensor) -> Triple:
        """Replace one side of the head."""
        if index == self._to.layer:
            self.sides = tuple(side.clone() for side in sides)
            if self._received is not None:
                number, values = self._received
                sides = (*sides[:number], values, *sides[number + 1 :])
        query, key, value = sides
        return query, key, value

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        """Keep the outputs of all other heads, also of those that share the keys of the head."""
        if index > self._to.layer:
            return output
        self.outputs.append(output.clone())
        if index < self._to.layer:
            return self._given[index].expand_as(output) if self._given else output
        if self._received is None:
            return output
        others: torch.Tensor = self._given[index].expand_as(output).clone()
        others[:, :, self._to.head] = output[:, :, self._to.head]
        return others
