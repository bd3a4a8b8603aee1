"""The command ``mha-viz recipes``: describe each head by a few simple rules and their shares."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

from mha_viz.analysis.bundled_data import HeadRecipe, describe_recipes, load_bundled_roles, select_explained
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.recipe_tables import (
    FACTS_FILE,
    MEAN,
    STABILITY,
    UNTRAINED,
    Recipes,
    find_recipes_folder,
    load_recipes,
)
from mha_viz.cli.cluster import PARTS_FOLDER, add_cluster_options, open_cluster, remove_if_empty, show_cluster_progress
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import MODEL_HELP, Parser, add_device_option, add_dtype_option, add_most_option, parse_folder
from mha_viz.cli.profile import CORPUS_HELP, open_source
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.role_words import FEW_DOCUMENTS
from mha_viz.files import make_folder
from mha_viz.models.getting import catalog
from mha_viz.numerals import counted, decimal, percent, with_interval

MAX_LISTED = 3  # rules of a head that are printed
NO_UNTRAINED = "; for untrained weights unknown (recipes of an earlier version: measure them again)"


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = (
        f"{CORPUS_HELP}; or recipes to be measured on --score: minilm, toy, repeater, or a folder of earlier ones"
    )
    parser.add_argument("corpus", metavar="CORPUS", help=help_text)
    help_text = f"{MODEL_HELP} (default: {catalog.DEFAULT}, or the model of the recipes)"
    parser.add_argument("--model", metavar="NAME", help=help_text)
    help_text = "a corpus of another origin to score the recipes on; it chooses neither rules nor shares"
    parser.add_argument("--score", metavar="CORPUS", help=help_text)
    help_text = "also compare with recipes chosen on this corpus, or with these; may be repeated"
    parser.add_argument("--and", dest="others", action="append", default=[], metavar="OTHER", help=help_text)
    add_most_option(parser, 2, 100_000, 300, "sentences to read of each corpus")
    help_text = "also measure, on --score or else on CORPUS, what is lost when recipes replace the heads: replaced.csv "
    help_text += "and, of minilm and toy, accuracy.csv"
    parser.add_argument("--replace", action="store_true", help=help_text)
    help_text = "folder to write recipes.csv, untrained.csv, explained.csv and recipes.json to"
    parser.add_argument("--out", required=True, type=parse_folder, metavar="DIR", help=help_text)
    add_device_option(parser)
    add_dtype_option(parser)
    add_cluster_options(parser)


def run(args: argparse.Namespace) -> None:
    """Find the recipe of every head, or measure or compare earlier recipes.

    Writes the tables to a folder, and prints the largest shares of each head.
    """
    old_recipes = find_recipes(args.corpus)
    model = choose_model(args.model or (str(old_recipes.facts["model"]) if old_recipes else catalog.DEFAULT))
    source: Any = old_recipes or open_source(args.corpus)
    score_corpus = None if args.score is None else open_source(args.score)
    make_folder(args.out)
    other_sources = [find_recipes(name) or open_source(name) for name in args.others]
    file_names = [name for name in (None if old_recipes else args.corpus, args.score) if name is not None]
    with (
        print_warnings(),
        remove_if_empty(args.out),
        remove_if_empty(args.out / PARTS_FOLDER),
        open_cluster(args, file_names) as cluster,
    ):
        from mha_viz.study.recipes import fit_recipes  # imports torch
        from mha_viz.study.stability import compare_recipes

        encoder = load_model(model, args.device, args.dtype)
        result = old_recipes
        if result is None or score_corpus is not None or not other_sources:
            with show_cluster_progress() if cluster else progress_bar("of the text") as progress:
                result = fit_recipes(
                    old_recipes or args.corpus if cluster else source,
                    encoder,
                    score=args.score if cluster else score_corpus,
                    most=args.most,
                    resume=args.out,
                    progress=progress,
                    client=cluster and cluster.client,
                )
        for other_source in other_sources:
            with progress_bar("of the comparison") as progress:
                result = compare_recipes(result, other_source, encoder, most=args.most, progress=progress)
        if args.replace:
            result = _measure_replacement(args, result, score_corpus or source, encoder, cluster)
    result.save(args.out)
    lines = [f"{args.out}: {_format_summary(result)}", *map(_format_recipe, describe_recipes(result))]
    lines += _format_stability(result)
    documents = int(result.tables["accuracy"]["role_documents"].max()) if "accuracy" in result.tables else FEW
    if documents < FEW:
        lines.append(f"accuracy.csv, intervals over {counted(documents, 'document')}: {FEW_DOCUMENTS}")
    print("\n".join(map(one_line, lines)))


def _measure_replacement(args: argparse.Namespace, result: Recipes, corpus: Any, encoder: Any, cluster: Any) -> Recipes:
    """Measure what is lost when heads are replaced by their recipes; return the recipes with the resulting tables."""
    from mha_viz.study.replacements import ablate_recipes, score_recipes

    measures = {"replaced": ablate_recipes}
    if corpus.has_trees and load_bundled_roles(encoder.name):
        measures["accuracy"] = score_recipes
    tables = dict(result.tables)
    for name, measure in measures.items():
        with show_cluster_progress() if cluster else progress_bar("readings") as progress:
            tables[name] = measure(
                *(result, args.score or args.corpus if cluster else corpus, encoder),
                most=args.most,
                resume=args.out / PARTS_FOLDER,
                progress=progress,
                client=cluster and cluster.client,
            )
    return replace(result, tables=tables)


def find_recipes(name: str) -> Recipes | None:
    """Load the recipes with a name, or in a folder; None if there are none."""
    return load_recipes(name) if (find_recipes_folder(name) / FACTS_FILE).is_file() else None


def _format_summary(result: Recipes) -> str:
    """Return a line with the mean and the least share explained, and what uniform attention and one rule explain."""
    facts, table = result.facts, result.tables["explained"]
    shares = select_explained(table)["share"]
    low, high = (math.nan if number is None else number for number in facts.get(MEAN, (None,) * 3)[1:])
    mean = with_interval(shares.mean(), low, high, 1, percent)
    summary = f"{mean} explained on average, {percent(table['even'].mean())} by uniform attention"
    summary += f", more than the best single rule on {(shares > table['best_rule']).sum()} of {len(table)} heads"
    untrained = (
        f"; of untrained weights {percent(table[UNTRAINED].mean())}" if UNTRAINED in result.tables else NO_UNTRAINED
    )
    return f"{facts['model']} on {result.where}: {summary}; least {percent(shares.min())}{untrained}"


def _format_recipe(recipe: HeadRecipe) -> str:
    """Return a line about a head: how much of it is explained, and the largest shares of its recipe."""
    largest = " · ".join(f"{percent(part.share)} {part.name}" for part in recipe.parts[:MAX_LISTED])
    share = with_interval(recipe.explained, recipe.low, recipe.high, 1, percent)
    return f"{format_head(recipe.head)}  {share} explained, {percent(recipe.even)} evenly: {largest}"


def _format_stability(result: Recipes) -> list[str]:
    """Return a line for each corpus whose recipes were compared with these."""
    if STABILITY not in result.tables:
        return []
    lines = []
    for corpus, rows in result.tables[STABILITY].groupby("corpus", sort=False):
        overlap = f"{decimal(rows['overlap'].mean())} (least {decimal(rows['overlap'].min())})"
        agreement = f"the same largest rule in {rows['same'].sum()} of {len(rows)} heads"
        lines.append(f"chosen on {corpus}: shares overlap by {overlap}, {agreement}")
    return lines
