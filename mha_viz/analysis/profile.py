"""The profile of a model: what each head does over a corpus, as tables with fixed headings, in a folder of small files.

``profile.json`` names the model and the corpus. It is written last, so a folder without it is incomplete.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mha_viz.analysis.findings import (
    AGREEMENT_ODD,
    CANDIDATE_COLUMNS,
    COLUMNS,
    DOCUMENTS,
    EVERY,
    LATER_COLUMNS,
    NULL,
    POSITION_COLUMNS,
    RULE_INTERVAL,
    Finding,
    add_word_shares,
    parse_finding,
)
from mha_viz.analysis.metrics import BOTH, ON_DELIMITERS
from mha_viz.attention import AnyHead, Head
from mha_viz.errors import (
    PATH_KIND,
    CorpusError,
    CorpusMissing,
    EvidenceMissingWarning,
    ExportError,
    SettingError,
    check_kind,
    warn,
)
from mha_viz.files import write_atomically
from mha_viz.files.assets import asset_path
from mha_viz.files.digests import open_sealed_facts, seal_facts
from mha_viz.files.tables import format_csv, restore_texts, unescape_formula
from mha_viz.heads import list_heads
from mha_viz.model_names import ModelName
from mha_viz.quotes import quote

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.analysis.examples import Example
    from mha_viz.corpus.treebank import Sentence

FACTS_FILE = "profile.json"
SENTENCES_FILE = "evidence.conllu"  # sentences of the table evidence, ordered by first and last
EVIDENCE_FILE = "evidence.csv"
MEASURE_AGAIN = "Measure it again with mha-viz profile."
MAX_QUOTED_PATH = 200  # maximum length of a path in an error
UNTRAINED_FOLDER = "untrained/"  # folder of the untrained model's tables
BUNDLED_CORPORA = ("ewt", "grammar", "repeats")  # folders of bundled profiles that contain the roles of a model
DEFINITIONS = "4"  # version of the measures; incremented when a number changes its meaning
OLD_DEFINITIONS = ("3",)  # versions that can still be read; in them, a rule names a single part of speech

COPYING = "copying"  # the table of copying scores
_ACCURACY = ("n", "correct", "accuracy")
_ROLE_INTERVAL = ("role_low", "role_high")  # the interval that decides about roles; empty if there are too few cases
HEADINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "syntax": (
            "level",
            "relation",
            "direction",
            "layer",
            "head",
            *_ACCURACY,
            "ci_low",
            "ci_high",
            *_ROLE_INTERVAL,
            DOCUMENTS,
            *(BOTH, *RULE_INTERVAL),  # comparison with the rule by parts of speech
        ),
        "choice": (
            *("relation", "direction", "layer", "head", "n", "kind", "choice_n", "choice", "nearest", "side", "random"),
            *("choice_low", "choice_high", DOCUMENTS),
        ),
        "syntax_baselines": ("level", "relation", "direction", "baseline", "detail", *_ACCURACY),
        "syntax_chosen": (
            *("level", "relation", "direction", "layer", "head", "n_even", "accuracy_even", "n_odd", "accuracy_odd"),
            *("ci_low", "ci_high", "offset_odd", "upos_odd", "untrained_odd", DOCUMENTS),
        ),
        "uas": ("layer", "head", *_ACCURACY),
        "position": ("layer", "head", "offset", "mass", "share_of_maxima", "mass_in_word", "rows_in_word"),
        "delimiter": ("layer", "head", *ON_DELIMITERS),
        "entropy": ("layer", "head", "nats", "normalised"),
        "measures": ("layer", "head", "measure", "mean", "sentences"),  # from analysis.metrics
        "coreference": ("layer", "head", "mention_type", *_ACCURACY, *_ROLE_INTERVAL, DOCUMENTS, BOTH, *RULE_INTERVAL),
        "coreference_baselines": ("mention_type", "baseline", "detail", *_ACCURACY),
        "coreference_chosen": (
            *("mention_type", "layer", "head", "n_even", "accuracy_even", "n_odd", "accuracy_odd"),
            *("ci_low", "ci_high", "nearest_odd", "same_form_odd", AGREEMENT_ODD, "untrained_odd", DOCUMENTS),
        ),
        "gap": ("layer", "head", *_ACCURACY),
        "distance": ("head_a", "head_b", "js"),
        COPYING: ("layer", "head", "copying", "copying_untrained"),  # of the weights, not of the corpus
        "candidates": CANDIDATE_COLUMNS,
        "roles": COLUMNS,
        "evidence": (
            *("layer", "head", "role", "detail", "kind", "first", "last", "word", "answer", "attention", "right"),
        ),
        "used": (  # written by mha_viz.study.used_roles
            *("layer", "head", "role", "detail", "corpus", EVERY, "measure", "method", "n"),
            *("effect", "ci_low", "ci_high", "more", "more_low", "more_high", "used", DOCUMENTS),
        ),
        "needed": (  # written by mha_viz.analysis.pairs
            *("layer", "head", "pairs", "kind", "method", "n", "accuracy", "difference", "low", "high"),
            *("lost", "gained", "q", "needed"),
        ),
        "why": (  # written by mha_viz.analysis.corpus_why
            *("layer", "head", "group", "corpus", "sentences", EVERY, "share", "low", "high", DOCUMENTS),
        ),
        "chance": ("role", "corpora", "draw", "roles", NULL),  # written by mha_viz.analysis.chance
    }
)
RENAMED_COLUMNS = {  # former name → present name of columns
    "evidence": {"weight": "attention"},
    "candidates": {"beats_upos": "state"},
    "roles": {"beats_upos": "state"},
}
# Tables that the untrained model has, too.
UNTRAINED_TABLES = (
    "position",
    "delimiter",
    "entropy",
    "measures",
    "coreference",
    "uas",
    "gap",
    "distance",
    "candidates",
    "roles",
)


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """Measurements of each head of a model over a corpus, as tables, and facts about both.

    Attributes:
        facts: the contents of profile.json.
        tables: the tables of HEADINGS that the corpus allows.
        untrained: the tables in UNTRAINED_TABLES for the untrained model.
        sentences: the sentences of the table ``evidence``, ordered as by
            :func:`mha_viz.analysis.examples.list_spans`; empty if the profile has none.
    """

    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    untrained: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()

    @property
    def model(self) -> str:
        """The name of the model."""
        return ModelName(str(self.facts["model"]), str(self.facts.get("display_name", "")))

    @property
    def corpus(self) -> str:
        """The name of the corpus."""
        return str(self.facts["corpus"])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of layers with attention, and of heads per layer."""
        return int(self.facts["layers"]), int(self.facts["heads"])

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of the layers with attention; in a hybrid model, other layers are missing."""
        return tuple(self.facts.get("layer_numbers", range(self.shape[0])))

    def heads(self) -> tuple[Head, ...]:
        """Return all heads in order."""
        return list_heads(self.layer_numbers, self.shape[1])

    def findings(self) -> tuple[Finding, ...]:
        """Return the roles as findings."""
        lines = self.tables["roles"].itertuples(index=False) if "roles" in self.tables else ()
        findings = [parse_finding(*line) for line in lines]
        position_rows = (
            self.tables["position"][[*POSITION_COLUMNS]].itertuples(index=False) if "position" in self.tables else ()
        )
        return add_word_shares(findings, position_rows)

    @property
    def roles(self) -> pd.DataFrame:
        """The table of roles, one row each; empty if the corpus allows none."""
        import pandas as pd

        return self.tables["roles"] if "roles" in self.tables else pd.DataFrame(columns=HEADINGS["roles"])

    def head(self, head: AnyHead) -> dict[str, pd.DataFrame]:
        """Return the rows of one head in each table that has rows by head.

        A head is ``"L3H1"``, ``(3, 1)`` or ``Head(3, 1)``. Raises UnknownHead.
        """
        layer, number = Head.among(head, self.layer_numbers, self.shape[1], self.model)
        return {
            name: table[(table["layer"] == layer) & (table["head"] == number)]
            for name, table in self.tables.items()
            if {"layer", "head"} <= {*table.columns}
        }

    def examples(self, head: AnyHead, role: str = "") -> tuple[Example, ...]:
        """Return the recorded cases of the roles of a head, with their sentences: right, wrong and random cases.

        ``role`` selects some of them, such as "syntax", "nsubj" or "nsubj dep_to_head". The result is empty if the
        profile has no sentences; for a head with roles, an EvidenceMissingWarning says so. Raises UnknownHead.
        """
        from mha_viz.analysis.examples import NO_SENTENCES, list_examples, list_spans

        layer, number = Head.among(head, self.layer_numbers, self.shape[1], self.model)
        table = self.tables.get("evidence")
        if table is None or not self.sentences:
            if any(finding.head == (layer, number) for finding in self.findings()):
                warn(EvidenceMissingWarning, NO_SENTENCES.format(corpus=self.corpus))
            return ()
        sentences = dict(zip(list_spans(table), self.sentences, strict=True))
        rows = table[(table["layer"] == layer) & (table["head"] == number)]
        cases = list_examples(rows, sentences)
        return tuple(e for e in cases if not role or role in (e.role, e.detail, e.detail.split()[0]))

    def evidence(self, head: AnyHead, role: str = "") -> pd.DataFrame:
        """Return :meth:`examples` as a table with one row per case.

        The columns are role, detail, kind ("right", "wrong", "random"), right, attention, word, answer, gold and
        sentence. Without sentences the table is empty and there is a warning. Raises UnknownHead.
        """
        from mha_viz.analysis.examples import make_examples_table

        return make_examples_table(self.examples(head, role))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the profile to a folder and return its path.

        ``mha_viz.load_profile`` reads an equal profile from it. Raises ExportError.
        """
        check_kind(folder, *PATH_KIND)
        self.write(Path(folder))
        return Path(folder)

    @cached_property
    def digest(self) -> str:
        """The digest of the text of all files. It is computed once, because tables never change."""
        return hashlib.sha256(json.dumps(self.files(), sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Profile) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((self.model, self.corpus, self.facts.get("sha256")))

    def __repr__(self) -> str:
        return f"Profile({self.model} on {self.corpus}, {len(self.tables)} tables)"

    def files(self) -> dict[str, str]:
        """Return the text of each file, by its path in the profile's folder; profile.json comes last."""
        texts = {
            f"{folder}{name}.csv": format_csv(table)
            for folder, tables in (("", self.tables), (UNTRAINED_FOLDER, self.untrained))
            for name, table in tables.items()
        }
        if self.sentences:
            from mha_viz.corpus.conllu import format_conllu

            texts[SENTENCES_FILE] = format_conllu(self.sentences)
        return texts | {FACTS_FILE: seal_facts(self.facts, texts)}

    def write(self, folder: Path) -> None:
        """Write one CSV file per table, and profile.json last.

        Each file is written atomically, and files of an older profile are deleted. Raises ExportError, after deleting
        the files that were written.
        """
        try:
            delete_profile(folder)
            for name, text in self.files().items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with write_atomically(folder / name) as file:
                    file.write(text.encode())
        except OSError as error:
            with contextlib.suppress(OSError):
                delete_profile(folder)
            raise ExportError(
                f"{folder} cannot be written: {error.strerror or error}.", "Choose another folder."
            ) from error


def delete_profile(folder: Path) -> None:
    """Delete the files of a profile, complete or not; keep other files. Raises OSError."""
    for name in (FACTS_FILE, SENTENCES_FILE, *_list_table_paths()):
        (folder / name).unlink(missing_ok=True)


def read_findings(folder: Path) -> tuple[Finding, ...]:
    """Read only the roles of a profile, without pandas, because importing pandas would delay the first picture.

    The result is empty if there is no profile. Raises CorpusError if it is damaged.
    """
    try:
        lines = read_lines(folder, "roles", "position")
        findings = [parse_finding(*line) for line in lines.get("roles", ())]
        if all(finding.role != "position" for finding in findings):
            return tuple(findings)
        columns = [HEADINGS["position"].index(name) for name in POSITION_COLUMNS]
        return add_word_shares(findings, [[line[column] for column in columns] for line in lines["position"]])
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise CorpusError(f"{folder} holds no readable roles: {error}.", MEASURE_AGAIN) from error


def read_lines(folder: Path, *tables: str) -> dict[str, list[list[str]]]:
    """Read the lines of tables as text, by table, and verify the digests of their files.

    Tables that do not exist are left out. Raises OSError, and ValueError if files have changed since they were written
    or have other headings.
    """
    existing_tables = [table for table in tables if (folder / f"{table}.csv").is_file()]
    texts = {f"{table}.csv": (folder / f"{table}.csv").read_bytes().decode() for table in existing_tables}
    if (folder / FACTS_FILE).is_file():
        open_sealed_facts(FACTS_FILE, (folder / FACTS_FILE).read_bytes().decode(), texts, texts.__contains__)
    lines = {}
    for table, text in zip(existing_tables, texts.values(), strict=True):
        headings, *rows = (
            [unescape_formula(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))
        )
        indices = _match_headings(table, headings)
        if any(len(row) != len(headings) for row in rows):
            raise ValueError("a line is incomplete")
        lines[table] = [[row[index] if index is not None else "" for index in indices] for row in rows]
    return lines


def read_profile(folder: Path) -> Profile:
    """Read the profile in ``folder``. Raises CorpusMissing if there is none, CorpusError if it is damaged."""
    _check_is_profile(folder)
    try:
        names = [name for name in (FACTS_FILE, SENTENCES_FILE, *_list_table_paths()) if (folder / name).is_file()]
        return parse_profile({name: (folder / name).read_bytes().decode() for name in names})
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no readable profile: {error}.", MEASURE_AGAIN) from error


def check_same_model(profile: Profile, model: str, revision: str) -> None:
    """Raise SettingError unless a profile is of this model and revision."""
    expected = profile.model, profile.facts.get("revision")
    if (model, revision) != expected:
        problem = f"The results are of {model} ({revision}), the profile of {expected[0]} ({expected[1]})."
        raise SettingError(problem, "Give a profile of the same model.")


def find_profile_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder with this name or, if there is none, the first bundled profile of the model with this name.

    The bundled profiles are of "minilm", "toy" and "repeater".
    """
    folder = Path(name)
    bundled_folders = (
        [asset_path("profiles") / folder / corpus for corpus in BUNDLED_CORPORA] if folder.name == str(name) else []
    )
    return folder if folder.exists() else next((path for path in bundled_folders if path.is_dir()), folder)


def list_bundled_profiles(model: str) -> list[Path]:
    """Return the folders of all profiles of a model that come with the app, sorted by name."""
    folders = asset_path("profiles") / Path(model)
    return sorted(path.parent for path in folders.glob(f"*/{FACTS_FILE}")) if folders.name == str(model) else []


def _check_is_profile(folder: Path) -> None:
    """Raise CorpusMissing for a folder without a profile; the message says what it contains instead."""
    remedy = "Give the folder that `mha-viz profile CORPUS --out FOLDER` has written."
    name = quote(str(folder), MAX_QUOTED_PATH)
    try:
        if (folder / FACTS_FILE).is_file():
            return
        if folder.is_dir():
            problem = f"The folder {name} holds no profile: {FACTS_FILE}, which a study writes last, is missing."
        elif folder.exists():
            problem = f"{name} is a file; a profile is a folder that holds {FACTS_FILE}."
        else:
            problem = f"The folder {name} does not exist."
            remedy = f"{remedy[:-1]}, or “minilm”, “toy” or “repeater”, whose profiles come with the app."
    except (OSError, ValueError) as error:  # no permission, or an invalid name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CorpusMissing(f"{name} cannot be read: {reason}.", remedy) from error
    raise CorpusMissing(problem, remedy)


def parse_profile(files: Mapping[str, str]) -> Profile:
    """Build the profile from the texts that :meth:`Profile.files` returned. Raises ValueError, saying what is wrong."""
    import pandas as pd

    try:
        # A licence may forbid these two files.
        facts = open_sealed_facts(FACTS_FILE, files[FACTS_FILE], files, optional_files=(SENTENCES_FILE, EVIDENCE_FILE))
        tables, untrained = (
            {n: _parse_table(pd, files[f"{folder}{n}.csv"], n) for n in HEADINGS if f"{folder}{n}.csv" in files}
            for folder in ("", UNTRAINED_FOLDER)
        )
        layers, heads = int(facts["layers"]), int(facts["heads"])
        if facts["definitions"] not in (DEFINITIONS, *OLD_DEFINITIONS) or min(layers, heads) < 1:
            raise ValueError(f"measured by definitions {facts['definitions']}, not {DEFINITIONS}")
        sentences = _parse_sentences(files.get(SENTENCES_FILE, ""), tables)
    except json.JSONDecodeError as error:
        raise ValueError(f"{FACTS_FILE} is not JSON, line {error.lineno}") from error
    except KeyError as error:
        raise ValueError(f"{error} is missing") from error
    except TypeError as error:
        raise ValueError(f"{FACTS_FILE} does not hold the facts of a profile") from error
    return Profile(facts, tables, untrained, sentences)


def _parse_sentences(text: str, tables: Mapping[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Parse the sentences of the evidence. Raises ValueError unless there are as many as the table needs."""
    if not text:
        return ()
    from mha_viz.analysis.examples import list_spans
    from mha_viz.corpus.conllu import read_conllu

    try:
        sentences = read_conllu(text, SENTENCES_FILE).sentences
    except CorpusError as error:
        raise ValueError(error.problem) from error
    if len(sentences) != len(list_spans(tables["evidence"])):
        raise ValueError(f"{SENTENCES_FILE} has {len(sentences)} sentences, evidence.csv refers to others")
    return sentences


def _list_table_paths() -> list[str]:
    """Return the paths of all tables in a profile's folder."""
    return [f"{folder}{name}.csv" for folder in ("", UNTRAINED_FOLDER) for name in HEADINGS]


def _parse_table(pandas: Any, text: str, name: str) -> pd.DataFrame:
    """Parse a table, with its present columns. Raises ValueError if it has other headings."""
    table: pd.DataFrame = pandas.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
    table = table.rename(columns=RENAMED_COLUMNS.get(name, {}))
    _match_headings(name, [*table.columns])
    table = restore_texts(table).reindex(columns=[*HEADINGS[name]])
    if name == "delimiter":
        table = table.fillna({BOTH: table["cls"] + table["sep"]})
    return table.assign(detail=table["detail"].astype(object).fillna("")) if "detail" in table else table


def _match_headings(table: str, headings: list[str]) -> list[int | None]:
    """Return the index of each column of a table among its headings, None for columns that older versions lack.

    Raises ValueError if the headings are not those of the table.
    """
    headings = [RENAMED_COLUMNS.get(table, {}).get(name, name) for name in headings]
    columns = [name for name in HEADINGS[table] if name in headings or name not in LATER_COLUMNS]
    if headings != columns:
        raise ValueError(f"{table}.csv has the headings {', '.join(map(str, headings))[:200]}")
    return [headings.index(name) if name in headings else None for name in HEADINGS[table]]


def make_folder_path(model: str, corpus: str) -> Path:
    """Return the folder for the profile of a model on a corpus, relative to the folder of all profiles."""
    return Path(_make_folder_name(model), _make_folder_name(corpus))


def check_folders(models: Sequence[str], corpora: Sequence[str]) -> None:
    """Raise SettingError if two of the profiles would have the same folder."""
    for names, kind in ((models, "models"), (corpora, "corpora")):
        folders: dict[str, str] = {}
        for name in names:
            if _make_folder_name(name) in folders:
                raise SettingError(
                    f"Two of the {kind}, {folders[_make_folder_name(name)]} and {name}, would use the same results "
                    "folder.",
                    "Name each once, give files different names, or measure them one by one.",
                )
            folders[_make_folder_name(name)] = name


def _make_folder_name(name: str) -> str:
    """Return a name as a folder name."""
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "-"
