"""Options for what a reading contains: a quantity other than the weight, or attention with some heads switched off."""

from __future__ import annotations

import argparse
from typing import Any

from mha_viz.attention import Attention, Head
from mha_viz.browser.view import LABELS, scale_of
from mha_viz.cli.options import Parser, head_name, whole
from mha_viz.errors import SettingError
from mha_viz.models.families import ENCODER, PARTS
from mha_viz.models.methods import METHODS

ABOUT = (
    "weight; norm, how much a key contributes (Kobayashi et al. 2020); gradient, gradient × weight of an answer; "
    "rollout, one map per layer (Abnar & Zuidema 2020)"
)


def options(command: Parser) -> None:
    """Add the options."""
    words = f"the quantity to read: {ABOUT} (default: weight)"
    command.add_argument("--quantity", default="weight", choices=[*LABELS], metavar="NAME", help=words)
    words = "with --quantity gradient: the word whose log-probability is followed (default: the most probable one)"
    command.add_argument("--word", default="", metavar="WORD", help=words)
    words = "with --quantity gradient: the masked token, counted from 0, where there are several"
    place = whole(0, 100_000, "a token; expected a whole number")
    command.add_argument("--place", type=place, metavar="N", help=words)
    words = "with --quantity gradient: a second text; the cosine of both texts’ vectors is followed, not a word"
    command.add_argument("--other", default="", metavar="TEXT", help=words)
    off_options(command, "--without", "heads that are switched off, as L3H1,L2H4")
    words = "with an encoder–decoder: the text given to the decoder (default: written by the model, up to 64 tokens)"
    command.add_argument("--target", default="", metavar="TEXT", help=words)
    words = "with an encoder–decoder: encoder, decoder or cross, from target to source (default: cross)"
    command.add_argument("--part", default="", choices=PARTS, metavar="PART", help=words)


def off_options(command: Parser, name: str, words: str, required: bool = False) -> None:
    """Add an option for heads, and --method."""
    over = "the sentences of the corpus" if required else "the built-in sentences"
    command.add_argument(name, type=head_names, default=(), required=required, metavar="HEADS", help=words)
    words = "output of a head that is switched off: zero, its mean over " + over + ", or uniform attention’s"
    command.add_argument("--method", choices=METHODS, metavar="METHOD", help=f"{words} (default: {METHODS[0]})")


def head_names(value: str) -> tuple[Head, ...]:
    """Parse "L3H1,L2H4"."""
    return tuple(sorted({head_name(name.strip()) for name in value.split(",")}))


def check(args: argparse.Namespace) -> None:
    """Raise SettingError for options that exclude each other."""
    given = [name for name in ("word", "place", "other") if getattr(args, name) not in ("", None)]
    if given and args.quantity != "gradient":
        raise SettingError(f"--{given[0]} goes with --quantity gradient.", f"Leave --{given[0]} out.")
    if args.other and (args.word or args.place is not None):
        raise SettingError("A word and a second text were given.", "Leave one of them out.")
    if args.without and args.quantity in ("norm", "gradient"):
        raise SettingError(f"--without does not go with --quantity {args.quantity}.", "Leave one of them out.")
    of_two_stacks = next((name for name in ("target", "part") if getattr(args, name)), "")
    if of_two_stacks and (args.without or args.quantity in ("norm", "gradient")):
        other = "--without" if args.without else f"--quantity {args.quantity}"
        raise SettingError(f"--{of_two_stacks} does not go with {other}.", "Leave one of them out.")
    if args.target and args.part == ENCODER:
        raise SettingError("--part encoder reads no target.", "Leave --target out.")
    if args.method and not args.without:
        raise SettingError(
            "--method says how heads are switched off, but none is.", "Give --without, or leave --method out."
        )


def read_text(encoder: Any, text: str, pair: str, args: argparse.Namespace) -> Attention:
    """The requested quantity for a text. Raises the errors of ``encode`` and of the quantity."""
    if args.quantity == "norm":
        from mha_viz.models.norms import norm_weighted

        return norm_weighted(encoder, text, pair)
    if args.quantity == "gradient":
        from mha_viz.models.gradients import gradient_weighted

        return gradient_weighted(encoder, text, pair, place=args.place, word=args.word, other=args.other)
    attention: Attention = _without(encoder, text, pair, args)
    if args.quantity == "rollout":
        from mha_viz.analysis.rollout import rollout

        return rollout(attention)
    return attention


def _without(encoder: Any, text: str, pair: str, args: argparse.Namespace) -> Any:
    if not args.without:
        return encoder.encode(text, pair, target=args.target, part=args.part)
    from mha_viz.models import ablation

    method = args.method or METHODS[0]
    return ablation.without(encoder, args.without, text, pair, method, means(encoder, method))


def means(encoder: Any, method: str) -> Any:
    """The mean outputs of heads over the built-in sentences, if the method needs them."""
    if method != "mean":
        return None
    from mha_viz.corpus import grammar
    from mha_viz.models.ablation import means_over

    return means_over(encoder, (" ".join(sentence.forms) for sentence in grammar.corpus().sentences))


def default_scale(quantity: str) -> str:
    """The default colour scale of a quantity: only shares lie between 0 and 1."""
    return scale_of(quantity)
