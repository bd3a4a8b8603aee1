"""Open saved readings, which equal the original ones and have the same steps and key.

A file from ``Attention.save`` contains, besides the fields for other programs, ``reading``: a JSON header with all
properties of the reading, and a digest of these and its numbers. Nothing in a file is run or unpickled. Memory is
allocated for the actual content of a file, not for the size that it declares: its arrays are uncompressed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import numpy.typing as npt
from safetensors import safe_open

from mha_viz.attention import Attention, Weights, steps, tensors
from mha_viz.attention.numbers import name_array
from mha_viz.errors import ExportError, MhaVizError, OpenError, shorten_value
from mha_viz.model_names import ModelName, get_display_name
from mha_viz.text import TokenizedText, parse_text
from mha_viz.view.quantities import QUANTITIES

VERSION = 4
VERSIONS = (2, 3, VERSION)  # that can be opened: in 2, steps are text; in 2 and 3, all numbers are named weights
MAX_FILE_BYTES = 1 << 35  # 32 GiB
MAX_HEADER_BYTES = 1 << 26
MAX_NAME_LENGTH = 100_000  # maximum number of characters of a model's name, a revision, a step
MAX_ARRAYS = 100  # maximum number of arrays in one file; a reading has about twenty
SUFFIXES = (".npz", ".safetensors")
FIELDS = {"version", "model", "display_name", "revision", "quantity", "made", "queries", "keys", "digest"}

_SAVE_AGAIN = "Save the reading again."


def build_header(attention: Attention) -> str:
    """Return all properties of a reading except its numbers, as ASCII JSON, with a digest of both.

    Raises ExportError for a reading that could not be opened again because its text was built by hand incorrectly.
    """
    fields: dict[str, Any] = {"version": VERSION}
    fields |= {name: getattr(attention, name) for name in ("model", "revision", "quantity")}
    fields["display_name"] = get_display_name(attention.model)
    fields |= {"made": steps.pack_steps(attention.made), "queries": asdict(attention.queries)}
    fields |= {"keys": asdict(attention.keys) if attention.is_cross else None, "digest": _compute_digest(attention)}
    header = json.dumps(fields)
    try:
        _parse_texts(_parse_header(header.encode()))
    except (ValueError, MhaVizError) as error:
        raise ExportError(
            f"This reading cannot be saved: {str(error).rstrip('.')}.", "Correct its text, or write .csv or .json."
        ) from error
    return header


def load_attention(path: str | os.PathLike[str]) -> Attention:
    """Open a reading that ``Attention.save`` wrote to a .npz or .safetensors file.

    It equals the original and has the same key.

    Raises OpenError for a file that does not exist, is damaged, was changed after saving, or is not a saved reading.
    """
    if not isinstance(path, str | os.PathLike):
        raise OpenError(f"{shorten_value(path)!r} is not a path.", "Give the path of a file that save() wrote.")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        problem = f"“{suffix[:40]}” cannot be opened as a reading." if suffix else f"{_quote_name(file)} has no suffix."
        raise OpenError(problem, f"Open a file that save() wrote as {' or '.join(SUFFIXES)}.")
    with _translate_errors(file):
        _check_size(file)
        fields, weights, hidden = (_read_npz if suffix == ".npz" else _read_safetensors)(file)
        model, revision, applied_steps, quantity = (fields[name] for name in ("model", "revision", "made", "quantity"))
        model = ModelName(model, fields["display_name"]) if fields["display_name"] else model
        queries, keys = _parse_texts(fields)
        attention = Attention(model, revision, queries, weights, hidden, applied_steps, keys, quantity)
        if _compute_digest(attention) != fields["digest"]:
            raise OpenError("The file was changed after it was saved: its numbers or words have changed.", _SAVE_AGAIN)
        return attention


def _check_size(file: Path) -> None:
    if not file.exists():
        raise OpenError(f"{_quote_name(file)} does not exist.", "Give the path of a file that save() wrote.")
    if not file.is_file():
        raise OpenError(f"{_quote_name(file)} is not a file.", "Give the path of a file that save() wrote.")
    if file.stat().st_size > MAX_FILE_BYTES:
        raise OpenError(
            f"{_quote_name(file)} has {file.stat().st_size:,} bytes.",
            f"A reading of at most {MAX_FILE_BYTES:,} bytes can be opened.",
        )


@contextmanager
def _translate_errors(file: Path) -> Iterator[None]:
    """Convert every error that a damaged or foreign file causes into an OpenError that names the file."""
    try:
        yield
    except OpenError:
        raise
    except MhaVizError as error:
        raise OpenError(f"{_quote_name(file)} is damaged: {error.problem}", _SAVE_AGAIN) from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise OpenError(f"{_quote_name(file)} cannot be read: {reason}.", "Check that the file may be read.") from error
    except (MemoryError, RecursionError) as error:
        raise OpenError(f"{_quote_name(file)} does not fit into memory.", "Open it on a machine with more.") from error
    except Exception as error:  # zipfile, NumPy, safetensors and JSON raise various errors for foreign files
        raise OpenError(
            f"{_quote_name(file)} is damaged, or of another kind than its suffix says.", _SAVE_AGAIN
        ) from error


# ---- The two formats: header, weights, hidden ----------------------------------------------------------------


def _read_npz(file: Path) -> tuple[dict[str, Any], Weights, Weights]:
    """Read the header, the weights and ``hidden`` from an .npz file."""
    with ZipFile(file) as archive:
        names = archive.namelist()
        if len(names) > MAX_ARRAYS or len(set(names)) < len(names):
            raise ValueError("too many members, or two of one name")
        if any(member.file_size > file.stat().st_size for member in archive.infolist()):
            raise ValueError("a member would be larger than the file")
        if "reading.npy" not in names:
            raise _foreign_file_error(file)
        fields = _parse_header(_read_array(archive, "reading.npy", "|u1").tobytes())
        return (
            fields,
            _read_array(archive, _find_weights_name(fields, names, ".npy"), "<f4"),
            _read_array(archive, "hidden.npy", "<f4"),
        )


def _read_array(archive: ZipFile, name: str, expected_dtype: str) -> npt.NDArray[Any]:
    """Read one array, read-only. Raises ValueError unless its type is as expected and its size as in its header."""
    member = archive.getinfo(name) if name in archive.namelist() else None
    if member is None or member.compress_type != ZIP_STORED:
        raise ValueError(f"{name} is missing or compressed")
    content = archive.read(member)
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is of a later format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    numbers = memoryview(content)[stream.tell() :]
    if dtype != np.dtype(expected_dtype) or prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"{name} holds {dtype} {shape} in {len(numbers)} bytes")
    return np.frombuffer(numbers, dtype).reshape(shape, order="F" if is_fortran else "C")


def _read_safetensors(file: Path) -> tuple[dict[str, Any], Weights, Weights]:
    """Read the header, the weights and ``hidden`` from a .safetensors file."""
    with safe_open(file, framework="numpy") as tensor_file:
        header = (tensor_file.metadata() or {}).get("reading")
        if header is None:
            raise _foreign_file_error(file)
        fields = _parse_header(header.encode())
        name = _find_weights_name(fields, tensor_file.keys())
        weights, hidden = tensor_file.get_tensor(name), tensor_file.get_tensor("hidden")
    for array in (weights, hidden):
        if array.dtype != np.float32:
            raise ValueError(f"{array.dtype} is not float32")
        array.flags.writeable = False
    return fields, weights, hidden


def _find_weights_name(fields: Mapping[str, Any], names: Iterable[str], suffix: str = "") -> str:
    """Return the name of the weights among ``names`` of a file.

    Files of earlier versions may have ``_changed`` in the name of unaltered weights.
    """
    name = ("weights" if fields["version"] < VERSION else name_array(fields["quantity"], fields["made"])) + suffix
    return next((other for other in names if other.replace("_changed", "") == name.replace("_changed", "")), name)


def _foreign_file_error(file: Path) -> OpenError:
    return OpenError(f"{_quote_name(file)} is not a saved reading.", "Open a file that save() of this version wrote.")


# ---- The header ------------------------------------------------------------------------------------------------


def _parse_header(header: bytes) -> dict[str, Any]:
    """Parse and check the JSON of a header.

    Raises OpenError for a file written by another version, ValueError for other problems.
    """
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError("the header is too long")
    fields = json.loads(header)
    if not isinstance(fields, dict) or type(fields.get("version")) is not int:
        raise ValueError("not the header of a reading")
    if fields["version"] not in VERSIONS:
        direction = "a later" if fields["version"] > VERSION else "an earlier"
        raise OpenError(f"The file was saved by {direction} version of mha_viz.", "Install that version.")
    if fields["version"] < VERSION:
        fields["display_name"] = ""
    if set(fields) != FIELDS or not isinstance(fields["made"], list):
        raise ValueError("not the header of a reading")
    stored_steps = fields["made"]
    fields["made"] = (
        steps.parse_wordings(map(str, stored_steps)) if fields["version"] < 3 else steps.parse_steps(stored_steps)
    )
    texts = ("model", "display_name", "revision", "quantity", "digest")
    names = (*(fields[name] for name in texts), *fields["made"])
    if not all(isinstance(name, str) and len(name) <= MAX_NAME_LENGTH for name in names):
        raise ValueError("not the names of a reading")
    if fields["quantity"] not in QUANTITIES:
        raise OpenError(
            f"The file holds “{fields['quantity'][:40]}”, a quantity that is not known here.",
            f"Known: {', '.join(QUANTITIES)}. A later version of mha_viz may know it.",
        )
    return fields


def _parse_texts(fields: dict[str, Any]) -> tuple[TokenizedText, TokenizedText]:
    """Parse queries and keys, the same object for self-attention. Raises TextError."""
    queries = parse_text(fields["queries"])
    return queries, queries if fields["keys"] is None else parse_text(fields["keys"])


def _compute_digest(attention: Attention) -> str:
    """Return the digest of key and numbers, because the key does not depend on the numbers in a file."""
    numbers = tensors.digest(attention.weights) + tensors.digest(attention.hidden)
    return hashlib.blake2b(attention.stored_key.encode() + numbers, digest_size=16).hexdigest()


def _quote_name(file: Path) -> str:
    """Return the quoted file name on one line; special characters are escaped."""
    return f"“{(file.name if file.name.isprintable() else ascii(file.name)[1:-1])[:100]}”"
