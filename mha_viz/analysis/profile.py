"""The profile of a model: what each head does over a corpus, as tables with fixed headings, in a folder of small files.

``profile.json`` names the model and the corpus and is written last: a folder without it is incomplete.
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
    AGAINST,
    AGREEMENT_ODD,
    CANDIDATE,
    COLUMNS,
    DOCUMENTS,
    EVERY,
    LATER,
    NULL,
    WITHIN,
    Finding,
    finding,
    with_words,
)
from mha_viz.analysis.metrics import BOTH, ON_DELIMITERS
from mha_viz.attention import AnyHead, Head
from mha_viz.errors import (
    PATH,
    CorpusError,
    CorpusMissing,
    EvidenceMissingWarning,
    ExportError,
    SettingError,
    check_kind,
    warn,
)
from mha_viz.files import whole_file
from mha_viz.files.assets import asset
from mha_viz.files.digests import sealed, unsealed
from mha_viz.files.tables import as_csv, as_written, from_csv
from mha_viz.heads import every_head
from mha_viz.model_names import ModelName
from mha_viz.quotes import quoted

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.analysis.examples import Example
    from mha_viz.corpus.treebank import Sentence

FACTS = "profile.json"
SENTENCES = "evidence.conllu"  # of the table evidence, in its order of first and last
EVIDENCE = "evidence.csv"
REMAKE = "Measure it again with mha-viz profile."
MOST_OF_PATH = 200  # characters of a path that an error quotes
UNTRAINED_FOLDER = "untrained/"  # the folder of the untrained model's tables
SHIPPED = ("ewt", "grammar", "repeats")  # the folders in which a shipped model has its roles
DEFINITIONS = "4"  # version of the measures; increased when a number changes its meaning
OLDER = ("3",)  # versions that are still read; in these, a rule by parts of speech names one of them

_ACCURACY = ("n", "correct", "accuracy")
_ROLE_INTERVAL = ("role_low", "role_high")  # the interval that decides roles; empty if there are too few cases
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
            *(BOTH, *AGAINST),  # beside the rule by parts of speech
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
        "measures": ("layer", "head", "measure", "mean", "sentences"),  # of analysis.metrics
        "coreference": ("layer", "head", "mention_type", *_ACCURACY, *_ROLE_INTERVAL, DOCUMENTS, BOTH, *AGAINST),
        "coreference_baselines": ("mention_type", "baseline", "detail", *_ACCURACY),
        "coreference_chosen": (
            *("mention_type", "layer", "head", "n_even", "accuracy_even", "n_odd", "accuracy_odd"),
            *("ci_low", "ci_high", "nearest_odd", "same_form_odd", AGREEMENT_ODD, "untrained_odd", DOCUMENTS),
        ),
        "gap": ("layer", "head", *_ACCURACY),
        "distance": ("head_a", "head_b", "js"),
        "candidates": CANDIDATE,
        "roles": COLUMNS,
        "evidence": (
            *("layer", "head", "role", "detail", "kind", "first", "last", "word", "answer", "attention", "right"),
        ),
        "used": (  # written by mha_viz.study.used_roles
            *("layer", "head", "role", "detail", "corpus", EVERY, "measure", "method", "n"),
            *("effect", "ci_low", "ci_high", "more", "more_low", "more_high", "used", DOCUMENTS),
        ),
        "why": (  # written by mha_viz.analysis.corpus_why
            *("layer", "head", "group", "corpus", "sentences", EVERY, "share", "low", "high", DOCUMENTS),
        ),
        "chance": ("role", "corpora", "draw", "roles", NULL),  # written by mha_viz.analysis.chance
    }
)
RENAMED = {  # columns that older versions wrote under another name
    "evidence": {"weight": "attention"},
    "candidates": {"beats_upos": "state"},
    "roles": {"beats_upos": "state"},
}
UNTRAINED = (
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
)  # also written for the untrained model


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """``facts``: the contents of profile.json; ``tables``: those of HEADINGS that the corpus allows; ``untrained``: the
    same measures of the untrained model, for the tables in UNTRAINED. ``sentences``: those of the table ``evidence``,
    in the order of :func:`mha_viz.analysis.examples.spans`; empty if the profile has none."""

    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    untrained: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()

    @property
    def model(self) -> str:
        """The model's name."""
        return ModelName(str(self.facts["model"]), str(self.facts.get("display_name", "")))

    @property
    def corpus(self) -> str:
        """The corpus's name."""
        return str(self.facts["corpus"])

    @property
    def shape(self) -> tuple[int, int]:
        """Layers with attention, and heads per layer."""
        return int(self.facts["layers"]), int(self.facts["heads"])

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of these layers, which are not all of a hybrid's."""
        return tuple(self.facts.get("layer_numbers", range(self.shape[0])))

    def heads(self) -> tuple[Head, ...]:
        """All heads in order."""
        return every_head(self.layer_numbers, self.shape[1])

    def findings(self) -> tuple[Finding, ...]:
        """The roles."""
        lines = self.tables["roles"].itertuples(index=False) if "roles" in self.tables else ()
        findings = [finding(*line) for line in lines]
        position = self.tables["position"][[*WITHIN]].itertuples(index=False) if "position" in self.tables else ()
        return with_words(findings, position)

    @property
    def roles(self) -> pd.DataFrame:
        """The roles, one row each; empty if the corpus allows none."""
        import pandas as pd

        return self.tables["roles"] if "roles" in self.tables else pd.DataFrame(columns=HEADINGS["roles"])

    def head(self, head: AnyHead) -> dict[str, pd.DataFrame]:
        """The rows of one head, for each table that has any: by ``"L3H1"``, ``(3, 1)`` or ``Head(3, 1)``. Raises
        UnknownHead."""
        layer, number = Head.among(head, self.layer_numbers, self.shape[1], self.model)
        return {
            name: table[(table["layer"] == layer) & (table["head"] == number)]
            for name, table in self.tables.items()
            if {"layer", "head"} <= {*table.columns}
        }

    def examples(self, head: AnyHead, role: str = "") -> tuple[Example, ...]:
        """The cases that were recorded for the roles of a head, with their sentences: right ones, wrong ones, and a
        random one. ``role`` selects some, as "syntax", "nsubj" or "nsubj dep_to_head". Empty if the profile has no
        sentences; an EvidenceMissingWarning says so for a head with roles. Raises UnknownHead."""
        from mha_viz.analysis.examples import NO_SENTENCES, examples, spans

        layer, number = Head.among(head, self.layer_numbers, self.shape[1], self.model)
        table = self.tables.get("evidence")
        if table is None or not self.sentences:
            if any(finding.head == (layer, number) for finding in self.findings()):
                warn(EvidenceMissingWarning, NO_SENTENCES.format(corpus=self.corpus))
            return ()
        sentences = dict(zip(spans(table), self.sentences, strict=True))
        rows = table[(table["layer"] == layer) & (table["head"] == number)]
        shown = examples(rows, sentences)
        return tuple(e for e in shown if not role or role in (e.role, e.detail, e.detail.split()[0]))

    def evidence(self, head: AnyHead, role: str = "") -> pd.DataFrame:
        """:meth:`examples` as a table, one row each: role, detail, kind ("right", "wrong", "random"), right, weight,
        word, answer, gold, sentence. Empty, with a warning, if there are no sentences. Raises UnknownHead."""
        from mha_viz.analysis.examples import examples_table

        return examples_table(self.examples(head, role))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the profile to a folder, from which ``mha_viz.load_profile`` reads an equal one, and return its path.
        Raises ExportError."""
        check_kind(folder, *PATH)
        self.write(Path(folder))
        return Path(folder)

    @cached_property
    def digest(self) -> str:
        """The digest of the text of all files, computed once, since tables are never changed."""
        return hashlib.sha256(json.dumps(self.files(), sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Profile) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((self.model, self.corpus, self.facts.get("sha256")))

    def __repr__(self) -> str:
        return f"Profile({self.model} on {self.corpus}, {len(self.tables)} tables)"

    def files(self) -> dict[str, str]:
        """The text of each file by path in the profile's folder; profile.json comes last."""
        texts = {
            f"{below}{name}.csv": as_csv(table)
            for below, tables in (("", self.tables), (UNTRAINED_FOLDER, self.untrained))
            for name, table in tables.items()
        }
        if self.sentences:
            from mha_viz.corpus.conllu import as_conllu

            texts[SENTENCES] = as_conllu(self.sentences)
        return texts | {FACTS: sealed(self.facts, texts)}

    def write(self, folder: Path) -> None:
        """Write one CSV file per table, and profile.json last; each file is written atomically, and nothing of an older
        profile remains.

        Raises ExportError, and then leaves no part of a profile behind.
        """
        try:
            forget(folder)
            for name, text in self.files().items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with whole_file(folder / name) as file:
                    file.write(text.encode())
        except OSError as error:
            with contextlib.suppress(OSError):
                forget(folder)
            raise ExportError(
                f"{folder} cannot be written: {error.strerror or error}.", "Choose another folder."
            ) from error


def forget(folder: Path) -> None:
    """Delete the files of a profile, complete or not; other files stay. Raises OSError."""
    for name in (FACTS, SENTENCES, *_every_table()):
        (folder / name).unlink(missing_ok=True)


def read_findings(folder: Path) -> tuple[Finding, ...]:
    """The roles alone, read without pandas, so that the first picture need not wait for it. Empty if there is no
    profile. Raises CorpusError if it is damaged."""
    try:
        lines = read_lines(folder, "roles", "position")
        findings = [finding(*line) for line in lines.get("roles", ())]
        if all(finding.role != "position" for finding in findings):
            return tuple(findings)
        columns = [HEADINGS["position"].index(name) for name in WITHIN]
        return with_words(findings, [[line[at] for at in columns] for line in lines["position"]])
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise CorpusError(f"{folder} holds no readable roles: {error}.", REMAKE) from error


def read_lines(folder: Path, *tables: str) -> dict[str, list[list[str]]]:
    """By their names, the lines of those of these tables that are there, as text, once they are seen to be as they were
    written. Raises OSError, and ValueError if they are not, or if headings differ."""
    there = [table for table in tables if (folder / f"{table}.csv").is_file()]
    texts = {f"{table}.csv": (folder / f"{table}.csv").read_bytes().decode() for table in there}
    if (folder / FACTS).is_file():
        unsealed(FACTS, (folder / FACTS).read_bytes().decode(), texts, texts.__contains__)
    lines = {}
    for table, text in zip(there, texts.values(), strict=True):
        headings, *rows = ([as_written(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline="")))
        at = _places(table, headings)
        if any(len(row) != len(headings) for row in rows):
            raise ValueError("a line is cut")
        lines[table] = [[row[place] if place is not None else "" for place in at] for row in rows]
    return lines


def read_profile(folder: Path) -> Profile:
    """The profile in ``folder``. Raises CorpusMissing if there is none, CorpusError if it is damaged."""
    _check_is_profile(folder)
    try:
        names = [name for name in (FACTS, SENTENCES, *_every_table()) if (folder / name).is_file()]
        return profile_of({name: (folder / name).read_bytes().decode() for name in names})
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no readable profile: {error}.", REMAKE) from error


def profile_folder(name: str | os.PathLike[str]) -> Path:
    """A folder or, where there is none, the first shipped profile of the model with this name: "minilm", "toy",
    "repeater"."""
    folder = Path(name)
    shipped = [asset("profiles") / folder / corpus for corpus in SHIPPED] if folder.name == str(name) else []
    return folder if folder.exists() else next((one for one in shipped if one.is_dir()), folder)


def shipped_profiles(model: str) -> list[Path]:
    """The folders of all profiles of a model that come with the app, in the order of their names."""
    folders = asset("profiles") / Path(model)
    return sorted(path.parent for path in folders.glob(f"*/{FACTS}")) if folders.name == str(model) else []


def _check_is_profile(folder: Path) -> None:
    """Raise CorpusMissing for a folder without a profile, saying what it contains instead."""
    remedy = "Give the folder that `mha-viz profile CORPUS --out FOLDER` has written."
    name = quoted(str(folder), MOST_OF_PATH)
    try:
        if (folder / FACTS).is_file():
            return
        if folder.is_dir():
            problem = f"The folder {name} holds no profile: {FACTS}, which a study writes last, is missing."
        elif folder.exists():
            problem = f"{name} is a file; a profile is a folder that holds {FACTS}."
        else:
            problem = f"The folder {name} does not exist."
            remedy = f"{remedy[:-1]}, or “minilm”, “toy” or “repeater”, whose profiles come with the app."
    except (OSError, ValueError) as error:  # no permission to look, or an invalid name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CorpusMissing(f"{name} cannot be read: {reason}.", remedy) from error
    raise CorpusMissing(problem, remedy)


def profile_of(files: Mapping[str, str]) -> Profile:
    """The profile with these files, as from :meth:`Profile.files`. Raises ValueError with what does not fit."""
    import pandas as pd

    try:
        facts = unsealed(FACTS, files[FACTS], files, may_lack=(SENTENCES, EVIDENCE))  # for their licence
        tables, untrained = (
            {n: _table(pd, files[f"{below}{n}.csv"], n) for n in HEADINGS if f"{below}{n}.csv" in files}
            for below in ("", UNTRAINED_FOLDER)
        )
        layers, heads = int(facts["layers"]), int(facts["heads"])
        if facts["definitions"] not in (DEFINITIONS, *OLDER) or min(layers, heads) < 1:
            raise ValueError(f"definitions {facts['definitions']}, this version measures by {DEFINITIONS}")
        sentences = _sentences(files.get(SENTENCES, ""), tables)
    except json.JSONDecodeError as error:
        raise ValueError(f"{FACTS} is not JSON, line {error.lineno}") from error
    except KeyError as error:
        raise ValueError(f"{error} is missing") from error
    except TypeError as error:
        raise ValueError(f"{FACTS} does not hold the facts of a profile") from error
    return Profile(facts, tables, untrained, sentences)


def _sentences(text: str, tables: Mapping[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """The sentences of the evidence. Raises ValueError unless their number is the one that the table implies."""
    if not text:
        return ()
    from mha_viz.analysis.examples import spans
    from mha_viz.corpus.conllu import read_conllu

    try:
        sentences = read_conllu(text, SENTENCES).sentences
    except CorpusError as error:
        raise ValueError(error.problem) from error
    if len(sentences) != len(spans(tables["evidence"])):
        raise ValueError(f"{len(sentences)} sentences in {SENTENCES}, and others in evidence.csv")
    return sentences


def _every_table() -> list[str]:
    return [f"{below}{name}.csv" for below in ("", UNTRAINED_FOLDER) for name in HEADINGS]


def _table(pandas: Any, text: str, name: str) -> pd.DataFrame:
    table: pd.DataFrame = pandas.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
    table = table.rename(columns=RENAMED.get(name, {}))
    _places(name, [*table.columns])
    table = from_csv(table).reindex(columns=[*HEADINGS[name]])
    if name == "delimiter":
        table = table.fillna({BOTH: table["cls"] + table["sep"]})
    return table.assign(detail=table["detail"].astype(object).fillna("")) if "detail" in table else table


def _places(table: str, headings: list[str]) -> list[int | None]:
    """Where each column of a table stands among its headings, None for one that older versions did not write. Raises
    ValueError if they are of something else."""
    headings = [RENAMED.get(table, {}).get(name, name) for name in headings]
    columns = [name for name in HEADINGS[table] if name in headings or name not in LATER]
    if headings != columns:
        raise ValueError(f"{table}.csv has the headings {', '.join(map(str, headings))[:200]}")
    return [headings.index(name) if name in headings else None for name in HEADINGS[table]]


def folder_for(model: str, corpus: str) -> Path:
    """The folder for the profile of a model on a corpus, inside the folder for all of them."""
    return Path(_folder(model), _folder(corpus))


def check_places(models: Sequence[str], corpora: Sequence[str]) -> None:
    """Raise SettingError if two of the profiles would have the same folder."""
    for names, what in ((models, "models"), (corpora, "corpora")):
        folders: dict[str, str] = {}
        for name in names:
            if _folder(name) in folders:
                raise SettingError(
                    f"Two of the {what}, {folders[_folder(name)]} and {name}, would use the same results folder.",
                    "Name each once, give files different names, or measure them one by one.",
                )
            folders[_folder(name)] = name


def _folder(name: str) -> str:
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "-"
