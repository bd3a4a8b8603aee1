"""Texts for users are in plain technical English: no wording that has been replaced comes back.

Checked are the string literals of the package and its pages, including public docstrings, those of the JavaScript, the
texts in ``assets/``, ``docs/``, the README and the other documents beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "mha_viz").rglob("*.py"))]
JAVASCRIPT = sorted((ROOT / "mha_viz" / "browser").rglob("*.js"))
TEXTS = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "measured.md",
    *(
        ROOT / "assets" / name
        for name in ("about.md", "examples.json", "questions.json", "small_tasks.json", "tour.json")
    ),
]


class Banned(NamedTuple):
    """A wording, as a regular expression, with the reason and an example; ``docs``: also checked in docstrings."""

    wording: str
    reason: str
    example: str
    docs: bool = True


BANNED = (
    Banned(
        r"\b(lines?|files?|sentences?|rows?|columns?|pieces|scale|matrix|keys|pictures?|weights?|questions?)"
        r" a (word|head|line|row|chunk|pass|token|layer|query|sentence|file|model|panel)\b|\bheads a layer\b",
        "say “per”",
        "one sentence a line",
    ),
    Banned(r"\b(parted by|parts? them|part at the)\b", "say “separate” or “differ”", "columns parted by tabs"),
    Banned(r"\bwhich is no\b|\bis no (list|table|tree|folder)\b", "say “is not a”", "which is no list"),
    Banned(r"\btwin\b", "say “random weights”", "the untrained twin of this head"),
    Banned(r"nobody's business|\bspoilt\b|\bsqueezed\b", "not technical English", "squeezed into a plane"),
    Banned(r"(?i)\bstored run\b", "say “default run”", "Stored run: seed 0", docs=False),
    Banned(r"(?i)\b(without|of the) gold\b(?! annotation)", "say “gold annotation”", "without gold", docs=False),
    Banned(r"\bgiven corpora\b", "say “published corpora”", "given corpora"),
    Banned(r"Take this figure away", "the button is “Download”", "*Take this figure away*"),
    Banned(
        r"\b([Yy]our|the|link’s) tray\b|\bsets? (one|a head|this head|it) aside\b|\bset aside\b|\bPinned\b",
        "on screen they are “My heads”",
        "c sets one aside",
        docs=False,
    ),
    Banned(r"[\d}] %(?![\w({%])", "a percent sign follows its number without a space", "58.3 % right", docs=False),
    Banned(r"\{:\.\d%|\{:\.1g\}", "mha_viz.numerals writes shares and small numbers", "{:.2%} of the cases",
           docs=False),
    Banned(r"d_\{model\}", r"write d_{\text{model}}", "$d_{model}$"),
    Banned(r"\bhabit\b", "say “attention pattern”", "two jobs with one habit"),
    Banned(r"written several times", "say “copies”", "one head, written several times"),
    Banned(r"thereby linked|tells them\.", "see the description of the lab's language", "which are thereby linked"),
    Banned(r"to find (anything|a word) by", "say “to pick out a word by”", "too small to find anything by"),
    Banned(r"a small English", "say “a simplified English”", "learned a small English"),
    Banned(r"\bwhom a pronoun means\b", "say “who a pronoun refers to”", "whom a pronoun means"),
    Banned(r"watched being answered", "say what the link shows", "can be watched being answered"),
    Banned(r"\bhidden: every weight\b", "say nothing where nothing is hidden", "0% hidden: every weight is shown."),
    Banned(r"evenly spread it would", "say “if it looked everywhere equally”", "evenly spread it would be 5%"),
    Banned(r"^chosen at$", "say “score on the other half”", "chosen at"),
    Banned(r"\bthe plane shows\b", "say how good the distances are", "the plane shows them roughly"),
    Banned(r"is read, sentence by sentence", "say “is reading”", "MiniLM is read, sentence by sentence"),
    Banned(r"Not what is usual", "say what the default run shows", "Not what is usual: an exception."),
    Banned(r"asks? for (what|a head|tokens) (is|that are|that is) not there", "say “Ignored in this link”",
           "This link asks for what is not there"),
    Banned(r"nothing else to do", "a hypothesis: say “perhaps”", "when they have nothing else to do"),
    Banned(r"\bboth name\b", "say “both measures pick”", "In this row both name “animal”."),
    Banned(r"Nothing asks them", "say that the loss does not ask for it", "Why heads differ. Nothing asks them to."),
    Banned(r"in the browser in seconds|trainings in the browser", "the server runs them", "in the browser in seconds"),
    Banned(r"best heads propose|\bproposed arcs\b", "say “suggest”", "What the best heads propose"),
    Banned(r"\bHeads drawn\b", "say of which layer, and where", "Heads drawn", docs=False),
    Banned(r"\bgold: [“{]", "say which word is correct", "gold: “dog”"),
    Banned(r"strongest blue", "say what a number means", "the strongest blue is “the same”"),
    Banned(r"\bformats? of (figures|tables)\b", "say “figure format”", "not a format of figures", docs=False),
    Banned(r"\bis no (causal|linear|Dask)\b", "say “is not a”", "is no causal model"),
    Banned(r"\bChoose of\b", "say “Choose one of”", "Choose of zero, mean"),
    Banned(r"\b(to|cannot) be had\b", "say “not available” or “out of range”", "it cannot be had", docs=False),
    Banned(r"\bmodels of one stack\b", "say “with one stack”", "models of one stack of layers", docs=False),
    Banned(r"\b(words|tokens) that come again\b", "say “repeated”", "continues words that come again", docs=False),
    Banned(r"\b[Bb]oxes stand\b", "say that boxes are drawn", "boxes stand in their place"),
    Banned(r"(?i)\bnobody waits\b", "say what stopped, and why", "Nobody waits for this.", docs=False),
    Banned(r"\b[Rr]oles? speaks? of\b", "say “applies to”", "A role speaks of running text"),
    Banned(r"\blayers above (see|make)\b", "say “later layers”", "layers above see the text", docs=False),
    Banned(r"\bnobody foresaw\b", "say “unexpected”", "An error that nobody foresaw", docs=False),
    Banned(r"^Read by$|^Read( it)? ↵$", "say “Model” and “Show attention”", "Read it ↵"),
    Banned(r"Roles come from [A-Z]", "say how many annotated corpora", "Roles come from UD English EWT test"),
    Banned(r"\bstrong link here\b", "say “strong link in this sentence”", "case strong link here"),
    Banned(r"\bnobody can say\b", "say what is not known, and why", "nobody can say whether it is this"),
    Banned(r"propose for one word|\bcorpus speaks\b", "say which arc is drawn", "several heads propose for one word"),
    Banned(r"\bever after\b", "say “from then on”", "follow different gradients ever after"),
    Banned(r"diagonal also pushes", "say that it makes a head look at one word", "Its diagonal also pushes each head"),
    Banned(r"matrix for all chunks cost", "say what sharing costs", "Does one matrix for all chunks cost more?"),
    Banned(r"\b1 of 1 pairs?\b|\bdiffer by 0\b", "one pair has a form of its own", "1 of 1 pairs have"),
    Banned(r"same architecture with random weights, over", "say “for comparison”",
           "The same architecture with random weights, over the same text"),
    Banned(r"with even numbers; the|does not profit", "say “picked on one half, scored on the other”",
           "it does not profit from the choice"),
    Banned(r"(?<!\*)no better than a simple rule|a rule suffices", "say what the head does to the rule",
           "or no better than a simple rule"),
    Banned(r"nearest part of speech [\d{]|(?<!\")nearest [A-Z]{3,5}\b", "name the rule in words",
           "nearest NOUN to the right", docs=False),
    Banned(r"\b[Pp]art heads\b", "say “separate the heads”", "Part heads through W_O alone"),
    Banned(r"separate in what they compute", "say that one product computes all heads",
           "Heads are separate in what they compute"),
    Banned(r"\bvisit with gold\b|\bgold heads?\b", "explain gold annotation where it is first used", "the gold head"),
)  # fmt: skip


class Passage(NamedTuple):
    """A text for readers, with its line; ``is_doc``: a docstring."""

    text: str
    line: int
    is_doc: bool = False


def python_strings(source: str) -> Iterator[Passage]:
    """The string literals of Python source, f-strings with "{}" for their values, without the docstrings of private
    names."""
    nodes = list(ast.walk(ast.parse(source)))
    docs = {id(doc): name for name, doc in _docstrings(nodes)}
    unread = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    unread |= {doc for doc, name in docs.items() if name.startswith("_")}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield Passage("".join(map(_piece, node.values)), node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread:
            yield Passage(node.value, node.lineno, id(node) in docs)


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    form = part.format_spec if isinstance(part, ast.FormattedValue) else None
    return "{:" + "".join(map(_piece, form.values)) + "}" if isinstance(form, ast.JoinedStr) else "{}"


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield getattr(node, "name", ""), first.value


_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL
)  # a template within a template is read in parts


def javascript_strings(source: str) -> Iterator[Passage]:
    """The string and template literals of JavaScript source, without comments."""
    for token in _TOKEN.finditer(source):
        if not token[0].startswith("/"):
            text = re.sub(r"\$\{[^}]*\}", "{}", token[0][1:-1])
            yield Passage(text, source.count("\n", 0, token.start()) + 1)


def lines(source: str) -> Iterator[Passage]:
    """The lines of a text."""
    yield from (Passage(line, number) for number, line in enumerate(source.splitlines(), 1))


def problems(passages: Iterable[Passage]) -> list[str]:
    """What is banned in these passages, each with its line and the reason."""
    passages = list(passages)
    whole = "\n".join(passage.text for passage in passages)  # most wordings are in none of them
    banned_here = [banned for banned in BANNED if re.search(banned.wording, whole, re.MULTILINE)]
    return [
        f"{passage.line}: “{match[0]}”: {banned.reason}"
        for passage in passages
        for banned in banned_here
        if (banned.docs or not passage.is_doc) and (match := re.search(banned.wording, passage.text))
    ]


def _passages_of(path: Path) -> Iterator[Passage]:
    reader = {".py": python_strings, ".js": javascript_strings}.get(path.suffix, lines)
    return reader(path.read_text("utf-8"))


def test_no_replaced_wording_is_on_a_page_in_a_message_or_in_the_docs() -> None:
    every = [*PYTHON, *JAVASCRIPT, *TEXTS]
    assert len(PYTHON) > 150
    assert len(JAVASCRIPT) > 20
    replaced = [f"{path.relative_to(ROOT)}:{problem}" for path in every for problem in problems(_passages_of(path))]
    assert not replaced, "\n".join(replaced)


def test_every_banned_wording_is_noticed() -> None:
    assert not [banned for banned in BANNED if not problems(lines(banned.example))]


@pytest.mark.parametrize(
    "source",
    [
        'x = "given corpora"',
        'x = f"{n} of the given corpora"',
        'x = "given " "corpora"',
        'def f():\n    """Of given corpora."""',
        'st.markdown(\n    "a "\n    "given corpora"\n)',
        'x = f"{share:.1%} right"',
        'x = f"{share} % right"',
    ],
)
def test_it_is_noticed_wherever_it_stands_in_python(source: str) -> None:
    assert problems(python_strings(source))


def test_what_nobody_reads_is_left_alone() -> None:
    private = 'def _f():\n    """Of given corpora."""\n    return 1  # given corpora\n'
    assert not problems(python_strings(private))
    assert not problems(javascript_strings('// given corpora\n/* given corpora */ const x = "right";'))
    assert not problems(python_strings('"""A module."""\ndef f():\n    """The stored run, put into the tray."""\n'))


@pytest.mark.parametrize("source", ['const a = "given corpora";', "b = `${n} given corpora`;", "c = 'given corpora'"])
def test_it_is_noticed_in_javascript(source: str) -> None:
    assert problems(javascript_strings(source))
    assert not problems(javascript_strings(source.replace("given", "published")))
