"""Options for the content of a reading: a quantity other than the weight, or attention with some heads switched off."""

from __future__ import annotations

import argparse
import re

from mha_viz.analysis.recipe_tables import Recipes, load_recipes
from mha_viz.attention import Head
from mha_viz.attention.answers import MAX_WORDS
from mha_viz.cli.options import Parser, make_int_parser, parse_head
from mha_viz.errors import SettingError
from mha_viz.files.assets import PROFILES_VARIABLE
from mha_viz.request import FIELDS, METHODS, METHODS_OVER_CORPUS, OFF_CHOICES, PARTS, Request
from mha_viz.view.quantities import QUANTITIES

QUANTITY_HELP = "; ".join(quantity.brief for quantity in QUANTITIES.values())


def add_options(parser: Parser) -> None:
    """Add the options to a command."""
    help_text = f"the quantity to read: {QUANTITY_HELP} (default: weight)"
    parser.add_argument("--quantity", default="weight", choices=[*QUANTITIES], metavar="NAME", help=help_text)
    help_text = "with --quantity gradient: the word whose log-probability is the score (default: the most probable one)"
    parser.add_argument("--word", default="", metavar="WORD", help=help_text)
    help_text = "with --quantity gradient: the masked token, counted from 0, where there are several"
    parse_position = make_int_parser(0, 100_000, "the number of a token")
    parser.add_argument("--place", type=parse_position, metavar="N", help=help_text)
    help_text = "with --quantity gradient: a second text; the score is the cosine of both texts’ vectors, not a word"
    parser.add_argument("--other", default="", metavar="TEXT", help=help_text)
    help_text = "with --other: first or second, the text whose weights are read; both reads the first (default: both)"
    parser.add_argument("--off-in", choices=OFF_CHOICES, metavar="TEXT", help=help_text)
    add_off_options(parser, "--without", "heads to switch off, such as L3H1,L2H4")
    help_text = (
        "with --method text: the other text, with as many tokens or words, from which the heads’ output is taken; "
    )
    help_text += "with --pair, it replaces the first text"
    parser.add_argument("--from", default="", metavar="TEXT", help=help_text)
    help_text = 'a prefix that the model reads before the text, such as "query: "; drawn separately'
    parser.add_argument("--prefix", default="", metavar="TEXT", help=help_text)
    help_text = (
        "with an encoder–decoder: the text given to the decoder (default: written by the model, up to 64 tokens)"
    )
    parser.add_argument("--target", default="", metavar="TEXT", help=help_text)
    help_text = "with an encoder–decoder: encoder, decoder or cross, from target to source (default: cross)"
    parser.add_argument("--part", default="", choices=PARTS, metavar="PART", help=help_text)


def add_continue_option(command: Parser) -> None:
    """Add --continue."""
    help_text = f"with a causal model: let the model continue the text by up to {MAX_WORDS} words, which are marked"
    parse_count = make_int_parser(1, MAX_WORDS, "a number of words")
    command.add_argument("--continue", type=parse_count, default=0, dest="words_to_write", metavar="N", help=help_text)


def add_off_options(command: Parser, name: str, help_text: str, required: bool = False) -> None:
    """Add an option for the heads to switch off, --method and --recipes.

    If heads are ``required``, the command measures a corpus; otherwise it reads a text.
    """
    source, methods = ("the corpus", METHODS_OVER_CORPUS) if required else ("the built-in sentences", METHODS)
    command.add_argument(name, type=parse_heads, default=(), required=required, metavar="HEADS", help=help_text)
    help_text = (
        f"what replaces the output of a head that is switched off: zero; mean, over {source}; uniform or recipe, the "
        f"output with uniform weights or those of its recipe; resample, on random sentences of {source}"
    )
    help_text += "" if required else "; text, on the text of --from"
    command.add_argument("--method", choices=methods, metavar="METHOD", help=f"{help_text} (default: {METHODS[0]})")
    add_recipes_option(command)


def add_recipes_option(command: Parser, fallback: str = "") -> None:
    """Add --recipes, which :func:`open_recipes` opens.

    ``fallback`` says in the help text what happens if there are no recipes.
    """
    default = f"the recipes for the model in {PROFILES_VARIABLE}, or those that come with the app{fallback}"
    help_text = f"folder with recipes, from `mha-viz recipes` (default: {default})"
    command.add_argument("--recipes", metavar="DIR", help=help_text)


def open_recipes(args: argparse.Namespace) -> Recipes | None:
    """Load the recipes of --recipes; None without that option. Raises CorpusError."""
    return None if args.recipes is None else load_recipes(args.recipes)


def parse_heads(value: str) -> tuple[Head, ...]:
    """Parse head names as in "L3H1,L2H4"."""
    return tuple(sorted({parse_head(name.strip()) for name in value.split(",")}))


def add_head_option(command: Parser, note: str, required: bool = False) -> None:
    """Add --head, whose values :func:`list_heads` parses. ``note`` is added to the help text."""
    help_text = f"layer 3, head 1, counted from 0; or L3, for a layer of rollout{note}"
    command.add_argument(
        "--head",
        action="append",
        default=[],
        type=_parse_head_or_layer,
        metavar="L3H1",
        required=required,
        help=help_text,
    )


def _parse_head_or_layer(value: str) -> Head | str:
    """Parse the name of a head. The name of a layer, "L5", is returned as text until the quantity is known."""
    return value.strip().upper() if re.fullmatch(r"\s*[Ll]\d{1,3}\s*", value, re.ASCII) else parse_head(value)


def list_heads(args: argparse.Namespace) -> list[Head]:
    """Return the heads of --head. For a quantity with one map per layer, a layer is its head 0.

    Raises SettingError for a layer with another quantity.
    """
    layers = [name for name in args.head if isinstance(name, str)]
    if layers and not QUANTITIES[args.quantity].of_layers:
        raise SettingError(f"{layers[0]} is a layer, not a head.", f"Give --head {layers[0]}H0, or --quantity rollout.")
    return [Head(int(name[1:]), 0) if isinstance(name, str) else name for name in args.head]


def build_request(args: argparse.Namespace, model: str, text: str) -> Request:
    """Build the request about a text from the options. Raises SettingError for options that exclude each other."""
    option_names = {
        name: field.option[2:].replace("-", "_") for name, field in FIELDS.items() if name not in ("model", "text")
    }
    values = {name: getattr(args, option) for name, option in option_names.items() if getattr(args, option) is not None}
    return Request(model, text, **values).checked(lambda name: FIELDS[name].option)
