"""The requests to models, one function ("verb") per kind. The server calls them; the process with the models runs them.

The first argument of a verb is the request or the name of the model. A new verb is a function here and a row of VERBS.
If it sends or returns an object of a class that no verb has sent so far, add the class to CODEC. Import torch, and
whatever needs it, inside the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mha_viz import process
from mha_viz.analysis.effects import Changes, Effects
from mha_viz.analysis.syntax import Pointers
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Answer, Continuation, Numbers, PatchResult
from mha_viz.attention.outputs import HeadOutput, WrittenWords
from mha_viz.attention.parts import ScoreParts
from mha_viz.attention.reasons import LinkReasons
from mha_viz.attention.rotary import Rotation
from mha_viz.attention.steps import Step, StepData
from mha_viz.attention.trace import Agreement, Parameters, Trace
from mha_viz.model_names import ModelName
from mha_viz.process.messages import Codec
from mha_viz.request import Question, Request
from mha_viz.text import Token, TokenizedText
from mha_viz.text.tokens import Cut

if TYPE_CHECKING:
    from mha_viz.app.service.reader.models import Models
    from mha_viz.models.reading.encoder import Encoder
    from mha_viz.study.effects import MakeSubstitute

CODEC = Codec(
    *(Request, Question, Head, range, ModelName),
    *(Attention, TokenizedText, Token, Cut, Step, StepData),
    *(Trace, Parameters, Rotation, Agreement, ScoreParts, HeadOutput, WrittenWords, LinkReasons, PatchResult),
    *(Answer, Continuation, Changes, Effects, Pointers),
)


MEMORY_REMEDY = "Try again; a smaller model or a shorter text needs less memory."  # for errors when memory runs out


def find_model_name(first: object = "", *_: object) -> str:
    """Return the name of the model in the first argument of a verb; empty if it has no arguments."""
    return first.model if isinstance(first, Request) else str(first)


def load(models: Models, model: str) -> None:
    """Load a model."""
    models.get_model(model)


def find_revision(models: Models, model: str) -> str:
    """Return the revision of a loaded model."""
    return models[model].revision


def free_memory(models: Models) -> None:
    """Return free memory to the system."""
    process.release_memory(includes_frozen=False)


def read(models: Models, request: Request) -> Attention:
    """Return the requested quantity of every head (``study.reading``).

    An encoder–decoder takes given words as one text.
    """
    from mha_viz.study import reading

    return reading.read(models.get_model(request.model), request, models.get_means(request) if request.off else None)


def trace(models: Models, request: Request, layer: int) -> Trace:
    """Return every intermediate result inside one layer."""
    return _get_model(models, request).trace(*request.texts, layer, request.words)


def split_scores(
    models: Models, request: Request, head: Head, query: int, keys: Sequence[int]
) -> tuple[ScoreParts, ...]:
    """Split the scores of a query with several keys, in one head, into parts (``models.reading.encoder``)."""
    text, pair = request.texts
    return _get_model(models, request).score_parts_for_keys(text, head, query, keys, pair=pair, words=request.words)


def explain_output(models: Models, request: Request, head: Head, query: int) -> HeadOutput:
    """Return what a head adds to the vector of a token, and the words that it writes
    (``models.decomposing.outputs``)."""
    from mha_viz.models.decomposing import outputs

    model, (text, pair) = _get_model(models, request), request.texts
    return outputs.explain_output(model, text, head, query, pair=pair, words=request.words)


def find_composition(models: Models, request: Request) -> tuple[tuple[Head, Head, str, float], ...]:
    """Return the earlier heads that the scores of each head come from, as (from, to, side, share), largest share first.

    See ``models.decomposing.why``.
    """
    from mha_viz.models.decomposing.why import explain_scores

    return explain_scores(_get_model(models, request), request.text, pair=request.pair, words=request.words).composed()


def explain_links(models: Models, request: Request, head: Head) -> LinkReasons:
    """Explain why the links of a head are strong and what each key writes (``models.decomposing.links``)."""
    from mha_viz.models.decomposing import links

    text, pair = request.texts
    return links.explain_links(_get_model(models, request), text, head, pair=pair, words=request.words)


def name_words(models: Models, request: Request, count: int) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Name the words that the keys of all heads move a token towards (``models.decomposing.outputs``)."""
    from mha_viz.models.decomposing import outputs

    text, pair = request.texts
    return outputs.name_words_of_heads(_get_model(models, request), text, count, pair=pair, words=request.words)


def patch_outputs(models: Models, request: Request, to: str = "", side: str = "") -> PatchResult:
    """Patch a text with outputs taken from another, and return how much of the other answer each head brings back.

    With ``to`` and ``side``, patch only the paths to one side of a head (``models.intervening.patching``).
    """
    from mha_viz.models.intervening.patching import activation_patching

    text, source, model = request.text, request.source, _get_model(models, request)
    return activation_patching(model, text, source, similar_to=request.other, to=to, side=side)


def prepare_question(models: Models, request: Request) -> Question:
    """Return the question of a request, with its word looked up in the model's vocabulary.

    The masked token in a URL may be that of another model: a causal one answers with the next token.
    """
    from mha_viz.study.one_text import build_question

    model = _get_model(models, request)
    return build_question(model, replace(request, place=None) if model.causal else request)


def continue_text(models: Models, request: Request, words: int, continuation: Continuation, steps: int) -> Continuation:
    """Let a causal model continue a text, up to ``words`` words, by at most ``steps`` more subwords.

    ``continuation`` is what it has written so far. See ``models.reading.continuing``.
    """
    from mha_viz.models.reading.continuing import write_more

    return write_more(_get_model(models, request), request.text, words, continuation, steps)


def answer_question(models: Models, request: Request) -> Answer:
    """Return the model's answer with and without the heads that are off (``study.effects.compute_answer``)."""
    from mha_viz.study import effects

    return effects.compute_answer(_get_model(models, request), request, _make_substitute(models, request))


def measure_effects(models: Models, request: Request, layer: int, heads: Sequence[int]) -> Effects:
    """Return the effects of switching off each of ``heads`` of a layer alone (``study.effects.measure_part``)."""
    from mha_viz.study import effects

    return effects.measure_part(_get_model(models, request), layer, heads, request, _make_substitute(models, request))


def measure_losses(models: Models, request: Request, variants: Sequence[Sequence[Head]]) -> Changes:
    """Return the changes from switching off several sets of heads, one after the other.

    See ``study.effects.measure_changes``.
    """
    from mha_viz.study import effects

    return effects.measure_changes(_get_model(models, request), variants, request, _make_substitute(models, request))


def measure_means(models: Models, model: str, first: int, end: int) -> None:
    """Add the built-in sentences from ``first`` to ``end`` (exclusive) to the means that the method "mean" needs."""
    models.add_to_means(model, first, end)


def find_pointers(models: Models, model: str, first: int, end: int) -> tuple[Pointers | None, ...]:
    """Find where every head points in the built-in sentences from number ``first`` to ``end`` (exclusive)."""
    from mha_viz.app.service.reader.models import load_built_in_corpus
    from mha_viz.study.plan import find_all_pointers

    corpus = load_built_in_corpus()
    return tuple(find_all_pointers(models[model], replace(corpus, sentences=corpus.sentences[first:end])))


def measure_repeats(models: Models, model: str, first: int, end: int, untrained: bool) -> Numbers:
    """Measure heads on some of the repeated random sequences, [measure, layer, head]
    (``study.decoder_heads.measure_draws``).

    If ``untrained``, measure the same model with random weights.
    """
    from mha_viz.analysis.repeats import DRAWS, LENGTH, SEED
    from mha_viz.study import decoder_heads

    encoder = models[model]
    decoder_heads.check_settings(encoder, LENGTH, DRAWS)
    measured_encoder = encoder.untrained(SEED) if untrained else encoder
    return decoder_heads.measure_draws(measured_encoder, range(first, end), LENGTH, DRAWS, SEED)


def _get_model(models: Models, request: Request) -> Encoder:
    """Return the model of a request, with the prefix of its texts applied."""
    encoder = models[request.model]
    return encoder.prefixed(request.prefix) if request.prefix else encoder


def _make_substitute(models: Models, request: Request) -> MakeSubstitute:
    from mha_viz.study.effects import substitute

    return partial(substitute, means=models.get_means(request))


VERBS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        verb.__name__: verb
        for verb in (
            *(
                load,
                find_revision,
                free_memory,
                read,
                trace,
                split_scores,
                explain_output,
                find_composition,
                explain_links,
                name_words,
                patch_outputs,
                prepare_question,
                answer_question,
                continue_text,
            ),
            *(measure_effects, measure_losses, measure_means, find_pointers, measure_repeats),
        )
    }
)
