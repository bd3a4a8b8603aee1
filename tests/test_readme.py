"""The Python in the README and in the pages that go on from it runs, and its comments state the results; the commands
run, or name a test that runs them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mha_viz.cli import main
from mha_viz.models.getting import catalog, hub
from mha_viz.models.reading.encoder import Encoder
from tests import documents
from tools import docs

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "README.md",
    *(ROOT / "docs" / "howto" / name for name in docs.PAGES_WITH_CORPORA),
    ROOT / "benchmarks" / "measured.md",
)
README = "\n".join(page.read_text("utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SHELL = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
COMMANDS = [line.partition(" #")[0].strip() for block in SHELL for line in block.splitlines()]

# Commands that run elsewhere, by their beginnings.
ELSEWHERE = {
    "mha-viz serve": "tests/test_serving.py",
    "pip install .": "tests/test_wheel.py",
    "pip install torch": "tests/test_cpu_torch.py",
    "docker ": "tests/test_dockerfile.py",
    "mha-viz pairs toy-pairs --model toy --profile": "tests/test_needed.py",
    "mha-viz pairs repeater-pairs --model repeater --profile": "tests/test_needed.py",
    "mha-viz used": "tests/test_used_roles.py",  # the corpora here are too small to have a role
}
ANNA = "1\tAnna\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tslept\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
GAP = (
    "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    "1\tAnna met Eve; she left.\tshe\t14\tAnna\t0\tTRUE\tEve\t9\tFALSE\tx\n"
)
CORPORA = {
    **dict.fromkeys(("treebank.conllu", "en_ewt-ud-test.conllu"), 4 * ANNA),
    "en_gum-ud-dev.conllu": 4 * ANNA.replace("Anna", "Gus"),
    "other.conllu": 4 * ANNA.replace("Anna", "Eve"),
    "third.conllu": 4 * ANNA.replace("Anna", "Bob"),
    "gap-development.tsv": GAP,
}


@pytest.fixture
def reader_s_folder(tmp_path: Path, minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which somebody tries the README, with the corpora that it names."""
    documents.lighten_models(monkeypatch, minilm)
    for name, content in CORPORA.items():
        (tmp_path / name).write_text(content, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


def stated(comment: str) -> Any:
    """The value at the beginning of a comment; None if it is prose."""
    for end in [comment, comment.partition(": ")[0]]:
        try:
            return ast.literal_eval(end)
        except (SyntaxError, ValueError):
            pass
    return None


def steps(block: str) -> Iterator[tuple[ast.stmt, Any]]:
    """Each statement of a block with the value stated in the comment after it."""
    for statement in ast.parse(block).body:
        last = block.splitlines()[(statement.end_lineno or 0) - 1]
        yield statement, stated(last.partition("# ")[2].strip())


@pytest.fixture(scope="module")
def another_program() -> dict[str, Any]:
    """The variables of the later blocks: a model's output and its tokenizer, and cross-attention with two lists of
    tokens."""
    import torch
    from transformers import AutoModel, AutoTokenizer, T5Config, T5Model

    folder = hub.find_local_folder(catalog.CATALOG[catalog.DEFAULT])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = tokenizer("The cat sat on the mat.", return_tensors="pt")
    sizes = {"vocab_size": 9, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    both = T5Model._from_config(T5Config(**sizes), attn_implementation="eager").eval()
    source, target = torch.tensor([[3, 4, 1]]), torch.tensor([[0, 5]])
    crossed = both(input_ids=source, decoder_input_ids=target, output_attentions=True)
    attentions = model(**inputs, output_attentions=True).attentions
    return {
        "model": model,
        "tokenizer": tokenizer,
        "inputs": inputs,
        "outputs": SimpleNamespace(attentions=attentions, cross_attentions=crossed.cross_attentions),
        "source_tokens": ["▁The", "▁cat", "</s>"],
        "target_tokens": ["<pad>", "▁chat"],
    }


def test_every_block_runs_and_gives_what_it_states(another_program: dict[str, Any], reader_s_folder: Path) -> None:
    names, compared = dict(another_program), 0
    for block in BLOCKS:
        for statement, expected in steps(block):
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "README.md", "exec"), names)
                continue
            result = eval(compile(ast.Expression(statement.value), "README.md", "eval"), names)
            if expected is not None:
                assert result == (pytest.approx(expected, abs=1e-3) if np.isscalar(result) else expected)
                compared += 1
    assert len(BLOCKS) >= 2
    assert compared >= 5
    assert (reader_s_folder / "it.svg").stat().st_size > 500


def test_every_command_runs_or_names_a_test_that_runs_it(reader_s_folder: Path) -> None:
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        where = next((path for begin, path in ELSEWHERE.items() if command.startswith(begin)), None)
        words = shlex.split(re.sub(r"^(\w+=\S+ )+", "", command), posix=where is None)
        if where is not None:
            assert (ROOT / where).is_file(), command
        elif words[0] == "make":
            target = words[1]
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), command
        else:
            assert words[0] == "mha-viz", command
            assert main(words[1:]) == 0, command
