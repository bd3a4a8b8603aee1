"""Explain how the heads of a model find their keys on a text."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.attention.shares import Why, compute_variation
from mha_viz.heads import AnyHead, Head
from mha_viz.models.reading.cores import one_blas_thread
from mha_viz.models.reading.encoder import DecomposableStack
from mha_viz.models.reading.encoder_decoder import AnyModel, EncoderDecoder, require_one_stack
from mha_viz.request import ENCODER


def explain_scores(
    encoder: AnyModel,
    text: str,
    head: AnyHead | None = None,
    *,
    pair: str = "",
    words: Sequence[str] = (),
    target: str = "",
    part: str = "",
) -> Why:
    """Measure what each head uses to find its keys on a text: words, positions, earlier heads, feed-forward parts,
    constants.

    Args:
        encoder: a model from :func:`mha_viz.load`.
        text: the text that the model reads.
        head: a head; only the heads of its layer are explained. By default, all heads are.
        pair: a second text, read together with the first.
        words: the sentence as words, in place of ``text``.
        target: for T5, the text of its decoder, as for its :meth:`score_parts <EncoderDecoder.score_parts>`.
        part: for T5, "encoder", "decoder" or "cross"; by default the encoder.

    Returns the shares of the groups in a head's scores (:meth:`Why.table`), those of single parts (:meth:`Why.parts`),
    and the earlier heads that a head depends on (:meth:`Why.arrows`). Raises the errors of :meth:`Encoder.score_parts`.

    >>> shares = mv.explain_scores(encoder, "The animal didn't cross the street because it was too tired.").table()
    >>> shares.loc["L0H2", ["word", "position"]].idxmax()
    'position'
    """
    if isinstance(encoder, EncoderDecoder):
        stack: DecomposableStack = encoder.make_stack(part or ENCODER, text, pair, words, target)
    else:
        stack = require_one_stack(encoder)
        stack.check_one_stack(target, part)
    layers = list(range(stack.layers))
    if head is not None:
        layers = [Head.among(head, stack.layers, stack.heads, stack.name).layer]
    pieces = stack.pieces(text, pair, words)
    with one_blas_thread:
        variations = [compute_variation(trace, parts) for trace, parts in stack.iter_parts(pieces, layers)]
    return Why(stack.name, pieces.tokenized(), tuple(layers), tuple(variations))
