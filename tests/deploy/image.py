"""Parse the Dockerfile into instructions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent


class Instruction(NamedTuple):
    """An instruction of the Dockerfile; ``stage`` counts from 0, ``text`` follows the name."""

    stage: int
    name: str
    text: str

    @property
    def exec_form(self) -> list[str]:
        """The words of a JSON list; raises ValueError if the instruction is in shell form."""
        words: list[str] = json.loads(self.text)
        return words


def parse_instructions() -> list[Instruction]:
    """Return all instructions in order."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stage, instructions = -1, []
    for line in joined.splitlines():
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        instructions.append(Instruction(stage, name, rest.strip()))
    return instructions


def list_texts(name: str, stage: int | None = None) -> list[str]:
    """Return the texts of all instructions called ``name``, of one stage or of all."""
    return [step.text for step in parse_instructions() if step.name == name and stage in (None, step.stage)]


def list_copied_paths() -> list[str]:
    """Return the paths that are copied from the source tree."""
    lines = [line.split() for line in list_texts("COPY") if not line.startswith("--from=")]
    return [source for words in lines for source in words[:-1]]


def read_environment(stage: int) -> dict[str, str]:
    """Return the environment variables that a stage sets."""
    pairs = [pair.partition("=") for line in list_texts("ENV", stage) for pair in line.split()]
    return {name: value for name, _, value in pairs}
