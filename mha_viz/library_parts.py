"""The unstable parts of libraries that this package depends on, the tested versions, and a check for the parts.

A part is checked by its module and name, before anything is imported from it.
"""

from __future__ import annotations

import dis
import inspect
import pkgutil
from collections.abc import Sequence
from importlib.metadata import version
from types import FunctionType, MappingProxyType
from typing import NamedTuple

from mha_viz.errors import SettingError

TESTED_VERSIONS = MappingProxyType(  # versions with which the tests pass
    {
        "streamlit": ">=1.67,<1.68",
        "torch": ">=2.13,<3",
        "transformers": ">=5.10,<5.25",
        "uvicorn": ">=0.54,<0.55",
    }
)


class LibraryPart(NamedTuple):
    """A name in a module or a class (``module:Class``) that this package depends on.

    ``purpose`` says what the part is for. ``loss`` says what is lost without the part, if it only improves something;
    all rows with the same loss are then left out together. A part without ``loss`` is indispensable, or protects data
    or people. ``arguments`` are the parameters of a function. ``made_by`` names the function that builds a replacement
    from the original.
    """

    owner: str
    name: str
    purpose: str
    loss: str = ""
    made_by: str = ""
    arguments: str = ""
    upstream: str = ""  # the library's issue, if there is one

    @property
    def package(self) -> str:
        """The name of the library."""
        return self.owner.partition(":")[0].partition(".")[0]

    @property
    def label(self) -> str:
        """The name as written in a sentence."""
        return f"{self.owner.replace(':', '.').rpartition('.')[2]}.{self.name}"


def check_parts(parts: Sequence[LibraryPart]) -> None:
    """Raise SettingError if an installed library lacks a part that is needed."""
    missing = [part for part in parts if not part.loss and not has_part(part)]
    if missing:
        others = f" The same goes for {len(missing) - 1} more." if missing[1:] else ""
        raise SettingError(f"{describe_missing(missing[0])}{others}", describe_remedy(missing[0]))


def find_losses(parts: Sequence[LibraryPart]) -> dict[str, LibraryPart]:
    """Find the features that are lost with the installed libraries, each with the first part that is missing."""
    return {part.loss: part for part in reversed(parts) if part.loss and not has_part(part)}


def describe_missing(part: LibraryPart) -> str:
    """Say which part the installed version lacks, and what it is needed for."""
    package = part.package
    return f"{package} {version(package)} has no {part.label} as mha_viz needs it ({part.purpose})."


def describe_remedy(part: LibraryPart) -> str:
    """Say which versions work."""
    package = part.package
    return f'Install a tested version: pip install "{package}{TESTED_VERSIONS[package]}".'


def has_part(part: LibraryPart) -> bool:
    """Return whether the installed version has a part, with the arguments that its row states."""
    try:
        owner = pkgutil.resolve_name(part.owner)
    except (ImportError, AttributeError):
        return False
    part_value = getattr(owner, part.name, None)
    if part_value is None:
        classes = getattr(owner, "__mro__", ())
        methods = [member for cls in classes for member in vars(cls).values() if isinstance(member, FunctionType)]
        steps = (step for method in methods for step in dis.get_instructions(method))
        assigned_names = {step.argval for step in steps if step.opname == "STORE_ATTR"}
        declared_names = {name for cls in classes for name in vars(cls).get("__annotations__", {})}  # without a value
        return part.name in assigned_names | declared_names
    if part.made_by or part.arguments:
        # If the function was replaced, these are the parameters of the original.
        return ", ".join(inspect.signature(part_value).parameters) == part.arguments
    return True
