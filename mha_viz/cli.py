"""The command ``mha-viz``: serve the app, list the models, write a reading or a figure to a file.

What a person can cause ends in one line on stderr and exit code 2; Ctrl-C in 130.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from mha_viz import exports, fonts
from mha_viz.assets import app_root
from mha_viz.attention import Attention, Head
from mha_viz.errors import CorpusError, ExportError, MhaVizError, SettingError, TextError
from mha_viz.models import catalog, hub
from mha_viz.models.catalog import Model

BUILT_IN = "grammar"
MAX_STDIN_BYTES = 16_000_000  # far beyond what any model reads; a pipe may be endless

EXAMPLES = """examples:
  mha-viz serve --port 8600
  mha-viz models
  mha-viz attention "The cat sat on the mat." --out heads.npz
  mha-viz attention "Who sat?" --pair "The cat sat." --words --out heads.csv
  mha-viz attention - --model bert-base-uncased --out heads.json < sentence.txt
  mha-viz figure links "The cat sat because it was tired." --head L3H1 --pin q6 --out links.svg
  mha-viz figure heatmap "The cat sat." --head L0H2 --special rescale --width-mm 85 --out L0H2.pdf
  mha-viz figure grid "The cat sat." --out grid.png --dpi 300
  mha-viz figure compare "It was too tired." --and "It was too wide." --head L3H1 --head L5H11 --out four.html
  mha-viz figure difference "It was too tired." --and "It was too wide." --head L3H1 --out difference.svg
  mha-viz figure heatmap "The cat sat." --all-heads heads/ --format svg
  mha-viz profile treebank.conllu --out profile/
  mha-viz profile grammar --model distilbert-base-uncased --out profile/
  mha-viz toy train --seed 1 --out toy/
  mha-viz toy evaluate --seed 7 --sentences 500 --out scores.csv
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: the process's own) and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on(stream)
    try:
        asked = _parser().parse_args(arguments)
        asked.run(asked)
        print(end="", flush=True)  # a reader that left is noticed here, not at exit
    except MhaVizError as error:
        print(f"mha-viz: {_one_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output left, as in `mha-viz models | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # a fault of ours: say so plainly, and where to see more
        if sys.flags.dev_mode:
            raise
        fault = _one_line(f"{type(error).__name__}: {error}")
        print(
            f"mha-viz: A fault of this program: {fault}. `python -X dev -m mha_viz.cli …` shows where.", file=sys.stderr
        )
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, where argparse would print its usage first."""
        raise SettingError(f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"See {self.prog} --help.")


def _parser() -> _Parser:
    raw = argparse.RawDescriptionHelpFormatter
    about = "See what each attention head of a model does with a sentence."
    parser = _Parser("mha-viz", description=about, epilog=EXAMPLES, formatter_class=raw, allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], None], summary: str, epilog: str = "") -> _Parser:
        new = commands.add_parser(
            name, help=summary, description=summary, epilog=epilog, formatter_class=raw, allow_abbrev=False
        )
        new.set_defaults(run=run)
        return new

    _serve_options(command("serve", _serve, "Open the app in a browser.", _epilog("serve")))
    command("models", _models, "List the models that can be chosen.")
    _attention_options(command("attention", _attention, "Write what every head does to a file.", _epilog("attention")))
    summary = "Draw heads of one text, or of several side by side, for a paper, a slide or a web page."
    _figure_options(command("figure", _figure, summary, _epilog("figure")))
    summary = "Measure what each head does over a corpus, against gold annotations and baselines."
    _profile_options(command("profile", _profile, summary, _epilog("profile")))
    summary = "Train the toy model from a seed, or measure its heads on freshly told sentences."
    _toy_options(command("toy", _toy, summary, _epilog("toy")))
    return parser


def _epilog(command: str) -> str:
    return "examples:\n" + "".join(f"{line}\n" for line in EXAMPLES.splitlines() if f"mha-viz {command}" in line)


def _serve_options(serve: _Parser) -> None:
    host, port = os.environ.get("HOST") or "127.0.0.1", os.environ.get("PORT") or "8501"
    serve.add_argument("--host", default=host, help="address to listen on (default: $HOST, else 127.0.0.1)")
    serve.add_argument("--port", default=port, type=_port, help="port to listen on (default: $PORT, else 8501)")
    serve.add_argument("streamlit", nargs="*", metavar="-- OPTION", help="options passed on to Streamlit")


def _text_options(command: _Parser) -> None:
    command.add_argument("text", metavar="TEXT", help='the sentence; "-" reads it from stdin')
    command.add_argument("--pair", default="", metavar="TEXT", help="a second sentence, read together with the first")
    command.add_argument(
        "--model", default=catalog.DEFAULT, metavar="NAME", help="a name of `mha-viz models`, a Hub id or a folder"
    )


def _attention_options(attention: _Parser) -> None:
    writable = ", ".join(exports.suffixes())
    _text_options(attention)
    attention.add_argument("--words", action="store_true", help="one row and column a word instead of a piece")
    attention.add_argument(
        "--without-special", action="store_true", help="drop [CLS], [SEP] and their like; rows sum to 1 again"
    )
    attention.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help=f"the format is its suffix: {writable}"
    )


FIGURES = ("heatmap", "links", "grid", "compare", "difference")
# The options that not every figure has, and the figures that have them; --all-heads takes each head by itself.
OWN = {
    "--head": ("head", ("heatmap", "links", "compare", "difference")),
    "--and": ("others", ("compare", "difference")),
    "--as": ("as_", ("compare",)),
    "--format": ("format", ("--all-heads",)),
    "--caption": ("caption", FIGURES),
}
# The settings of a view that some figures do not show; the pages of grid, compare and difference can show them all.
SEEN = {
    "--links": ("links", "compare --as links"),
    "--scale": ("heatmap", "links", "grid", "compare", "compare --as links"),
    "--pin": ("heatmap", "links", "compare", "compare --as links", "difference"),
}
WHOLE_PAGE = ("grid", "compare", "difference")
VIEW = {
    "--unit": ("words", "rows and columns: words or pieces"),
    "--special": ("keep", "special tokens: keep, hide, rescale"),
    "--links": ("all", "which links: all, top3, min0.10, mass0.70"),
    "--scale": ("fixed", "colours from 0 to: fixed (1), head (the largest shown), row; or log"),
    "--side": ("all", "of a pair: all, aa, ab, ba, bb"),
    "--pin": ("", "what is held: q10 (query token 10), k1 (key token 1), q10k1 (one link)"),
}


def _figure_options(figure: _Parser) -> None:
    figure.add_argument("kind", metavar="KIND", choices=FIGURES, help=", ".join(FIGURES))
    _text_options(figure)
    figure.add_argument("--head", action="append", default=[], metavar="L3H1", help="a head; may be repeated")
    figure.add_argument(
        "--and", action="append", default=[], dest="others", metavar="TEXT", help="compare, difference: another text"
    )
    figure.add_argument("--as", dest="as_", metavar="KIND", help="compare: heatmap (default) or links")
    for name, (default, words) in VIEW.items():
        figure.add_argument(
            name, default=default, metavar=name[2:].upper(), help=f"{words} (default: {default or 'no'})"
        )
    width = figure.add_mutually_exclusive_group()
    width.add_argument("--width-mm", type=_number, metavar="MM", help="85 fits one column, 178 two (default: 178)")
    width.add_argument("--width-in", type=_number, metavar="IN", help="the same in inches")
    figure.add_argument("--font-pt", default=8.0, type=_number, metavar="PT", help="size of labels (default: 8)")
    figure.add_argument("--look", metavar="LOOK", help="light or dark (default: light; .html follows its reader)")
    figure.add_argument("--transparent", action="store_true", help="no background")
    figure.add_argument("--dpi", default=300, type=_dpi, metavar="N", help="of .png (default: 300)")
    figure.add_argument("--out", type=Path, metavar="FILE", help=f"the format is its suffix: {', '.join(_suffixes())}")
    figure.add_argument("--all-heads", type=_named, metavar="DIR", help="one file a head, L0H0 and on, in this folder")
    figure.add_argument("--format", metavar="SUFFIX", help="of --all-heads (default: svg)")
    figure.add_argument("--caption", action="store_true", help="print the caption")


def _profile_options(profile: _Parser) -> None:
    profile.add_argument(
        "corpus",
        metavar="CORPUS",
        help=f'a file: CoNLL-U, a GAP table, or a sentence a line; or "{BUILT_IN}", which comes with this program',
    )
    profile.add_argument("--model", default=catalog.DEFAULT, metavar="NAME", help="as of `mha-viz attention`")
    profile.add_argument("--name", metavar="NAME", help="what to call the corpus (default: its file name)")
    profile.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="the tables; one that exists is replaced"
    )
    profile.add_argument(
        "--batch",
        default=1024,
        type=_batch,
        metavar="N",
        help="pieces of text in a pass (default: 1024); no number changes",
    )
    profile.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")


def _toy_options(toy: _Parser) -> None:
    toy.add_argument(
        "what",
        metavar="WHAT",
        choices=("train", "evaluate", "history"),
        help="train; evaluate one model; or history, the shipped model at every step of its training that is kept",
    )
    toy.add_argument("--seed", default=0, type=_count, metavar="N", help="of the random numbers (default: 0)")
    toy.add_argument("--out", required=True, type=Path, metavar="PATH", help="train: a folder; otherwise a .csv file")
    toy.add_argument("--steps", type=_count, metavar="N", help="train: how many (default: as the shipped model)")
    toy.add_argument("--sentences", type=_count, metavar="N", help="evaluate, history: how many (default: 500)")
    toy.add_argument("--model", metavar="NAME", help="evaluate: another folder, or toy@400 after 400 steps")


def _suffixes() -> tuple[str, ...]:
    return (*exports.drawing_suffixes(), ".html", *exports.shown_suffixes())


def _named(given: str) -> Path:
    if not given:
        raise argparse.ArgumentTypeError("the folder has no name; “.” is the one you are in")
    return Path(given)


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a number") from None


def _dpi(given: str) -> int:
    if not (given.isascii() and given.isdigit() and 20 <= int(given[:6]) <= 2400):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a resolution; expected 20 to 2400")
    return int(given)


def _count(given: str) -> int:
    if not (given.isascii() and given.isdigit() and int(given[:9]) <= 10_000_000):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a whole number from 0 to 10 million")
    return int(given)


def _batch(given: str) -> int:
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a size; expected 1 to 1000000 pieces")
    return int(given)


def _port(given: str) -> int:
    if not (given.isascii() and given.isdigit() and 0 < int(given[:9]) < 65536):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a port; expected a number from 1 to 65535")
    return int(given)


def _serve(asked: argparse.Namespace) -> None:
    """Hand this process over to Streamlit, so that signals reach it directly."""
    catalog.offered()  # a misspelled list of models is said now, not to every visitor
    _check_free(asked.host, asked.port)
    where = ["--server.address", asked.host, "--server.port", str(asked.port)]
    where += ["--browser.serverAddress", _reached_at(asked.host)]
    command = [sys.executable, "-m", "streamlit", "run", str(app_root() / "app.py"), *where, *asked.streamlit]
    if os.name == "nt":  # there a replaced process loses its terminal
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def _reached_at(host: str) -> str:
    """The name to print for a server. Left to itself, Streamlit asks a host on the Internet for this one's address."""
    return "localhost" if host in ("0.0.0.0", "::", "") else host


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or "not a host name").partition(" (")[0].lower()
        remedy = "Choose another, as in --port 8600 --host 127.0.0.1, or stop the program that listens there."
        raise SettingError(f"Cannot listen on port {port} of “{host[:60]}”: {reason}.", remedy) from error


def _models(asked: argparse.Namespace) -> None:
    rows = [("NAME", "LAYERS × HEADS", "D_MODEL", "MB", "WHERE")]
    rows += [_row(model) for model in catalog.offered()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(model: Model) -> tuple[str, str, str, str, str]:
    shape = f"{model.layers} × {model.heads}" if model.layers else "?"
    return model.name, shape, str(model.d_model or "?"), str(model.megabytes or "?"), _where(model)


def _where(model: Model) -> str:
    if model.kind != "hub":
        return model.kind
    return "cached" if hub.local_folder(model) else "not downloaded"


def _attention(asked: argparse.Namespace) -> None:
    exports.describe(asked.out.suffix)  # an unknown format ends here, before a model is loaded
    text = _stdin() if asked.text == "-" else asked.text
    attention = _read(_model(asked.model), text, asked.pair)
    attention = attention.by_words() if asked.words else attention
    attention = attention.without_special() if asked.without_special else attention
    path = exports.write(attention, asked.out)
    print(
        f"{path}: {attention.model}, {attention.layers} layers × {attention.heads} heads, {len(attention.text)} tokens"
    )


def _figure(asked: argparse.Namespace) -> None:
    if (asked.all_heads is None) == (asked.out is None):
        raise SettingError("A figure needs one place to go.", "Give --out FILE, or --all-heads DIR.")
    _check_own(asked)
    suffix = f".{(asked.format or 'svg').lstrip('.')}" if asked.all_heads else asked.out.suffix
    if suffix.lower() not in _suffixes():  # ends here, before a model is loaded
        raise ExportError(f"“{suffix[:40]}” is not a format of figures.", f"Use one of {', '.join(_suffixes())}.")
    _check_seen(asked, suffix)
    options = {name[2:]: getattr(asked, name[2:]) for name in VIEW}
    sizes = {name: getattr(asked, name) for name in ("width_mm", "width_in", "font_pt", "look", "transparent")}
    options |= {name: value for name, value in sizes.items() if value is not None}
    heads = [Head.parse(name) for name in asked.head]
    text = _stdin() if asked.text == "-" else asked.text
    model = _model(asked.model)
    readings = [_read(model, one, asked.pair) for one in (text, *asked.others)]
    if asked.all_heads:
        _every_head(asked, readings[0], suffix, options)
        return
    figure = _drawn(asked, readings, heads, options)
    path = figure.save(asked.out, asked.dpi)
    print(_one_line(figure.caption if asked.caption else f"{path}: {figure.drawing.alt}"))
    _warn(figure, suffix)


def _check_own(asked: argparse.Namespace) -> None:
    """Raises SettingError for an option that would change nothing; before a model is loaded."""
    what = "--all-heads" if asked.all_heads else asked.kind
    if asked.all_heads and asked.kind not in ("heatmap", "links"):
        raise SettingError(f"--all-heads does not go with {asked.kind}.", "Use heatmap or links.")
    if not asked.head and what in OWN["--head"][1]:
        raise SettingError("No head was named.", "Give --head L3H1.")
    for option, (name, figures) in OWN.items():
        if getattr(asked, name) and what not in figures:
            raise SettingError(f"{option} does not go with {what}.", f"It goes with {', '.join(figures)}.")


def _check_seen(asked: argparse.Namespace, suffix: str) -> None:
    """Raises SettingError for a setting of the view that this figure does not show."""
    if suffix.lower() == ".html" and asked.kind in WHOLE_PAGE:
        return
    drawn = f"{asked.kind} --as links" if asked.as_ == "links" else asked.kind
    for option, figures in SEEN.items():
        if getattr(asked, option[2:]) != VIEW[option][0] and drawn not in figures:
            raise SettingError(f"{option} does not go with {drawn}.", f"It goes with {', '.join(figures)}.")


def _drawn(asked: argparse.Namespace, readings: list[Attention], heads: list[Head], options: dict[str, Any]) -> Any:
    from mha_viz import notebook

    if asked.kind == "grid":
        return notebook.grid(readings[0], **options)
    if asked.kind in ("heatmap", "links"):
        return getattr(notebook, asked.kind)(readings[0], heads=heads, **options)
    panels = [(reading, head) for reading in readings for head in heads]
    if asked.kind == "compare":
        return notebook.compare(panels, kind=asked.as_ or "heatmap", **options)
    if len(panels) != 2:
        raise SettingError(
            f"A difference takes two heads; {len(panels)} were given.", "Give --head twice, or --head and --and once."
        )
    return notebook.difference(*panels, **options)


def _every_head(asked: argparse.Namespace, attention: Attention, suffix: str, options: dict[str, Any]) -> None:
    from mha_viz import notebook

    _folder(asked.all_heads)
    every = [Head(layer, head) for layer in range(attention.layers) for head in range(attention.heads)]
    figure = None
    with _bar("files") as show:
        for done, head in enumerate(every, 1):
            figure = getattr(notebook, asked.kind)(attention, heads=[head], **options)
            figure.save(asked.all_heads / f"{head}{suffix}", asked.dpi)
            show(done, len(every))
    print(f"{asked.all_heads}: {len(every)} files, {every[0]}{suffix} to {every[-1]}{suffix}")
    if figure is not None:
        _warn(figure, suffix)


def _warn(figure: Any, suffix: str) -> None:
    drawn = suffix.lower() in exports.drawing_suffixes()  # other formats leave letters to whoever reads them
    for line in fonts.missing(figure.drawing.texts()) if drawn else ():
        print(f"mha-viz: {line}", file=sys.stderr)


def _profile(asked: argparse.Namespace) -> None:
    corpus = _corpus(asked.corpus)
    corpus = corpus if asked.name is None else dataclasses.replace(corpus, name=asked.name)
    encoder = _loaded(_model(asked.model), asked.device)
    _folder(asked.out)
    from mha_viz.study import Progress, study

    with _bar("of the text") as show:

        def progress(so_far: Progress) -> None:
            show(so_far.done, so_far.total)

        try:
            profile = study(encoder, corpus, resume=asked.out, batch=asked.batch, progress=progress)
        except KeyboardInterrupt:
            said = f"Stopped. What is done is kept in {asked.out}; the same command goes on."
            print(f"\nmha-viz: {_one_line(said)}", file=sys.stderr)
            raise
        except OSError as error:
            raise ExportError(
                f"{asked.out} cannot be written: {error.strerror or error}.", "Choose another."
            ) from error
    profile.write(asked.out)
    counted = ", ".join(f"{count:,} {name}" for name, count in profile.facts["counts"].items() if count)
    print(f"{asked.out}: {profile.model} on {profile.corpus} ({counted}), {len(profile.tables)} tables")
    for line in profile.facts["left_out_first"][:5]:
        print(f"mha-viz: left out: {_one_line(line)}", file=sys.stderr)
    if profile.facts["left_out"] > 5:
        print(f"mha-viz: {profile.facts['left_out']} left out in all; profile.json names them.", file=sys.stderr)


TOY = {"train": ("steps",), "evaluate": ("sentences", "model"), "history": ("sentences",)}  # options of their own


def _toy(asked: argparse.Namespace) -> None:
    for option in ("steps", "sentences", "model"):
        if getattr(asked, option) is not None and option not in TOY[asked.what]:
            of = " and ".join(what for what, options in TOY.items() if option in options)
            raise SettingError(f"--{option} does not go with toy {asked.what}.", f"It goes with {of}.")
    if asked.what == "train":
        _train(asked)
    else:
        _evaluate(asked)


def _train(asked: argparse.Namespace) -> None:
    from mha_viz.training import toy

    steps = toy.STEPS if asked.steps is None else asked.steps
    if not steps:
        raise SettingError("0 steps teach nothing.", "Give at least 1.")
    _folder(asked.out)
    if (asked.out / "model.safetensors").exists():
        raise ExportError(f"{asked.out} holds a model already.", "Choose another folder, or delete that one.")
    with _bar("of the steps") as show:
        trained = toy.train(asked.seed, steps, lambda so_far: show(so_far.step, so_far.steps))
    try:
        toy.save(trained, asked.out)
    except OSError as error:
        raise ExportError(f"{asked.out} cannot be written: {error.strerror or error}.", "Choose another.") from error
    last = trained.history[-1]
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in last.losses.items())
    print(f"{asked.out}: seed {trained.seed}, {last.steps:,} step{'s' * (last.steps > 1)}, loss: {losses}")


def _evaluate(asked: argparse.Namespace) -> None:
    if asked.out.suffix != ".csv":
        raise ExportError(f"{asked.out} does not name a table.", "Give a file that ends in .csv.")
    sentences = 500 if asked.sentences is None else asked.sentences
    if not sentences:
        raise SettingError("0 sentences decide nothing.", "Give at least 1.")
    from mha_viz.study import toy

    if asked.what == "history":
        with _bar("of the steps") as show:
            table = toy.history("toy", asked.seed, sentences, show)
    else:
        table = toy.evaluate(_loaded(_model(asked.model or "toy")), asked.seed, sentences)
    written = table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    exports.write_bytes(asked.out, lambda: written)
    if asked.what == "history":
        table = table[table["step"] == table["step"].max()]
    rows: list[Any] = list(table.itertuples(index=False))
    for task in dict.fromkeys(row.task for row in rows):
        best = max((row for row in rows if row.task == task), key=lambda row: row.correct)
        head = Head(best.layer, best.head)
        found = f"{head} ({head.paper}) {best.accuracy:.3f} of {best.n:,}, baseline {best.baseline:.3f}"
        print(f"{task}: {found if best.n else 'no case in these sentences'}")


def _corpus(name: str) -> Any:
    from mha_viz import grammar, treebank

    if name == BUILT_IN:
        return grammar.corpus()
    path = Path(name)
    try:
        if path.is_file() and path.stat().st_size > treebank.MAX_BYTES:
            treebank.too_large(path.name, path.stat().st_size)
        return treebank.read(path.read_bytes(), path.name)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise CorpusError(
            f"{name[:200]} cannot be read: {said.lower()}.", f"Name a file, or {BUILT_IN} for the built-in corpus."
        ) from error


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ExportError(f"The folder {str(path)[:200]} cannot be made: {said.lower()}.", "Choose another.") from error


def _model(name: str) -> Model:
    """The model that a name means; here a folder may be named without "./" before it."""
    is_folder = False
    with suppress(OSError, ValueError):  # what cannot be a file's name is no folder
        is_folder = "/" not in name and name not in catalog.CATALOG and (Path(name) / "config.json").is_file()
    return catalog.resolve(f"./{name}" if is_folder else name)


def _loaded(model: Model, device: str = "cpu") -> Any:
    if hub.local_folder(model) is None:
        with _progress(model.name) as show:
            hub.fetch(model, progress=show)
    from mha_viz.models.encoder import load  # loads torch: 2 s that `models` and `serve` do not need

    return load(model.name, device)


def _read(model: Model, text: str, pair: str) -> Attention:
    attention: Attention = _loaded(model).encode(text, pair)
    cut = attention.text.cut
    if cut and cut.pieces <= cut.limit:
        kept = " and ".join(f"{n:,}" for n in cut.kept if n)
        print(f"mha-viz: the text is very long; its first {kept} characters are read.", file=sys.stderr)
    elif cut:
        pieces = f"more than {cut.pieces}" if cut.more else str(cut.pieces)
        print(f"mha-viz: the text has {pieces} pieces; {model.name} reads the first {cut.limit}.", file=sys.stderr)
    return attention


def _stdin() -> str:
    if sys.stdin is None:
        raise TextError("stdin is closed.", "Pipe the text in, or give it as the argument.")
    read = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(read) > MAX_STDIN_BYTES:
        raise TextError(f"stdin holds more than {MAX_STDIN_BYTES // 10**6} MB.", "Give one sentence or paragraph.")
    return read.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows bytes so far on one line, written over; silent where stderr is not a terminal."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal:
            so_far = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "asking the Hub"
            print(f"\rDownloading {name}: {so_far}".ljust(79), end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=sys.stderr)


@contextmanager
def _bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done: a bar on one line; silent where stderr is no terminal."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal:
            bar = "█" * (30 * done // max(1, total))
            so_far = f"{done} of {total} {unit}" if total < 1000 else f"{100 * done // total} % {unit}"
            print(f"\r{bar:<30} {so_far}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=sys.stderr)


def _one_line(message: str) -> str:
    """Without line breaks and control characters, which a typed name may hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in message).split())


def _never_fail_on(stream: Any) -> None:
    """Characters that a terminal's encoding lacks become "?" instead of a traceback."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
