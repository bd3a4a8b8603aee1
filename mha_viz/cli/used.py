"""``mha-viz used``."""

from __future__ import annotations

import argparse
from typing import Any, cast

from mha_viz.analysis.findings import whole_number
from mha_viz.analysis.profile import Profile, profile_folder, read_profile
from mha_viz.attention import Head
from mha_viz.cli.cluster import PARTS, cluster_for, cluster_options, continued
from mha_viz.cli.effect import MOST, means_corpus, means_option
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, device_option, folder_name, most_option
from mha_viz.cli.profile import corpus_option, open_source
from mha_viz.cli.quantities import recipes_of, recipes_option
from mha_viz.cli.terminal import bar_of, one_line, warnings_as_lines
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.layout.caption import both
from mha_viz.figures.words.role_words import over
from mha_viz.figures.words.use_words import USE, is_used, use_explained, use_in_words
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.request import METHODS, OVER_CORPUS, dtype_of


def options(used: Parser) -> None:
    """Add the options of the command."""
    words = "folder that `mha-viz profile` has written; or minilm or toy, which come with the app and stay as they are"
    used.add_argument("profile", type=folder_name, metavar="PROFILE", help=words)
    corpus_option(used)
    words = f"output of a head that is switched off: {', '.join(OVER_CORPUS)} (default: {METHODS[0]})"
    used.add_argument("--method", default=METHODS[0], choices=OVER_CORPUS, metavar="NAME", help=words)
    means_option(used)
    recipes_option(used)
    most_option(used, *MOST)
    device_option(used)
    cluster_options(used)


def run(args: argparse.Namespace) -> None:
    """Measure which roles of a profile the model uses, and print the table ``used``.

    The table is stored in the profile, unless the profile is bundled.
    """
    folder = profile_folder(args.profile)
    profile = read_profile(folder)
    from mha_viz.study.used_roles import ablate_roles  # imports torch

    parts = folder / PARTS if folder == args.profile else None
    with continued(parts), cluster_for(args) as cluster, warnings_as_lines():
        corpus = args.corpus if cluster else open_source(args.corpus)
        dtype = dtype_of(str(profile.facts.get("revision", "")))
        encoder = load_model(choose_model(profile.model), args.device, dtype)
        with bar_of("of the sentences") as progress:
            measured = ablate_roles(
                profile,
                corpus,
                encoder,
                method=args.method,
                most=args.most,
                means=means_corpus(args, cluster),
                recipes=recipes_of(args),
                resume=parts,
                progress=progress,
                client=cluster and cluster.client,
            )
    if folder == args.profile:
        measured.write(folder)
    print("\n".join(map(one_line, lines(measured))))


def lines(profile: Profile) -> list[str]:
    """Format the table ``used`` of a profile, one line per role."""
    table = profile.tables["used"]
    settings = table.iloc[0]
    count = sum(map(is_used, table["used"]))
    corpus = name_sample(settings["corpus"], settings["every"])
    heading = f"{profile.model} on {corpus}: {count} of {counted(len(table), 'role')} {USE}"
    means = f"{settings['measure']}, {settings['method']}: {use_explained(settings['measure'])}"
    result, rows = [f"{heading} ({means.removesuffix('.')})"], cast(Any, table.itertuples(index=False))
    for row in rows:
        interval = with_interval(row.more, row.more_low, row.more_high, 4)
        interval += over(whole_number(getattr(row, "documents", None)))
        use = f"n = {row.n:,}; more than the next {interval}: {use_in_words(is_used(row.used), row.measure)}"
        result.append(f"{both(Head(row.layer, row.head))}  {row.detail}  {decimal(row.effect, 4)}, {use}")
    return result
