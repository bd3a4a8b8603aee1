"""Treebanks are read correctly, errors are reported with their line, and nothing is read in part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.corpus import limits
from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.limits import MAX_BRACKETS, MAX_CELL, MAX_LABEL, MAX_LABELS, MAX_WORDS, decode
from mha_viz.corpus.reading import parse_file, read_gap, read_plain
from mha_viz.corpus.treebank import Corpus, Gap, Mention, Word
from mha_viz.errors import CorpusError, MhaVizError
from tests import hostile
from tests.conllu import GAP_HEADING, conllu, line

CATS = conllu(
    "# newdoc id = one",
    "# text = The cat's toys.",
    line(1, "The", 2, "det"),
    line("2-3", "cat's"),
    line(2, "cat", 4, "nmod:poss"),
    line(3, "'s", 2, "case"),
    line(4, "toys", 0, "root"),
    line("4.1", "are"),
    line(5, ".", 4, "punct"),
)


def test_words_are_the_plain_ids_with_their_heads() -> None:
    corpus = read_conllu(CATS, "cats")
    (sentence,) = corpus.sentences
    assert sentence.forms == ("The", "cat", "'s", "toys", ".")
    assert [word.head for word in sentence.words] == [1, 3, 1, None, 3]
    assert [word.relation for word in sentence.words] == ["det", "nmod:poss", "case", "root", "punct"]
    assert sentence.words[1].base == "nmod"
    assert sentence.words[0].features == "Number=Sing"
    assert (sentence.document, sentence.line) == ("one", 1)
    assert corpus.has_trees
    assert not corpus.has_chains
    assert corpus.left_out == ()


# ---- Coreference -----------------------------------------------------------------------------------------


def chained(*entities: str, heads: tuple[int, ...] = ()) -> str:
    lines = [
        line(i, f"w{i}", heads[i - 1] if heads else (i - 1), "dep" if i > 1 else "root", f"Entity={e}" if e else "_")
        for i, e in enumerate(entities, 1)
    ]
    return conllu("# newdoc id = d", *lines)


def test_mentions_open_close_nest_and_have_a_head() -> None:
    corpus = read_conllu(chained("(1-person-new-cf1-2-coref", "(2-x)", "1)", "(1-person)", heads=(3, 3, 0, 3)))
    assert corpus.has_chains
    assert corpus.sentences[0].mentions == (Mention("1", 0, 3, 2), Mention("2", 1, 2, 1), Mention("1", 3, 4, 3))


def test_several_brackets_on_one_word() -> None:
    corpus = read_conllu(chained("(1-a(2-b", "2)1)"))
    assert {(m.chain, m.start, m.end) for m in corpus.sentences[0].mentions} == {("1", 0, 2), ("2", 0, 2)}


def test_the_head_is_the_first_word_whose_head_lies_outside() -> None:
    corpus = read_conllu(chained("(7-a", "", "7)", "", heads=(2, 4, 2, 0)))
    assert corpus.sentences[0].mentions[0].word == 1


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        (("(1-a", "", ""), "line 2: Entity=(1 never closes"),
        (("", "1)", ""), "line 3: Entity=1) closes a mention that was never opened"),
    ],
)
def test_brackets_that_do_not_match_leave_out_their_mention_only(entities: tuple[str, ...], message: str) -> None:
    corpus = read_conllu(chained("(5-a)", *entities[1:], "(5-a)") if not entities[0] else chained(*entities, "(5-a)"))
    assert {mention.chain for mention in corpus.sentences[0].mentions} == {"5"}
    assert corpus.left_out == (f"{message}: the mention is left out.",)


def test_a_mention_across_sentences_is_left_out_alone() -> None:
    second = conllu(line(1, "x", 0, "root", "Entity=1)"), line(2, "y", 1, "dep", "Entity=(2)"))
    corpus = read_conllu(chained("(1-a", "(2)") + second)
    assert [[m.chain for m in sentence.mentions] for sentence in corpus.sentences] == [["2"], ["2"]]
    assert corpus.left_out == ("line 2: Entity=(1 closes in another sentence: the mention is left out.",)


def test_many_bad_mentions_of_a_document_are_counted() -> None:
    corpus = read_conllu(chained(*["1)"] * 8))
    assert len(corpus.left_out) == 6
    assert corpus.left_out[-1] == "d: 3 problems more of this kind."


ORDERS = {  # the same annotation, in the order of fields of each
    "GRP-etype-infstat-salience-centering-minspan-link-identity": ("({chain}-person-new-nn-cf1-1-coref-x", "{chain})"),
    "GRP-etype-infstat-minspan-link-identity": ("({chain}-person-new-1-coref", "{chain})"),
    "entity-GRP-infstat-MIN-coref_type-identity": ("(person-{chain}-new-1-coref-x", "{chain})"),
    "entity-GRP-identity": ("(person-{chain}", "person-{chain})"),
    "eid-etype-head-other": ("({chain}-person-1-gstype:gen", "{chain})"),
    "etype-eid": ("(person-{chain}", "{chain})"),
    "": ("({chain}-person-new-cf1-1-coref", "{chain})"),
}


def in_order(order: str, opens: str, closes: str) -> str:
    """Two documents: Anna (1) and the dog (2) that she (1) has, in which a mention is one word or two."""
    one, two = (opens.format(chain=chain) for chain in "12")
    said = f"# global.Entity = {order}\n" * bool(order)
    first = conllu(
        line(1, "Anna", 2, "nsubj", f"Entity={one})"),
        line(2, "has", 0, "root"),
        line(3, "a", 4, "det", f"Entity={two}"),
        line(4, "dog", 2, "obj", f"SpaceAfter=No|Entity={closes.format(chain=2)}"),
    )
    second = conllu(line(1, "She", 2, "nsubj", f"Entity={one})"), line(2, "left", 0, "root"))
    return "".join(f"# newdoc id = {name}\n{said * (name == 'a')}{first}{second}" for name in "ab")


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order or "not declared")
def test_the_same_annotation_in_every_order_of_fields_is_the_same(order: str) -> None:
    corpus = read_conllu(in_order(order, *ORDERS[order]))
    first, second = (Mention("1", 0, 1, 0), Mention("2", 2, 4, 3)), (Mention("1", 0, 1, 0),)
    assert [sentence.mentions for sentence in corpus.sentences] == 2 * [first, second]
    assert corpus.left_out == ()


@pytest.mark.parametrize("line", ["# global.entity = {}", "#  global.Entity={}", "# GLOBAL.ENTITY = {}"])
def test_an_order_may_be_declared_with_blanks_and_small_letters(line: str) -> None:
    order = "etype-GRP-infstat"
    text = in_order(order, *ORDERS["entity-GRP-identity"])
    declared = text.replace(f"# global.Entity = {order}", line.format("etype - GRP - infstat"))
    assert declared != text
    assert read_conllu(declared).sentences == read_conllu(text).sentences


def test_an_order_without_a_chain_and_a_bracket_without_one_are_said() -> None:
    corpus = read_conllu("# global.Entity = etype-head\n" + chained("(person-1)", ""))
    assert (corpus.has_chains, len(corpus.left_out)) == (False, 1)
    assert corpus.left_out[0].startswith("line 3: # global.Entity names neither GRP nor eid")
    corpus = read_conllu("# global.Entity = etype-eid\n" + chained("(person)", "(person-2)"))
    assert [m.chain for m in corpus.sentences[0].mentions] == ["2"]
    assert corpus.left_out == ("line 3: Entity=(person names no chain: the mention is left out.",)


@pytest.mark.parametrize(
    ("lines", "mentions"),
    [
        ((("1", ""), ("1.1", "(e1-x"), ("2", ""), ("3", "e1)")), (Mention("e1", 1, 3, 1),)),
        ((("1", "(e1-x"), ("2", ""), ("2.1", "e1)"), ("3", "")), (Mention("e1", 0, 2, 0),)),
        ((("0.1", "(e1-x"), ("1", "e1)"), ("2", ""), ("3", "(e1)")), (Mention("e1", 0, 1, 0), Mention("e1", 2, 3, 2))),
        ((("1", ""), ("2", ""), ("3", "(e1-x"), ("3.1", ""), ("3.2", "e1)")), (Mention("e1", 2, 3, 2),)),
        ((("1", ""), ("1.1", "(e1-x)"), ("1.2", "(e2"), ("1.3", "e2)"), ("2", ""), ("3", "")), ()),
        ((("1", "(e1-x"), ("2-3", "e1)"), ("2", "e1)"), ("3", "")), (Mention("e1", 0, 2, 0),)),
    ],
    ids=["opens", "closes", "before all words", "behind all words", "empty nodes alone", "a range has none"],
)
def test_a_mention_with_empty_nodes_is_its_words(
    lines: tuple[tuple[str, str], ...], mentions: tuple[Mention, ...]
) -> None:
    heads = {"1": (0, "root"), "2": (1, "dep"), "3": (2, "dep")}
    rows = []
    for number, brackets in lines:
        head, relation = heads.get(number, ("_", "_"))
        rows.append(line(number, f"w{number}", head, relation, f"Entity={brackets}" if brackets else "_"))
    corpus = read_conllu(conllu(*rows))
    assert corpus.sentences[0].mentions == mentions
    assert corpus.left_out == ()


def test_a_sentence_without_a_tree_costs_its_own_mentions() -> None:
    bad = conllu(line(1, "x", 9, "dep", "Entity=(1)"))
    corpus = read_conllu(chained("(1)", "") + bad + chained("(1)").replace("# newdoc id = d\n", ""))
    assert [len(sentence.mentions) for sentence in corpus.sentences] == [1, 0, 1]
    assert corpus.left_out[1] == "line 5: a sentence without a tree: its mentions are left out."


# ---- Errors ----------------------------------------------------------------------------------------------

BROKEN_TREES = [
    ((line(1, "a", 2, "x"), line(2, "b", 1, "x")), "cycle"),
    ((line(1, "a", 0, "root"), line(2, "b")), "word 2 has no head"),
    ((line(1, "a", 9, "x"),), "does not exist"),
    ((line(1, "a", 2, "_"), line(2, "b", 0, "_")), "word 1 has a head but no single-word relation"),
    ((line(1, "a", 0, "root"), line(1, "b", 1, "x")), "the ids begin again at word 2; a blank line must separate"),
    ((line(1, "a", 0, "root"), line(3, "b", 1, "x")), "ids are not 1 to 2"),
    ((line(2, "a", 0, "root"),), "ids are not 1 to 1"),
]


@pytest.mark.parametrize(("lines", "message"), BROKEN_TREES, ids=[message for _, message in BROKEN_TREES])
def test_a_broken_tree_is_left_out_and_the_others_stay(lines: tuple[str, ...], message: str) -> None:
    corpus = read_conllu(CATS + conllu(*lines) + CATS)
    assert len(corpus.sentences) == 3  # every sentence keeps its number in the file
    assert corpus.sentences[1].forms == tuple(row.split("\t")[1] for row in lines)
    assert all(word.head is None and not word.relation for word in corpus.sentences[1].words)
    assert len(corpus.left_out) == 1
    assert corpus.left_out[0].startswith("line 11: ")
    assert message in corpus.left_out[0]


def test_a_sentence_without_any_head_is_text_without_a_tree() -> None:
    corpus = read_conllu(conllu(line(1, "a"), line(2, "b")))
    assert not corpus.has_trees
    assert corpus.sentences[0].forms == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no sentence"),
        ("\n\n\n", "contains no sentence"),
        ("# only a comment\n", "contains no sentence"),
        ("The cat sat.\n", "line 1: 1 column."),
        ("1\ttoo\tfew\n", "line 1: 3 columns"),
        (conllu(line("x", "a", 0, "root")), "line 1"),
        (conllu(line(1, "a", "zero", "root")), "line 1"),
    ],
    ids=["empty", "blank lines", "a comment", "plain text", "few columns", "no id", "no number"],
)
def test_what_is_no_conllu_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_conllu(text, "file")


def without_words(given: int) -> str:
    """A sentence of four words, of which this many are given."""
    return conllu(*(line(i, "a" if i <= given else "_", i - 1, "dep") for i in range(1, 5)))


def test_a_treebank_without_its_words_is_refused() -> None:
    with pytest.raises(CorpusError, match=r"file has no text: 3 of its 4 words are “_”") as refused:
        read_conllu(without_words(1), "file")
    assert "script" in refused.value.remedy
    assert read_conllu(without_words(2), "file").sentences[0].forms == ("a", "a", "_", "_")


# ---- Limits ----------------------------------------------------------------------------------------------------------

LONG = "x" * (MAX_CELL + 1)
HALF = " ".join(["x" * (MAX_CELL - 1)] * 11)  # a line that exceeds the limit, with words that do not


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        (
            CATS + conllu(*(line(i, "a", i - 1, "dep") for i in range(1, MAX_WORDS + 2))),
            "file, line 11: a sentence of 1,001 words; at most 1,000 are read.",
            "Split it into sentences",
        ),
        (
            CATS + conllu("# text = a", line(1, LONG, 0, "root")),
            "file, line 12: 10,001 characters without a break; at most 10,000 are read.",
            "Shorten the column",
        ),
        (
            CATS + conllu(line(1, "a", 0, "root", f"Entity={LONG}")),
            "file, line 11: 10,008 characters without a break; at most 10,000 are read.",
            "Shorten the column",
        ),
        (
            CATS + conllu("# text = " + LONG * 10, line(1, "a", 0, "root")),
            "file, line 11: 100,019 characters; at most 100,000 of a line are read.",
            "Break the line",
        ),
        (
            "".join(conllu(line(1, "a", 0, f"nmod:{i}")) for i in range(MAX_LABELS + 1)),
            "file, line 401: “nmod:200” is relation number 201; at most 200 different ones are read, "
            "counting subtypes.",
            "check the order of the columns",
        ),
        (
            "".join(conllu(line(1, "a", 0, "x").replace("NOUN", f"N{i}")) for i in range(MAX_LABELS + 1)),
            "file, line 401: “N200” is part of speech number 201; at most 200 different ones are read",
            "check the order of the columns",
        ),
        (
            CATS + conllu(line(1, "a", 0, "x" * (MAX_LABEL + 1))),
            f"file, line 11: the relation “{'x' * 40}…” has 101 characters; at most 100 are read.",
            "Shorten it",
        ),
        (
            CATS + conllu(line(1, "a", 0, "root").replace("NOUN", "N" * 9_900)),
            f"file, line 11: the part of speech “{'N' * 40}…” has 9,900 characters; at most 100 are read.",
            "Shorten it",
        ),
    ],
    ids=[
        "words",
        "a form",
        "Entity",
        "a comment",
        "relations",
        "parts of speech",
        "a relation",
        "a part of speech",
    ],
)
def test_more_than_is_read_is_refused_or_left_out_with_its_line(text: str, problem: str, remedy: str) -> None:
    if not text.startswith(CATS):  # too many labels: the columns are in another order
        with pytest.raises(CorpusError) as refused:
            read_conllu(text, "file")
        assert refused.value.problem.startswith(problem)
        assert remedy in refused.value.remedy
        return
    corpus = read_conllu(text, "file")
    assert corpus.sentences == read_conllu(CATS).sentences
    assert corpus.left_out == (f"{problem.removeprefix('file, ')} The sentence is left out.",)
    with pytest.raises(CorpusError) as refused:
        read_conllu(text.removeprefix(CATS), "file")
    assert refused.value.problem.partition(":")[2] == problem.partition(":")[2]
    assert refused.value.remedy.startswith(remedy)


def test_as_much_as_is_read_is_read() -> None:
    (sentence,) = read_conllu(conllu(*(line(i, "a", i - 1, "dep") for i in range(1, MAX_WORDS + 1)))).sentences
    assert len(sentence.words) == MAX_WORDS
    assert read_conllu(conllu(line(1, "x" * MAX_CELL, 0, "root"))).sentences[0].forms == ("x" * MAX_CELL,)
    labels = "".join(conllu(line(1, "a", 0, f"nmod:{i}").replace("NOUN", f"N{i}")) for i in range(MAX_LABELS))
    assert len(read_conllu(2 * labels).sentences) == 2 * MAX_LABELS
    assert read_conllu(conllu(line(1, "a", 0, "x" * MAX_LABEL))).sentences[0].words[0].relation == "x" * MAX_LABEL
    assert len(read_plain("a " * MAX_WORDS).sentences[0].words) == MAX_WORDS
    assert len(read_conllu(chained("(1)" * MAX_BRACKETS)).sentences[0].mentions) == MAX_BRACKETS


@pytest.mark.parametrize(("reader", "one"), [(read_conllu, conllu(line(1, "a", 0, "x"))), (read_plain, "a\n\n")])
def test_a_file_of_very_many_sentences_is_refused(
    monkeypatch: pytest.MonkeyPatch, reader: Callable[[str], Corpus], one: str
) -> None:
    monkeypatch.setattr(limits, "MAX_SENTENCES", 2)
    assert len(reader(one * 2).sentences) == 2
    with pytest.raises(CorpusError, match="line 5: sentence number 3; at most 2 are read"):
        reader(one * 3)


def test_relations_of_a_broken_tree_are_not_counted() -> None:
    corpus = read_conllu("".join(conllu(line(1, "a", 9, f"r{i}")) for i in range(2 * MAX_LABELS)))
    assert len(corpus.left_out) == 2 * MAX_LABELS


def test_too_many_brackets_on_a_word_are_left_out() -> None:
    corpus = read_conllu(chained("(1)" * (MAX_BRACKETS + 1)) + chained("(1)").replace("id = d", "id = other"))
    assert corpus.left_out == ("line 2: 21 brackets on one word: at most 20 are read.",)
    assert [len(sentence.mentions) for sentence in corpus.sentences] == [MAX_BRACKETS, 1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a b\n" + "a " * (MAX_WORDS + 1), "file, line 2: a sentence of 1,001 words; at most 1,000 are read."),
        ("a b\n\n" + HALF, "file, line 3: 109,999 characters; at most 100,000 of a line are read."),
        ("a " + LONG, "file, line 1: 10,001 characters without a break; at most 10,000 are read."),
        ("a b\x0bc\u2028d\n" + LONG, "file, line 2: 10,001 characters without a break; at most 10,000 are read."),
    ],
    ids=["words", "a line", "a word", "a word after a page break"],
)
def test_plain_text_beyond_what_is_read_is_left_out_with_its_line(text: str, problem: str) -> None:
    corpus = read_plain(f"{text}\nc d", "file")
    assert corpus.sentences[-1].forms == ("c", "d")
    assert corpus.left_out == (f"{problem.removeprefix('file, ')} The sentence is left out.",)
    with pytest.raises(CorpusError, match="at most"):
        read_plain(text.rpartition("\n")[2], "file")


def test_a_table_beyond_what_is_read_is_refused_with_its_line() -> None:
    with pytest.raises(CorpusError, match="line 3: 10,001 characters without a break; at most 10,000 are read"):
        read_gap(GAP_HEADING + ROW + ROW.replace("http://x", LONG))
    with pytest.raises(CorpusError, match="line 2: 100,001 characters; at most 100,000 of a line are read"):
        read_gap(GAP_HEADING + "x" * 100_001)
    with pytest.raises(CorpusError, match="line 1: 10,001 characters"):
        read_gap(LONG + "\t" + GAP_HEADING)


def test_columns_that_are_empty_or_padded_are_read() -> None:
    padded = "\n".join(f" {row}" if "\t" in row else row for row in CATS.split("\n"))
    assert read_conllu(padded).sentences == read_conllu(CATS).sentences
    (sentence,) = read_conllu(conllu(line(1, "New  York", 0, "root", ""))).sentences
    assert sentence.words == (Word("New  York", "NOUN", None, "root", "Number=Sing"),)


CELLS = st.one_of(st.text("\t _01a-.#=|:", max_size=8), st.sampled_from(["1", "2", "_", "0", "1-2", "Entity=(1)"]))


@given(st.lists(st.lists(CELLS, min_size=10, max_size=10).map("\t".join), min_size=1, max_size=4).map("\n".join))
def test_any_ten_columns_are_read_or_refused(text: str) -> None:
    with suppress(MhaVizError):
        assert read_conllu(text)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in (read_conllu, read_plain, read_gap):
        with suppress(MhaVizError):  # anything else is a fault of the program
            assert reader(text)


def test_hostile_words_are_words() -> None:
    for name, form in hostile.TEXTS.items():
        word = " ".join(form[:500].replace("\t", " ").split()) or "x"
        if word.startswith("#"):
            word = f"x{word}"
        corpus = read_conllu(conllu(line(1, word, 0, "root")))
        assert len(corpus.sentences[0].forms) == 1, name


def test_files_that_are_no_text_or_too_large() -> None:
    with pytest.raises(CorpusError, match="line 2: not UTF-8"):
        decode(b"good\n\xff\xfe bad", "file")
    with pytest.raises(CorpusError, match="MB; at most"):
        decode(b"x" * 64_000_001, "file")
    with pytest.raises(CorpusError, match="a zero byte"):
        decode(b"a\0b", "file")
    assert decode("\ufeffé".encode(), "file") == "é"


def test_a_table_that_is_not_gap_is_not_read_as_text() -> None:
    with pytest.raises(CorpusError, match="lacks the column Pronoun-offset"):
        parse_file(b"id\ttext\n1\tShe left.\n", "other.TSV")
    assert parse_file(b"She left.\n", "other.txt").name == "other.txt"


# ---- Files of other kinds --------------------------------------------------------------------------------------------

DOGS = conllu(line(1, "Dogs", 2, "nsubj"), line(2, "sleep", 0, "root"))
FIVE = "1\tDogs\tNOUN\t2\tnsubj\n2\tsleep\tVERB\t0\troot\n\n"


def parsed(text: str, name: str = "file.txt") -> Corpus:
    corpus = parse_file(text.encode(), name)
    assert isinstance(corpus, Corpus)
    return corpus


@pytest.mark.parametrize(
    "text",
    [
        "# global.columns = ID FORM UPOS HEAD DEPREL\n" + FIVE,
        "# global.columns = DEPREL HEAD FORM id\nnsubj\t2\tDogs\t1\nroot\t0\tsleep\t2\n",
        "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC PARSEME:MWE\n"
        + DOGS.replace("\t_\n", "\t_\t*\n").replace("\t_\t_\n", "\t_\t_\t1:LVC\n"),
    ],
    ids=["five", "another order", "eleven"],
)
@pytest.mark.parametrize("name", ["x.conllup", "x.cupt", "x.txt"])
def test_columns_are_those_that_are_declared(text: str, name: str) -> None:
    (sentence,) = parsed(text, name).sentences
    assert sentence.forms == ("Dogs", "sleep")
    assert [(word.head, word.relation) for word in sentence.words] == [(1, "nsubj"), (None, "root")]


def test_columns_of_words_alone_have_no_tree() -> None:
    for columns, rows in (("ID FORM", "1\tDogs\n2\tsleep\n"), ("ID FORM HEAD", "1\tDogs\t2\n2\tsleep\t0\n")):
        corpus = parsed(f"# global.columns = {columns}\n{rows}")
        assert corpus.sentences[0].forms == ("Dogs", "sleep")
        assert not corpus.has_trees
        assert corpus.left_out == ()


@pytest.mark.parametrize("columns", ["FORM UPOS", "ID UPOS", "ID FORM FORM"])
def test_columns_without_words_are_refused(columns: str) -> None:
    rows = "\t".join("1" * len(columns.split()))
    with pytest.raises(CorpusError, match=r"file\.txt, line 2: # global.columns names"):
        parsed(f"# global.columns = {columns}\n{rows}\n")


TABLES = {
    "by spaces": ("# text = Dogs\n1   Dogs  dog   NOUN  _\n2   sleep  sleep  VERB  _\n", "line 2: 1 column"),
    "ten by single spaces": (DOGS.replace("\t", " "), "line 1: 1 column"),
    "five by single spaces": (FIVE.replace("\t", " "), "line 1: 1 column"),
    "five by tabs": (FIVE, "line 1: 5 columns"),
    "fourteen by tabs": (DOGS.replace("\t_\n", "\t_\t_\t_\t_\t_\n"), "line 1: 14 columns"),
    "eleven by tabs": (DOGS.replace("\t_\n", "\t_\t*\n"), "line 1: 11 columns"),
    "CoNLL-2003": ("-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n", "line 1 has words with tags"),
    "words and tags": ("Dogs\tNNS\nsleep\tVBP\n", "line 1 has columns separated by tabs"),
    "numbered sentences": ("1\tDogs sleep.\n2\tCats too.\n", "line 1 has columns separated by tabs"),
    "JSON": ('{"text": "Dogs sleep."}\n{"text": "Cats too."}\n', "line 1 has JSON"),
    "one word in ten columns": ("# text = Hi\n1 Hi hi INTJ UH _ 0 root _ _\n", "line 2: 1 column"),
    "commas": ('id,text,label\n1,The dog sleeps.,pos\n2,"Cats, too.",neg\n', "line 1 has columns separated by com"),
    "blanks behind commas": ("id, text\n1, Dogs sleep.\n2, Cats too.\n", "line 1 has columns separated by commas"),
    "commas without names": ("Dogs sleep.,pos\nCats too.,neg\n", "line 1 has columns separated by commas"),
    "semicolons": ("text;id\nDogs, too, sleep.;1\nCats;2\n", "line 1 has columns separated by semicolons"),
    "semicolons without names": ("1;Dogs sleep\n2;Cats too\n", "line 1 has columns separated by semicolons"),
    "bars": ("id|text\n1|Dogs sleep.\n2|Cats too.\n", "line 1 has columns separated by bars"),
    "a line end in a cell": (
        'id,text\n1,"Dogs\nsleep\nhere."\n2,"Cats\ntoo\n."\n',
        "line 1 has columns separated by com",
    ),
    "tags behind commas": ("EU,B-ORG\nrejects,O\n", "line 1 has words with tags"),
    "chunks alone": ("Confidence NN B-NP\nin IN B-PP\nthe DT B-NP\n", "line 1 has words with tags"),
    "parts of speech behind blanks": ("1 The DET\n2 dog NOUN\n3 ran VERB\n", "line 1 has words with tags"),
    "of the Penn Treebank": ("Dogs NNS\nsleep VBP\n. .\n", "line 1 has words with tags"),
    "tags behind strokes": ("The/DT dog/NN sleeps/VBZ ./.\n", "line 1 has tags after every word"),
    "tags in the middle": ("The DET the\ndog NOUN dog\nslept VERB sleep\n", "line 1 has words next to tags"),
    "tags in front": ("ART Der\nNN Hund\nVVFIN schläft\n", "line 1 has words next to tags"),
    "of German": ("Der ART\nHund NN\nschläft VVFIN\n", "line 1 has words with tags"),
    "tags behind hats": ("The^DT dog^NN sleeps^VBZ\n", "line 1 has tags after every word"),
    "labels": ("__label__pos Dogs sleep.\n__label__neg Cats too.\n", "line 1 has labels in front of texts"),
    "subtitles": ("1\n00:00:01,000 --> 00:00:02,500\nDogs sleep.\n\n", "line 1 has subtitles"),
    "LaTeX": ("The & DET \\\\\ndog & NOUN \\\\\n", "line 1 has words next to tags"),
    "LaTeX without tags": ("The & dog \\\\\nsleeps & now \\\\\n", "line 1 has rows of LaTeX"),
    "trees": ("(S (NP (DT The) (NN dog))\n  (VP (VBZ sleeps) (. .)))\n", "line 1 has trees in brackets"),
    "verticals": ('<text id="a">\n<s>\nDogs\nsleep\n.\n</s>\n</text>\n', "line 1 has tags of XML or HTML"),
    "columns within tags": ("<s>\nDogs\tNNS\nsleep\tVBP\n</s>\n", "line 1 has tags of XML or HTML"),
    "XML": ('<?xml version="1.0"?>\n<s id="1">Dogs sleep.</s>\n<s id="2">Cats too.</s>\n', "line 1 has tags of XML"),
    "rows of HTML": ("<table><tr><td>1</td></tr>\n<tr><td>The</td></tr></table>\n", "line 1 has tags of XML or HTML"),
    "words between commas": ("Äpfel,rot\nBirnen,grün\nKirschen,rot\n", "line 1 has columns separated by commas"),
    "labels behind commas": (
        "The dog barks,good\nIt's late,bad\nA bird sings,good\nNo rain,bad\n",
        "line 1 has columns separated by commas",
    ),
    "labels behind bars": ("New York|city\nSão Paulo|city\nLos Angeles|city\nThe Nile|river\n", "separated by bars"),
    "YAML": ("sentence: The dog barks.\nlabel: positive\nid: 3\n", "line 1 has keys and values of YAML"),
    "items of YAML": ("- text: The dog barks.\n  label: good\n- text: A cat.\n  label: bad\n", "keys and values of YA"),
    "one key of YAML": ("- text: The dog barks.\n- text: A cat.\n", "line 1 has keys and values of YAML"),
    "YAML with a heading": ("---\ntitle: Dogs\nitems:\n- They bark.\n- They sleep.\n", "line 1 has keys and values of"),
    "YAML in parts": ("---\nwho: Ann\nscore: 3\n---\nwho: Ben\nscore: 4\n", "line 1 has keys and values of YAML"),
    "named parts of YAML": ("---\ntext: Dogs bark.\nlabel: good\n", "line 1 has keys and values of YAML"),
    "YAML within": ("dogs:\n  one: Rex\n  other: Ben\n", "line 1 has keys and values of YAML"),
    "YAML in blocks": ("- who: Ann\n  says: |\n    Hello.\n  mood: good\n", "line 1 has keys and values of YAML"),
    "numbers of YAML": ("- score: 3\n- score: 4\n", "line 1 has keys and values of YAML"),
    "EAGLES": ("El da0ms0\nperro ncms000\nladra vmip3s0\n. fp\n", "line 1 has words with long tags"),
    "EAGLES in capitals": ("El el DA0MS0\nperro perro NCMS000\nladra ladrar VMIP3S0\n. . Fp\n", "words with long tags"),
    "ambiguous tags": ("IN in\nTO to\nIN by\nTO to\n", "line 1 has words next to tags"),
    "a clear tag": ("IN in\nNN town\n", "line 1 has words next to tags"),
    "HTML": ("<!DOCTYPE html>\n<p>\nDogs sleep.\nCats too.\nAll sleep.\n</p>\n", "line 1 has tags of XML or HTML"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_not_read_as_text(kind: str) -> None:
    text, problem = TABLES[kind]
    with pytest.raises(CorpusError, match=problem) as refused:
        parsed(text)
    assert refused.value.remedy


WORDS = st.text("abcXé'", min_size=1, max_size=6)
CELL = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@given(st.sampled_from(",;|"), st.lists(st.tuples(CELL, st.sampled_from(["pos", "neg"])), min_size=2, max_size=9))
def test_any_table_with_names_of_its_columns_is_refused(sign: str, cells: list[tuple[str, str]]) -> None:
    rows = [sign.join(("id", "text", "label")), *(sign.join((str(i), *row)) for i, row in enumerate(cells))]
    with pytest.raises(CorpusError, match="is a table"):
        parsed("\n".join(rows))


@given(st.lists(st.lists(CELL, min_size=1, max_size=4).map(", ".join), min_size=1, max_size=9), st.sampled_from(" .,;"))
def test_any_clauses_with_commas_are_text(clauses: list[str], end: str) -> None:
    assert len(parsed("\n".join(f"{clause}{end}" for clause in clauses)).sentences) == len(clauses)


NUMBERED = st.from_regex(r"[a-z]{1,7}[0-9]{0,7}", fullmatch=True)


@given(st.lists(st.lists(NUMBERED, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=9))
def test_any_words_with_numbers_are_text(lines: list[str]) -> None:
    assert len(parsed("\n".join(lines)).sentences) == len(lines)


@pytest.mark.parametrize("word", ["np00000", "da0000", "vmn0000"])
def test_numbers_behind_words_make_no_long_tags(word: str) -> None:
    lines = [f"see {word}", "read pp1000", "take sps00", "use pr000000", "so i"]
    assert len(parsed("\n".join(lines)).sentences) == 5


def test_a_table_by_commas_is_known_by_its_name() -> None:
    with pytest.raises(CorpusError, match=r"x\.csv is a table"):
        parsed("form,upos\nDogs,NOUN\n", "x.csv")


@pytest.mark.parametrize(
    "text",
    [
        "1 The dog sleeps .\n2 The cat sleeps .\n3 The cow sleeps .\n",
        "The dog sleeps .\nThe cat sleeps .\n",
        "5 4 3 2 1 0\n",
        "3 + 4 = 7\n",
        "Time\tflies\nlike an arrow.\nFruit flies.\n",
        "# A heading\nHe said {this}.\n",
        "Vitamin O\nis none.\nSo is X.\n",
        "2020 was long.  It rained.\n",
        "eggs, milk, bread\nflour, salt, yeast\nplates, cups, forks\n",
        "Roses are red,\nViolets are blue,\nSugar is sweet,\n",
        "1, 2, buckle my shoe,\n3, 4, knock at the door,\n",
        "10,000 came.\n20,000 left.\n",
        "1,5 Grad am Morgen\n2,5 Grad am Abend\n",
        "“Yes,” he said.\n“No,” she said.\n",
        "'Yes,' he said.\n\"No,\" she said.\n",
        "床前明月光,疑是地上霜\n举头望明月,低头思故乡\n",
        "ROMEO: O, speak!\nJULIET: O Romeo;\nwherefore art thou?\n",
        "I came; I saw; I won.\nHe came; he saw; he lost.\n",
        "<laughs>\nI see.\n<laughs>\nSo be it.\n",
        "We write <b>so</b>.\nA < b and b > a.\n<john> Hello.\n",
        "(I know) (I know)\n(OH yeah)\n",
        "AC/DC or TCP/IP, he/she said.\nand/or\n",
        "To be | or not | to be\n",
        "I bought a CD\nShe sold a CD\n",
        "We met a VERB\nand it was so\nThen came the NOUN of all\n",
        "Take B-CELL\nor not to take\n",
        "He said :\nDogs bark .\nWho , me\n",
        "Ben & Jerry\nat 10:30\n",
        "IN spring\nTO sleep\n",
        "IN spring\nTO sleep\nIN peace\n",
        "PART one\nEX libris\nTO you\n",
        "anna: hello\nben: hello\nanna: I am late\nben: so am I\n",
        "- ben: hello\n- anna: hello\n",
        "note: the dog barks\nwarning: it bites\nadvice: run\n",
        "- The dog barks.\n- The cat sleeps.\n",
        "床前明月光,疑是地上霜\n举头望明月,低头思故乡\n床前明月光,疑是地上霜\n举头望明月,低头思故乡\n",
        "He drives a v8x4\nShe has an rtx3080\nThey are here\nWe too\n",
        "red,white\nblue too\nso there\n",
        "  anna: hello\n  ben: hello there\n",
        "anna: hello\n  ben: hi, how are you?\nanna: fine\n",
        "---\nwarning: it bites\n",
        "---\nnote: The dog barks at the cat.\nThe cat sleeps.\n",
        "ingredients:\nbutter: some\nsugar: lots\n",
        "ingredients:\n- butter\n- sugar\n",
        "- hola: dijo\n- hola: dijo ella\n",
        "I bought an ipad2\nShe sold an iphone4\n",
        "we had covid19\nthey had sars2\n",
        "read psalm23\nread canto3\n",
        "he is in room101\nshe is in area51\n",
        "see pp1000\nread np00000\ntake sps00\nuse vmn0000\n",
        "El da0ms0\nperro ncms000\nladra vmip3s0\n",
    ],
)
def test_text_with_numbers_tabs_and_braces_is_text(text: str) -> None:
    assert len(parsed(text).sentences) == len(text.splitlines())


def test_one_sentence_that_cannot_be_read_costs_that_sentence() -> None:
    corpus = parsed(DOGS + "1\ttoo\tfew\n\n" + DOGS)
    assert [sentence.forms for sentence in corpus.sentences] == 2 * [("Dogs", "sleep")]
    assert corpus.left_out == ("line 4: 3 columns. The sentence is left out.",)
    assert [sentence.line for sentence in corpus.sentences] == [1, 6]


def test_byte_order_marks_between_files_are_no_text() -> None:
    joined = "".join(f"\ufeff# newdoc id = {name}\n{DOGS}" for name in "ab") + "\ufeff" + DOGS
    corpus = parsed(joined)
    assert [(s.document, s.forms) for s in corpus.sentences] == [(d, ("Dogs", "sleep")) for d in "abb"]
    assert corpus.left_out == ()
    assert parsed("Dogs sleep.\n\ufeffCats too.\n").sentences[1].forms == ("Cats", "too", ".")


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_may_end_with_a_carriage_return(end: str) -> None:
    assert parsed((CATS + CATS).replace("\n", end)).sentences == parsed(CATS + CATS).sentences
    table = parse_file((GAP_HEADING + ROW).replace("\n", end).encode(), "gap.tsv")
    assert isinstance(table, Gap)
    assert table.rows == read_gap(GAP_HEADING + ROW).rows


@pytest.mark.parametrize("features", ["Case=Nom|Case=Acc|Number=Plur", "n|-|p|-|m", "_|doc=T1", "A=1=2", "_"])
def test_features_are_as_they_stand(features: str) -> None:
    (sentence,) = read_conllu(DOGS.replace("Number=Sing", features)).sentences
    assert [word.features for word in sentence.words] == 2 * ["" if features == "_" else features]
    assert read_conllu(format_conllu([sentence])).sentences[0].words == sentence.words


# ---- GAP and plain text ----------------------------------------------------------------------------------


ROW = "d-1\tMary met Ann; she left.\tshe\t14\tMary\t0\tTRUE\tAnn\t9\tFALSE\thttp://x\n"


def test_a_gap_row() -> None:
    (row,) = read_gap(GAP_HEADING + ROW).rows
    assert row.pronoun == ("she", 14)
    assert row.a == ("Mary", 0, True)
    assert row.b == ("Ann", 9, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the column ID is missing"),
        (GAP_HEADING, "contains no example"),
        (GAP_HEADING + ROW + ROW.replace("\t14\t", "\t15\t"), "line 3: “she” is not at character 15"),
        (GAP_HEADING + ROW.replace("TRUE", "YES"), "line 2: “YES”"),
        (GAP_HEADING + ROW.replace("\t14\t", "\tx\t"), "line 2"),
        (GAP_HEADING + "d-1\tonly\n", "line 2: 2 columns"),
        (GAP_HEADING.replace("ID\t", "") + ROW, "column ID is missing"),
    ],
    ids=["empty", "heading alone", "offset", "truth", "number", "columns", "heading"],
)
def test_what_is_no_gap_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_gap(text)


def test_plain_sentences_one_a_line() -> None:
    corpus = read_plain("The cat's toys, well-kept.\n\n  Two!\n")
    assert corpus.sentences[0].forms == ("The", "cat's", "toys", ",", "well-kept", ".")
    assert corpus.sentences[1].forms == ("Two", "!")
    assert corpus.sentences[1].line == 3
    assert not corpus.has_trees
    assert [(s.forms, s.line) for s in read_plain("a\x0cb\r\nc").sentences] == [(("a",), 1), (("b",), 1), (("c",), 2)]
    with pytest.raises(CorpusError, match="no sentence"):
        read_plain(" \n ")


@pytest.mark.parametrize("cell", ["9" * 9_000, f"1-{'9' * 9_000}", "one"], ids=["long", "long range", "word"])
@pytest.mark.parametrize("column", ["ID", "HEAD"])
def test_a_number_that_python_refuses_is_told_in_our_words(column: str, cell: str) -> None:
    row = line(cell, "Dogs", 0, "root") if column == "ID" else line(1, "Dogs", cell, "root")
    with pytest.raises(
        CorpusError, match=rf"line 1: {column}: “{cell[:40]}” is not a whole number; expected"
    ) as caught:
        read_conllu(conllu(row))
    assert "sys." not in str(caught.value)


def test_an_offset_that_python_refuses_is_told_in_our_words() -> None:
    row = f"1\tAnn left as she sang.\tshe\t{'9' * 5_000}\tAnn\t0\tTRUE\tAnn\t0\tTRUE\tx\n"
    with pytest.raises(CorpusError, match=r"“9{20}” \(a whole number\) is invalid") as caught:
        read_gap(GAP_HEADING + row)
    assert "sys." not in str(caught.value)
