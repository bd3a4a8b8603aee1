"""The Python in the README runs, and its comments state what comes out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mha_viz.models import catalog, hub

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def stated(comment: str) -> Any:
    """The value that a comment begins with; None where it is prose."""
    for end in [comment, comment.partition(": ")[0]]:
        try:
            return ast.literal_eval(end)
        except (SyntaxError, ValueError):
            pass
    return None


def steps(block: str) -> Iterator[tuple[ast.stmt, Any]]:
    """Each statement of a block with the value that the comment behind it states."""
    for statement in ast.parse(block).body:
        last = block.splitlines()[(statement.end_lineno or 0) - 1]
        yield statement, stated(last.partition("# ")[2].strip())


@pytest.fixture(scope="module")
def another_program() -> dict[str, Any]:
    """What the later blocks use: a model's output and its tokenizer, and cross-attention with two lists of tokens."""
    import torch
    from transformers import AutoModel, AutoTokenizer, T5Config, T5Model

    folder = hub.local_folder(catalog.CATALOG[catalog.DEFAULT])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = tokenizer("The cat sat on the mat.", return_tensors="pt")
    sizes = {"vocab_size": 9, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    both = T5Model._from_config(T5Config(**sizes), attn_implementation="eager").eval()
    source, target = torch.tensor([[3, 4, 1]]), torch.tensor([[0, 5]])
    crossed = both(input_ids=source, decoder_input_ids=target, output_attentions=True)
    attentions = model(**inputs, output_attentions=True).attentions
    return {
        "tokenizer": tokenizer,
        "inputs": inputs,
        "outputs": SimpleNamespace(attentions=attentions, cross_attentions=crossed.cross_attentions),
        "source_tokens": ["▁The", "▁cat", "</s>"],
        "target_tokens": ["<pad>", "▁chat"],
    }


def test_every_block_runs_and_gives_what_it_states(
    another_program: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
    assert compared >= 3
    assert (tmp_path / "it.svg").stat().st_size > 500
