"""``mha-viz figure``: every figure, every format, and one line for every error."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mha_viz import figures as figure_api
from mha_viz.cli import main
from mha_viz.models.reading import loading
from mha_viz.models.reading.encoder import Encoder
from mha_viz.quotes import make_printable
from tests import hostile, lanes
from tests.files import FORMATS, check_opens

TIRED, WIDE = "It was too tired.", "It was too wide."


@pytest.fixture(autouse=True)
def _one_model(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every call of the command would load the model again, and most read the same texts."""
    of_toy = cache(loading.load)
    remembering = _remembering(minilm)
    monkeypatch.setattr(loading, "load", lambda model, *_, **__: remembering if model == "minilm" else of_toy(model))


@cache
def _remembering(minilm: Encoder) -> SimpleNamespace:
    return SimpleNamespace(encode=lru_cache(maxsize=8)(minilm.encode))


def figure(*arguments: str | Path) -> int:
    return main(["figure", *map(str, arguments)])


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png", "html", "csv", "npz", "safetensors", "json"])
def test_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str], minilm: Encoder, suffix: str) -> None:
    out = tmp_path / f"f.{suffix}"
    assert figure("links", TIRED, "--head", "L3H1", "--head", "L3H4", "--pin", "q1", "--dpi", "100", "--out", out) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith(f"{out}: Attention links, heads L3H1 (4-2), L3H4 (4-5)")
    if suffix != "safetensors":
        expected = figure_api.links(minilm.encode(TIRED), heads=["L3H1", "L3H4"], pin="q1")
        assert out.read_bytes() == expected.to_bytes(f".{suffix}", 100)


@pytest.mark.parametrize("kind", ["heatmap", "grid", "compare", "difference"])
def test_every_figure(tmp_path: Path, minilm: Encoder, kind: str) -> None:
    out = tmp_path / "f.svg"
    heads = [] if kind == "grid" else ["--head", "L3H1"]
    others = ["--and", WIDE] if kind in ("compare", "difference") else []
    arguments = [*heads, *others, "--special", "rescale", "--width-in", "3.35", "--font-pt", "7", "--look", "dark"]
    assert figure(kind, TIRED, *arguments, "--out", out) == 0
    a, b = minilm.encode(TIRED), minilm.encode(WIDE)
    options = {"special": "rescale", "width_in": 3.35, "font_pt": 7.0, "look": "dark"}
    expected = {
        "heatmap": lambda: a.heatmap(layer=3, head=1, **options),
        "grid": lambda: a.grid(**options),
        "compare": lambda: figure_api.compare([(a, "L3H1"), (b, "L3H1")], **options),
        "difference": lambda: figure_api.difference((a, "L3H1"), (b, "L3H1"), **options),
    }[kind]()
    assert out.read_bytes() == expected.to_bytes(".svg")


def test_a_comparison_takes_every_head_of_every_text_and_prints_its_caption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--and", WIDE, "--head", "L3H1", "--head", "L0H2", "--as", "links", "--caption"]
    assert figure("compare", TIRED, *arguments, "--out", tmp_path / "f.svg") == 0
    stdout = capsys.readouterr().out
    assert stdout.count("L3H1 (4-2)") == 2
    assert stdout.count("L0H2 (1-3)") == 2


def test_all_heads_go_into_a_folder_one_file_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "heads"
    arguments = ("--model", "toy", "--all-heads", folder, "--format", "pdf", "--width-mm", "40")
    assert figure("heatmap", "the dog saw the girl .", *arguments) == 0
    assert {path.name for path in folder.iterdir()} == {
        f"L{i}H{j}_the-dog-saw-the.pdf" for i in range(2) for j in range(4)
    }
    assert "8 files, L0H0_the-dog-saw-the.pdf to L1H3_the-dog-saw-the.pdf" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["heatmap", "links"])
def test_maps_of_rollout_go_into_files_named_by_their_layers(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--model", "toy", "--quantity", "rollout", "--all-heads", tmp_path / "maps")
    assert figure(kind, "the dog saw the girl .", *arguments) == 0
    first, last = (f"L{layer}{'-links' * (kind == 'links')}_the-dog-saw-the.svg" for layer in (0, 1))
    assert {path.name for path in (tmp_path / "maps").iterdir()} == {first, last}
    assert f"2 files, {first} to {last}" in capsys.readouterr().out


def test_a_layer_of_rollout_is_named_without_a_head(tmp_path: Path) -> None:
    rollout_of_toy = ("--model", "toy", "--quantity", "rollout")
    for name, path in (("L1", tmp_path / "layer.csv"), ("L1H0", tmp_path / "head.csv")):
        assert figure("heatmap", "the dog saw the girl .", "--head", name, *rollout_of_toy, "--out", path) == 0
    assert (tmp_path / "layer.csv").read_bytes() == (tmp_path / "head.csv").read_bytes()


TWO = ("--head", "L3H1", "--head", "L0H2")
WRONG: list[tuple[list[str], str]] = [
    (["heatmap", TIRED, "--head", "L3H1"], "exactly one output"),
    (["heatmap", TIRED, "--head", "l5", "--out", "f.svg"], "L5 is a layer, not a head. Give --head L5H0, or --quan"),
    (
        ["heatmap", TIRED, "--head", "L6", "--quantity", "rollout", "--out", "f.svg"],
        "does not exist: minilm has 6 layers whose heads are joined",
    ),
    (["heatmap", TIRED, "--head", "L3H1", "--out", "f.svg", "--all-heads", "d"], "exactly one output"),
    (["heatmap", TIRED, "--head", "L3H1", "--out", "f.bmp"], "not a figure format"),
    (["heatmap", TIRED, "--head", "L3H1", "--out", "f"], "The file has no suffix"),
    (["heatmap", TIRED, "--head", "L3H1", "--out", "f.sgv"], "Did you mean .svg?"),
    (["grid", TIRED, "--out", "-"], "stdout has no suffix"),
    (["grid", TIRED, "--out", "-", "--format", "bmp"], "not a figure format"),
    (["links", TIRED, "--all-heads", "d", "--format", "sgv"], "Did you mean .svg?"),
    (["heatmap", TIRED, "--out", "f.svg"], "No head was named. Give --head L3H1."),
    (["links", TIRED, "--model", "toy", "--out", "f.svg"], "No head was named. Give --head L1H1."),
    (["links", TIRED, "--model", "./mine", "--out", "f.svg"], "No head was named. Give --head L0H0."),
    (["heatmap", TIRED, "--head", "L3H1", "--head", "L3H2", "--out", "f.svg"], "shows one head"),
    (["links", TIRED, "--head", "L3H1", "--pin", "q99", "--out", "f.svg"], "--pin is “q99”: there is no token 99"),
    (["compare", TIRED, "--head", "L3H1", "--pin", "k0", "--special", "hide", "--out", "f.html"], "does not show"),
    (
        ["heatmap", TIRED, "--head", "4-2", "--out", "f.svg"],
        "not the name of a head. Did you mean L3H1, which papers write as 4-2?",
    ),
    (["heatmap", TIRED, "--head", "L99H1", "--out", "f.svg"], "does not exist: minilm has 6 layers"),
    (["heatmap", TIRED, "--head", "L11H3", "--out", "f.svg"], "Did you mean L3H11?"),
    (["tree", TIRED, "--head", "L3H1", "--out", "f.svg"], "“tree” is not a kind. Choose from heatmap"),
    (["links", "", "--head", "L3H1", "--out", "f.svg"], "Nothing was typed"),
    (
        ["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--links", "top0"],
        "--links is “top0”. Expected one of: all; top1 to top10",
    ),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--links", "min1"], "min0.00 to min0.99"),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--width-mm", "wide"], "not a number"),
    (
        ["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--width-mm", "nan"],
        "--width-mm is nan. Expected a number from 20",
    ),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--width-in", "0.1"], "--width-in is 0.1. Expected"),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--max-height-mm", "1"], "--max-height-mm is 1.0. Expected"),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--side", "ab"], "Give --pair TEXT, or leave --side out"),
    (["links", "It", "was", "--head", "L3H1", "--out", "f.svg"], "expected: was. Put text in quotation marks"),
    (["links", TIRED, "--out", "f.svg", "--head"], "--head needs a value. See mha-viz figure links --help."),
    (
        ["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--pin", "7"],
        "--pin is “7”. Expected one of: q10",
    ),
    (["links", TIRED, "--head", "L3H1", "--out", "f.svg", "--dpi", "9"], "a resolution from 10 to 2400"),
    (["links", TIRED, "--head", "L3H1", "--out", "no/such/folder/f.svg"], "cannot be written"),
    (["difference", TIRED, "--head", "L3H1", "--out", "f.svg"], "takes two heads"),
    (["difference", TIRED, "--and", "Cats sleep all day long.", "--head", "L3H1", "--out", "f.svg"], "common rows"),
    (
        ["compare", TIRED, "--head", "L3H1", "--out", "f.svg", "--scale", "row"],
        "“row” is not a value of --scale. Choose from fixed, head, log",
    ),
    (["compare", TIRED, "--head", "L3H1", "--side", "ab", "--out", "f.csv"], "--side does not go with figure compare"),
    (
        ["compare", TIRED, "--head", "L3H1", "--as", "bars", "--out", "f.svg"],
        "“bars” is not a value of --as. Choose from heatmap, links.",
    ),
    (["links", TIRED, "--head", "L3H1", "--head", "L2H1", "--out", "f.html"], "different layers"),
    (["grid", TIRED, "--head", "L99H99", "--out", "f.svg"], "--head does not go with figure grid"),
    (
        ["heatmap", TIRED, "--head", "L3H1", "--as", "nonsense", "--out", "f.svg"],
        "--as does not go with figure heatmap. It goes with compare.",
    ),
    (
        ["links", TIRED, "--head", "L3H1", "--and", "B", "--out", "f.svg"],
        "--and does not go with figure links. It goes with compare and difference.",
    ),
    (["heatmap", TIRED, "--all-heads", "d", "--head", "L3H1"], "--head does not go with --all-heads"),
    (["heatmap", TIRED, "--all-heads", "d", "--and", "B"], "--and does not go with figure heatmap"),
    (["heatmap", TIRED, "--all-heads", "d", "--caption"], "--caption does not go with --all-heads"),
    (
        ["heatmap", TIRED, "--head", "L3H1", "--format", "png", "--out", "f.svg"],
        "--format png contradicts the suffix .svg",
    ),
    (
        ["heatmap", TIRED, "--head", "L3H1", "--links", "top3", "--out", "f.svg"],
        "--links does not go with figure heatmap",
    ),
    (["heatmap", TIRED, "--all-heads", "d", "--links", "top3"], "--links does not go with figure heatmap"),
    (["compare", TIRED, "--head", "L3H1", "--links", "top3", "--out", "f.svg"], "goes with links, compare --as links"),
    (["difference", TIRED, *TWO, "--scale", "log", "--out", "f.svg"], "--scale does not go with diff"),
    (["grid", TIRED, "--pin", "q3", "--out", "f.svg"], "--pin does not go with grid"),
    (["heatmap", TIRED, "--all-heads", ""], "no name"),
    (
        ["grid", TIRED, "--width-mm", "85", "--width-in", "3", "--out", "f.svg"],
        "--width-in does not go with --width-mm.",
    ),
    (["grid", TIRED, "--all-heads", "d"], "--all-heads does not go with figure grid"),
    (
        ["grid", TIRED, "--columns", "2", "--out", "f.svg"],
        "--columns does not go with figure grid. It goes with compare.",
    ),
    (
        ["compare", TIRED, "--head", "L3H1", "--columns", "0", "--out", "f.svg"],
        "expected a number of columns",
    ),
    (["compare", TIRED, "--head", "L3H1", "--columns", "17", "--out", "f.svg"], "from 1 to 16"),
    (["compare", TIRED, "--head", "L3H1", "--columns", "2", "--out", "f.html"], "--columns does not go with .html"),
    (["grid", TIRED, "--special", "rescaled", "--out", "f.svg"], "Did you mean rescale?"),
    (["grid", TIRED, "--widht-mm", "85", "--out", "f.svg"], "Did you mean --width-mm?"),
    (["links", TIRED, "--all-heads", "f.svg/d"], "cannot be created"),
]


NOT_FOUND, BAD_INPUT = ("does not exist", "Did you mean L3H11?"), ("Nothing was typed",)
# Errors that only reading the text can show: how many tokens it has.
AFTER_READING = ("no token 99", "does not show", "common rows")


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[f"{a[0]} {message}" for a, message in WRONG])
def test_what_is_wrong_is_one_line_and_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "f.svg/d" in arguments:
        (tmp_path / "f.svg").write_text("a file where a folder should be")
    elif not any(words in message for words in AFTER_READING):
        monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    before = sorted(tmp_path.iterdir())
    assert figure(*arguments) == (3 if message.startswith(NOT_FOUND) else 5 if message in BAD_INPUT else 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("mha-viz: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err
    assert sorted(tmp_path.iterdir()) == before


def test_panels_in_columns(tmp_path: Path, minilm: Encoder) -> None:
    out = tmp_path / "f.svg"
    heads = ["L3H1", "L0H2"]
    arguments = [part for head in heads for part in ("--head", head)]
    assert figure("compare", TIRED, "--and", WIDE, *arguments, "--columns", "3", "--out", out) == 0
    panels = [(minilm.encode(text), head) for text in (TIRED, WIDE) for head in heads]
    assert out.read_bytes() == figure_api.compare(panels, columns=3).to_bytes(".svg")
    assert out.read_bytes() != figure_api.compare(panels).to_bytes(".svg")


@pytest.mark.parametrize("suffix", ["svg", "png", "csv"])
def test_a_figure_on_stdout_is_the_file(minilm: Encoder, capfdbinary: Any, suffix: str) -> None:
    arguments = ["--head", "L3H1", "--dpi", "60", "--out", "-", "--format", suffix, "--caption"]
    assert figure("heatmap", TIRED, *arguments) == 0
    shown = capfdbinary.readouterr()
    drawn = figure_api.heatmap(minilm.encode(TIRED), 3, 1)
    assert shown.out == drawn.to_bytes(f".{suffix}", 60)
    assert shown.err.decode() == f"{drawn.caption}\n"


def test_a_page_takes_the_settings_that_its_reader_can_come_to_see(tmp_path: Path) -> None:
    settings = ["--links", "top3", "--scale", "head", "--pin", "q3"]
    for kind, heads in (("grid", []), ("compare", ["--head", "L3H1"]), ("difference", ["--head", "L3H1"])):
        others = ["--and", WIDE] if kind == "difference" else []
        assert figure(kind, TIRED, *heads, *others, *settings, "--out", tmp_path / f"{kind}.html") == 0
    assert figure("compare", TIRED, "--head", "L3H1", "--as", "links", *settings, "--out", tmp_path / "links.svg") == 0


EVERY = ("heatmap", "links", "grid", "compare", "difference")


@pytest.mark.parametrize(
    ("number", "text"), list(enumerate(hostile.ON_THE_COMMAND_LINE.values())), ids=hostile.ON_THE_COMMAND_LINE
)
def test_hostile_texts_are_drawn_or_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, text: str
) -> None:
    """Every figure, in a different format for each text."""
    for turn, kind in enumerate(EVERY):
        out = tmp_path / f"{kind}{FORMATS[(number + turn) % len(FORMATS)]}"
        most = 40 if kind == "grid" else 3000 if kind == "links" and out.suffix in (".svg", ".html") else 200
        heads = {"grid": [], "compare": ["--head", "L3H1"]}.get(kind, ["--head", "L3H1"])
        heads += {"compare": ["--and", "It was."], "difference": ["--head", "L0H2"]}.get(kind, [])
        ended = figure(kind, text[:most], *heads, "--dpi", "40", "--out", out)
        shown = capsys.readouterr()
        assert ended in (0, 2, 5)
        assert out.exists() is (ended == 0)
        assert "Traceback" not in shown.err
        if ended:
            assert shown.err.count("\n") == 1
        else:
            assert shown.out.count("\n") == 1, "line breaks of the text stay out of the terminal"
            assert make_printable(shown.out[:-1], "") == shown.out[:-1]
            check_opens(out.suffix, out.read_bytes())
    assert {path.stem for path in tmp_path.iterdir()} in ({*EVERY}, set())


@pytest.mark.parametrize(("kind", "suffix"), lanes.pair_values(["compare", "difference"], FORMATS))
def test_comparisons_in_every_format(tmp_path: Path, minilm: Encoder, kind: str, suffix: str) -> None:
    out = tmp_path / f"f{suffix}"
    assert figure(kind, TIRED, "--and", WIDE, "--head", "L3H1", "--dpi", "60", "--out", out) == 0
    check_opens(out.suffix, out.read_bytes())
    two = [(minilm.encode(text), "L3H1") for text in (TIRED, WIDE)]
    if suffix != ".safetensors":
        made = figure_api.compare(two) if kind == "compare" else figure_api.difference(*two)
        assert out.read_bytes() == made.to_bytes(suffix, 60)


def test_a_missing_font_is_a_warning_not_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mha_viz.figures.drawing import fonts

    lost = "\U0001f9ff"
    if fonts.find_font(lost):
        lost = "\U00016fe4"  # a letter that hardly any machine has
    assert fonts.find_font(lost) is None
    assert figure("links", f"a {lost} b", "--head", "L3H1", "--out", tmp_path / "f.svg") == 0
    assert "mha-viz: No font on this machine has" in capsys.readouterr().err


def test_a_page_that_is_too_low_for_a_text_is_said_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("links", TIRED, "--head", "L3H1", "--max-height-mm", "20", "--width-mm", "60")
    assert figure(*arguments, "--out", tmp_path / "f.svg", "--caption") == 0
    written, stderr = capsys.readouterr()
    assert "tokens are drawn" in written
    assert "mha-viz: The first" in stderr
    assert "raise --max-height-mm or lower --font-pt. To add columns for the rest, raise --width-mm" in stderr


WEAK = ("Who sat?", "--pair", "The cat sat on the mat.", "--side", "ab")


@pytest.mark.parametrize("kind", ["links", "heatmap", "grid"])
def test_a_picture_in_which_hardly_anything_can_be_seen_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    head = [] if kind == "grid" else ["--head", "L3H1"]
    weak = [*WEAK, "--model", "minilm", *head]
    assert figure(kind, *weak, "--out", tmp_path / "f.svg") == 0
    stderr = capsys.readouterr().err
    if kind == "grid":  # some of its heads are strong
        assert stderr == ""
        return
    assert stderr == (
        "mha-viz: All weights shown are below 0.15, hardly visible on a scale from 0 to 1. "
        "Use --scale head, which runs to the largest weight.\n"
    )
    assert figure(kind, *weak, "--scale", "head", "--out", tmp_path / "f.svg") == 0
    assert figure(kind, *weak, "--out", tmp_path / "f.csv") == 0
    assert capsys.readouterr().err == ""


def test_of_many_files_each_warning_is_said_once_with_a_file_it_is_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figure("links", *WEAK, "--all-heads", tmp_path) == 0
    stdout, stderr = capsys.readouterr()
    assert "72 files, L0H0-links_" in stdout
    assert stderr.count("\n") == 1
    assert "such files: All weights shown are below 0.15" in stderr


def test_a_rule_that_leaves_no_link_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("links", TIRED, "--head", "L3H1", "--links", "min0.99", "--special", "hide", "--caption")
    assert figure(*arguments, "--out", tmp_path / "f.svg") == 0
    written, stderr = capsys.readouterr()
    assert "No weight is large enough for a link." in written
    assert "ask for less than --links min0.99" in stderr


def test_the_line_on_a_comparison_names_each_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "It was " + "very " * 100 + "wide."
    assert figure("compare", TIRED, "--and", long, "--head", "L3H1", "--out", tmp_path / "f.csv") == 0
    stdout = capsys.readouterr().out
    assert f"for the texts “{TIRED}”; “It was very" in stdout
    assert stdout.endswith("…”.\n")
    assert len(stdout) < 400


def test_a_long_text_is_cut_with_an_ellipsis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert figure("heatmap", "very " * 60 + "wide", "--head", "L3H1", "--out", tmp_path / "f.csv") == 0
    assert "…”. Strongest link" in capsys.readouterr().out


def test_help_says_of_each_kind_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    helps = {}
    for kind in EVERY:
        with pytest.raises(SystemExit):
            figure(kind, "--help")
        helps[kind] = " ".join(capsys.readouterr().out.split())
    assert {kind for kind in EVERY if "for a layer of rollout; may be repeated" in helps[kind]} == {"links", "compare"}
    assert "twice, or once with --and" in helps["difference"]
    assert {kind for kind in EVERY if "only in .html files" in helps[kind]} == {"grid", "difference"}
    assert all("min0.N" in helps[kind] for kind in EVERY if kind != "heatmap")
    assert "row, to each row's" not in helps["compare"]
