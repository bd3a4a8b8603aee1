"""Patch paths between heads: a head's output on another text reaches only the query, key or value of a later head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.attention.answers import SIDES
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.model_names import quote_model
from mha_viz.models.reading.capture import QueryKeyValue, Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.process.steps import split_range
from mha_viz.quotes import quote
from mha_viz.text import WordPieces


def check_path_end(encoder: Encoder, to: AnyHead, side: str, exact: bool) -> Head | None:
    """Return the head in which paths end; None if neither a head nor a side was named. Raises SettingError,
    UnknownHead.
    """
    if to == "" and not side:
        return None
    if not exact:
        raise SettingError("Paths have no first-order estimate.", "Leave out exact=False or to= (--estimate or --to).")
    if to == "" or side not in SIDES:
        problem = "The head where paths end is missing."
        raise SettingError(
            problem if to == "" else f"{quote(str(side))} is not a side of a head.",
            f"Name a head (to=, --to) and one of {', '.join(SIDES)} (side=, --side).",
        )
    head = Head.among(to, encoder.layer_numbers, encoder.heads, encoder.name)
    if not head.layer:
        raise SettingError(f"No head is earlier than {head}.", "Choose one of a later layer.")
    return head


def patch_paths(
    encoder: Encoder, pieces: TextPieces | WordPieces, other_outputs: Weights, to: Head, side: str, batch_size: int
) -> Iterator[tuple[list[Head], Weights]]:
    """Yield earlier heads with the last states, [head, n, d_model], that result when each is patched along a path.

    The output of each earlier head in ``other_outputs``, [layer, n, head, d_head], reaches only one side of ``to``.
    Raises ModelUnsupported.
    """
    _, unpatched_tap = encoder.last_states(pieces, partial(_PathTap, to=to))
    assert isinstance(unpatched_tap, _PathTap)
    if not unpatched_tap.sides:
        raise ModelUnsupported(
            f"The queries and keys of {quote_model(encoder.name)} cannot be replaced.",
            "Choose a model such as BERT or GPT-2.",
        )
    heads = [Head(layer, head) for layer in range(to.layer) for head in range(encoder.heads)]
    for chunk in split_range(0, len(heads), batch_size):
        sources, side_index = [heads[index] for index in chunk], SIDES.index(side)
        outputs = [output.repeat(len(sources), 1, 1, 1) for output in unpatched_tap.outputs]
        for variant, head in enumerate(sources):
            outputs[head.layer][variant, :, head.head] = torch.from_numpy(other_outputs[head.layer][:, head.head])
        _, source_tap = encoder.last_states(pieces, partial(_PathTap, to=to, outputs=outputs), len(sources))
        assert isinstance(source_tap, _PathTap)
        make_patched_tap = partial(
            _PathTap, to=to, outputs=unpatched_tap.outputs, patched_side=(side_index, source_tap.sides[side_index])
        )
        yield sources, encoder.last_states(pieces, make_patched_tap, len(sources))[0].cpu().numpy()


class _PathTap(Tap):
    """A tap for one pass of path patching.

    It records the outputs of each layer's heads up to the layer of ``to``, [sentence, n, head, d_head], and in
    ``sides`` the queries, keys and values of that layer, [sentence, head, n, d_head].

    Args:
        weights: memory for the attention weights.
        to: the head in which paths end.
        outputs: if given, replacements for the outputs of heads in earlier layers.
        patched_side: the side of ``to`` that is replaced, as its index in SIDES, and its replacement.
    """

    stop_after_last = False

    def __init__(
        self,
        weights: torch.Tensor,
        to: Head,
        outputs: Sequence[torch.Tensor] = (),
        patched_side: tuple[int, torch.Tensor] | None = None,
    ) -> None:
        super().__init__(weights)
        self.outputs: list[torch.Tensor] = []
        self.sides: tuple[torch.Tensor, ...] = ()
        self._end, self._replacements, self._patched_side = to, outputs, patched_side

    def attends(self, index: int, *sides: torch.Tensor) -> QueryKeyValue:
        """Record the queries, keys and values of the layer of ``to``, and replace one of these sides if requested."""
        if index == self._end.layer:
            self.sides = tuple(side.clone() for side in sides)
            if self._patched_side is not None:
                number, values = self._patched_side
                sides = (*sides[:number], values, *sides[number + 1 :])
        query, key, value = sides
        return query, key, value

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        """Replace outputs, including those of heads that share the keys of ``to``; only ``to`` keeps its own."""
        if index > self._end.layer:
            return output
        self.outputs.append(output.clone())
        if index < self._end.layer:
            return self._replacements[index].expand_as(output) if self._replacements else output
        if self._patched_side is None:
            return output
        new_output: torch.Tensor = self._replacements[index].expand_as(output).clone()
        new_output[:, :, self._end.head] = output[:, :, self._end.head]
        return new_output
