"""Files in shards: every byte is in exactly one of them, and together they give the same corpus as the whole file."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_viz.corpus import corpus_files, cutting, limits
from mha_viz.corpus.cutting import cut_file, read_shard
from mha_viz.corpus.reading import CONLLU, PLAIN, parse_file, read_part
from mha_viz.corpus.sources import Source, list_source_files, read_corpus
from mha_viz.corpus.treebank import FILE_START, Corpus, Sentence
from mha_viz.errors import CorpusError, CorpusMissing
from mha_viz.study.cluster.layout import lay_out, read_part_corpus, survey_shard
from tests import lanes
from tests.conllu import GAP_HEADING, conllu, line
from tests.shards import lay_out_corpus, treebank

TEXT = "The dog barks.\n\nA cat, perhaps, sleeps.\n" * 6


def opened(source: object) -> Corpus:
    corpus = read_corpus(source)
    assert isinstance(corpus, Corpus)
    return corpus


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def sentences_in_parts(name: str, files: list[Path], size: int) -> list[Sentence]:
    return [
        sentence for part in lay_out_corpus(name, files, size).parts for sentence in read_part_corpus(part).sentences
    ]


def parquet(path: Path, **columns: object) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=3)
    return path


def zstandard(path: Path, data: bytes) -> Path:
    import pyarrow

    with pyarrow.output_stream(str(path), compression="zstd") as stream:
        stream.write(data)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60 if lanes.everything else 20)
@given(st.text(st.sampled_from("ab .\n\r\u2028é😀\x0b"), max_size=60), st.integers(1, 20))
def test_lines_of_text_are_each_in_one_shard(tmp_path: Path, text: str, size: int) -> None:
    if not text.strip():
        return
    path = written(tmp_path, "t.txt", text)
    parts = cut_file(str(path), size)
    assert parts.kind == PLAIN
    assert b"".join(map(read_shard, parts.shards)) == path.read_bytes()
    assert parts.digest == opened(path).digest
    assert sentences_in_parts("t.txt", [path], size) == list(opened(path).sentences)


@pytest.mark.parametrize("size", [1, 700, 3000, 10**7])
def test_shards_of_a_treebank_are_whole_documents(tmp_path: Path, size: int) -> None:
    path = written(tmp_path, "t.conllu", b"\xef\xbb\xbf" + treebank(23).encode())
    layout, corpus = lay_out_corpus("t.conllu", [path], size), opened(path)
    assert layout.digest == corpus.digest
    assert (layout.corpus.has_trees, layout.corpus.has_chains) == (corpus.has_trees, corpus.has_chains) == (True, True)
    assert [name for part in layout.parts for name, _ in part.documents] == [f"d{number}" for number in range(5)]
    assert len(layout.parts) == {1: 5, 10**7: 1}.get(size, len(layout.parts))
    assert all(read_shard(part.shard).startswith(b"# newdoc") for part in layout.parts)
    assert sentences_in_parts("t.conllu", [path], size) == list(corpus.sentences)


def test_documents_without_chains_are_cut_between_sentences_and_keep_their_name(tmp_path: Path) -> None:
    sentences = [conllu(line(1, "Dogs", 2, "nsubj"), line(2, "bark", 0, "root")) for _ in range(6)]
    text = "".join([*sentences[:2], "# newdoc\n", *sentences[2:4], "# newdoc id = b\n", *sentences[4:]])
    path = written(tmp_path, "t.conllu", text)
    assert [s.document for s in opened(path).sentences] == ["", "", *["document 2"] * 2, "b", "b"]
    cutting_anywhere = cut_file(str(path), 1)._replace(shards=shards_between_sentences(path))
    assert len(cutting_anywhere.shards) == 6

    layout = lay_out("t", [cutting_anywhere], [[survey_shard(shard, CONLLU) for shard in cutting_anywhere.shards]])
    assert [s for part in layout.parts for s in read_part_corpus(part).sentences] == list(opened(path).sentences)


def shards_between_sentences(path: Path) -> tuple[cutting.Shard, ...]:
    """As for a file whose beginning, by which its kind is recognised, has no document heading."""
    parts = cutting._iter_parts(io.BytesIO(), path.read_bytes(), 1, cutting._find_sentence_end, path.name)
    shards, start = [], 0
    for part in parts:
        shards.append(cutting.Shard(str(path), start, start + len(part), hashlib.sha256(part).hexdigest()))
        start += len(part)
    return tuple(shards)


def test_chains_without_documents_are_not_cut(tmp_path: Path) -> None:
    text = treebank(12, per_document=100).partition("\n")[2]
    path = written(tmp_path, "t.conllu", text)
    assert b"newdoc" not in path.read_bytes()
    assert len(cut_file(str(path), 100).shards) == 1
    assert sentences_in_parts("t", [path], 100) == list(opened(path).sentences)


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "c/a.conllu", treebank(11)),
        written(tmp_path, "c/b/b.conllu", treebank(7, seed=1)),
        written(tmp_path, "c/b/c.txt", TEXT),
    ]
    written(tmp_path, "c/README.md", "not of the corpus")
    written(tmp_path, "c/.hidden.txt", "nor this")
    for source in (tmp_path / "c", str(tmp_path / "c" / "**" / "*.*[tu]")):
        corpus = opened(source)
        layout = lay_out_corpus("c", sorted(files), 500)
        assert corpus.digest == layout.digest
        assert [s for part in layout.parts for s in read_part_corpus(part).sentences] == list(corpus.sentences)
    assert opened(tmp_path / "c").name == "c"


@pytest.mark.parametrize("size", [60, 10**6])
def test_packed_files_hold_the_same(tmp_path: Path, size: int) -> None:
    plain = written(tmp_path, "t.txt", TEXT)
    lines: list[object] = [*TEXT.rstrip("\n").split("\n")]
    packed = [
        written(tmp_path, "g.txt.gz", gzip.compress(TEXT[:100].encode()) + gzip.compress(TEXT[100:].encode())),
        zstandard(tmp_path / "z.txt.zst", TEXT.encode()),
        parquet(tmp_path / "p.parquet", id=[*range(len(lines))], text=lines, other=lines),
        parquet(tmp_path / "q.parquet", sentence=lines),
    ]
    for path in packed:
        assert opened(path).digest == opened(plain).digest
        assert cut_file(str(path), size).digest == opened(plain).digest
        assert sentences_in_parts("t", [path], size) == list(opened(plain).sentences)
    assert opened(packed[0]).name == "g.txt"


def test_cells_of_parquet_are_lines_whatever_their_type(tmp_path: Path) -> None:
    import pyarrow

    cells = ["The dog barks.", None, "", "A cat — 猫 — sleeps.\r", "The dog barks."]
    lines = "The dog barks.\n\n\nA cat — 猫 — sleeps.\r\nThe dog barks.\n"
    types = [pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]
    for number, kind in enumerate(types):
        path = parquet(tmp_path / f"{number}.parquet", id=[*range(5)], text=pyarrow.array(cells, kind))
        with corpus_files.open_file(path) as stream:
            assert stream.read().decode() == lines
        assert sentences_in_parts("t", [path], 20) == list(opened(path).sentences)
    with pytest.raises(CorpusError, match="is empty"):
        cut_file(str(parquet(tmp_path / "nulls.parquet", text=pyarrow.array([None, None], pyarrow.string()))))


def test_a_cell_that_many_rows_repeat_is_unpacked_once(tmp_path: Path) -> None:
    path = parquet(tmp_path / "same.parquet", text=["x" * 500_000] * 100)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        with corpus_files.open_file(path) as stream:
            assert (
                sum(len(block) for block in iter(lambda: stream.read(corpus_files.BLOCK_BYTES), b"")) == 100 * 500_001
            )
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["x" * 30_000_000], "row group 1: cells of 30 MB; at most 10 MB per cell are read"),
        (["x" * 66_000_000, *map(str, range(9))], "row group 1: 66 MB in 0.0 MB, which is implausible for text"),
    ],
)
def test_a_cell_that_a_small_file_makes_large_is_refused_before_it_is_read(
    cells: list[str], problem: str, tmp_path: Path
) -> None:
    import pyarrow.parquet

    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": cells}), path, compression="zstd")
    del cells
    assert path.stat().st_size < 100_000
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(CorpusError, match=re.escape(problem)), corpus_files.open_file(path) as stream:
        stream.read(1)
    assert pyarrow.total_allocated_bytes() - before < 10_000_000


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}], ids=str)
def test_a_file_that_states_a_false_size_is_refused_before_it_is_read(
    options: dict[str, object], tmp_path: Path
) -> None:
    """The sizes in the description of a Parquet file may be false; a page is decompressed to its own."""
    import pyarrow.parquet

    path = tmp_path / "false.parquet"
    table = pyarrow.table({"text": ["x" * 100_000_000, "It rains."]})
    pyarrow.parquet.write_table(table, path, compression="zstd", write_statistics=False, **options)
    true = pyarrow.parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    path.write_bytes(path.read_bytes().replace(_number(true, 4), _number(1000, 4)))
    assert pyarrow.parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1000
    del table
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(CorpusError, match="cells of 50 MB; at most 10"), corpus_files.open_file(path) as stream:
        stream.read(1)
    assert pyarrow.total_allocated_bytes() - before < 10_000_000


def test_large_cells_before_many_small_ones_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """The mean of a row group says nothing of its first rows."""
    import pyarrow.parquet

    path = tmp_path / "uneven.parquet"
    table = pyarrow.table({"text": [chr(65 + at) * 3_000_000 for at in range(40)] + ["a"] * 12_000})
    pyarrow.parquet.write_table(table, path, use_dictionary=False, data_page_size=1000, write_batch_size=1)
    del table
    before = pyarrow.total_allocated_bytes()
    with corpus_files.open_file(path) as stream:
        assert stream.readline() == b"A" * 3_000_000 + b"\n"
        assert pyarrow.total_allocated_bytes() - before < 1.5 * limits.MAX_BYTES
        assert len(stream.readlines()) == 12_039


def test_a_text_that_many_cells_begin_with_is_read_a_few_cells_at_a_time(tmp_path: Path) -> None:
    """In this encoding a cell is stored as what differs from the one before."""
    import pyarrow.parquet

    path, encoding = tmp_path / "same.parquet", {"text": "DELTA_BYTE_ARRAY"}
    table = pyarrow.table({"text": ["x" * 3_000_000] * 100})
    pyarrow.parquet.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    del table
    assert pyarrow.parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size < 10_000_000
    before = pyarrow.total_allocated_bytes()
    with corpus_files.open_file(path) as stream:
        assert stream.readline() == b"x" * 3_000_000 + b"\n"
        assert pyarrow.total_allocated_bytes() - before < 1.5 * limits.MAX_BYTES
        assert len(stream.readlines()) == 99


@pytest.mark.parametrize("at", range(4, 40))
def test_a_damaged_page_is_one_sentence(at: int, tmp_path: Path) -> None:
    path = parquet(tmp_path / "damaged.parquet", text=["The dog barks."] * 3)
    whole = path.read_bytes()
    for value in (0, 0x0C, 0x7F, 0x80, 0xFF):
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with contextlib.suppress(CorpusError), corpus_files.open_file(path) as stream:
            assert len(stream.read(1000)) < 1000


def _number(value: int, size: int) -> bytes:
    """A positive number as Parquet writes it, in ``size`` bytes of seven bits."""
    bits = [(2 * value >> 7 * place) & 127 for place in range(size)]
    return bytes([*(one | 128 for one in bits[:-1]), bits[-1]])


def test_of_a_file_that_is_decompressed_only_the_least_size_is_known(tmp_path: Path) -> None:
    path = written(tmp_path, "bomb.txt.gz", gzip.compress(bytes(limits.MAX_BYTES + 1_000_000), 1))
    with pytest.raises(CorpusError, match=r"bomb\.txt has more than 64 MB; at most 64 are read\."):
        read_corpus(path)


@pytest.mark.parametrize("source", ["grammar", ["grammar"], Path("grammar"), ["a.txt", "repeats"]], ids=str)
def test_a_built_in_corpus_is_not_in_a_file_however_it_is_named(source: Source) -> None:
    with pytest.raises(CorpusError, match="this corpus is not in a file"):
        list_source_files(source)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusMissing, match="does not exist"):
        cut_file(str(tmp_path / "none.txt"))
    with pytest.raises(CorpusMissing, match="names no file"):
        read_corpus(tmp_path)
    with pytest.raises(CorpusError, match=r"g\.txt\.gz is incomplete: the archive ends too early"):
        cut_file(str(written(tmp_path, "g.txt.gz", gzip.compress(TEXT.encode())[:-20])))
    with pytest.raises(CorpusError, match=r"z\.zst cannot be read"):
        cut_file(str(written(tmp_path, "z.zst", b"this is not Zstandard")))
    with pytest.raises(CorpusError, match="the text columns a, b"):
        cut_file(str(parquet(tmp_path / "two.parquet", a=["x"], b=["y"])))
    with pytest.raises(CorpusError, match="no text column"):
        cut_file(str(parquet(tmp_path / "n.parquet", a=[1])))
    with pytest.raises(CorpusError, match="GAP table"):
        cut_file(str(written(tmp_path, "gap.tsv", GAP_HEADING)))
    with pytest.raises(CorpusError, match="is empty"):
        cut_file(str(written(tmp_path, "empty.txt", " \n")))


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, "t.txt", TEXT)
    first = cut_file(str(path), 50).shards[0]
    path.write_text(TEXT.replace("dog", "fox"), "utf-8")
    with pytest.raises(CorpusError, match="changed while"):
        read_shard(first)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_BYTES", 1000)
    with pytest.raises(CorpusError, match="without a place to split it"):
        cut_file(str(written(tmp_path, "t.txt", "x" * 2000)), 100)


def test_an_upload_is_its_bytes_and_nothing_is_unpacked_or_looked_up(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="not UTF-8"):
        parse_file(gzip.compress(TEXT.encode()), "g.txt.gz")
    written(tmp_path, "other.txt", TEXT)
    for name in (str(tmp_path / "other.txt"), str(tmp_path), str(tmp_path / "*")):
        uploaded = parse_file(b"one two\n", name)
        assert isinstance(uploaded, Corpus)
        assert [sentence.forms for sentence in uploaded.sentences] == [("one", "two")]


# ---- What cannot be read is left out and reported --------------------------------------------------------------------


def test_lines_that_are_no_text_are_left_out() -> None:
    long = b"y" * (limits.MAX_LINE + 1)
    part = read_part(b"one\n\xff\xfe\n" + long + b"\nzero\0byte\ntwo\n", PLAIN, "t.txt", FILE_START._replace(lines=10))
    assert [(s.forms, s.line) for s in part.sentences] == [(("one",), 11), (("two",), 15)]
    assert [one.partition(":")[0] for one in part.left_out] == ["line 12", "line 13", "line 14"]
    assert all(one.endswith("The sentence is left out.") for one in part.left_out)


def test_a_sentence_with_a_bad_line_is_left_out_and_ends_no_document() -> None:
    good = conllu(line(1, "Dogs", 2, "nsubj", "Entity=(1)"), line(2, "bark", 0, "root"))
    bad = "# newdoc id = b\n" + conllu("1\tnine\tcolumns\t_\t_\t_\t_\t_\t_")
    text = f"# newdoc id = a\n{good}{bad}{good}# newdoc id = c\n{good}"
    part = read_part(text.encode() + b"1\t\xff\n\n", CONLLU, "t.conllu", FILE_START)
    assert [(s.document, len(s.mentions)) for s in part.sentences] == [("a", 1), ("b", 1), ("c", 1)]
    assert part.left_out[0].startswith("line 6: 9 columns.")
    assert part.left_out[1].endswith("not UTF-8 text. The sentence is left out.")


def test_a_bad_line_with_a_bracket_costs_its_own_mentions() -> None:
    good = conllu(line(1, "Dogs", 2, "nsubj", "Entity=(1)"), line(2, "bark", 0, "root"))
    bad = conllu(line("x", "Dogs", 2, "nsubj", "Entity=(1"))
    part = read_part(f"# newdoc id = a\n{good}{bad}".encode(), CONLLU, "t.conllu", FILE_START)
    assert [len(s.mentions) for s in part.sentences] == [1]
    assert len(part.left_out) == 1


def test_what_is_declared_at_the_top_holds_in_every_shard(tmp_path: Path) -> None:
    """Five columns, and a type before the chain, in a file that is cut behind every document."""
    rows = "1\tAnn\t2\tnsubj\tEntity=(person-1)\n2\tslept\t0\troot\t_\n\n"
    declared = "# global.columns = ID FORM HEAD DEPREL MISC\n# global.Entity = etype-GRP\n"
    text = declared + "".join(f"# newdoc id = {name}\n{rows}{rows}" for name in "abc")
    shards = cut_file(str(written(tmp_path, "t.conllup", text)), 10)
    assert len(shards.shards) == 3
    parts = lay_out("t", [shards], [[survey_shard(one, CONLLU) for one in shards.shards]]).parts
    whole = parse_file(text.encode(), "t.conllup")
    assert isinstance(whole, Corpus)
    assert [s for part in parts for s in read_part_corpus(part).sentences] == [*whole.sentences]
    assert [m.chain for s in whole.sentences for m in s.mentions] == 6 * ["1"]


@given(
    st.lists(st.sampled_from(["", " ", "# newdoc", "# newdoc id = a", "#", "1\ta"]), max_size=30), st.integers(0, 60)
)
def test_a_document_ends_at_the_first_blank_line_before_its_next(lines: list[str], size: int) -> None:
    """The same as with a pattern that looks at the same lines again and again."""
    pattern = re.compile(rb"\n[ \t]*\n(?=(?:#[^\n]*\n)*?#[ \t]*newdoc(?: id = a)?\n)")
    data = "".join(f"{line}\n" for line in lines).encode()
    match = pattern.search(data, size)
    assert cutting._find_document_end(data, size) == (match.end() if match else 0)


def archives() -> dict[str, bytes]:
    """Write one text in each kind of archive, by its suffix."""
    import pyarrow
    import pyarrow.parquet

    packed, table = pyarrow.BufferOutputStream(), pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(TEXT.encode())
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXT.splitlines()}), table)
    return {
        "txt.gz": gzip.compress(TEXT.encode()),
        "txt.zst": packed.getvalue().to_pybytes(),
        "parquet": table.getvalue().to_pybytes(),
    }


@pytest.mark.parametrize("suffix", ["txt.gz", "txt.zst", "parquet"])
def test_an_archive_that_is_cut_is_called_cut(tmp_path: Path, suffix: str) -> None:
    whole = archives()[suffix]
    assert cut_file(str(written(tmp_path, f"whole.{suffix}", whole))) is not None
    beginnings = (*range(13), 40, len(whole) // 2, *range(len(whole) - 9, len(whole)))
    for length in beginnings:
        if suffix == "parquet" and length < 4:
            continue  # nothing says that it began as one
        path = written(tmp_path, f"cut.{suffix}", whole[:length])
        with pytest.raises(CorpusError, match=rf"cut\.{suffix} is incomplete: .* Copy or download it again"):
            cut_file(str(path))


def test_a_treebank_without_its_words_is_refused_whatever_the_shards(tmp_path: Path) -> None:
    blank = conllu(line(1, "_", 2, "nsubj"), line(2, "_", 0, "root"))
    given = conllu(line(1, "Dogs", 2, "nsubj"), line(2, "bark", 0, "root"))
    path = written(tmp_path, "t.conllu", blank + given + blank)
    with pytest.raises(CorpusError, match="4 of its 6 words are “_”"):
        lay_out_corpus("t", [path], 1)
    assert len(lay_out_corpus("t", [written(tmp_path, "u.conllu", blank + given)], 1).parts) == 2
