"""The time for untrusted text is proportional to its length: steps are counted, never timed.

A step is one bytecode instruction, of this project or of a library. Matching of patterns is not counted; instead, there
is a rule for patterns, and a test that they see no more than the limits allow.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis.coreference import make_chunk
from mha_viz.app.url import annotated_texts
from mha_viz.app.url.address import MAX_ENCODED, MAX_OTHER, cut_parameters
from mha_viz.corpus import conllu as parser
from mha_viz.corpus import coreference, limits, reading, rows, treebank
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.reading import parse_file, read_gap, read_plain
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import CorpusError, TextError
from mha_viz.models.reading.encoder import Encoder
from tests import lanes
from tests.conllu import GAP_HEADING, conllu, line
from tests.page_session import PageSession

# Shares of the largest size; shorter texts have too few words for a sentence.
SIZES = [60 * 2**k for k in range(5)] if lanes.everything else [60, 240]
DOUBLE = 2.1
# A text that is typed is parsed as a file is; of these kinds, that is counted once more.
TYPED = ("heads leftward", "never closed", "Entity (", "documents that are left out", "an error in a long sentence")


def steps(work: Callable[[], object]) -> int:
    """The bytecode instructions of ``work``, including those of a refusal."""
    count = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except CorpusError:
        pass
    finally:
        sys.settrace(before)
    return count


# ---- Texts of a given size -------------------------------------------------------------------------------------------


def words(heads: list[int], entities: list[str] | None = None) -> str:
    """One sentence with these heads (ids, 0 for the root) and values of Entity."""
    values = entities or [""] * len(heads)
    return conllu(
        *(
            line(i, "a", head, "dep", f"Entity={value}" if value else "_")
            for i, (head, value) in enumerate(zip(heads, values, strict=True), 1)
        )
    )


def leftward(n: int) -> list[int]:
    return list(range(n))  # each word depends on the one before it


def rightward(n: int) -> list[int]:
    return [*range(2, n + 1), 0]


def first_root(n: int) -> list[int]:
    return [0] + [1] * (n - 1)


def last_root(n: int) -> list[int]:
    return [n] * (n - 1) + [0]


def circle_at_the_end(n: int) -> list[int]:
    return [*range(2, n + 1), n - 1]


def circle_apart(n: int) -> list[int]:
    return [*rightward(n - 2), n, n - 1]


def cell(pattern: str, n: int) -> str:
    """One word whose Entity repeats a pattern, with about ten characters per unit of ``n``."""
    return words([0], [(pattern * 10 * n)[: 10 * n]])


def opened(heads: Callable[[int], list[int]], n: int) -> str:
    """Each of the first half of the words opens a bracket of one chain, each of the others closes one."""
    return words(heads(n), ["(c"] * (n // 2) + ["c)"] * (n // 2))


def crossed(heads: Callable[[int], list[int]], n: int) -> str:
    """As :func:`opened`, with a chain for each, closed in the order in which they were opened."""
    names = range(n // 2)
    return words(heads(n), [f"(c{i}" for i in names] + [f"c{i})" for i in names])


def never_closed(n: int) -> str:
    return words(leftward(n), ["(a(b(c(d"] * n)


CONLLU: dict[str, Callable[[int], str]] = {
    "one word": lambda n: words([0] * 1) * n,
    **{
        f"heads {heads.__name__}": lambda n, heads=heads: words(heads(n))  # type: ignore[misc]
        for heads in (leftward, rightward, first_root, last_root, circle_at_the_end, circle_apart)
    },
    **{
        f"{make.__name__} {heads.__name__}": partial(make, heads)
        for make, heads in lanes.pair_values((opened, crossed), (leftward, rightward, first_root, last_root))
    },
    **{f"Entity {p}": partial(cell, p) for p in ("a", "(", ")", "(a", "a)", "(a)", "(a-", "-", "a ", "(a b", "()")},
    "never closed": never_closed,
    "brackets over sentences": lambda n: words([0], ["(c"]) * (n // 2) + words([0], ["c)"]) * (n // 2),
    "documents": lambda n: ("# newdoc id = d\n" + words([0], ["(c)"])) * n,
    "documents that are left out": lambda n: ("# newdoc id = d\n" + words([0], ["(c"])) * n,
    "trees that are left out": lambda n: words([2, 1]) * n,
    "ids that are left out": lambda n: conllu(line(2, "a", 0, "root")) * n,
    "an error at the end": lambda n: words([0]) * n + conllu(line(1, "a", "x", "dep")),
    "an error in a long sentence": lambda n: conllu(*(line(i, "a", 0, "dep") for i in range(1, n)), line(n, "a", "x")),
    "no words": lambda n: conllu(*(line(f"{i}.1", "a") for i in range(1, n))),
    "comments": lambda n: "# a = b\n" * n + words([0]),
    "blank lines": lambda n: "\n" * n + words([0]),
    "features": lambda n: words([0]).replace("Number=Sing", "a=b|" * 2 * n),
    "dependencies": lambda n: words([0]).replace("\t_\t_\n", "\t" + "1:a|" * 2 * n + "\t_\n"),
    "a long id": lambda n: conllu(line("1" * 10 * n, "a", 0, "dep")),
    "a long head": lambda n: conllu(line(1, "a", "1" * 10 * n, "dep")),
}
PLAIN: dict[str, Callable[[int], str]] = {
    **{f"a line of {p}": lambda n, p=p: p * n for p in ("a'", "a-", "-", "'", "a", "a ", ". ", "é’")},  # type: ignore[misc]
    "lines": lambda n: "a b\n" * n,
    "blank lines": lambda n: "\n \t\n" * n + "a",
}
GAP: dict[str, Callable[[int], str]] = {
    "rows": lambda n: GAP_HEADING + "d\tMary met Ann; she left.\tshe\t14\tMary\t0\tTRUE\tAnn\t9\tFALSE\tu\n" * n,
    "a long text": lambda n: GAP_HEADING + f"d\t{'a' * 10 * n}\ta\t{10 * n - 1}\ta\t0\tTRUE\ta\t1\tFALSE\tu\n",
    "long names": lambda n: GAP_HEADING + f"d\t{'a' * 10 * n}\t{'a' * 5 * n}\t9\ta\t0\tTRUE\ta\t1\tFALSE\tu\n",
    "columns": lambda n: GAP_HEADING.rstrip() + "\tx" * n + "\n" + "\t" * (n + 10) + "x\n",
    "blank lines": lambda n: GAP_HEADING + "\n" * n,
}


@pytest.mark.parametrize(
    ("reader", "made"),
    [
        *(pytest.param(read_conllu, made, id=f"CoNLL-U: {name}") for name, made in CONLLU.items()),
        *(pytest.param(read_plain, made, id=f"plain: {name}") for name, made in PLAIN.items()),
        *(pytest.param(read_gap, made, id=f"GAP: {name}") for name, made in GAP.items()),
        *(
            pytest.param(annotated_texts.find_annotation.__wrapped__, CONLLU[name], id=f"pasted: {name}")
            for name in lanes.some([*CONLLU], *TYPED)
        ),
    ],
)
def test_twice_the_text_takes_twice_the_steps(reader: Callable[[str], object], made: Callable[[int], str]) -> None:
    check_proportional(lambda n: partial(reader, made(n)))


def check_proportional(work: Callable[[int], Callable[[], object]]) -> None:
    """Each time that a text of SIZES is doubled, about twice as many steps."""
    steps(work(SIZES[0]))  # Python 3.13 does not count all of code that is traced for the first time
    counts = [steps(work(n)) for n in SIZES]
    doubled = [math.log2(longer / shorter) for shorter, longer in pairwise(SIZES)]
    for less, more, times in zip(counts, counts[1:], doubled, strict=False):
        assert more <= DOUBLE**times * less, counts


@pytest.mark.parametrize("chains", [1, 20], ids=["one chain", "twenty chains"])
def test_twice_the_mentions_make_anaphors_in_twice_the_steps(chains: int) -> None:
    def sentence(n: int) -> Sentence:
        mentions = [Mention(f"{chain}", i, i + 1, i) for i in range(n) for chain in range(chains)]
        return Sentence((Word("a"),) * n, tuple(mentions))

    check_proportional(lambda n: partial(make_chunk, [sentence(n)], [0]))


# ---- Patterns --------------------------------------------------------------------------------------------------------


@given(st.text("()ab-' é’.\u2003[/", max_size=60))
def test_patterns_take_in_what_they_look_at(text: str) -> None:
    """If a pattern begins to match, continues and fails, it starts again one character later, which takes quadratic
    time. These patterns end a match wherever they stop, so that only characters with which no match begins are
    skipped."""
    passed_over = coreference.ENTITY_PARTS.sub("", text)
    assert all(character in "()" or character.isspace() for character in passed_over)
    passed_over = reading.PLAIN_WORDS.sub("", text)
    assert all(character.isspace() for character in passed_over)


class Measured:
    """A pattern that records the longest text it was given."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.longest = pattern, 0

    def findall(self, text: str) -> list[Any]:
        self.longest = max(self.longest, len(text))
        return self.pattern.findall(text)


PATTERNS = {"ENTITY_PARTS": (coreference, limits.MAX_CELL), "PLAIN_WORDS": (reading, limits.MAX_LINE)}
OF_ONE_CHARACTER = {"INVALID_TEXT"}  # which looks at each character once, whatever the text


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_sees_more_than_is_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    files = (parser, coreference, limits, reading, rows, treebank)
    assert {n for module in files for n, v in vars(module).items() if isinstance(v, re.Pattern)} == {
        *PATTERNS,
        *OF_ONE_CHARACTER,
    }
    module, most = PATTERNS[name]
    pattern = Measured(getattr(module, name))
    monkeypatch.setattr(module, name, pattern)
    for length in (limits.MAX_CELL - 7, 10 * limits.MAX_CELL, 100 * limits.MAX_CELL):
        steps(partial(parse_file, words([0], ["a" * length]).encode(), "a.conllu"))
        steps(partial(parse_file, b"a." * length, "a.txt"))
    assert 0 < pattern.longest <= most


@pytest.mark.parametrize("column", range(10))
def test_no_column_is_parsed_that_is_longer_than_is_read(column: int) -> None:
    cells = line(1, "a", 0, "root").split("\t")
    cells[column] = "1" * (limits.MAX_CELL + 1)
    parsers = dict.fromkeys(rows._PARSERS, _never)
    with patch.object(rows, "_PARSERS", parsers), pytest.raises(CorpusError, match="10,001 characters"):
        read_conllu("\t".join(cells))


def _never(cell: str) -> None:
    raise AssertionError("was parsed")


# ---- The same results as the plain algorithm -------------------------------------------------------------------------

OLD_PARTS = re.compile(r"\(([^()]+)(\))?|([^()\s]+)\)")
ENTITY_SIGNS = "()a1-[/ \u2003b"


@given(st.text(ENTITY_SIGNS, max_size=40))
def test_the_parts_of_entity_are_those_of_the_plain_pattern(value: str) -> None:
    parts = [
        (opens, at_once, closes)
        for opens, at_once, closes, end in coreference.ENTITY_PARTS.findall(value)
        if opens or end
    ]
    assert parts == OLD_PARTS.findall(value)


def naive_mentions(sentences: list[tuple[list[int], list[str]]]) -> tuple[list[list[Mention]], list[str]]:
    """The mentions of each sentence of a document, word by word, bracket by bracket; and what is wrong with others."""
    waiting: list[tuple[str, int, int]] = []
    mentions: list[list[Mention]] = [[] for _ in sentences]
    problems: list[str] = []
    for number, (heads, entities) in enumerate(sentences):
        for index, value in enumerate(entities):
            for opens, at_once, closes in OLD_PARTS.findall(value):
                chain = (opens or closes).partition("-")[0].strip()
                if opens and not chain:
                    problems.append("names no chain")
                    continue
                if opens:
                    waiting.append((chain, number, index))
                if opens and not at_once:
                    continue
                place = next((i for i in reversed(range(len(waiting))) if waiting[i][0] == chain), None)
                if place is None:
                    problems.append("closes a mention that was never opened")
                    continue
                _, where, start = waiting.pop(place)
                if where != number:
                    problems.append("closes in another sentence")
                    continue
                span = range(start, index + 1)
                head = next((i for i in span if heads[i] == 0 or heads[i] - 1 not in span), start)
                name, _, part = chain.partition("[")
                if not part or part.startswith("1/"):
                    mentions[number].append(Mention(name, start, index + 1, head))
    problems += [f"Entity=({chain[:19]} never closes" for chain, _, _ in waiting]
    return [sorted(each, key=lambda m: (m.start, -m.end)) for each in mentions], problems


@st.composite
def trees(draw: st.DrawFn, most: int = 9) -> list[int]:
    """Heads without a cycle: each word depends on one that was placed before it, or on none."""
    order = draw(st.permutations(range(1, draw(st.integers(1, most)) + 1)))
    heads = {word: draw(st.sampled_from([0, *order[:place]])) for place, word in enumerate(order)}
    return [heads[word] for word in sorted(heads)]


PIECES = ["(1-x", "(1", "1)", "(2", "2)", "(2-y)", "(1)", "(3[1/2]", "3[1/2])", "(3[2/2])", "", ""]


@st.composite
def annotated_trees(draw: st.DrawFn) -> tuple[list[int], list[str]]:
    heads = draw(trees())
    value = st.lists(st.sampled_from(PIECES), max_size=3).map("".join) | st.text(ENTITY_SIGNS, max_size=6)
    return heads, [draw(value).strip() for _ in heads]


@settings(max_examples=400 if lanes.everything else 60)
@given(st.lists(annotated_trees(), min_size=1, max_size=3))
def test_mentions_are_those_of_the_naive_reader(sentences: list[tuple[list[int], list[str]]]) -> None:
    _compare(sentences)


@given(trees(20), st.data())
def test_nested_and_crossing_mentions_have_the_heads_of_the_naive_reader(heads: list[int], data: st.DataObject) -> None:
    places = st.integers(0, len(heads) - 1)
    entities = [""] * len(heads)
    spans = [sorted(span) for span in data.draw(st.lists(st.tuples(places, places), max_size=8))]
    for name, (start, _) in enumerate(spans):
        entities[start] += f"(c{name}"
    for name, (_, end) in enumerate(spans):
        entities[end] += f"c{name})" if not entities[end].endswith(f"c{name}") else ")"
    _compare([(heads, entities)])


def _compare(sentences: list[tuple[list[int], list[str]]]) -> None:
    mentions, problems = naive_mentions(sentences)
    corpus = read_conllu("".join(words(*sentence) for sentence in sentences))
    said = [*corpus.left_out]
    if len(problems) > coreference.MAX_REPORTED:
        assert f"{len(problems) - coreference.MAX_REPORTED} problem" in said.pop()
    assert len(said) == min(len(problems), coreference.MAX_REPORTED)
    assert all(f"{why}: the mention is left out." in line for why, line in zip(problems, said, strict=False))
    assert [list(sentence.mentions) for sentence in corpus.sentences] == mentions


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12).map(lambda hs: [min(h, len(hs)) for h in hs]))
def test_a_circle_is_found_where_the_naive_walk_finds_it(heads: list[int]) -> None:
    def lost(start: int) -> bool:
        at = start
        for _ in heads:
            at = heads[at - 1] if at else 0
        return at != 0

    first = next((start for start in range(1, len(heads) + 1) if lost(start)), None)
    assert parser._find_cycle(heads) == (f"the heads form a cycle through word {first}." if first else "")


# ---- What froze a server ---------------------------------------------------------------------------------------------

FREEZING = {  # and the message about it as a file
    "a long run in Entity": (words([0], ["a" * 40_000]), "line 1: 40,007 characters without a break"),
    "a chain of heads": (words(rightward(8_000)), "line 1: a sentence of 8,000 words; at most 1,000"),
    "brackets on one word": (words([0], ["(a" * 4_000]), "line 1: 4,000 brackets on one word: at most 20 are read"),
    "open brackets": (words(leftward(4_000), ["(a"] * 4_000), "line 1: a sentence of 4,000 words; at most 1,000"),
    "sentences of open brackets": (words(leftward(900), ["(a"] * 900) * 4, "line 1: Entity=(a never closes"),
    "a relation for every word": (
        conllu(*(line(i, "a", 0, f"r{i}") for i in range(1, 900))) * 18,
        "line 201: “r201” is relation number 201; at most 200",
    ),
    "a line of a megabyte": ("a" * 1_000_000, "line 1: 1,000,000 characters; at most 100,000"),
    "a line of a megabyte in columns": (line(1, "a", 0, "root", "(a" * 500_000), "line 1: 1,000,"),
}


@pytest.mark.parametrize(("text", "answer"), FREEZING.values(), ids=FREEZING)
def test_a_file_that_froze_a_server_is_answered_at_once(text: str, answer: str) -> None:
    try:
        corpus = parse_file(text.encode(), "file")
        assert isinstance(corpus, Corpus)
        answers = list(corpus.left_out)
    except CorpusError as error:
        answers = [str(error)]
    assert any(answer in each for each in answers), answers
    assert steps(partial(parse_file, text.encode(), "file")) < 30 * len(text)


@pytest.mark.parametrize("name", lanes.some([*FREEZING], "a long run in Entity", "a chain of heads"))
def test_a_link_that_froze_a_server_is_answered_at_once(name: str) -> None:
    text = FREEZING[name][0][:100_000]
    annotated_texts.find_annotation.cache_clear()
    with patch.object(annotated_texts, "read_conllu", wraps=read_conllu) as reader:
        visit = PageSession({"text": text})
    assert visit.picture is not None or visit.said
    assert "characters were typed" in visit.said
    assert visit.url["text"] == cut_parameters({"text": text})["text"]
    assert visit.url["typed"] == f"{len(text)}-0"
    assert all(len(call.args[0]) <= MAX_ENCODED for call in reader.call_args_list)
    assert len(reader.call_args_list) == len({call.args[0] for call in reader.call_args_list}) <= 1, "parsed once"


def test_what_was_pasted_is_parsed_once_and_refused_each_time() -> None:
    annotated_texts.find_annotation.cache_clear()
    good, bad = words([2, 0]), words([2, 1])
    with patch.object(annotated_texts, "read_conllu", wraps=read_conllu) as reader:
        first = annotated_texts.find_annotation(good)
        assert first is not None
        assert annotated_texts.find_annotation(good) is first
        errors = [annotated_texts.find_annotation(bad) for _ in range(3)]
    assert [call.args[0] for call in reader.call_args_list] == [good, bad]
    for error in errors:
        assert isinstance(error, CorpusError)
        assert "cycle" in error.problem
        assert error.__traceback__ is None, "one that was raised would hold what every visitor did"


def test_words_that_no_model_could_read_never_reach_the_tokenizer(minilm: Encoder) -> None:
    most = 40 * minilm.limit
    with patch.object(minilm._tokenizer, "_backend") as backend, pytest.raises(TextError, match="1,000,000 characters"):
        minilm.read_words(["x" * 1_000] * 1_000)
    backend.encode.assert_not_called()
    assert len(minilm.read_words(["x" * (most // 4)] * 4)) == 6


def test_texts_whose_gold_is_remembered_are_few() -> None:
    for number in range(2 * annotated_texts.CACHED_TEXTS):
        annotated_texts.find_annotation(f"text {number}")
    assert annotated_texts.find_annotation.cache_info().currsize == annotated_texts.CACHED_TEXTS


def test_of_annotation_that_no_link_holds_the_page_says_how_much_one_does() -> None:
    visit = PageSession({"text": f"1\tOne\tone\tNUM\t_\t_\t0\troot\t_\tA={'b' * 20_000}"})
    assert f"20,029 characters were typed; a link can hold the first {len(visit.url['text']):,}." in visit.said


def test_every_parameter_of_a_link_is_cut_in_the_address_too() -> None:
    long = dict.fromkeys(("text", "pair", "second", "model", "tray", "show", "anything"), "a" * 9_000)
    visit = PageSession(long)
    short = {name: value for name, value in visit.url.items() if name != "typed"}
    assert {name: len(value) for name, value in short.items()} == {
        **dict.fromkeys(("text", "pair", "second", "tray"), MAX_ENCODED),
        **dict.fromkeys(("model", "show", "anything"), MAX_OTHER),
    }
    assert "These parts were shortened: second, model, tray, show, anything." in visit.said
    assert "18,000 characters were typed; a link can hold the first 7,000 and the first 7,000." in visit.said
    again = PageSession(visit.url)
    assert "cut short" not in again.said
    assert "18,000 characters were typed" in again.said
