"""The command ``mha-viz models``: list the models that can be chosen by name."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from contextlib import suppress
from typing import Any

from mha_viz.cli.options import Parser
from mha_viz.errors import MhaVizError
from mha_viz.files.tables import escape_formula
from mha_viz.models.getting import catalog, hub
from mha_viz.models.getting.catalog import Model

FORMATS = ("table", "csv", "json")


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = "the format of the list: table, csv or json (default: table)"
    parser.add_argument("--format", default="table", choices=FORMATS, metavar="FORMAT", help=help_text)


def run(args: argparse.Namespace) -> None:
    """List the available models."""
    rows = [_make_row(model) for model in catalog.list_offered()]
    if args.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif args.format == "csv":
        table = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow(
                {name: escape_formula(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
            )
    else:
        cells = [("NAME", "LAYERS × HEADS", "D_MODEL", "MB", "WHERE", "ABOUT")]
        for row in rows:
            shape = f"{row['layers']} × {row['heads']}" if row["layers"] else "?"
            sizes = (str(row[name] or "?") for name in ("d_model", "megabytes"))
            cells.append((row["name"], shape, *sizes, row["where"], row["about"]))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _make_row(model: Model) -> dict[str, Any]:
    """Return one model as a row. None stands for a size that is unknown until the model is downloaded.

    Only layers with attention are counted.
    """
    facts = None
    with suppress(MhaVizError):  # a damaged folder is listed, and refused when it is read
        facts = hub.read_facts(model)
    source = facts.model if facts else model
    layers = (facts and facts.attention_layers) or source.layers
    sizes = {"layers": layers, "heads": source.heads, "d_model": source.d_model, "megabytes": source.megabytes}
    numbers = {name: size or None for name, size in sizes.items()}
    notes = model.label if model.label != model.name else ""
    notes = ", ".join(filter(None, (notes, "weights only" if facts and facts.weights_only else "")))
    location = "folder" if model.kind == "folder" else "bundled"
    if model.kind == "hub":
        location = "cached" if hub.find_local_folder(model) else "not downloaded"
    return {"name": model.name, **numbers, "where": location, "about": notes}
