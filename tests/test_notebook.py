"""Figures in notebooks and scripts: display, saving, and the Python code that makes a figure again."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
import zipfile
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors

import mha_viz as mv
from mha_viz import figures as figure_api
from mha_viz.attention import Attention, Head
from mha_viz.errors import ExportError, MhaVizError, SettingError, UnknownHead
from mha_viz.figures.charts.chart import Axis, Bars, Chart, Margin, Plot
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout import Size, figure_code
from mha_viz.figures.layout.difference import compute_difference
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from mha_viz.models.reading.encoder import Encoder
from mha_viz.options import register_function
from tests.readings import reading
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from nbformat import NotebookNode

pytestmark = pytest.mark.app

TIRED = "The animal didn't cross the street because it was too tired."

CELLS = [
    f"import mha_viz as mv\na = mv.load('minilm').encode({TIRED!r})\na",
    "a.grid()",
    "a.links(layer=3, head=1, pin='q10')",
    "a.heatmap(layer=3, head=1, special='rescale')",
    "mv.compare([(a, 'L3H1'), (a, 'L5H11')])",
    "a.links(layer=3, head=1).figure()",
    # what people with BertViz code have: the model's own output and the tokenizer's tokens
    "import torch\nlayers = [torch.tensor(w)[None] for w in a.weights]\n"
    "mv.Attention.from_tensors(layers, ['[CLS]', *[t.text for t in a.text.tokens[1:-1]], '[SEP]']).grid()",
    "a.grid().show()",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[NotebookNode]]:
    """A folder in which one kernel has run the notebook of a research session from top to bottom, and then CELLS; the
    cells with their outputs."""
    import nbclient  # for seconds: its formats of addresses are grammars
    import nbformat

    root, folder = Path(__file__).resolve().parent.parent, tmp_path_factory.mktemp("session")
    book = nbformat.read(root / "docs" / "notebooks" / "research_session.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)  # of the repository: what it shows comes from the code
    book.cells += [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(root))
        environment.delenv("MPLBACKEND", raising=False)  # which another test may have set for all that follow
        place = {"metadata": {"path": folder}}
        nbclient.NotebookClient(book, timeout=PATIENCE, kernel_name="python3", resources=place).execute()
    return folder, [cell for cell in book.cells if cell.cell_type == "code"]


def test_a_figure_opens_in_the_browser_outside_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    reading(3, 4).links(layer=1, head=2).show()
    path = Path(url2pathname(urlsplit(opened[0]).path))
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    path.unlink()
    path.parent.rmdir()


def test_a_notebook_shows_its_figures(session: tuple[Path, list[NotebookNode]]) -> None:
    shown = [cell["outputs"] for cell in session[1][-len(CELLS) :]]
    for number in (1, 2, 3, 4, 6, 7):
        html = shown[number][-1]["data"]["text/html"]
        assert b64decode(shown[number][-1]["data"]["image/png"]).startswith(b"\x89PNG"), "for who shows it saved"
        assert html.startswith("<iframe srcdoc=")
        assert "https://" not in html.replace("https://www.w3.org", "")
    assert "Attention(minilm, 6 layers" in shown[0][-1]["data"]["text/plain"]
    assert any("image/png" in output.get("data", {}) for output in shown[5])  # matplotlib shows the Axes' figure


def test_the_notebook_of_a_research_session_runs(session: tuple[Path, list[NotebookNode]]) -> None:
    """Its cells check their own numbers; the displayed and saved output is checked here."""
    folder, cells = session[0] / "session", session[1][: -len(CELLS)]
    shown = [cell.outputs[-1]["data"] for cell in cells if cell.outputs]
    tables = [data["text/plain"] for data in shown if "<table" in data.get("text/html", "")]
    assert any("established" in table for table in tables)
    assert any("holds" in table for table in tables)
    assert any("wrong" in table and "right" in table for table in tables)
    assert len([data for data in shown if data.get("text/html", "").startswith("<iframe srcdoc=")]) == 3
    assert (folder / "pronoun.pdf").read_bytes().startswith(b"%PDF")
    assert "L1H1 (2-2)" in (folder / "pronoun.txt").read_text("utf-8")
    assert mv.load_profile(folder / "profile").findings()


# ---- Saving ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png", ".html", ".csv", ".npz", ".safetensors", ".json"])
def test_every_format_is_saved(tmp_path: Path, suffix: str) -> None:
    for name, figure in (("grid", reading().grid()), ("links", reading().links(heads=["L0H0", (0, 2)]))):
        path = figure.save(tmp_path / f"{name}{suffix}")
        if suffix == ".safetensors":  # the order of its metadata varies
            assert (load_tensors(path.read_bytes())["weights_by_words"] == figure.numbers().weights).all()
        else:
            assert path.read_bytes() == figure.to_bytes(suffix)


def test_the_numbers_are_those_of_the_picture() -> None:
    attention = reading(words=(1, 2, 1))
    figure = attention.heatmap(layer=1, head=2, special="rescale")
    expected = attention.by_words().without_special()[Head(1, 2)]
    rows = list(csv.DictReader(io.StringIO(figure.to_bytes(".csv").decode())))
    place = ["layer", "head", "query_index", "query_token", "key_index", "key_token"]
    assert list(rows[0])[:7] == [*place, "weight_by_words_rescaled"]
    assert [float(row["weight_by_words_rescaled"]) for row in rows] == pytest.approx(
        expected.ravel().tolist(), abs=1e-6
    )
    assert {row["query_index"] for row in rows} == {"1", "2", "3"}
    with np.load(io.BytesIO(figure.to_bytes(".npz")), allow_pickle=False) as arrays:
        assert arrays["weights_by_words_rescaled"][0] == pytest.approx(expected, abs=1e-6)
        assert arrays["heads"].tolist() == [[1, 2]]
        assert str(arrays["special"]) == "rescale"
    tensors = load_tensors(figure.to_bytes(".safetensors"))
    assert tensors["weights_by_words_rescaled"].shape == (1, 3, 3)
    tree = json.loads(figure.to_bytes(".json"))
    assert tree["heads"] == ["L1H2"]
    assert np.array(tree["weights_by_words_rescaled"])[0] == pytest.approx(expected, abs=1e-6)
    assert np.array(tree["hidden"])[0] == pytest.approx(attention.by_words().without_special().hidden[1, 2], abs=1e-6)


def test_a_token_that_a_spreadsheet_would_run_is_only_text() -> None:
    attention = Attention.from_tensors([np.full((1, 2, 2), 0.5)], ['=HYPERLINK("x")', "+1"])
    table = attention.heatmap(layer=0, head=0, unit="pieces").to_bytes(".csv").decode()
    cells = [row["query_token"] for row in csv.DictReader(io.StringIO(table))]
    assert {*cells} == {'\'=HYPERLINK("x")', "+1"}  # a number is none that it runs


@pytest.mark.parametrize("name", ["figure.bmp", "figure", "no/such/folder/figure.svg", "a\0.svg"])
def test_what_cannot_be_saved_says_so_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError):
        reading().grid().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def two_bars(theme: Theme) -> Chart:
    bars = Bars(["a", "b"], [0.25, 0.5], theme.heads[0], name="share")
    return Chart(theme, [bars], [Plot(Axis(), Axis())], 250, Margin(50, 10, 20, 30))


@pytest.mark.parametrize(
    "figure",
    [
        lambda a: a.heatmap("L1H1"),
        lambda a: a.links("L1H1", special="hide"),
        lambda a: a.grid(heads=[0, 1]),
        lambda a: mv.compare([(a, "L1H1"), (a, "L0H1", "a name")], kind="links"),
        lambda a: mv.difference((a, "L1H1"), (a, "L0H1")),
        lambda a: mv.overlay(
            mv.Attention.from_tensors(a.weights[:, :, :4, :4] * 0 + 0.25, ["0,0", "0,1", "1,0", "1,1"])
        ),
        lambda _: figure_api.chart(two_bars, "Two bars", "Of a test."),
    ],
)
def test_a_figure_can_be_pickled_and_copied(figure: Callable[[Attention], figure_api.Figure]) -> None:
    drawn = figure(reading())
    before = pickle.loads(pickle.dumps(drawn))  # none of its drawings is made yet
    files = [drawn.to_bytes(suffix) for suffix in (".svg", ".html", ".csv") if suffix in drawn.suffixes]
    for other in (before, pickle.loads(pickle.dumps(drawn)), copy.copy(drawn), copy.deepcopy(drawn)):
        assert [other.to_bytes(suffix) for suffix in (".svg", ".html", ".csv") if suffix in drawn.suffixes] == files


def table(figure: figure_api.Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.to_bytes(".csv").decode())))


def test_the_numbers_of_a_comparison() -> None:
    one, two = reading(words=(1, 2, 1)), reading(words=(1, 1), seed=3)
    figure = mv.compare([(one, "L1H2", "=my head"), (two, "L0H0")], special="hide")
    expected = [a.heatmap(heads=[h], special="hide").numbers() for a, h in ((one, "L1H2"), (two, "L0H0"))]
    rows = table(figure)
    assert list(rows[0])[:3] == ["panel", "name", "model"]
    number_name, array_name = "weight_by_words", "weights_by_words"  # hidden special tokens leave the numbers
    for number, alone in enumerate(expected, 1):
        panel_rows = [row for row in rows if row["panel"] == str(number)]
        assert [float(row[number_name]) for row in panel_rows] == pytest.approx(alone.weights.ravel().tolist())
        assert (panel_rows[0]["layer"], panel_rows[0]["head"]) == tuple(map(str, alone.heads[0]))
    assert {row["name"] for row in rows} == {"'=my head", ""}
    with np.load(io.BytesIO(figure.to_bytes(".npz")), allow_pickle=False) as arrays:
        tensors = load_tensors(figure.to_bytes(".safetensors"))
        tree = json.loads(figure.to_bytes(".json"))
        assert arrays["heads"].tolist() == [[1, 2], [0, 0]]
        assert str(arrays["panel2_text"]) == two.text.text
        for number, alone in enumerate(expected, 1):
            for weights in (arrays[f"panel{number}_{array_name}"], tensors[f"panel{number}.{array_name}"]):
                assert (weights == alone.weights[0]).all()
            stated = tree["panels"][number - 1]
            assert np.array(stated[array_name]) == pytest.approx(alone.weights[0])
            assert np.array(stated["hidden"]) == pytest.approx(alone.hidden[0])
            assert stated["head"] == str(alone.heads[0])


def test_the_numbers_of_a_difference(minilm: Encoder) -> None:
    one, two = (Panel(minilm.encode(text), Head(3, 1)) for text in (TIRED, TIRED.replace("tired", "wide")))
    figure = mv.difference(one, two, special="rescale")
    expected = compute_difference(one, two, View(special="rescale"))
    rows = table(figure)
    named = ["query_index", "query_token", "key_index", "key_token", "first", "second", "difference"]
    assert list(rows[0])[:7] == named
    assert (rows[0]["first_text"], rows[0]["second_head"], rows[1]["first_text"]) == (TIRED, "L3H1", "")
    assert [float(row["difference"]) for row in rows] == pytest.approx(expected.d.ravel().tolist())
    assert "tired / wide" in {row["key_token"] for row in rows}
    with np.load(io.BytesIO(figure.to_bytes(".npz")), allow_pickle=False) as arrays:
        tensors = load_tensors(figure.to_bytes(".safetensors"))
        tree = json.loads(figure.to_bytes(".json"))
        for content in (arrays, tensors, tree):
            assert np.array(content["difference"]) == pytest.approx(expected.d)
            assert np.array(content["second"]) - np.array(content["first"]) == pytest.approx(expected.d, abs=1e-7)
        assert (str(arrays["second_text"]), tree["second_head"]) == (two.attention.text.text, "L3H1")
    with pytest.raises(SettingError, match="common rows"):
        mv.difference(one, (minilm.encode("Cats sleep."), "L3H1")).to_bytes(".csv")


def test_everything_of_the_compared_heads_in_one_file() -> None:
    one, two = reading(seed=1), reading(seed=2)
    data = figure_api.archive([(one, "L0H0"), (two, "L1H2", "../my head")], dpi=50)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        names = set(file.namelist())
        assert file.testzip() is None
        captions = file.read("captions.txt").decode()
    assert {f"L0H0-L1H2_abababab.{suffix}" for suffix in ("html", "svg", "pdf", "png", "csv")} <= names
    assert {"1_L0H0_abababab.csv", "2_L1H2-links_abababab.pdf", "captions.txt"} <= names
    assert len(names) == 5 + 2 * (4 + 3) + 1
    assert not [name for name in names if "/" in name or name.startswith(".")]
    assert "L1H2 (2-3)" in captions


def contents(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_archive_has_what_is_on_screen(minilm: Encoder) -> None:
    tired, wide, other = (minilm.encode(t) for t in (TIRED, TIRED.replace("tired", "wide"), "A cat, an animal."))
    panels = [(tired, "L3H1"), (wide, "L0H2"), (other, "L1H1")]
    options = {"pin": "q5", "width_mm": 85, "look": "dark"}
    files = contents(figure_api.archive(panels, 60, "links", (1, 0), pin_of=2, **options))  # “animal” of the third
    shown = mv.compare(panels, kind="links", pin_of=2, diff=(1, 0), **options)
    assert files["L3H1-L0H2-L1H1-links_the-animal-didnt-cross.svg"] == shown.to_bytes(".svg")
    assert files["L3H1-L0H2-L1H1-links_the-animal-didnt-cross.png"] == shown.to_bytes(".png", 60)
    assert files["L3H1-L0H2-L1H1-links_the-animal-didnt-cross.html"] == shown.to_bytes(".html")
    differs = mv.difference(panels[1], panels[0], **options | {"pin": "q2"})
    assert files["L3H1-minus-L0H2_the-animal-didnt-cross.svg"] == differs.to_bytes(".svg")
    assert files["L3H1-minus-L0H2_the-animal-didnt-cross.csv"] == differs.to_bytes(".csv")
    assert files["1_L3H1-links_the-animal-didnt-cross.svg"] == tired.links(
        heads=["L3H1"], **options | {"pin": "q2"}
    ).to_bytes(".svg")
    assert (
        files["captions.txt"].decode().count("from “animal” are drawn")
        + files["captions.txt"].decode().count("of “animal” is outlined")
        == 8
    )


def test_a_png_that_is_too_large_is_left_out_of_the_archive_and_said_to_be() -> None:
    files = contents(figure_api.archive([(reading(words=(1,) * 10), "L0H0")], 2000, width_mm=178))
    assert "1_L0H0_abababababababababab.png" not in files
    assert "1_L0H0_abababababababababab.svg" in files
    assert "There is no 1_L0H0_abababababababababab.png. At 2000 dpi" in files["captions.txt"].decode()


def test_a_difference_holds_the_pin_of_either_panel_in_every_format(minilm: Encoder) -> None:
    one, two = ((minilm.encode(text), "L3H1") for text in (TIRED, TIRED.replace("tired", "wide")))
    figure = mv.difference(one, two, pin="q13", pin_of=1)
    assert "The row of “wide” is outlined." in figure.caption
    assert "pin=q13&diff=0-1&at=1" in unescape(figure.to_html()).replace("\\u0026", "&")
    assert "at=1" in unescape(mv.compare([one, two], pin="q13", pin_of=1).to_html()).replace("\\u0026", "&")


def test_a_look_that_was_asked_for_is_the_pages_too() -> None:
    a = reading()
    figures = [a.grid, partial(a.links, 0, 0), partial(a.heatmap, 0, 0), partial(mv.compare, [(a, "L0H0")])]
    figures += [partial(mv.difference, (a, "L0H0"), (a, "L0H1"))]
    for make in figures:
        assert "prefers-color-scheme: dark" in make().to_html()
        for look in ("light", "dark"):
            page = make(look=look).to_html()
            assert f"color-scheme: {look};" in page
            assert "prefers-color-scheme: dark" not in page


def test_nobody_draws_readings_in_another_way() -> None:
    before = reading().grid().to_bytes(".svg")
    with pytest.raises(ValueError, match="Two functions are registered as grid"):
        register_function("grid", lambda attention: None)
    assert reading().grid().to_bytes(".svg") == before
    assert not hasattr(mv.attention, "FIGURES")


# ---- Refusals --------------------------------------------------------------------------------------------

CALLS: list[tuple[Any, type[MhaVizError], str]] = [
    (lambda a: a.links(), SettingError, "No head"),
    (lambda a: a.heatmap(heads=["L0H0", "L0H1"]), SettingError, "one head"),
    (lambda a: a.links(layer=9, head=0), UnknownHead, "does not exist"),
    (lambda a: a.links(heads=["L0H0", "L1H1"]), SettingError, "different layers"),
    (lambda a: mv.compare([(a, "L0H0")], columns="2"), SettingError, "columns is"),
    (lambda a: mv.compare([(a, "L0H0")], columns=2.5), SettingError, "columns is"),
    (lambda a: mv.compare([(a, "L0H0")], pin_of=1), SettingError, "pin_of is"),
    (lambda a: mv.compare([(a, "L0H0")], side="ab"), SettingError, "side does not go with compare"),
    (lambda a: mv.compare([(a, "L0H0")] * 2, diff=(0, 2)), SettingError, "diff is"),
    (lambda a: mv.compare([(a, "L0H0")] * 2, diff=(1, 1)), SettingError, "two different panels"),
    (lambda a: mv.compare([(a, "L0H0")] * 2, diff="0-1"), SettingError, "diff is '0-1'"),
    (lambda a: a.grid().to_bytes(".png", "300"), ExportError, "resolution is '300' dpi. Expected a number"),
    (lambda a: a.heatmap(0, 1, dpi=600), SettingError, r"dpi belongs to a file.* figure.save\("),
    (lambda a: a.grid().to_bytes(".png", None), ExportError, "resolution is None"),
    (lambda a: a.heatmap(heads=["8-10"]), UnknownHead, "not the name of a head"),
    (lambda a: a.heatmap(heads=[3]), UnknownHead, "not a head"),
    (lambda a: a[3], UnknownHead, r"'3' is not a head. Write it as 'L3H1', .3, 1. or Head"),
    (lambda a: a.heatmap(3), SettingError, "No head was named. Give 'L1H2', or layer=1, head=2"),
    (lambda a: a.heatmap(head=1), SettingError, "No head was named"),
    (lambda a: a.heatmap("4-2"), UnknownHead, "not the name of a head"),
    (
        lambda a: a.links("L0H9"),
        UnknownHead,
        "L0H9 does not exist: tiny has 2 layers × 3 heads. Choose between L0H0 and L1H2.",
    ),
    (lambda a: a.links((0, 1.5)), UnknownHead, "is not a head"),
    (lambda a: a.only([3]), UnknownHead, "'3' is not a head"),
    (lambda a: mv.difference((a, 3), (a, "L0H0")), UnknownHead, "'3' is not a head"),
    (lambda a: a.grid(colour="red"), SettingError, "no option 'colour'"),
    (lambda a: a.grid(width_in="wide"), SettingError, "inches"),
    (lambda a: a.grid(width_mm=-1), SettingError, "width_mm"),
    (lambda a: mv.compare([]).drawing, SettingError, "1 to 16"),
    (lambda a: mv.compare([a]), SettingError, "not a head to compare"),
    (lambda a: mv.compare([("text", "L0H0")]), SettingError, "not an Attention"),
    (lambda a: mv.compare([(a, "L7H7")]), UnknownHead, "does not exist"),
    (lambda a: mv.compare([(a, "L0H0")], kind="bars").drawing, SettingError, "heatmap or links"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS, ids=[message for *_, message in CALLS])
def test_a_call_that_makes_no_sense_says_what_would(call: Any, kind: type[MhaVizError], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(reading())


@pytest.mark.parametrize("head", ["L1H2", "l1h2", (1, 2), [1, 2], Head(1, 2), np.array([1, 2])], ids=str)
def test_every_name_of_a_head_is_taken_everywhere(head: Any) -> None:
    a, named = reading(), Head(1, 2)
    assert (a[head] == a.weights[1, 2]).all()
    assert (a.only([head]).weights[0, 0] == a.weights[1, 2]).all()
    for figure in (a.heatmap(head), a.links(head), a.heatmap(heads=[head]), a.links(1, 2)):
        assert figure.numbers().heads == (named,)
    assert mv.compare([(a, head)]).numbers().panels[0].heads == (named,)
    assert mv.difference((a, head), (a, "L0H0")).numbers().first.heads == (named,)


# ---- Reproduce in Python ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "heads", "view", "size"),
    [
        ("heatmap", [Head(3, 1)], View(special="rescale", pin="q10"), Size(85, 7)),
        ("links", [Head(3, 1), Head(3, 4)], View(links="top3", unit="pieces"), Size(look="dark")),
        ("grid", [], View(scale="head"), Size(transparent=True)),
    ],
)
def test_the_lines_make_the_very_same_file(
    minilm: Encoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    heads: list[Head],
    view: View,
    size: Size,
) -> None:
    attention = minilm.encode(TIRED, 'It\'s "late" \\ now.')
    code = figure_code.write_head_code(attention, kind, heads, view, size, "figure.svg")
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # the lines that the page shows
    options = {**vars(view), **vars(size)} | ({"heads": heads} if heads else {})
    assert (tmp_path / "figure.svg").read_bytes() == getattr(attention, kind)(**options).to_bytes(".svg")


def test_the_lines_of_a_comparison_and_of_a_difference(
    minilm: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = minilm.encode(TIRED), minilm.encode(TIRED.replace("tired", "wide"))
    panels = [Panel(one, Head(3, 1), "a 'name'"), Panel(two, Head(3, 1)), Panel(one, Head(0, 2))]
    monkeypatch.chdir(tmp_path)
    view, size = View(special="hide"), Size(120)
    exec(figure_code.write_panels_code(panels, view, size, {"kind": "links"}, "compare", "c.svg"), {})
    exec(figure_code.write_panels_code(panels[:2], view, size, {}, "difference", "d.svg"), {})
    made = mv.compare(panels, kind="links", special="hide", width_mm=120)
    assert (tmp_path / "c.svg").read_bytes() == made.to_bytes(".svg")
    assert (tmp_path / "d.svg").read_bytes() == mv.difference(*panels[:2], special="hide", width_mm=120).to_bytes(
        ".svg"
    )


UNFIT: list[dict[str, Any]] = [
    {"heads": []}, {"heads": "L0H1"}, {"heads": 3}, {"layer": "x", "head": 1}, {"layer": 0.7, "head": 1},
    {"layer": True, "head": 1}, {"heads": [(0, True)]}, {"layer": 0, "head": 1, "pin": "q99"},
    {"layer": 0, "head": 1, "pin": "q0", "special": "hide"},
]  # fmt: skip


@pytest.mark.parametrize("options", UNFIT, ids=str)
@pytest.mark.parametrize("kind", ["heatmap", "links"])
def test_what_names_no_head_or_token_is_refused_in_words(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(MhaVizError):
        getattr(reading(), kind)(**options)


def test_numbers_of_numpy_name_heads_and_axes_are_axes() -> None:
    figure = reading().links(layer=np.int64(1), head=np.int64(2))
    assert "L1H2" in figure.caption
    with pytest.raises(SettingError, match="an Axes of matplotlib"):
        figure.figure(ax=3)


def test_an_unknown_suffix_is_answered_with_every_known_one(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"\.svg, \.pdf, \.png, \.html, \.csv, \.npz, \.safetensors, \.json"):
        reading().grid().save(tmp_path / "x.txt")
    with pytest.raises(ExportError, match="no suffix"):
        reading().grid().save(tmp_path / "x")


def test_labels_keep_their_size_in_axes_of_any_width() -> None:
    import matplotlib.pyplot as plt

    panels = [(reading(), "L0H1"), (reading(), "L1H1")]
    for figure in (reading().heatmap(0, 1), reading().grid(), mv.difference(*panels), mv.compare(panels)):
        whole, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
        for ax in (left, right):
            figure.figure(ax)
            assert max(text.get_fontsize() for text in ax.texts) > 6.7  # a grid has labels of 11 px only
        plt.close(whole)


def test_links_fill_axes_that_are_too_low_for_them() -> None:
    import matplotlib.pyplot as plt

    whole, ax = plt.subplots(figsize=(6, 1))
    reading().links(0, 1).figure(ax)
    wide, high = ax.get_xlim()[1], ax.get_ylim()[0]
    place = ax.get_position()
    assert wide / high == pytest.approx(6 * place.width / place.height, rel=0.05)
    plt.close(whole)


@pytest.mark.parametrize(("panels", "kind"), [(None, "heatmap"), (3, "heatmap"), ([], "heatmap"), (1, ["links"])])
def test_what_is_no_list_of_heads_is_refused_in_words(panels: Any, kind: Any) -> None:
    with pytest.raises(SettingError):
        mv.compare([(reading(), "L0H1")] if panels == 1 else panels, kind=kind)
