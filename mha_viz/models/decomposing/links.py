"""Explain all links of a head on a text at once: why each is strong, and what each key writes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mha_viz.attention.parts import sum_key_groups
from mha_viz.attention.reasons import NAMED_WORDS, LinkReasons, encode_reasons
from mha_viz.errors import ModelUnsupported
from mha_viz.heads import AnyHead, Head
from mha_viz.models.decomposing.outputs import name_words_by_key
from mha_viz.models.reading.cores import one_blas_thread
from mha_viz.models.reading.encoder import Encoder


def explain_links(
    encoder: Encoder, text: str, head: AnyHead, *, pair: str = "", words: Sequence[str] = ()
) -> LinkReasons:
    """Explain the links of a head: the parts of scores that stand out, and the words that each key adds.

    See :func:`mha_viz.explain_scores` and :func:`mha_viz.explain_output`. An explanation is None if the model
    does not support it.
    """
    chosen_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    reason_codes = words_by_key = None
    with suppress(ModelUnsupported), one_blas_thread:
        ((trace, parts),) = encoder.iter_parts(encoder.pieces(text, pair, words), [chosen_head.layer])
        reason_codes = encode_reasons(sum_key_groups(trace, parts, chosen_head))
    with suppress(ModelUnsupported):
        words_by_key = name_words_by_key(encoder, text, chosen_head, NAMED_WORDS, pair=pair, words=words)
    return LinkReasons(reason_codes, words_by_key)
