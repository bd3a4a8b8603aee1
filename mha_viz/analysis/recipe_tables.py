"""The recipes of a model's heads as tables, stored in a folder."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_viz.analysis.findings import EVERY
from mha_viz.attention import AnyHead, Head
from mha_viz.corpus.limits import name_sample
from mha_viz.errors import PATH_KIND, CorpusError, ExportError, check_kind
from mha_viz.files import make_folder, write_atomically
from mha_viz.files.assets import asset_path
from mha_viz.files.digests import open_sealed_facts, seal_facts
from mha_viz.files.tables import format_csv, restore_texts

if TYPE_CHECKING:
    import pandas as pd

FACTS_FILE = "recipes.json"  # written last, so a folder without it is incomplete
UNTRAINED, STABILITY = "untrained", "stability"
# Older folders lack the table UNTRAINED; without a comparison of recipes there is no table STABILITY.
OPTIONAL_TABLES = (UNTRAINED, STABILITY)
MEAN = "mean"  # in the facts: the explained share, averaged over heads, with its interval
REMEDY = "Give a folder that `mha-viz recipes` has written, or “minilm”, “toy” or “repeater”, which come with the app."
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "recipes": ("layer", "head", "query_class", "rule", "share"),
    "explained": (
        *("layer", "head", "fitted", "held_out", "held_out_low", "held_out_high", "other", "other_low", "other_high"),
        *("even", "best_rule", "untrained", "iou"),
    ),
    UNTRAINED: ("layer", "head", "query_class", "rule", "share"),
    STABILITY: ("corpus", "layer", "head", "overlap", "rule", "other_rule", "same", "rules_in_common"),
}
LATER_COLUMNS = ("held_out_low", "held_out_high", "other_low", "other_high")  # columns that earlier versions lack


@dataclass(frozen=True, eq=False, repr=False)
class Recipes:
    """The recipes of a model's heads.

    Attributes:
        facts: the model, the corpora, and the numbers of sentences read.
        tables: "recipes", the rules of each head with their shares, largest first; "explained", the share of its
            attention that they explain; "untrained", the shares of the same rules with random weights; and, if recipes
            from other corpora were compared, "stability", how similar they are.
    """

    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]

    def head(self, head: AnyHead) -> dict[str, pd.DataFrame]:
        """Return the rows of one head by table.

        A head is ``"L3H1"``, ``(3, 1)`` or ``Head(3, 1)``. Raises UnknownHead.
        """
        layer, number = Head.among(head, int(self.facts["layers"]), int(self.facts["heads"]), str(self.facts["model"]))
        tables = {name: self.tables[name] for name in HEADINGS if name in self.tables}
        return {name: table[(table["layer"] == layer) & (table["head"] == number)] for name, table in tables.items()}

    @property
    def where(self) -> str:
        """The sentences on which recipes were chosen, and the others on which they are scored, as text.

        For example "every 7th sentence of ewt, scored on every 6th sentence of gum".
        """
        fit_sample, *score = (
            name_sample(str(self.facts[name]).removesuffix(".conllu"), self.facts.get(f"{name}_{EVERY}"))
            for name in ("corpus", "score")
            if name in self.facts
        )
        return f"{fit_sample}, scored on {score[0] if score else 'the odd-numbered sentences'}"

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the tables, such as ``recipes.csv``, and ``recipes.json`` to a folder, and return its path.

        ``mha_viz.recipes.load`` reads them. They replace recipes that were saved there earlier. Raises ExportError.
        """
        check_kind(folder, *PATH_KIND)
        folder_path = Path(folder)
        make_folder(folder_path)
        texts = {f"{name}.csv": format_csv(table) for name, table in self.tables.items()}
        texts[FACTS_FILE] = seal_facts(self.facts, texts)
        try:
            (folder_path / FACTS_FILE).unlink(missing_ok=True)
            for name in HEADINGS.keys() - self.tables.keys():  # tables of recipes that were saved there earlier
                (folder_path / f"{name}.csv").unlink(missing_ok=True)
            for name, text in texts.items():
                with write_atomically(folder_path / name) as file:
                    file.write(text.encode())
        except OSError as error:
            problem = f"{folder_path} cannot be written: {error.strerror or error}."
            raise ExportError(problem, "Choose another folder.") from error
        return folder_path

    def __repr__(self) -> str:
        return f"Recipes({self.facts['model']} on {self.facts['corpus']}, {len(self.tables['explained'])} heads)"


def find_recipes_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder with this name or, if there is none, the bundled recipes of the model with this name."""
    folder = Path(name)
    bundled_folder = asset_path("recipes") / folder
    return bundled_folder if folder.name == str(name) and not folder.exists() and bundled_folder.is_dir() else folder


def load_recipes(folder: str | os.PathLike[str]) -> Recipes:
    """Load the recipes that ``Recipes.save`` or ``mha-viz recipes`` wrote to a folder.

    "minilm", "toy" and "repeater" open the bundled recipes. Raises CorpusError if there are none, or if they are
    damaged.
    """
    check_kind(folder, *PATH_KIND[:2], REMEDY)
    import pandas as pd

    folder_path, files = find_recipes_folder(folder), {f"{name}.csv": name for name in HEADINGS}
    try:
        files_present = [
            file
            for file in (FACTS_FILE, *files)
            if files.get(file) not in OPTIONAL_TABLES or (folder_path / file).exists()
        ]
        texts = {file: (folder_path / file).read_bytes().decode() for file in files_present}
        facts = open_sealed_facts(FACTS_FILE, texts.pop(FACTS_FILE), texts, files.__contains__)
        tables = {
            files[file]: restore_texts(pd.read_csv(io.StringIO(text), keep_default_na=True))
            for file, text in texts.items()
        }
        if not {"model", "corpus", "layers", "heads"} <= {*facts}:
            raise ValueError(f"{FACTS_FILE} lacks entries")
        for name, table in tables.items():
            columns = [*table.columns]
            if columns != [heading for heading in HEADINGS[name] if heading in columns or heading not in LATER_COLUMNS]:
                raise ValueError(f"{name}.csv has unexpected columns")
            tables[name] = table.reindex(columns=[*HEADINGS[name]])
    except (OSError, ValueError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"{str(folder_path)[:200]} holds no readable recipes: {reason}."
        raise CorpusError(problem, REMEDY) from error
    return Recipes(facts, tables)
