"""``mha-viz recipes``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from mha_viz.analysis.described import HeadRecipe, described
from mha_viz.analysis.findings import EVERY
from mha_viz.analysis.given import given_roles
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.recipe_tables import FACTS, UNTRAINED, Recipes, open_recipes, recipes_folder
from mha_viz.cli.cluster import cluster_for, cluster_options, emptied, progress_line
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import MODEL_HELP, Parser, device_option, dtype_option, folder_name, most_option
from mha_viz.cli.profile import CORPUS_HELP, read_corpus
from mha_viz.cli.terminal import bar_of_progress, one_line, warnings_as_lines
from mha_viz.corpus.sampling import name_sample
from mha_viz.figures.caption import both
from mha_viz.figures.role_words import FEW_DOCUMENTS
from mha_viz.files import make_folder
from mha_viz.models import catalog
from mha_viz.numerals import counted, percent

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
    """Find the recipe of every head, or measure earlier ones; write the tables to a folder, and print
    the largest shares of each head."""
    earlier = open_recipes(args.corpus) if (recipes_folder(args.corpus) / FACTS).is_file() else None
    model = choose_model(args.model or (str(earlier.facts["model"]) if earlier else catalog.DEFAULT))
    corpus: Any = earlier or read_corpus(args.corpus)
    score = None if args.score is None else read_corpus(args.score)
    make_folder(args.out)
    files = [name for name in (None if earlier else args.corpus, args.score) if name is not None]
    with warnings_as_lines(), emptied(args.out), cluster_for(args, files) as cluster:
        from mha_viz.study.recipes import recipes  # imports torch
        from mha_viz.study.replaced import replaced, replaced_accuracy

        encoder = load_model(model, args.device, args.dtype)
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
        if args.replace:
            on = score or corpus
            tables = {"replaced": replaced(measured, on, encoder, most=args.most)}
            if on.has_trees and given_roles(encoder.name):
                tables["accuracy"] = replaced_accuracy(measured, on, encoder, most=args.most)
            measured = replace(measured, tables={**measured.tables, **tables})
    measured.save(args.out)
    lines = [f"{args.out}: {_summary(measured)}", *map(_line, described(measured)), *_few_documents(measured)]
    print("\n".join(map(one_line, lines)))


def _few_documents(measured: Recipes) -> list[str]:
    """What the intervals of accuracies speak of, where few documents have a case."""
    documents = int(measured.tables["accuracy"]["role_documents"].max()) if "accuracy" in measured.tables else FEW
    return (
        [f"accuracy.csv, intervals over {counted(documents, 'document')}: {FEW_DOCUMENTS}"] if documents < FEW else []
    )


def _summary(measured: Recipes) -> str:
    """ "minilm on ewt, scored on gum: 68% explained, evenly 41%; least 54%"."""
    facts, table = measured.facts, measured.tables["explained"]
    judged = table["other" if "score" in facts else "held_out"]
    of, score = (name_sample(facts.get(name, ""), facts.get(f"{name}_{EVERY}")) for name in ("corpus", "score"))
    where = f", scored on {score}" if "score" in facts else ", scored on the odd of these sentences"
    means = f"{percent(judged.mean())} explained on average, {percent(table['even'].mean())} by even attention"
    means += f", more than the best single rule on {(judged > table['best_rule']).sum()} of {len(table)} heads"
    untrained = (
        f"; of untrained weights {percent(table[UNTRAINED].mean())}" if UNTRAINED in measured.tables else NO_UNTRAINED
    )
    return f"{facts['model']} on {of}{where}: {means}; least {percent(judged.min())}{untrained}"


def _line(recipe: HeadRecipe) -> str:
    """What is explained of a head, and the largest shares of its recipe."""
    listed = " · ".join(f"{percent(part.share)} {part.name}" for part in recipe.parts[:LISTED])
    return f"{both(recipe.head)}  {percent(recipe.explained)} explained, {percent(recipe.even)} evenly: {listed}"
