"""The command ``mha-viz profile``: measure what each head does over a corpus."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from mha_viz.analysis.bundled_data import check_profiles, establish
from mha_viz.analysis.chance import COREFERENCE, KIND, SYNTAX
from mha_viz.analysis.profile import (
    FACTS_FILE,
    Profile,
    check_folders,
    find_profile_folder,
    make_folder_path,
    read_profile,
)
from mha_viz.cli.cluster import add_cluster_options, open_cluster, show_cluster_progress, suggest_corpora
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import (
    MODEL_HELP,
    Parser,
    add_device_option,
    add_dtype_option,
    add_model_name_option,
    make_int_parser,
    parse_batch,
    parse_folder,
)
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.corpus import GRAMMAR, REPEATS
from mha_viz.errors import ExportError, SettingError
from mha_viz.figures.words.role_words import describe_chance
from mha_viz.files import make_folder
from mha_viz.models.getting import catalog

CORPUS_HELP = (
    "a file (CoNLL-U, a GAP table, or text with one sentence per line; also .gz, .zst, and Parquet with a column of "
    f'text), a folder or a pattern of such files, or "{GRAMMAR}" or "{REPEATS}", built in'
)
parse_draws = make_int_parser(1, 10_000, "a number of permutations")


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = f"{CORPUS_HELP}; several are measured one after the other"
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help=help_text)
    help_text = f"{MODEL_HELP} (default: {catalog.DEFAULT}); may be repeated, as in --model toy@0 --model toy"
    parser.add_argument("--model", action="append", metavar="NAME", help=help_text)
    add_name_option(parser)
    add_model_name_option(parser)
    parser.add_argument(
        "--and",
        dest="other",
        type=parse_folder,
        metavar="OTHER",
        help="a corpus of another origin, or the folder with the profile of the same model on it: roles that both "
        "corpora show are established, and are written to roles.csv, in both folders if there are two",
    )
    parser.add_argument(
        "--out",
        required=True,
        type=parse_folder,
        metavar="DIR",
        help="folder to write the tables to, with sentences for and against each role; those of an earlier profile are "
        "replaced. Several corpora or models each get a folder MODEL/CORPUS in it, and all scores go to profiles.csv",
    )
    help_text = (
        "also count how many roles chance would find, in N permutations of the sentences' trees (20 are usual) and, "
    )
    help_text += "if there are any, of chains, and write that to chance.csv; --and then takes a corpus, not a profile"
    parser.add_argument("--chance", type=parse_draws, default=0, metavar="N", help=help_text)
    help_text = "the same in N draws, which replace every right word by another word of its part of speech"
    parser.add_argument("--chance-of-kind", type=parse_draws, default=0, metavar="N", help=help_text)
    add_measuring_options(parser)
    add_dtype_option(parser)
    add_cluster_options(parser)


def add_corpus_option(command: Parser) -> None:
    """Add the option for a corpus."""
    command.add_argument("corpus", metavar="CORPUS", help=CORPUS_HELP)


def add_name_option(command: Parser) -> None:
    """Add the option for the name of a corpus."""
    command.add_argument("--name", metavar="NAME", help="name of the corpus (default: its file name)")


def add_measuring_options(command: Parser) -> None:
    """Add the options that do not change results."""
    command.add_argument(
        "--batch",
        type=parse_batch,
        metavar="N",
        help="maximum number of tokens that the model reads at once; affects memory and speed, not results",
    )
    add_device_option(command)


def run(args: argparse.Namespace) -> None:
    """Measure models over corpora and write the tables to a folder."""
    names = args.model or [catalog.DEFAULT]
    has_several_profiles = len(names) * len(args.corpus) > 1
    _check_options(args, has_several_profiles)
    with open_cluster(args) as cluster, print_warnings():
        corpora = [open_source(source, args.name, cluster) for source in args.corpus]
        other_profile, other_corpus = _open_other(args, cluster)
        sources = args.corpus if cluster else corpora
        other_source = str(args.other) if cluster and other_corpus is not None else other_corpus
        if _list_chance_options(args):
            from mha_viz.study.chance import open_treebank  # imports torch

            for source in (*sources, *filter(None, [other_source])):
                open_treebank(source)
        models = [choose_model(name) for name in names]
        check_folders([model.name for model in models], [corpus.name for corpus in corpora])
        make_folder(args.out)
        profiles = []
        for model in models:
            encoder = load_model(model, args.device, args.dtype, args.model_name)
            for corpus, source in zip(corpora, sources, strict=True):
                folder = args.out / make_folder_path(model.name, corpus.name) if has_several_profiles else args.out
                if other_corpus is not None:
                    check_profiles(_get_comparison_facts(encoder, corpus), _get_comparison_facts(encoder, other_corpus))
                    other_profile = measure(encoder, other_corpus, None, args.batch, cluster=cluster)
                profile = measure(encoder, corpus, folder, args.batch, other_profile, cluster=cluster)
                profile = _write(profile, folder, other_profile, args.other if other_corpus is None else None)
                if _list_chance_options(args):
                    profile = _add_chance(profile, folder, encoder, source, other_source, args, cluster)
                profiles.append(profile)
    if has_several_profiles:
        from mha_viz.study.many_profiles import write_table  # imports torch

        print(f"{write_table(profiles, args.out)}: the scores of all {len(profiles)} profiles, one column each")


def _check_options(args: argparse.Namespace, has_several_profiles: bool) -> None:
    for option, value in (("--name", args.name), ("--model-name", args.model_name), ("--and", args.other)):
        if has_several_profiles and value:
            raise SettingError(f"{option} goes with one corpus and one model.", "Leave it out, or measure one by one.")
    for option in _list_chance_options(args):
        if args.chance and (args.cluster or args.workers):
            raise SettingError("--chance is measured in this process.", "Leave out --cluster and --workers.")
        if args.other and is_profile(find_profile_folder(args.other)):
            raise SettingError(
                f"{option} needs the trees of both corpora.", "Give --and the other corpus, not its profile."
            )


def _list_chance_options(args: argparse.Namespace) -> list[str]:
    """Return the options that were given to count the roles that chance would name."""
    options = (("--chance", args.chance), ("--chance-of-kind", args.chance_of_kind))
    return [option for option, draws in options if draws]


def is_profile(path: Path) -> bool:
    """Return whether a path is the folder of a profile, not a corpus."""
    return (path / FACTS_FILE).is_file()


def _open_other(args: argparse.Namespace, cluster: Any) -> tuple[Profile | None, Any]:
    """Return the profile and the corpus that ``--and`` names: at least one of them is None."""
    if args.other is None:
        return None, None
    folder = find_profile_folder(args.other)
    return (read_profile(folder), None) if is_profile(folder) else (None, open_source(str(args.other), None, cluster))


def _add_chance(
    profile: Profile, folder: Path, encoder: Any, corpus: Any, other_source: Any, args: argparse.Namespace, cluster: Any
) -> Profile:
    """Count the roles that chance would name; print the counts, and return and write the profile with them.

    ``other_source`` is the corpus of ``--and``, or None. On a ``cluster``, both corpora are names of files.
    """
    from mha_viz.study.chance import open_treebank, permutation_test
    from mha_viz.study.plan import DEFAULT_BATCH

    treebanks = [open_treebank(source) for source in (other_source, corpus) if source is not None]
    names = [treebank.name for treebank in treebanks[:-1]] + [profile.corpus]  # --name may have changed the last name
    have_chains = all(source.has_chains for source in treebanks)
    permutations = [(role, "", args.chance) for role in (SYNTAX, COREFERENCE)[: 1 + have_chains]]
    for role, keeps, draws in (*permutations, (SYNTAX, KIND, args.chance_of_kind)):
        if not draws:
            continue
        with show_cluster_progress() if cluster else progress_bar("of the draws") as show:
            chance = permutation_test(
                *(corpus, encoder),
                also=other_source,
                role=role,
                keeps=keeps,
                draws=draws,
                batch=args.batch or DEFAULT_BATCH,
                resume=folder if keeps else None,
                progress=show,
                client=cluster and cluster.client,
            )
        profile = replace(chance, corpora=tuple(names)).stored_in(profile)
        print(f"{folder}: {describe_chance(chance)}")
    profile.write(folder)
    return profile


def _write(profile: Profile, folder: Path, other_profile: Profile | None, other_folder: Path | None) -> Profile:
    """Write a profile, print a summary, and return the profile.

    With an ``other_profile``, the roles that both show are established first. It is written, too, if it has a folder,
    ``other_folder``.
    """
    if other_profile is not None:
        other_profile, profile = establish(other_profile, profile)
    if other_profile is not None and other_folder is not None:
        other_profile.write(other_folder)
    profile.write(folder)
    counts = profile.facts["counts"].items()
    content = ", ".join(f"{count:,} {name if count > 1 else name.removesuffix('s')}" for name, count in counts if count)
    print(f"{folder}: {profile.model} on {profile.corpus} ({content}), {len(profile.tables)} tables")
    for line in profile.facts["left_out_first"][:5]:
        print(f"mha-viz: left out: {one_line(line)}", file=sys.stderr)
    if profile.facts["left_out"] > 5:
        print(f"mha-viz: {profile.facts['left_out']} left out in all; see profile.json.", file=sys.stderr)
    return profile


def read_own_profile(folder: Path) -> Profile:
    """Read the profile to store results in. Raises CorpusError, and SettingError for the name of a bundled profile."""
    if find_profile_folder(folder) != folder:
        problem = f"The profile of {folder} comes with the app and stays as it is."
        raise SettingError(problem, "Give a folder that `mha-viz profile CORPUS --out FOLDER` has written.")
    return read_profile(folder)


def measure(
    encoder: Any,
    corpus: Any,
    sums_folder: Path | None,
    batch: int | None,
    other_profile: Profile | None = None,
    control: bool = True,
    cluster: Any = None,
) -> Profile:
    """Measure the profile of a model over a corpus, with a progress bar; see :func:`mha_viz.study.run.study`.

    ``sums_folder`` is where a stopped study continues, or None. ``batch`` is the maximum number of tokens per forward
    pass. ``other_profile`` is one to compare with. ``control``: whether the untrained model is measured too. With
    ``cluster``, its workers measure instead of this process. Raises CorpusError, ExportError, ClusterError.
    """
    from mha_viz.study.plan import DEFAULT_BATCH
    from mha_viz.study.profiling import LocalEngine

    if other_profile is not None:
        check_profiles(_get_comparison_facts(encoder, corpus), other_profile.facts)
    with show_cluster_progress() if cluster else progress_bar("of the text") as progress:
        try:
            engine = cluster or LocalEngine(batch or DEFAULT_BATCH)
            profile: Profile = engine.study(encoder, corpus, sums_folder, control, progress)
            return profile
        except OSError as error:
            raise ExportError(
                f"{sums_folder} cannot be written: {error.strerror or error}.", "Choose another."
            ) from error


def _get_comparison_facts(encoder: Any, corpus: Any) -> dict[str, str]:
    """Return the facts by which two profiles are compared."""
    return {"model": encoder.name, "revision": encoder.revision, "corpus": corpus.name, "sha256": corpus.digest}


def open_source(source: str, name: str | None = None, cluster: Any = None) -> Any:
    """Open a corpus file or a built-in corpus; for a ``cluster``, in shards. Raises CorpusError."""
    from mha_viz.corpus.sources import read_corpus

    with suggest_corpora(source):
        return cluster.open(source, name) if cluster else read_corpus(source, name)
