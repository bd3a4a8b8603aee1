"""Cut a file into shards, byte ranges that end where a sentence ends, so that each can be read and measured separately.

A file is read as a stream, never as a whole. CoNLL-U with ``# newdoc`` lines is cut between documents, because
coreference chains and the brackets of ``Entity=`` never cross these boundaries. Other CoNLL-U is cut between sentences.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mha_viz.corpus import corpus_files, limits
from mha_viz.corpus.reading import CONLLU, GAP, detect_kind
from mha_viz.corpus.rows import update_declarations
from mha_viz.corpus.treebank import Declarations
from mha_viz.errors import CorpusError

SHARD_SIZES = {CONLLU: 1_000_000}  # minimum bytes of a shard: about 1,000 sentences
DEFAULT_SHARD_SIZE = 125_000  # for plain text: about as many sentences as above
MAX_FIRST_BYTES = 4_000_000  # bytes that are read to recognise the kind of a file
BOM = b"\xef\xbb\xbf"
SENTENCE_END = re.compile(rb"\n[ \t\r\f\v]*\n")
NEW_DOCUMENT = rb"#[ \t]*newdoc(?:[ \t]*\r?\n|[ \t]*=| id[ \t]*=[ \t]*\S)"
DOCUMENT_BEGIN = re.compile(rb"^" + NEW_DOCUMENT, re.MULTILINE)
ENTITY = b"Entity="
DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?(#[ \t]*global\.[^\r\n]*)", re.MULTILINE)

FindBoundary = Callable[[bytes, int], int]


class Shard(NamedTuple):
    """A byte range of a file's decompressed content, from ``start`` to ``stop`` (exclusive), with its SHA-256.

    ``declarations`` holds the declarations made before the shard.
    """

    path: str
    start: int
    stop: int
    digest: str
    declarations: Declarations = Declarations()


class ShardedFile(NamedTuple):
    """A file in shards. ``kind`` is CONLLU or PLAIN; ``digest`` is the SHA-256 of its text, as in a corpus."""

    path: str
    kind: str
    digest: str
    shards: tuple[Shard, ...]


def cut_file(path: str, size: int | None = None) -> ShardedFile:
    """Cut a file into shards of at least ``size`` bytes.

    CoNLL-U with ``Entity=`` but without ``# newdoc`` is one document, and therefore one shard. Raises CorpusError, also
    for a GAP table.
    """
    file = Path(path)
    with corpus_files.open_file(file) as stream:
        first_bytes = stream.read(MAX_FIRST_BYTES)
        kind = detect_kind(first_bytes.decode("utf-8-sig", "replace"), corpus_files.strip_compression(file))
        if kind == GAP:
            raise CorpusError(
                f"{file.name} is a GAP table, which cannot be split into shards.", "Measure it on one machine."
            )
        size = size or SHARD_SIZES.get(kind, DEFAULT_SHARD_SIZE)
        text_hash = hashlib.sha256()
        shards: list[Shard] = []
        start, has_chains = len(BOM) * first_bytes.startswith(BOM), False
        declarations = Declarations()
        find_boundary: FindBoundary = _find_line_end
        if kind == CONLLU:
            find_boundary = (
                _find_document_end if re.search(rb"^" + NEW_DOCUMENT, first_bytes, re.MULTILINE) else _find_sentence_end
            )
        for part in _iter_parts(stream, first_bytes[start:], size, find_boundary, file.name):
            text_hash.update(part)
            has_chains = has_chains or ENTITY in part
            shards.append(Shard(str(path), start, start + len(part), hashlib.sha256(part).hexdigest(), declarations))
            declarations = update_declarations(
                (line.decode("utf-8", "replace") for line in DECLARATION.findall(part)), declarations
            )
            start += len(part)
    digest = text_hash.hexdigest()
    if has_chains and kind == CONLLU and find_boundary is _find_sentence_end and len(shards) > 1:
        if start - shards[0].start > limits.MAX_BYTES:
            _raise_too_long(file.name)
        shards = [Shard(str(path), shards[0].start, start, digest)]
    return ShardedFile(str(path), kind, digest, tuple(shards))


def read_shard(shard: Shard) -> bytes:
    """Return the bytes of a shard. Raises CorpusError if they have changed since the file was cut."""
    with corpus_files.open_file(Path(shard.path)) as stream:
        corpus_files.skip_bytes(stream, shard.start)
        data = stream.read(shard.stop - shard.start)
    if hashlib.sha256(data).hexdigest() != shard.digest:
        raise CorpusError(f"{shard.path} changed while it was being measured.", "Start the study again.")
    return data


def _find_line_end(data: bytes, size: int) -> int:
    """Return the end of the first line that ends after ``size`` bytes; 0 if there is none."""
    return data.find(b"\n", size - 1) + 1


def _find_sentence_end(data: bytes, size: int) -> int:
    match = SENTENCE_END.search(data, size)
    return match.end() if match else 0


def _find_document_end(data: bytes, size: int) -> int:
    """Return the first document boundary after ``size`` bytes; 0 if there is none.

    The boundary is the end of a blank line, with only comments and blank lines between it and ``# newdoc``.
    """
    search_start = data.find(b"\n", size) + 1 or len(data)
    for match in DOCUMENT_BEGIN.finditer(data, size):
        boundary = _find_blank_line(data, search_start, match.start())
        if boundary:
            return boundary
        search_start = match.start()
    return 0


def _find_blank_line(data: bytes, search_start: int, end: int) -> int:
    """Return the end of the last blank line that is followed only by comments; 0 if there is none.

    The search goes from ``end`` back to ``search_start``; both are beginnings of lines. No part of the data is
    scanned twice.
    """
    while end > search_start:
        line_start = data.rfind(b"\n", search_start, end - 1) + 1 or search_start
        line = data[line_start:end]
        if not line.strip():
            return end
        if not line.startswith(b"#"):
            return 0
        end = line_start
    return 0


def _iter_parts(
    stream: BinaryIO, first_bytes: bytes, size: int, find_boundary: FindBoundary, name: str
) -> Iterator[bytes]:
    """Yield a file's content, ``first_bytes`` first, in parts of at least ``size`` bytes that end at a boundary."""
    buffer, block = b"", first_bytes
    while block:
        buffer += block
        while len(buffer) > size and (end := find_boundary(buffer, size)):
            yield buffer[:end]
            buffer = buffer[end:]
        if len(buffer) > limits.MAX_BYTES:
            _raise_too_long(name)
        block = stream.read(corpus_files.BLOCK_BYTES)
    if buffer:
        yield buffer


def _raise_too_long(name: str) -> None:
    megabytes = limits.MAX_BYTES // 10**6
    raise CorpusError(
        f"{name} has more than {megabytes} MB without a place to split it.",
        "Put “# newdoc id = …” before each document, a blank line after each sentence, or break the lines of a text.",
    )
