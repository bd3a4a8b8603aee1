"""Mentions and their antecedents, and the names of GAP, with counts computed by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.coreference import (
    MAX_CHUNK_TOKENS,
    TYPES,
    AgreementComparison,
    Coreference,
    guess_by_agreement,
    guess_by_baselines,
    list_mention_types,
    make_chunk,
    pack_chunks,
)
from mha_viz.analysis.intervals import Documents, newcombe_interval
from mha_viz.attention import Attention
from mha_viz.corpus.treebank import Gap, GapRow, Mention, Sentence, Word
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.gap import _find_tokens, _locate_last_word, sum_gap_scores
from mha_viz.text import Piece, build_text
from tests import brute


def sentence_of(*words: str) -> Sentence:
    """From "form UPOS chain chain…"; each mention is its one word. PRON3 is a third person, + a plural, ^ a subject."""
    sentence_words, mentions = [], []
    for at, described in enumerate(words):
        form, upos, *chains = described.split()
        features = f"Number={'Plur' if '+' in upos else 'Sing'}|Person={3 if '3' in upos else 1}"
        sentence_words.append(Word(form, upos.rstrip("3+^"), 0, "nsubj:pass" * ("^" in upos), features))
        mentions += [Mention(chain, at, at + 1, at) for chain in chains]
    return Sentence(tuple(sentence_words), tuple(mentions))


def counts(block: Any, *sentences: Sentence, half: int | None = None) -> dict[str, tuple[int, int]]:
    """Type → (right, cases) of one head; types without a case are left out."""
    coreference = Coreference(1)
    coreference.add(np.array([block], np.float32), make_chunk(sentences, range(len(sentences))))
    halves = [0, 1] if half is None else [half]
    right, n = (coreference.sums[name][0, halves].sum(axis=0) for name in ("correct", "n"))
    return {name: (int(right[i, 0]), int(n[i])) for i, name in enumerate(TYPES) if n[i]}


# ---- Anaphors --------------------------------------------------------------------------------------------------------

ANN = sentence_of("Ann PROPN 1", "met VERB", "Eve PROPN 2", "; PUNCT", "she PRON3 1")


def test_the_largest_weight_among_earlier_mentions_decides() -> None:
    block = np.zeros((5, 5))
    block[4] = [0.2, 0.5, 0.1, 0.1, 0.1]  # she → met most, which is not a mention; of Ann and Eve, Ann more
    assert counts(block, ANN) == {"all": (1, 1), "pronoun": (1, 1), "third_person": (1, 1)}
    block[4] = [0.2, 0.1, 0.3, 0.1, 0.3]
    assert counts(block, ANN)["all"] == (0, 1)


def test_of_equal_weights_the_first_mention_is_chosen() -> None:
    assert counts(np.full((5, 5), 0.2), ANN)["all"] == (1, 1)  # Ann, not Eve
    other = sentence_of("Ann PROPN 1", "met VERB", "Eve PROPN 2", "; PUNCT", "she PRON3 2")
    assert counts(np.full((5, 5), 0.2), other)["all"] == (0, 1)


def test_first_mentions_and_those_of_one_chain_alone_are_not_asked() -> None:
    (anaphor,) = make_chunk([ANN], [0]).anaphors
    assert (anaphor.word, anaphor.candidates, anaphor.right) == (4, (0, 2), {0})


def test_candidates_are_the_words_of_all_earlier_mentions_and_any_of_the_chain_is_right() -> None:
    text = sentence_of("a NOUN 1", "b NOUN 2", "c NOUN 1", "d NOUN 3", "e NOUN 1", "f NOUN 4")
    third, fifth = make_chunk([text], [0]).anaphors
    assert (third.word, third.candidates, third.right) == (2, (0, 1), {0})
    assert (fifth.word, fifth.candidates, fifth.right) == (4, (0, 1, 2, 3), {0, 2})


def test_two_mentions_with_the_same_head_word() -> None:
    # "Tom and Ben": the pair (3) and Tom (1) have one head word; they: the pair, he: Tom
    text = sentence_of("Tom PROPN 3 1", "and CCONJ", "Ben PROPN 2", "they PRON3 3", "he PRON3 1")
    they, he = make_chunk([text], [0]).anaphors
    assert (they.candidates, they.right) == ((0, 2), {0})
    assert (he.candidates, he.right) == ((0, 2, 3), {0})


def test_a_mention_is_its_chain_and_head_word_so_the_same_twice_is_one() -> None:
    words = sentence_of("Ann PROPN", "she PRON3").words
    text = Sentence(words, (Mention("1", 0, 1, 0), Mention("1", 1, 2, 1), Mention("1", 0, 2, 1)))
    assert len(make_chunk([text], [0]).anaphors) == 1


def test_antecedents_may_stand_in_sentences_before() -> None:
    first, second = sentence_of("Ann PROPN 1", "slept VERB"), sentence_of("she PRON3 1", "woke VERB")
    (anaphor,) = make_chunk([first, second], [0, 1]).anaphors
    assert (anaphor.word, anaphor.right) == (2, {0})
    assert make_chunk([first, second], [1]).anaphors == ()  # in a separate chunk it has none


def test_the_half_is_that_of_the_sentence_where_the_anaphor_stands() -> None:
    first, second = sentence_of("Ann PROPN 1", "Ann PROPN 1"), sentence_of("she PRON3 1")
    block = np.full((3, 3), 1 / 3)
    assert counts(block, first, second, half=0) == {"all": (1, 1), "proper": (1, 1)}
    assert counts(block, first, second, half=1) == {"all": (1, 1), "pronoun": (1, 1), "third_person": (1, 1)}


@pytest.mark.parametrize(
    ("word", "types"),
    [
        (Word("she", "PRON", features="Gender=Fem|Person=3"), ("all", "pronoun", "third_person")),
        (Word("me", "PRON", features="Person=1"), ("all", "pronoun")),
        (Word("who", "PRON", features="PronType=Rel"), ("all", "pronoun")),
        (Word("Ann", "PROPN"), ("all", "proper")),
        (Word("cat", "NOUN", features="Person=3"), ("all", "nominal")),
        (Word("two", "NUM"), ("all", "nominal")),
        (Word("that", "DET"), ("all", "nominal")),
        (Word("walks", "VERB"), ("all", "nominal")),
    ],
    ids=lambda value: value.form if isinstance(value, Word) else "",
)
def test_types_of_mentions(word: Word, types: tuple[str, ...]) -> None:
    assert list_mention_types(word) == types


# ---- Baselines -------------------------------------------------------------------------------------------------------


def test_the_nearest_candidate_and_the_nearest_of_the_same_form() -> None:
    text = sentence_of("Ann PROPN 1", "Cat NOUN 2", "cat NOUN 3", "Eve PROPN 4", "cat NOUN 2", "ann PROPN 1")
    made = make_chunk([text], [0])
    cat, ann = made.anaphors
    assert guess_by_baselines(cat, made.words) == (3, 2)  # Eve is nearest; of Cat and cat the nearer one
    assert guess_by_baselines(ann, made.words) == (4, 0)  # ignoring case
    she = make_chunk([ANN], [0]).anaphors[0]
    assert guess_by_baselines(she, ANN.words) == (2, 2)  # none has the same form: the nearest
    coreference = Coreference(1)
    coreference.add(np.full((1, 6, 6), 1 / 6, np.float32), made)
    # Eve and cat are wrong as nearest; Ann is right as same form, the other cat (chain 3) is not
    assert coreference.sums["baseline"].sum(axis=(0, 1))[TYPES.index("all")].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("earlier", "pronoun", "answer"),
    [
        (["Ann PROPN^", "him PRON3", "Eve PROPN", "it PRON3"], "he PRON3", 1),  # a pronoun of its kind, also an object
        (["his PRON3", "Tom PROPN^", "HE PRON3", "Tim PROPN^"], "himself PRON3", 2),  # the nearest of these
        (["Ann PROPN^", "cats NOUN+^", "Eve PROPN", "he PRON3^"], "she PRON3", 0),  # a subject of its number
        (["cats NOUN+^", "Eve PROPN", "dogs NOUN+", "we PRON+^"], "it PRON3", 1),  # any word of its number
        (["cats NOUN+^", "Eve PROPN^", "dogs NOUN+"], "them PRON3", 0),  # they is plural, whatever is annotated
        (["cats NOUN+^", "Eve PROPN^"], "’em PRON3+", 0),  # of no kind: by its own number
        (["them PRON3+^", "Eve PROPN"], "one PRON3", 1),  # a pronoun of no kind is like no other
        (["cats NOUN+^", "they PRON3+", "we PRON+^"], "she PRON3", 2),  # none agrees: the nearest
        (["it NOUN+", "Eve PROPN"], "its PRON3", 1),  # a noun is no pronoun
    ],
)
def test_the_rule_of_agreement(earlier: list[str], pronoun: str, answer: int) -> None:
    places = range(len(earlier))
    text = sentence_of(*(f"{word} {place}" for place, word in enumerate(earlier)), f"{pronoun} 0")
    (anaphor,) = make_chunk([text], [0]).anaphors
    assert anaphor.candidates == tuple(places)
    assert guess_by_agreement(anaphor, text.words) == answer


def test_heads_are_compared_with_agreement_on_the_same_pronouns() -> None:
    """Of three pronouns in two documents agreement gets two right: she → Eve, it → it, but Ann and Eve are alike to it
    in the second. One head is right where it is, the other only where it is not."""
    one = make_chunk([sentence_of("Eve PROPN 1", "it PRON3 2", "she PRON3 1", "it PRON3 2", "Eve PROPN 1")], [0])
    other = make_chunk([sentence_of("Ann PROPN 1", "Eve PROPN 2", "she PRON3 1")], [0], 1)
    first, second = (np.zeros((2, len(made.words), len(made.words)), np.float32) for made in (one, other))
    first[0, [2, 3], [0, 1]] = first[1, [2, 3], [1, 0]] = second[0, 2, 1] = second[1, 2, 0] = 1
    coreference = Coreference(2, 2)
    coreference.add(first, one, 0)
    coreference.add(second, other, 1)
    assert coreference.sums["agreement"].tolist() == [[2, 0], [0, 0]]
    beside = AgreementComparison.from_sums(coreference.sums)
    assert beside.n.tolist() == [2, 1]
    assert beside.net.tolist() == [[0, -2], [0, 1]]
    assert beside.outcomes.T.tolist() == [[2, 0, 0, 1], [0, 1, 2, 0]]
    bounds = Documents(["a", "b"]).compute_net_intervals(*beside)
    assert [*map(tuple, bounds.T.tolist())] == [newcombe_interval(2, 0, 0, 1), newcombe_interval(0, 1, 2, 0)]


# ---- Chunks ----------------------------------------------------------------------------------------------------------


def packed(lengths: Sequence[int | None], documents: str = "") -> list[tuple[int, ...]]:
    return list(pack_chunks(lengths, documents or "d" * len(lengths)))


def test_chunks_hold_as_many_sentences_as_go_into_128_pieces() -> None:
    assert MAX_CHUNK_TOKENS == 128
    assert packed([60, 68]) == [(0, 1)]  # 128
    assert packed([60, 69]) == [(0,), (1,)]  # 129
    assert packed([60, 68, 1, 127, 1]) == [(0, 1), (2, 3), (4,)]
    assert packed([]) == []


def test_a_chunk_ends_with_its_document_and_at_what_cannot_be_read() -> None:
    assert packed([5, 5, 5, 5], "aabb") == [(0, 1), (2, 3)]
    assert packed([5, None, 5, 5]) == [(0,), (2, 3)]
    assert packed([None, 5, None]) == [(1,)]


def test_a_sentence_that_is_longer_than_a_chunk_is_one_by_itself() -> None:
    assert packed([5, 200, 5, 5]) == [(0,), (1,), (2, 3)]
    assert packed([200, 129]) == [(0,), (1,)]


@given(st.lists(st.tuples(st.integers(1, 140), st.sampled_from("ab")), max_size=30))
def test_every_sentence_is_in_one_chunk_and_no_two_could_be_joined(given_: list[tuple[int, str]]) -> None:
    lengths, documents = [length for length, _ in given_], "".join(name for _, name in given_)
    chunks = packed(lengths, documents)
    assert [number for numbers in chunks for number in numbers] == list(range(len(lengths)))
    for numbers in chunks:
        assert len(numbers) == 1 or sum(lengths[i] for i in numbers) <= 128
        assert len({documents[i] for i in numbers}) == 1
    for one, other in pairwise(chunks):
        same = documents[one[-1]] == documents[other[0]]
        assert not same or sum(lengths[i] for i in one) + lengths[other[0]] > 128


# ---- Compared with plain loops ---------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["he", "Him", "they", "cat"]),
            st.sampled_from(["PRON3", "PRON3+^", "PRON", "PROPN", "NOUN^", "NOUN+"]),
        )
        .flatmap(lambda word: st.sets(st.sampled_from("1234"), max_size=2).map(lambda chains: (*word, *chains)))
        .map(" ".join),
        min_size=2,
        max_size=9,
    ),
    st.integers(0, 10**6),
)
def test_all_counts_are_those_of_the_plain_loops(words: list[str], seed: int) -> None:
    text = sentence_of(*words)
    block = np.random.default_rng(seed).integers(0, 4, (2, len(words), len(words))) / 4  # ties are common
    coreference = Coreference(2)
    coreference.add(block.astype(np.float32), make_chunk([text], [0]))
    plain = brute.Chunk(
        list(text.forms),
        [w.upos for w in text.words],
        [w.features for w in text.words],
        [w.relation for w in text.words],
        [(m.chain, m.word) for m in text.mentions],
    )
    expected = brute.count_coreference([(plain, brute.Reading(block, list(range(len(words))), [], [], []))])
    sums = {name: array.sum(axis=(0, 1)) for name, array in coreference.sums.items()}
    agreement = int(sums["n"][TYPES.index("third_person")]), int(sums["agreement"])
    assert agreement == expected.get(("third_person", "agreement"), (0, 0))
    for i, kind in enumerate(TYPES):
        counts = [(int(sums["n"][i]), int(right)) for right in (*sums["correct"][i], *sums["baseline"][i])]
        assert counts == [expected.get((kind, who), (0, 0)) for who in (0, 1, "nearest", "same_form")]


# ---- GAP -------------------------------------------------------------------------------------------------------------

TEXT = "Ann Lee met Eve as she left"
AT = {"Ann Lee": 0, "Eve": 12, "she": 19}


def scored(row: list[float], a: bool, b: bool) -> tuple[int, int]:
    """(right, cases) of one head whose pronoun gives ``row`` to the seven words and to [SEP]."""
    starts = [0, 4, 8, 12, 16, 19, 23]
    pieces = [Piece(w, at, at + len(w), i, 0) for i, (w, at) in enumerate(zip(TEXT.split(), starts, strict=True))]
    weights = np.full((1, 1, 8, 8), 1 / 8, np.float32)
    weights[0, 0, 5] = row
    attention = Attention("hand", "", build_text(TEXT, "", [*pieces, Piece("[SEP]", 0, 0, None, 0)]), weights)
    reading = SimpleNamespace(encode=lambda _: attention, tokenize=lambda _: attention.text, layers=1, heads=1)
    encoder = cast(Encoder, reading)
    example = GapRow("1", TEXT, ("she", AT["she"]), ("Ann Lee", AT["Ann Lee"], a), ("Eve", AT["Eve"], b))
    sums = sum_gap_scores(encoder, Gap("g", (example,), ""), [0])
    return int(sums["correct"].sum()), int(sums["n"].sum())


def test_the_name_that_gets_more_is_the_answer() -> None:
    #           Ann  Lee  met  Eve  as   she left [SEP]
    for_lee = [0.1, 0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0.0]
    assert scored(for_lee, a=True, b=False) == (1, 1)
    assert scored(for_lee, a=False, b=True) == (0, 1)


def test_only_the_last_word_of_a_name_counts() -> None:
    for_ann = [0.6, 0.1, 0.1, 0.2, 0.0, 0.0, 0.0, 0.0]  # Ann Lee 0.7 in all, Lee 0.1, Eve 0.2
    assert scored(for_ann, a=False, b=True) == (1, 1)
    assert scored(for_ann, a=True, b=False) == (0, 1)


def test_neither_is_skipped() -> None:
    assert scored([1 / 8] * 8, a=False, b=False) == (0, 0)


SPAN = "O*Ri ley met De*hner's man as she left"  # pieces as a model's: "Dehner's" is De hner ' s


@pytest.mark.parametrize(
    ("name", "start", "pieces"),
    [
        ("De*hner", 13, ["De", "*", "hner"]),  # without ' s, which are of the same word
        ("O*Ri ley", 0, ["ley"]),  # the last word behind a blank
        ("O*Ri", 0, ["O", "*", "Ri"]),  # complete, although the tokenizer splits it
        ("De*hner's man", 13, ["man"]),
        ("man ", 23, ["man"]),  # a space at the end does not separate words
    ],
)
def test_the_pieces_of_a_name_are_those_of_the_last_word_inside_its_span(
    name: str, start: int, pieces: list[str]
) -> None:
    spans = [m.span() for m in re.finditer(r"\w(?<=O)|De|hner|\w+|[^\w\s]", SPAN)]
    assert SPAN.startswith(name, start)
    name_pieces = [Piece(SPAN[begin:end], begin, end, at, 0) for at, (begin, end) in enumerate(spans)]
    text = build_text(SPAN, "", [*name_pieces, Piece("[SEP]", 0, 0, None, 0)])
    assert [SPAN[slice(*spans[i])] for i in _find_tokens(text, *_locate_last_word(name, start))] == pieces
