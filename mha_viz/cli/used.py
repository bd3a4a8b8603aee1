"""The command ``mha-viz used``: measure which roles of a profile the model uses."""

from __future__ import annotations

import argparse
from typing import Any, cast

from mha_viz.analysis.findings import parse_whole_number
from mha_viz.analysis.profile import Profile, find_profile_folder, read_profile
from mha_viz.attention import Head
from mha_viz.cli.cluster import PARTS_FOLDER, add_cluster_options, offer_to_continue, open_cluster
from mha_viz.cli.effect import SENTENCE_LIMITS, add_means_option, open_means_corpus
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, add_device_option, add_most_option, parse_folder
from mha_viz.cli.profile import add_corpus_option, open_source
from mha_viz.cli.quantities import add_recipes_option, open_recipes
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.role_words import describe_documents
from mha_viz.figures.words.use_words import USE, describe_use, explain_use, is_used
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.request import METHODS, METHODS_OVER_CORPUS, get_dtype


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = (
        "folder that `mha-viz profile` has written; or minilm or toy, which come with the app and are not changed"
    )
    parser.add_argument("profile", type=parse_folder, metavar="PROFILE", help=help_text)
    add_corpus_option(parser)
    help_text = f"output of a head that is switched off: {', '.join(METHODS_OVER_CORPUS)} (default: {METHODS[0]})"
    parser.add_argument("--method", default=METHODS[0], choices=METHODS_OVER_CORPUS, metavar="NAME", help=help_text)
    add_means_option(parser)
    add_recipes_option(parser)
    add_most_option(parser, *SENTENCE_LIMITS)
    add_device_option(parser)
    add_cluster_options(parser)


def run(args: argparse.Namespace) -> None:
    """Measure which roles of a profile the model uses, and print the table ``used``.

    The table is stored in the profile, unless the profile is bundled.
    """
    folder = find_profile_folder(args.profile)
    profile = read_profile(folder)
    from mha_viz.study.used_roles import ablate_roles  # imports torch

    parts_folder = folder / PARTS_FOLDER if folder == args.profile else None
    with offer_to_continue(parts_folder), open_cluster(args) as cluster, print_warnings():
        corpus = args.corpus if cluster else open_source(args.corpus)
        dtype = get_dtype(str(profile.facts.get("revision", "")))
        encoder = load_model(choose_model(profile.model), args.device, dtype)
        with progress_bar("of the sentences") as progress:
            result = ablate_roles(
                profile,
                corpus,
                encoder,
                method=args.method,
                most=args.most,
                means=open_means_corpus(args, cluster),
                recipes=open_recipes(args),
                resume=parts_folder,
                progress=progress,
                client=cluster and cluster.client,
            )
    if folder == args.profile:
        result.write(folder)
    print("\n".join(map(one_line, format_used(result))))


def format_used(profile: Profile) -> list[str]:
    """Format the table ``used`` of a profile, one line per role."""
    table = profile.tables["used"]
    settings = table.iloc[0]
    tested = [used for used in map(is_used, table["used"]) if used is not None]
    corpus = name_sample(settings["corpus"], settings["every"])
    heading = f"{profile.model} on {corpus}: {sum(tested)} of {counted(len(tested), 'role')} {USE}"
    details = f"{settings['measure']}, {settings['method']}: {explain_use(settings['measure'])}"
    lines, rows = [f"{heading} ({details.removesuffix('.')})"], cast(Any, table.itertuples(index=False))
    for row in rows:
        interval = with_interval(row.more, row.more_low, row.more_high, 4)
        interval += describe_documents(parse_whole_number(getattr(row, "documents", None)))
        use = f"n = {row.n:,}; {interval} more than the next head: {describe_use(is_used(row.used), row.measure)}"
        lines.append(f"{format_head(Head(row.layer, row.head))}  {row.detail}  {decimal(row.effect, 4)}, {use}")
    return lines
