"""One interactive web page, in one file, with several heads and remarks on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from mha_viz.errors import PATH_KIND, ExportError, SettingError, check_kind, list_items
from mha_viz.figures import files
from mha_viz.figures.files.page import Look, PagePart, render_published_page
from mha_viz.figures.kinds import build_panel, compare, grid, settings
from mha_viz.figures.layout.caption import name_in_model
from mha_viz.figures.layout.panels import Panel, convert_pin
from mha_viz.options import Options

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder
    from mha_viz.models.reading.loaded_model import LoadedModel

TITLE = "What these attention heads look at"
MAX_TITLE, MAX_REMARK = 120, 2_000  # characters


def publish(
    panels: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    title: str = TITLE,
    introduction: str = "",
    remarks: Sequence[str] = (),
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
    live: LoadedModel | None = None,
    half: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write one web page with some heads, and your remarks on them.

    The page is self-contained: it opens from disk, needs no network, and its drawings are interactive. Several heads
    are first shown side by side, then each separately, under its remark. Title, introduction and remarks are text,
    never HTML.

    Args:
        panels: the heads, with a name or without: ``[(a, "L3H1"), (a, "L5H11", "a name")]``.
        path: the file, which ends in .html; with ``live``, a folder.
        title: up to 120 characters.
        introduction: up to 2,000 characters.
        remarks: a text for each head, up to 2,000 characters, "" for none.
        pin_of: the head, from 0, whose tokens ``pin`` counts.
        diff: two heads, counted from 0, whose difference is open among those side by side.
        live: a model, such as ``mv.load("minilm")``. The folder gets static files, whose page has a sentence field as
            well: the reader's own browser runs the model, and what is typed stays on that device.
        half: with ``live``, stores the model in half precision, half as large; the page says by how much its weights
            differ then.
        **options: those of View, and ``look``.

    Returns the path. Raises SettingError for more remarks than heads, or texts that are too long; ExportError for a
    file that cannot be written, and where the extra ``mha-viz[live]`` is not installed; ModelUnsupported for a ``live``
    model that a browser cannot run.
    """
    check_kind(path, *PATH_KIND)
    if live is not None:
        from mha_viz.figures.live import write_site  # imports torch
        from mha_viz.models.reading import onnx

        encoder = onnx.check_exportable(live)
        parts, look = _build_parts(panels, title, introduction, remarks, pin_of, diff, options)
        example = _build_example(build_panel(panels[0]), encoder, options)
        words = {"title": title.strip() or TITLE, "introduction": introduction}
        return write_site(path, encoder, parts, example, half=half, look=look, **words)
    if half:
        raise SettingError("half is for a page with a live model.", "Give live=mv.load('minilm'), or leave half out.")
    if Path(path).suffix.lower() != ".html":
        raise ExportError(f"{Path(path).name[:60]!r} does not end in .html.", "A published page is one HTML file.")
    data = publication(
        panels, title=title, introduction=introduction, remarks=remarks, pin_of=pin_of, diff=diff, **options
    )
    return files.write_bytes(path, lambda: data)


def publication(
    panels: Sequence[Any],
    *,
    title: str = TITLE,
    introduction: str = "",
    remarks: Sequence[str] = (),
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> bytes:
    """Make the page of :func:`publish` in memory.

    Args:
        panels: as for :func:`publish`.
        title: as for :func:`publish`.
        introduction: as for :func:`publish`.
        remarks: as for :func:`publish`.
        pin_of: as for :func:`publish`.
        diff: as for :func:`publish`.
        **options: as for :func:`publish`.

    Returns its bytes. Raises SettingError as :func:`publish`.
    """
    parts, look = _build_parts(panels, title, introduction, remarks, pin_of, diff, options)
    return render_published_page(parts, title=title.strip() or TITLE, introduction=introduction, look=look)


def _build_example(panel: Panel, model: Encoder, options: Mapping[str, Any]) -> tuple[str, PagePart]:
    """Let the live model read the sentence of a panel; return the sentence and a drawing of all heads."""
    text = panel.attention.text.text
    reading = model.encode(text)
    _ = reading[panel.head]  # raises UnknownHead
    page = grid(reading, **{name: value for name, value in options.items() if name != "pin"}).page
    assert page is not None
    return text, PagePart("", "", page.packet(), {**page.start, "head": str(panel.head)}, "")


def _build_parts(
    panels: Sequence[Any],
    title: str,
    introduction: str,
    remarks: Sequence[str],
    pin_of: int,
    diff: tuple[int, int] | None,
    options: Options,
) -> tuple[list[PagePart], Look]:
    """Build the parts of the page; also return its colour scheme."""
    all_panels = [build_panel(item) for item in list_items(panels, "panels", "Give [(attention, 'L3H1'), …].")]
    _check_counts(all_panels, remarks)
    check_texts(title, introduction, remarks)
    texts = [*remarks, *[""] * (len(all_panels) - len(remarks))]
    view, _, look = settings(options)
    parts = [
        _build_part(
            [panel],
            _panel_heading(panel),
            remark,
            "links",
            options | {"pin": convert_pin(all_panels, number, view, pin_of)},
        )
        for number, (panel, remark) in enumerate(zip(all_panels, texts, strict=True))
    ]
    if len(all_panels) > 1:
        parts.insert(
            0, _build_part(all_panels, "Side by side", "", "heatmap", options | {"pin_of": pin_of, "diff": diff})
        )
    return parts, look


def _build_part(panels: Sequence[Panel], heading: str, remark: str, kind: Any, options: Any) -> PagePart:
    figure = compare(panels, kind, **options)
    assert figure.page is not None
    return PagePart(heading, remark, figure.page.packet(), figure.page.start, figure.drawing.caption)


def _panel_heading(panel: Panel) -> str:
    head = name_in_model(panel.attention, panel.head)
    return f"{head}: {panel.name}" if panel.name else head


def check_texts(title: str, introduction: str, remarks: Sequence[str]) -> None:
    """Raise SettingError for a text that is too long."""
    for name, text, max_characters in (
        ("title", title, MAX_TITLE),
        ("introduction", introduction, MAX_REMARK),
        *(("remark", remark, MAX_REMARK) for remark in remarks),
    ):
        check_kind(text, str, "a text", f"Give the {name} as text.")
        if len(text) > max_characters:
            raise SettingError(f"The {name} has {len(text):,} characters.", f"It can have up to {max_characters:,}.")


def _check_counts(panels: Sequence[Panel], remarks: Sequence[str]) -> None:
    if isinstance(remarks, str):
        raise SettingError("remarks is a single text.", "Give a list with a text for each head.")
    if not panels:
        raise SettingError("No head was named.", "Give [(attention, 'L3H1'), …].")
    if len(remarks) > len(panels):
        raise SettingError(f"There are {len(remarks)} remarks on {len(panels)} heads.", "Give one for each head.")
