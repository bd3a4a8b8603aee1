"""The command ``mha-viz attention``: write the attention of every head to a file."""

from __future__ import annotations

import argparse

from mha_viz.cli import quantities
from mha_viz.cli.models import check_heads, choose_model, read_all
from mha_viz.cli.options import Parser, add_device_option, add_dtype_option, add_output_options, add_text_options
from mha_viz.cli.output import parse_destination
from mha_viz.cli.terminal import read_text
from mha_viz.figures import files
from mha_viz.view.quantities import QUANTITIES


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_text_options(parser)
    add_device_option(parser)
    add_dtype_option(parser)
    quantities.add_options(parser)
    quantities.add_continue_option(parser)
    parser.add_argument("--words", action="store_true", help="one row and column per word instead of per token")
    parser.add_argument(
        "--without-special",
        action="store_true",
        help="leave out [CLS], [SEP] and other special tokens, and rescale rows to sum to 1",
    )
    add_output_options(parser, files.suffixes())


def run(args: argparse.Namespace) -> None:
    """Write the attention of every head on a text to a file or to stdout."""
    destination = parse_destination(args.out, args.format, files.suffixes(), "a file format that can be written")
    request = quantities.build_request(args, args.model, read_text(args.text))
    model = choose_model(args.model)
    check_heads(model, args.without)
    recipes = quantities.open_recipes(args)
    (attention,) = read_all(model, [request], args.device, args.dtype, args.model_name, recipes, args.words_to_write)
    attention = attention.by_words() if args.words else attention
    attention = attention.without_special() if args.without_special else attention
    destination.write_attention(attention)
    queries, keys = len(attention.queries), len(attention.keys)
    axes = f"{queries} × {keys} tokens" if attention.is_cross else f"{queries} tokens"
    heads = "" if QUANTITIES[attention.quantity].of_layers else f" × {attention.heads} heads"
    shape = f"{attention.layers} layers{heads}, {axes}"
    details = "" if attention.quantity == "weight" else f"{args.quantity}, "
    final_request = attention.request
    details = f"{final_request.part}, " if final_request is not None and final_request.part else details
    switched_off = f"without {', '.join(map(str, args.without))}, " if args.without else ""
    destination.report(f"{destination.path}: {attention.model}, {details}{switched_off}{shape}")
