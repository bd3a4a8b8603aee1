"""A file cut into shards of bytes that end where a sentence ends, so that each can be read and measured separately.

A file is read as a stream, never as a whole. CoNLL-U with ``# newdoc`` lines is cut between documents, since the chunks
of coreference and the brackets of ``Entity=`` never cross these boundaries; otherwise between sentences.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mha_viz.corpus import limits, stored
from mha_viz.corpus.reading import CONLLU, GAP, kind_of
from mha_viz.corpus.rows import declared
from mha_viz.corpus.treebank import Declared
from mha_viz.errors import CorpusError

SIZES = {CONLLU: 1_000_000}  # the least bytes of a shard: about 1,000 sentences
SIZE = 125_000  # for plain text: about as many sentences
HEAD = 4_000_000  # bytes that are read to recognise the kind of a file
BOM = b"\xef\xbb\xbf"
SENTENCE_END = re.compile(rb"\n[ \t\r\f\v]*\n")
NEW_DOCUMENT = rb"#[ \t]*newdoc(?:[ \t]*\r?\n|[ \t]*=| id[ \t]*=[ \t]*\S)"
DOCUMENT_BEGIN = re.compile(rb"^" + NEW_DOCUMENT, re.MULTILINE)
ENTITY = b"Entity="
DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?(#[ \t]*global\.[^\r\n]*)", re.MULTILINE)

Boundary = Callable[[bytes, int], int]


class Shard(NamedTuple):
    """Bytes ``start`` to ``stop`` of the decompressed content of a file, and their SHA-256; what is declared before."""

    path: str
    start: int
    stop: int
    digest: str
    declared: Declared = Declared()


class ShardedFile(NamedTuple):
    """A file in shards. ``kind``: CONLLU or PLAIN; ``digest``: the SHA-256 of its text, as in a corpus."""

    path: str
    kind: str
    digest: str
    shards: tuple[Shard, ...]


def cut(path: str, size: int | None = None) -> ShardedFile:
    """Cut a file into shards of at least ``size`` bytes. Raises CorpusError, also for a GAP table.

    A file with ``Entity=`` but without ``# newdoc`` is one document, and one shard.
    """
    file = Path(path)
    with stored.opened(file) as stream:
        head = stream.read(HEAD)
        kind = kind_of(head.decode("utf-8-sig", "replace"), stored.plain_name(file))
        if kind == GAP:
            raise CorpusError(
                f"{file.name} is a GAP table, which is not cut into shards.", "Measure it on one machine."
            )
        size = size or SIZES.get(kind, SIZE)
        whole = hashlib.sha256()
        shards: list[Shard] = []
        start, chains = len(BOM) * head.startswith(BOM), False
        before = Declared()
        boundary: Boundary = _line_end
        if kind == CONLLU:
            boundary = _document_end if re.search(rb"^" + NEW_DOCUMENT, head, re.MULTILINE) else _sentence_end
        for part in _parts(stream, head[start:], size, boundary, file.name):
            whole.update(part)
            chains = chains or ENTITY in part
            shards.append(Shard(str(path), start, start + len(part), hashlib.sha256(part).hexdigest(), before))
            before = declared((line.decode("utf-8", "replace") for line in DECLARATION.findall(part)), before)
            start += len(part)
    digest = whole.hexdigest()
    if chains and kind == CONLLU and boundary is _sentence_end and len(shards) > 1:
        if start - shards[0].start > limits.MAX_BYTES:
            _too_long(file.name)
        shards = [Shard(str(path), shards[0].start, start, digest)]
    return ShardedFile(str(path), kind, digest, tuple(shards))


def content(shard: Shard) -> bytes:
    """The bytes of a shard. Raises CorpusError if they have changed since the file was cut."""
    with stored.opened(Path(shard.path)) as stream:
        stored.skip(stream, shard.start)
        data = stream.read(shard.stop - shard.start)
    if hashlib.sha256(data).hexdigest() != shard.digest:
        raise CorpusError(f"{shard.path} changed while it was being measured.", "Start the study again.")
    return data


def _line_end(data: bytes, size: int) -> int:
    """The end of the first line that ends after ``size`` bytes; 0 if there is none."""
    return data.find(b"\n", size - 1) + 1


def _sentence_end(data: bytes, size: int) -> int:
    match = SENTENCE_END.search(data, size)
    return match.end() if match else 0


def _document_end(data: bytes, size: int) -> int:
    """The end of the first blank line after ``size`` bytes that is separated from ``# newdoc`` only by comments and
    blank lines."""
    done = data.find(b"\n", size) + 1 or len(data)
    for match in DOCUMENT_BEGIN.finditer(data, size):
        cut_at = _blank_line_before(data, done, match.start())
        if cut_at:
            return cut_at
        done = match.start()
    return 0


def _blank_line_before(data: bytes, first: int, last: int) -> int:
    """The end of the last blank line between ``first`` and ``last``, both beginnings of lines, that is followed only by
    comments; 0 if there is none. No part of the data is looked at twice."""
    while last > first:
        begin = data.rfind(b"\n", first, last - 1) + 1 or first
        line = data[begin:last]
        if not line.strip():
            return last
        if not line.startswith(b"#"):
            return 0
        last = begin
    return 0


def _parts(stream: BinaryIO, head: bytes, size: int, boundary: Boundary, name: str) -> Iterator[bytes]:
    """The content of a file, ``head`` first, in parts of at least ``size`` bytes that end at a boundary."""
    waiting, block = b"", head
    while block:
        waiting += block
        while len(waiting) > size and (end := boundary(waiting, size)):
            yield waiting[:end]
            waiting = waiting[end:]
        if len(waiting) > limits.MAX_BYTES:
            _too_long(name)
        block = stream.read(stored.BLOCK)
    if waiting:
        yield waiting


def _too_long(name: str) -> None:
    most = limits.MAX_BYTES // 10**6
    raise CorpusError(
        f"{name} has more than {most} MB without a place to cut it.",
        "Put “# newdoc id = …” before each document, a blank line after each sentence, or break the lines of a text.",
    )
