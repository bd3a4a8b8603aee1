"""By what the heads of a model find their keys on a text."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.attention.shares import Why, variation
from mha_viz.heads import AnyHead, Head
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack


def why(encoder: AnyModel, text: str, pair: str = "", words: Sequence[str] = (), *, head: AnyHead | None = None) -> Why:
    """By what each head finds its keys on a text: words, positions, earlier heads, feed-forward parts or constants.

    ``head``: the heads of its layer alone, in place of all. ``words``: the sentence as words, in place of ``text``. The
    shares of the groups in a head's scores are in :meth:`Why.table`, those of single parts in :meth:`Why.parts`, and
    the earlier heads that a head depends on in :meth:`Why.arrows`. Raises as :meth:`Encoder.score_parts`.

    >>> shares = mv.why(encoder, "The animal didn't cross the street because it was too tired.").table()
    >>> shares.loc["L0H2", ["word", "position"]].idxmax()
    'position'
    """
    encoder = in_one_stack(encoder)
    layers = list(range(encoder.layers))
    if head is not None:
        layers = [Head.among(head, encoder.layers, encoder.heads, encoder.name).layer]
    read = encoder.pieces(text, pair, words)
    measured = [variation(trace, parts) for trace, parts in encoder.in_parts(read, layers)]
    return Why(encoder.name, read.tokenized(), tuple(layers), tuple(measured))
