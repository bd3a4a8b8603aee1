"""Evidence on the Roles page: sentences that open in Explore with their gold arcs, and who may see which sentences."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import pytest

from mha_viz.analysis.coreference import make_chunk
from mha_viz.analysis.links import unpack_links
from mha_viz.app.explore.gold import cut_excerpt
from mha_viz.app.service import role_cases
from mha_viz.app.service import searches as searches_room
from mha_viz.app.service import studies as studies_room
from mha_viz.app.service.jobs import get_queue
from mha_viz.app.service.studies import load_bundled
from mha_viz.app.url.address import MAX_ENCODED, CaseInLink
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation, load_built_in_corpus
from mha_viz.attention import Head
from mha_viz.corpus import BUILT_IN, grammar, uploads
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.excerpts import extract_excerpts, read_excerpts
from mha_viz.corpus.reading import parse_file
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import CorpusError
from mha_viz.figures.layout.arcs import Span
from mha_viz.models.getting import catalog
from mha_viz.study import child
from tests.few_sentences import limit_built_in_sentences
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home")

PAGE = "pages/55_roles.py"


@pytest.fixture(autouse=True)
def few_sentences(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cards of heads wait for the first of the built-in sentences only."""
    limit_built_in_sentences(monkeypatch)


@pytest.fixture
def studies_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpora are measured in this process; they are read and searched in child processes, as always."""
    usual = studies_room.children.run

    def run(module: str, order: Any, bounds: Any, progress: Any = print, cancelled: Any = bool) -> Any:
        if module == studies_room.CHILD_MODULE:
            return child.work(order, progress, cancelled)
        return usual(module, order, bounds, progress, cancelled)

    monkeypatch.setattr(studies_room.children, "run", run)


def links(page: PageSession, named: str = "gold") -> list[dict[str, str]]:
    """The parameters of the links to Explore that contain a sentence, with one of this name."""
    from urllib.parse import parse_qsl

    queries = [dict(parse_qsl(link.proto.query_string)) for link in page.at.get("page_link")]
    return [query for query in queries if named in query]


def unescaped(page: PageSession) -> str:
    return page.said.replace("\\", "")


def test_the_card_of_a_head_shows_sentences_that_open_with_gold_arcs() -> None:
    page = PageSession({"head": "L3H1"}, PAGE).open_numbers()
    assert "Sentences for and against each role" in page.said
    assert "in UD English EWT test" in page.said
    assert "No sentences of UD English GUM dev can be shown here for coreference: third person." in unescaped(page)
    assert "Its licence does not allow this app to share them." in page.said
    assert "Measure your own corpus with coreference" in page.said
    assert "object (obj), from the syntactic head to a dependent" in page.at.selectbox(key="card_role_L3H1").options
    shown = links(page)
    assert len(shown) >= 4
    for query in (shown[0], shown[-1]):
        opened = PageSession(query, "pages/10_explore.py")
        assert "L3H1 (4-2) against the gold annotation" in opened.said
        head, axis, word = re.fullmatch(r"(L3H1)\.([qk])(\d+)", query["case"]).groups()  # type: ignore[union-attr]
        header = opened.shown().header
        assert header["start"]["head"] == head
        (held,) = re.fullmatch(rf"{axis}(\d+)", header["start"]["pin"]).groups()  # type: ignore[union-attr]
        annotation = find_annotation(query["text"])
        assert isinstance(annotation, AnnotatedText)
        form = annotation.forms[int(word)]
        assert form.lower().startswith(header["tokens"][int(held)].lower())
        assert f"**L3H1 (4-2)** on “{form}”: " in unescaped(opened)
        relation, _, way = query["gold"].partition(".")
        assert opened.at.selectbox(key=f"gold_way_{way}").value == way
        assert relation in str(next(iter(opened.at.get("button_group"))).value)


def test_every_shipped_case_can_be_read_and_most_can_be_opened() -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    profile = evidence.profiles[0]
    roles = {(f.head, f.role, f.detail) for f in profile.findings()}
    cases = [example for head in profile.heads() for example in profile.examples(head)]
    assert roles <= {(e.head, e.role, e.detail) for e in cases}
    for example in cases:
        if example.role == "syntax":
            assert example.right == (example.answer in example.gold)
        assert example.kind == "random" or example.right == (example.kind == "right")
    fit = [len(quote(format_conllu([e.sentence]))) < MAX_ENCODED for e in cases]
    assert sum(fit) > 0.9 * len(fit)


def test_the_licence_of_shipped_sentences_stands_beside_them() -> None:
    folder = Path(__file__).resolve().parent.parent / "assets" / "profiles"
    for file in folder.rglob("evidence.conllu"):
        if file.parent.name not in BUILT_IN:
            assert file.parent.name == "ewt"
            assert "Attribution-ShareAlike 4.0" in (file.parent / "LICENSE.txt").read_text("utf-8")
            assert "Changes:" in (file.parent / "README.md").read_text("utf-8")


@pytest.mark.usefixtures("in_process")
def test_nobody_reads_the_sentences_of_another_visitors_file(empty_home: Path) -> None:
    text = format_conllu(grammar.corpus(60, 5).sentences).replace("\told\t", "\tperfidious\t")
    page = PageSession({"model": "toy", "corpus": "file"}, PAGE)
    page.at.file_uploader(key="corpus_file").set_value(("letters.conllu", text.encode(), "text/plain")).run()
    press(page, "measure_file")
    digest = page.url["corpus"]
    until(lambda: studies_room.find_profile(catalog.resolve("toy"), digest) is not None)
    profile = studies_room.find_profile(catalog.resolve("toy"), digest)
    assert profile is not None
    assert profile.sentences == ()
    assert len(profile.tables["evidence"])
    position = next(f for f in profile.findings() if f.role == "position")
    page.at.query_params["head"] = str(position.head)
    page.open_numbers()
    assert "in letters\\.conllu" in page.said
    labels = " ".join(link.proto.label for link in page.at.get("page_link"))
    assert "perfidious" in labels
    searched = search(page, query_word="perfidious")
    assert "Searches letters\\.conllu" in page.said
    assert "perfidious" in " ".join(link.proto.label for link in page.at.get("page_link") if "gold" in str(link.proto))
    other = PageSession({"model": "toy", "corpus": digest, "head": str(position.head), "search": searched}, PAGE)
    assert "Searches the built\\-in sentences" in other.said
    assert "No sentences of an uploaded file can be shown here" in unescaped(other)
    labels = " ".join(link.proto.label for link in other.at.get("page_link"))
    assert "perfidious" not in other.said + labels.replace("query_word=perfidious", "")
    for file in (file for file in empty_home.rglob("*") if file.is_file()):
        assert b"perfidious" not in file.read_bytes()


def test_sentences_of_a_file_are_read_by_their_numbers() -> None:
    sentences = grammar.corpus(5, 5).sentences
    data = format_conllu(sentences).encode()
    read = read_excerpts(data, [(1, 1), (2, 3)])
    assert read[1, 1].words == sentences[1].words
    assert read[2, 3].forms == sentences[2].forms + sentences[3].forms
    assert read_excerpts(data, []) == {}
    with pytest.raises(CorpusError):
        read_excerpts(uploads.NEUTRAL_NAME.encode() + b"\0", [(0, 0)])


ANNOTATED, CYCLE, WITHHELD = (
    "".join("\t".join(row.split()) + "\n" for row in rows) + "\n"
    for rows in (
        ("1 Ann _ _ _ _ 2 nsubj _ Entity=(1)", "2 left _ _ _ _ 0 root _ _"),
        ("1 She _ _ _ _ 2 nsubj _ Entity=(1)", "2 sang _ _ _ _ 1 dep _ _"),
        ("1 _ _ _ _ _ _ _ _ _",),
    )
)


@pytest.mark.parametrize("second", [CYCLE, WITHHELD], ids=["a cycle", "a withheld word"])
def test_sentences_of_a_file_keep_the_annotation_that_they_have(second: str) -> None:
    data, spans = f"{ANNOTATED}{second}".encode(), [(0, 1), (1, 1)]
    corpus = parse_file(data, "f.conllu")
    assert isinstance(corpus, Corpus)
    read = read_excerpts(data, spans)
    for span, sentence in zip(spans, extract_excerpts(corpus.sentences, spans), strict=True):
        assert (read[span].words, read[span].mentions) == (sentence.words, sentence.mentions)


def test_a_link_holds_the_annotation_of_a_sentence() -> None:
    words = (Word("Ann", "PROPN", 1, "nsubj"), Word("left", "VERB", None, "root"), Word("she", "PRON", 3, "nsubj"),
             Word("sang", "VERB", None, "root"))  # fmt: skip
    sentence = Sentence(words, (Mention("1", 0, 1, 0), Mention("1", 2, 3, 2)))
    query = role_cases.make_explore_parameters(sentence, CaseInLink(Head(3, 1), "q", 2), "coreference")
    assert query is not None
    assert (query["case"], query["gold"]) == ("L3H1.q2", "coreference")
    annotation = find_annotation(query["text"])
    assert isinstance(annotation, AnnotatedText)
    assert (annotation.sentence.words, annotation.sentence.mentions) == (words, sentence.mentions)
    built_in_sentence = load_built_in_corpus().sentences[0]
    assert role_cases.make_explore_parameters(built_in_sentence, CaseInLink(Head(0, 0), "k", 1), "") == {
        "text": " ".join(built_in_sentence.forms),
        "case": "L0H0.k1",
    }
    assert role_cases.make_explore_parameters(Sentence(words * 80), CaseInLink(Head(0, 0), "q", 0), "") is None


def test_a_link_holds_the_chains_of_many_sentences_read_together() -> None:
    words = tuple(
        Word(f"word{place}", "PRON", place - 1 if place else None, "nsubj:pass", "Case=Nom|Number=Sing|Person=3")
        for place in range(110)
    )
    spans = [(place, place + 3) for place in range(0, 108, 4)]
    mentions = tuple(Mention(f"person-{start % 3}", start, end, start) for start, end in spans)
    sentence = Sentence(words, (*mentions, Mention("person-9", 0, 9, 0)))
    assert len(quote(format_conllu([sentence]))) > MAX_ENCODED
    query = role_cases.make_explore_parameters(sentence, CaseInLink(Head(3, 1), "q", 12), "coreference")
    assert query is not None
    held = find_annotation(query["text"])
    assert isinstance(held, AnnotatedText)
    assert held.notes == ()
    assert held.forms == sentence.forms
    before, after = (make_chunk([one], [0]).anaphors for one in (sentence, held.sentence))
    assert [one[:3] for one in after] == [one[:3] for one in before]
    assert len(after) == 24
    long = "word" * 40  # no link has room for such words
    assert (
        role_cases.make_explore_parameters(
            Sentence(tuple(Word(long) for _ in words)), CaseInLink(Head(3, 1), "q", 1), "coreference"
        )
        is None
    )


@pytest.mark.usefixtures("studies_in_process")
def test_coreference_of_ones_own_file_opens_with_its_gold_arcs() -> None:
    text = format_conllu(grammar.corpus(300, 5).sentences)
    page = PageSession({"model": "toy", "corpus": "file"}, PAGE)
    page.at.file_uploader(key="corpus_file").set_value(("chains.conllu", text.encode(), "text/plain")).run()
    press(page, "measure_file")
    until(lambda: studies_room.find_profile(catalog.resolve("toy"), page.url["corpus"]) is not None)
    page.at.query_params["head"] = "L1H1"
    page.open_numbers()
    page.at.selectbox(key="card_role_L1H1").set_value(("coreference", "third_person")).run()
    page.check()
    queries = [query for query in links(page) if query["gold"] == "coreference"]
    assert queries
    for query in queries:
        opened = PageSession(query, "pages/10_explore.py")
        assert "L1H1 (2-2) against the gold annotation" in opened.said
        assert re.search(r"\*\*L1H1 \(2-2\)\*\* on “\w+”: (right|wrong)\.", unescaped(opened))


def test_the_word_of_a_case_is_held_as_query_or_as_key_and_released_like_any_other() -> None:
    text = next(" ".join(s.forms) for s in load_built_in_corpus().sentences if len(s.forms) > 8)
    page = PageSession({"text": text, "case": "L3H1.k2", "gold": "nsubj.head_to_dep"}, "pages/10_explore.py")
    assert page.shown().header["start"] == {"head": "L3H1", "pin": "k3"}  # [CLS] is token 0
    page.view(head="L3H1", pin=None)
    assert page.url["head"] == "L3H1"
    page.read("Dogs bark.")
    assert "case" not in page.url
    for odd in ("L3H1", "L3H1.q", "L3H1.x3", "L9H99.q1", "L3H1.q999"):
        assert PageSession({"text": text, "case": odd}, "pages/10_explore.py").picture is not None


def test_the_arcs_of_a_case_stand_among_the_words_around_them() -> None:
    forms = [f"w{i}" for i in range(40)]
    part = cut_excerpt(forms, [Span(20, 22, "obj", "miss"), Span(20, 17, "", "extra")])
    assert part.words == ("…", *forms[9:31], "…")
    assert [(part.words[span.start], part.words[span.end]) for span in part.spans] == [("w20", "w22"), ("w20", "w17")]
    whole = cut_excerpt(forms[:5], [Span(0, 4, "obj", "hit")])
    assert whole == (tuple(forms[:5]), (Span(0, 4, "obj", "hit"),))


def test_of_a_long_sentence_the_words_around_the_link_are_shown() -> None:
    forms = [f"w{i}" for i in range(100)]
    near = " ".join(f"w{i}" for i in range(8, 33)), " ".join(f"w{i}" for i in range(48, 73))
    assert role_cases.cut_around(forms, (20, 60)) == f"… {near[0]} … {near[1]} …"
    assert role_cases.cut_around(forms, (20, 60), 1) == "… w19 w20 w21 … w59 w60 w61 …"
    assert role_cases.cut_around(forms, (5, -1)).startswith("w0 w1")


# ---- Search ----------------------------------------------------------------------------------------------------------


def search(page: PageSession, **conditions: str) -> str:
    """Fill in the form of the open head, and wait for the result; the search as in the URL."""
    before = page.url.get("search", "")
    for name, value in conditions.items():
        page.at.text_input(key=f"search_{name}_{before}").set_value(value)
    next(button for button in page.at.button if button.label == "Search").click().run()
    page.check()
    until(lambda: not get_queue("search")._entries)
    page.at.run()
    page.check()
    return page.url["search"]


@pytest.mark.usefixtures("in_process")
def test_links_of_a_head_are_searched_by_what_stands_at_their_ends() -> None:
    page = PageSession({"model": "toy", "head": "L1H2"}, PAGE).open_numbers()
    assert search(page, relation="nsubj", dependent_pos="PRON") == "relation=nsubj&dependent_pos=PRON"
    assert re.search(r"\*\*289\*\* of 6,541 links match, in \*\*232\*\* of 400 sentences", page.said)
    golds = [query["gold"] for query in links(page) if query["gold"].startswith("nsubj.")]
    assert len(golds) >= 20
    assert {*golds} <= {"nsubj.dep_to_head", "nsubj.head_row"}
    counts = next(t.value for t in page.at.dataframe if "links" in t.value.columns)
    assert counts["links"].sum() == 289
    assert set(counts["relation"]) == {"subject (nsubj)"}
    again = PageSession({"model": "toy", "head": "L1H2", "search": "relation=nsubj&dependent_pos=PRON&odd=1"}, PAGE)
    assert "of 6,541 links" in again.said  # a link shows the cached result
    assert again.at.text_input(key="search_relation_relation=nsubj&dependent_pos=PRON&odd=1").value == "nsubj"


@pytest.mark.usefixtures("in_process")
def test_the_links_of_a_head_are_drawn_when_asked_for() -> None:
    page = PageSession({"model": "toy", "head": "L0H2"}, PAGE).open_numbers()
    before = links(page, "case")
    press(page, "draw_links")
    until(lambda: not get_queue("groups")._entries)
    page.at.run()
    page.check()
    assert page.url["groups"] == "pca"
    assert "400 links from 200 sentences" in page.said
    assert re.search(r"\*\*4\d% the token before\*\*", page.said)
    drawn = links(page, "case")
    assert len(drawn) > len(before)
    assert {query["case"][:4] for query in drawn} == {"L0H2"}
    assert not any(button.key == "draw_links" for button in page.at.button)


def test_between_the_stop_of_a_search_and_its_result_the_page_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, keep = Event(), Event()

    def slow(module: str, order: object, bounds: object, tell: object, *, cancelled: Callable[[], bool]) -> object:
        asked.set()
        until(cancelled)
        assert keep.wait(PATIENCE)
        totals = {"matches": 5, "links_read": 7, "matching_sentences": 1, "sentences_read": 1, "sentences": 400}
        return {**totals, "counts": [], "links": [], "text": ""}

    monkeypatch.setattr(searches_room.children, "run", slow)
    page = PageSession({"model": "toy", "head": "L1H0"}, PAGE).open_numbers()
    page.at.text_input(key="search_query_word_").set_value("stopped")
    next(button for button in page.at.button if button.label == "Search").click().run()
    page.check()
    assert asked.wait(PATIENCE)
    press(page, "stop_study")
    assert "The search is being stopped" in page.said
    keep.set()
    until(lambda: not get_queue("search")._entries)
    page.at.run()
    page.check()
    assert "**5** of 7 links" in page.said
    assert "The search was stopped after 1 of 400 sentences." in page.said


def test_a_search_that_is_stopped_gives_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.models.getting import hub
    from mha_viz.study.head_child import work

    monkeypatch.setattr("mha_viz.study.cases.FIRST_SIZE", 10)
    monkeypatch.setattr("mha_viz.study.search.LinkCases.size", 10)
    toy = catalog.resolve("toy")
    order = {
        "folder": str(hub.find_local_folder(toy)),
        "name": "toy",
        "revision": "",
        "head": [1, 2],
        "most": 3,
        "kind": "search",
    }
    data = format_conllu(grammar.corpus(30, 5).sentences).encode()
    reports: list[float] = []
    result = work(
        {**order, "kind": "search", "conditions": [""] * 11, "data": data}, reports.append, lambda: len(reports) == 2
    )
    assert result is not None
    assert reports == pytest.approx([1 / 3, 2 / 3])
    assert (result["sentences_read"], result["sentences"]) == (20, 30)
    assert [link.weight for link in unpack_links(result)] == [line[0] for line in result["links"]]
    assert len(result["links"]) == 3
