"""``mha-viz recipes``."""

from __future__ import annotations

import argparse
from typing import Any

from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.attention import Head
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, folder_name, model_option, whole
from mha_viz.cli.profile import corpus_option, read_corpus
from mha_viz.cli.terminal import bar, one_line, warnings_as_lines
from mha_viz.figures.caption import both
from mha_viz.files import make_folder
from mha_viz.numerals import percent

MOST = whole(2, 100_000, "a number of sentences; expected 2 to 100000")
LISTED = 3  # rules of a head that are printed


def options(recipes: Parser) -> None:
    """Add the options of the command."""
    corpus_option(recipes)
    model_option(recipes)
    words = "a corpus of another origin, on which the recipes are scored; it chooses neither rules nor shares"
    recipes.add_argument("--score", metavar="CORPUS", help=words)
    words = "number of sentences to read of each corpus (default: 300)"
    recipes.add_argument("--most", type=MOST, default=300, metavar="N", help=words)
    words = "folder to write recipes.csv, explained.csv and recipes.json to"
    recipes.add_argument("--out", required=True, type=folder_name, metavar="DIR", help=words)
    recipes.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")


def run(args: argparse.Namespace) -> None:
    """Find the recipe of every head, write the tables to a folder, and print the largest shares of each head."""
    model = choose_model(args.model)
    corpus = read_corpus(args.corpus)
    score = None if args.score is None else read_corpus(args.score)
    make_folder(args.out)
    from mha_viz.study.recipes import recipes  # imports torch

    encoder = load_model(model, args.device)
    with warnings_as_lines(), bar("of the text") as show:
        measured = recipes(
            corpus,
            encoder,
            score=score,
            most=args.most,
            device=args.device,
            progress=lambda so_far: show(so_far.done, so_far.total),
        )
    measured.save(args.out)
    print("\n".join(map(one_line, [f"{args.out}: {_summary(measured)}", *_lines(measured)])))


def _summary(measured: Recipes) -> str:
    """ "minilm on ewt, scored on gum: 68% explained, evenly 41%; least 54%"."""
    facts, table = measured.facts, measured.tables["explained"]
    judged = table["other" if "score" in facts else "held_out"]
    where = f", scored on {facts['score']}" if "score" in facts else ", scored on its odd sentences"
    means = f"{percent(judged.mean())} explained on average, {percent(table['even'].mean())} by even attention"
    return f"{facts['model']} on {facts['corpus']}{where}: {means}; least {percent(judged.min())}"


def _lines(measured: Recipes) -> list[str]:
    """A line for each head: what is explained, and its largest shares, averaged over classes of query word."""
    judged = "other" if "score" in measured.facts else "held_out"
    return [_line(row, getattr(row, judged), measured) for row in measured.tables["explained"].itertuples(index=False)]


def _line(row: Any, explained: float, measured: Recipes) -> str:
    head = Head(row.layer, row.head)
    rules = measured.head(head)["recipes"]
    classes = rules["query_class"].nunique()
    shares = (rules.groupby("rule", sort=False)["share"].sum() / classes).sort_values(ascending=False, kind="stable")
    listed = " · ".join(f"{percent(share)} {rule}" for rule, share in shares.head(LISTED).items())
    return f"{both(head)}  {percent(explained)} explained, {percent(row.even)} evenly: {listed}"
