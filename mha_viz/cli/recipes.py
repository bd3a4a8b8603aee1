"""``mha-viz recipes``."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

from mha_viz.analysis.described import HeadRecipe, described, judged
from mha_viz.analysis.given import given_roles
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.recipe_tables import FACTS, MEAN, STABILITY, UNTRAINED, Recipes, open_recipes, recipes_folder
from mha_viz.cli.cluster import cluster_for, cluster_options, emptied, progress_line
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import MODEL_HELP, Parser, device_option, dtype_option, folder_name, most_option
from mha_viz.cli.profile import CORPUS_HELP, read_corpus
from mha_viz.cli.terminal import bar_of_progress, one_line, warnings_as_lines
from mha_viz.figures.caption import both
from mha_viz.figures.role_words import FEW_DOCUMENTS
from mha_viz.files import make_folder
from mha_viz.models import catalog
from mha_viz.numerals import counted, decimal, percent, with_interval

LISTED = 3  # rules of a head that are printed
NO_UNTRAINED = "; of untrained weights unknown (recipes of an earlier version: measure them again)"


def options(recipes: Parser) -> None:
    """Add the options of the command."""
    words = f"{CORPUS_HELP}; or recipes to be measured on --score: minilm, toy, repeater, or a folder of earlier ones"
    recipes.add_argument("corpus", metavar="CORPUS", help=words)
    words = f"{MODEL_HELP} (default: {catalog.DEFAULT}, or the model of the recipes)"
    recipes.add_argument("--model", metavar="NAME", help=words)
    words = "a corpus of another origin, on which the recipes are scored; it chooses neither rules nor shares"
    recipes.add_argument("--score", metavar="CORPUS", help=words)
    words = "choose recipes on another corpus, too, or open others, and compare; may be given several times"
    recipes.add_argument("--and", dest="also", action="append", default=[], metavar="OTHER", help=words)
    most_option(recipes, 2, 100_000, 300, "sentences to read of each corpus")
    words = "also measure, on --score or else on CORPUS, what is lost when heads are only their recipes: replaced.csv "
    words += "and, of minilm and toy, accuracy.csv"
    recipes.add_argument("--replace", action="store_true", help=words)
    words = "folder to write recipes.csv, untrained.csv, explained.csv and recipes.json to"
    recipes.add_argument("--out", required=True, type=folder_name, metavar="DIR", help=words)
    device_option(recipes)
    dtype_option(recipes)
    cluster_options(recipes)


def run(args: argparse.Namespace) -> None:
    """Find the recipe of every head, or measure or compare earlier ones; write the tables to a folder, and print
    the largest shares of each head."""
    earlier = opened(args.corpus)
    model = choose_model(args.model or (str(earlier.facts["model"]) if earlier else catalog.DEFAULT))
    corpus: Any = earlier or read_corpus(args.corpus)
    score = None if args.score is None else read_corpus(args.score)
    make_folder(args.out)
    others = [opened(name) or read_corpus(name) for name in args.also]
    files = [name for name in (None if earlier else args.corpus, args.score) if name is not None]
    with warnings_as_lines(), emptied(args.out), cluster_for(args, files) as cluster:
        from mha_viz.study.recipes import recipes  # imports torch
        from mha_viz.study.replaced import replaced, replaced_accuracy
        from mha_viz.study.stability import compare_recipes

        encoder = load_model(model, args.device, args.dtype)
        measured = earlier
        if measured is None or score is not None or not others:
            with progress_line() if cluster else bar_of_progress("of the text") as progress:
                measured = recipes(
                    earlier or args.corpus if cluster else corpus,
                    encoder,
                    score=args.score if cluster else score,
                    most=args.most,
                    resume=args.out,
                    progress=progress,
                    client=cluster and cluster.client,
                )
        for other in others:
            with bar_of_progress("of the comparison") as progress:
                measured = compare_recipes(measured, other, encoder, most=args.most, progress=progress)
        if args.replace:
            on = score or corpus
            tables = {"replaced": replaced(measured, on, encoder, most=args.most)}
            if on.has_trees and given_roles(encoder.name):
                tables["accuracy"] = replaced_accuracy(measured, on, encoder, most=args.most)
            measured = replace(measured, tables={**measured.tables, **tables})
    measured.save(args.out)
    lines = [f"{args.out}: {_summary(measured)}", *map(_line, described(measured))]
    lines += [*_stability(measured), *_few_documents(measured)]
    print("\n".join(map(one_line, lines)))


def opened(name: str) -> Recipes | None:
    """The recipes with a name, or in a folder; None if there are none."""
    return open_recipes(name) if (recipes_folder(name) / FACTS).is_file() else None


def _few_documents(measured: Recipes) -> list[str]:
    """What the intervals of accuracies speak of, where few documents have a case."""
    documents = int(measured.tables["accuracy"]["role_documents"].max()) if "accuracy" in measured.tables else FEW
    return (
        [f"accuracy.csv, intervals over {counted(documents, 'document')}: {FEW_DOCUMENTS}"] if documents < FEW else []
    )


def _summary(measured: Recipes) -> str:
    """ "minilm on ewt, scored on gum: 68% explained, evenly 41%; least 54%"."""
    facts, table = measured.facts, measured.tables["explained"]
    shares = judged(table)["share"]
    low, high = (math.nan if number is None else number for number in facts.get(MEAN, (None,) * 3)[1:])
    mean = with_interval(shares.mean(), low, high, 1, percent)
    means = f"{mean} explained on average, {percent(table['even'].mean())} by even attention"
    means += f", more than the best single rule on {(shares > table['best_rule']).sum()} of {len(table)} heads"
    untrained = (
        f"; of untrained weights {percent(table[UNTRAINED].mean())}" if UNTRAINED in measured.tables else NO_UNTRAINED
    )
    return f"{facts['model']} on {measured.where}: {means}; least {percent(shares.min())}{untrained}"


def _line(recipe: HeadRecipe) -> str:
    """What is explained of a head, and the largest shares of its recipe."""
    listed = " · ".join(f"{percent(part.share)} {part.name}" for part in recipe.parts[:LISTED])
    share = with_interval(recipe.explained, recipe.low, recipe.high, 1, percent)
    return f"{both(recipe.head)}  {share} explained, {percent(recipe.even)} evenly: {listed}"


def _stability(measured: Recipes) -> list[str]:
    """A line for each corpus with whose recipes these were compared."""
    if STABILITY not in measured.tables:
        return []
    lines = []
    for corpus, rows in measured.tables[STABILITY].groupby("corpus", sort=False):
        overlap = f"{decimal(rows['overlap'].mean())} (least {decimal(rows['overlap'].min())})"
        same = f"the same largest rule in {rows['same'].sum()} of {len(rows)} heads"
        lines.append(f"chosen on {corpus}: shares overlap by {overlap}, {same}")
    return lines
