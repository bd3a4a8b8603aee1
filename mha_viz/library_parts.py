"""Name parts of libraries that these do not promise to keep, with the versions that were tried, and check that they are
there: a row is checked by where it is, so before anything of it is imported."""

from __future__ import annotations

import dis
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from mha_viz.errors import SettingError

TESTED = MappingProxyType(  # with which the tests pass
    {
        "streamlit": ">=1.67,<1.68",
        "torch": ">=2.13,<3",
        "transformers": ">=5.10,<5.25",
        "uvicorn": ">=0.54,<0.55",
    }
)


class LibraryPart(NamedTuple):
    """A name in a module or a class (``module:Class``).

    ``loss`` says what is lost without it if it only improves something: all rows with the same loss are then left out
    together. Without ``loss`` it protects data or people, or nothing works without it. ``arguments`` are those of a
    function; ``made_by`` makes what replaces it from what it replaces.
    """

    owner: str
    name: str
    why: str
    loss: str = ""
    made_by: str = ""
    arguments: str = ""
    upstream: str = ""  # the issue there, where there is one

    @property
    def package(self) -> str:
        """The library."""
        return self.owner.partition(":")[0].partition(".")[0]

    @property
    def label(self) -> str:
        """The name as in a sentence."""
        return f"{self.owner.replace(':', '.').rpartition('.')[2]}.{self.name}"


def check_parts(parts: Sequence[LibraryPart]) -> None:
    """Refuse a library without a part that is needed. Raises SettingError."""
    missing = [part for part in parts if not part.loss and not is_there(part)]
    if missing:
        others = f" So it is with {len(missing) - 1} more." if missing[1:] else ""
        raise SettingError(f"{lacks(missing[0])}{others}", remedy(missing[0]))


def lost_without(parts: Sequence[LibraryPart]) -> dict[str, LibraryPart]:
    """Return what is lost with the installed libraries, and for each the first part that is missing."""
    return {part.loss: part for part in reversed(parts) if part.loss and not is_there(part)}


def lacks(part: LibraryPart) -> str:
    """Say which part the installed version lacks, and what for."""
    package = part.package
    return f"{package} {version(package)} has no {part.label} as mha_viz needs it ({part.why})."


def remedy(part: LibraryPart) -> str:
    """Say which versions work."""
    package = part.package
    return f'The versions that work: pip install "{package}{TESTED[package]}".'


def is_there(part: LibraryPart) -> bool:
    """Tell whether the installed version has a part, with the arguments that its row states."""
    try:
        owner = pkgutil.resolve_name(part.owner)
    except (ImportError, AttributeError):
        return False
    there = getattr(owner, part.name, None)
    if there is None:
        return part.name in {name for method in _methods(owner) for name in _set_in(method)} | _declared(owner)
    if part.made_by or part.arguments:
        return _arguments(there) == part.arguments
    return True


def _arguments(function: Any) -> str:
    """Return the names of a function's arguments; of one that has been replaced, those of the first."""
    return ", ".join(inspect.signature(function).parameters)


def _methods(owner: Any) -> Iterator[FunctionType]:
    for kind in getattr(owner, "__mro__", ()):
        yield from (member for member in vars(kind).values() if isinstance(member, FunctionType))


def _set_in(function: FunctionType) -> Iterator[str]:
    """Return the attributes that a method sets."""
    return (step.argval for step in dis.get_instructions(function) if step.opname == "STORE_ATTR")


def _declared(owner: Any) -> set[str]:
    """Return the attributes that a class declares without a value."""
    return {name for kind in getattr(owner, "__mro__", ()) for name in vars(kind).get("__annotations__", {})}
