"""The walks through the history of the browser are complete: every control that a page draws, and every one that the
package can draw, is walked in tests/walks.py or stands below with the reason why it is not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from mha_viz.app.url import address
from mha_viz.files.assets import page_files
from tests import walks
from tests.controls import list_acts
from tests.copies import copy_children
from tests.page_session import ROOT, PageSession
from tests.places import COMPARED, PLACES, Place

UI = ROOT / "mha_viz" / "app"
SAME_ADDRESS = "it does not change the address"
WORK = "it starts or ends work that takes seconds, or is there once that is done; it has separate tests"
STOPS = "it stops work and stays on the page: it does not change the address"
ELSEWHERE = "it needs a model that is not on the server of the tests, or a file"
NEVER = "the steps of the tour are on different pages, so that a link stands in its place"
# Controls that are not walked, named as in ``walks.Step``.
NOT_WALKED: Mapping[str, str] = {
    "mha_search.query": SAME_ADDRESS,
    "mha_scheme.turned": SAME_ADDRESS,
    "mha_reasons.ask": SAME_ADDRESS,
    "mha_explorer.measure": WORK,
    "download_panel": SAME_ADDRESS,  # nor does a download: the browser saves a file and stays
    "publish": SAME_ADDRESS,
    "publish_": SAME_ADDRESS,
    "patched": SAME_ADDRESS,
    "numbers": SAME_ADDRESS,
    "lesson_remark": SAME_ADDRESS,
    "corpus_file": SAME_ADDRESS,
    "card_relation_": SAME_ADDRESS,
    "rows_": "boxes before the rows of all numbers, which are drawn on a canvas; tests/test_browser_roles.py",
    "card_role_": SAME_ADDRESS,
    "search_": "what is typed is in the address once the search begins",
    "lab_identical_": SAME_ADDRESS,
    "link_map_method": "as the other settings of the card; it is there only if UMAP is installed",
    "continue_text": WORK,  # of a causal model; tests/test_browser_continuing.py
    "read_sentences": WORK,
    "measure": WORK,
    "measure_file": "begins work at an address of its own; no address holds the file that Back would need",
    "measure_repeats": WORK,
    "go_on": WORK,
    "go_on_": WORK,
    "stop_study": STOPS,
    "stop_": STOPS,
    "join_study": WORK,
    "lab_train_": WORK,
    "lab_stop": STOPS,
    "cancel_download": WORK,
    "try_again": ELSEWHERE,
    "tour_next": NEVER,
    "tour_back": NEVER,
    "tour_on": NEVER,
}
# Drawn around every page: walked on one of them.
FRAME = ("mha_search.", "mha_more.", "mha_scheme.", "mha_tour.", "mha_sentence.model", "tour_", "class_out", "lesson_")
# Keys that the source has in a variable, by the function that draws the control.
IN_A_VARIABLE: Mapping[str, tuple[str, ...]] = {
    "asking.show_controls": ("word_",),
    "url_controls.bind_control": (),  # its callers
    "folder.show_steps": ("training_step",),
    "head_grid.show_head_grid": ("patched_heads", "patched_paths"),
    "publish._ask_text": ("publish_",),
    "study_progress.wait_for": ("stop_",),
}
OF_LINKS = ("link:", "rows:", "why:")  # how kinds of links are named
EDITS = ("pin", "open", "rename", "duplicate", "remove", "move")
# The parts of an event of which each is walked.
PARTS: Mapping[str, tuple[str, ...]] = {
    "mha_explorer.view": tuple(address.VIEW_PATTERNS),
    "mha_compare.view": tuple(address.PANEL_PATTERNS),
    "mha_compare.edit": EDITS,
    "mha_scheme.linked": ("head", "kinds", "chapter"),
}
FILES = (ROOT / "pages").glob("*.py")
PAGES: Mapping[str | None, str] = {None: "/"} | {f"pages/{f.name}": f"/{f.stem.partition('_')[2]}" for f in FILES}
COMPARE, ROLES, INSIDE, LAB = (
    f"pages/{name}.py" for name in ("20_compare", "55_roles", "40_inside_a_head", "50_why_heads_differ")
)
MASKED = {"model": "toy", "text": "the dog [MASK] the girl ."}
# States with controls that tests/places.py has not.
STATES: Mapping[str, Place] = {
    **PLACES,
    "the last step of the tour": Place(None, {"tour": "6"}),
    "an answer": Place(None, {**MASKED, "off": "L1H1"}),
    "two answers": Place(None, {**MASKED, "shown": "gradient", "text": "the dog [MASK] the [MASK] ."}),
    "two texts": Place(None, {**MASKED, "off": "L1H1", "second": "the cat sleeps ."}),
    "of another text": Place(None, {"model": "toy", "off": "L1H1", "how": "text", "text": "The cat sleeps ."}),
    "what carries a difference": Place(COMPARE, {"show": "word", "head": "L3H1", "path": "query"}, "patched"),
    "a head that does not exist": Place(COMPARE, {"tray": COMPARED.replace("L0H1", "L9H9")}),
    "numbers": Place(ROLES, {"level": "full"}),
    "numbers of a head": Place(ROLES, {"level": "full", "head": "L3H1"}),
    "without the division": Place(INSIDE, {"step": "score"}),
    "a step of the tour": Place(LAB, {"tour": "3"}),
    "lab, the repeater": Place(LAB, {"experiment": "repeater"}),
}


@pytest.fixture(autouse=True)
def _work_is_done_by_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_children(monkeypatch)


def events() -> dict[str, list[str]]:
    """What each component can send, as the package declares it, with the parts of each event."""
    sent: dict[str, list[str]] = {}
    for call in _calls(UI / "widgets" / "components.py"):
        if isinstance(call.func, ast.Call) and ast.unparse(call.func.func) == "_get_renderer":
            component = f"mha_{ast.literal_eval(call.func.args[0])}"
            names = [match[1] for of in call.keywords if (match := re.fullmatch("on_(.+)_change", of.arg or ""))]
            sent[component] = [part for name in names for part in _parts(f"{component}.{name}")]
    return sent


def _parts(event: str) -> list[str]:
    return [f"{event}:{part}" for part in PARTS[event]] if event in PARTS else [event]


def _calls(file: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]


def drawn(place: Place) -> set[str]:
    """The controls of a page in a state, "link" for those that lead to other pages, and every kind of other links. The
    state is the one that its link names."""
    visit = PageSession(dict(place.url), place.page)
    assert "Ignored in this link" not in visit.said, place
    if place.opened:
        visit.unfold(place.opened)
    keys = {act.control for act in list_acts(visit)}
    components = {one.proto.component_name for one in visit.at.get("bidi_component")}
    sent = {event for component in components for event in events().get(component, [])}
    return {key for key in keys if not key.startswith("mha_")} | sent | {"link"} | links(visit)


def links(visit: PageSession) -> set[str]:
    """The kinds of links of a page that are not around every page: "link:PAGE?" and the parameters that a link changes,
    with "." between them; "rows:" and the heading of the table in which it stands, or "why:" for one in a text."""
    every = visit.at.get("page_link")
    led = {f"link:{one.proto.page}?{'.'.join(changed(visit, one.proto.query_string))}" for one in every if is_own(one)}
    texts = [one.proto.body for one in visit.at._tree if one.type == "html" and "<a " in one.proto.body]
    return led | {kind for text in texts for kind in _links_of(text)}


def is_own(link: Any) -> bool:
    """Whether a link to a page is not one of the navigation or of the tour."""
    label = re.sub(r"^:primary\[|\]$|\*\*", "", link.proto.label).lower().replace(" ", "_")
    return not re.fullmatch(rf"{'|'.join(page_files())}|compare_\(\d+\)|tour|next_→|←_back", label)


def changed(visit: PageSession, query: str) -> list[str]:
    """The parameters that a link with this query sets anew."""
    return sorted(name for name, value in parse_qsl(query) if visit.url.get(name) != value)


def _links_of(text: str) -> set[str]:
    """The kinds of links of an element of HTML; none for those of the map, which are events of ``mha_scheme``."""
    kind = re.findall('class="([^"]*)"', text)[0]
    heading = re.findall("<th>(.*?)</th>", text)
    return {"mha-rows": {f"rows:{''.join(heading[:1])}"}, "inside-each": {"why:"}}.get(kind, set())


def is_named(control: str, names: set[str]) -> bool:
    return control in names or any(name.endswith("_") and control.startswith(name) for name in names)


def walked(page: str = "") -> set[str]:
    """The controls that are walked, on all pages or on one and, of what is around every page, on any."""
    each = {(urlsplit(path).path, walk.control) for path, acts in walks.WALKS.items() for walk in acts.values()}
    return {control for path, control in each if not page or path == page or is_framed(control)}


def is_framed(control: str) -> bool:
    return control == "link" or control.startswith(FRAME)


def test_every_control_of_every_page_is_walked_or_named() -> None:
    every: dict[str, set[str]] = {}
    for place in STATES.values():
        every.setdefault(PAGES[place.page], set()).update(drawn(place))
    missing = [
        f"{page}: {control}"
        for page, controls in every.items()
        for control in sorted(controls)
        if not is_named(control, walked(page) | NOT_WALKED.keys())
    ]
    assert not missing, "neither in tests/walks.py nor in NOT_WALKED"
    there = set().union(*every.values()) | keys_in_the_source()
    named = NOT_WALKED.keys() | {control for control in walked() if control.startswith(OF_LINKS)}
    assert not {name for name in named if not is_there(name, there)}, "no page has them"


def is_there(name: str, controls: set[str]) -> bool:
    """Whether a control has this name, or one of those is a beginning that stands for it."""
    return is_named(name, controls) or any(name.endswith("_") and one.startswith(name) for one in controls)


def test_what_is_walked_exists_and_is_not_named_as_not_walked() -> None:
    there = keys_in_the_source() | {part for sent in events().values() for part in sent} | {"link"}
    others = {name for name in walked() if not name.startswith(OF_LINKS)}
    assert not {name for name in others if not is_there(name, there)}, "no page has them"
    assert not walked() & NOT_WALKED.keys()


def keys_in_the_source() -> set[str]:
    """The keys of all controls of the package that answer, or how they begin."""
    keys, loose = in_the_source()
    return keys | {key for function in loose for key in IN_A_VARIABLE.get(function, ())}


def in_the_source() -> tuple[set[str], set[str]]:
    """The keys of all controls of the package, as far as they are constant, and the functions whose are not."""
    keys: set[str] = set()
    loose: set[str] = set()
    for file in sorted(UI.rglob("*.py")):
        for function, call in _in_functions(file):
            if (key := _key_of(call)) is None:
                continue
            if key:
                keys.add(key)
            else:
                loose.add(f"{file.stem}.{function}")
    return keys, loose


def _in_functions(file: Path) -> Iterator[tuple[str, ast.Call]]:
    """The calls of a file with the function, at its top or in a class, that makes them."""
    tree = ast.parse(file.read_text("utf-8"))
    tops = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen: set[ast.AST] = set()
    for top in tops:
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and node not in seen:
                seen.add(node)
                yield top.name, node


def _key_of(call: ast.Call) -> str | None:
    """The key of a control that answers, or the beginning of it; empty if it is a variable, None for other calls."""
    of = {one.arg: one.value for one in call.keywords}
    is_bind_control = ast.unparse(call.func) == "bind_control"
    answers = [of[name] for name in ("on_click", "on_change", "on_select") if name in of]
    if not is_bind_control and (not answers or ast.unparse(answers[0]) in ("'ignore'", "'rerun'")):
        return None
    key = of.get("key", call.args[2] if is_bind_control else None)
    keeps = is_bind_control and "keeps_text" in of
    if isinstance(key, ast.JoinedStr):
        return _text(key.values[0])
    return f"{_text(key)}_" if keeps else _text(key)


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_control_in_the_source_is_walked_or_named() -> None:
    _, loose = in_the_source()
    assert loose == IN_A_VARIABLE.keys(), "name in IN_A_VARIABLE how their keys begin"
    keys, names = keys_in_the_source(), walked() | NOT_WALKED.keys()
    assert not {key for key in keys if not is_covered(key, names, keys)}, "neither in tests/walks.py nor in NOT_WALKED"


def is_covered(key: str, names: set[str], keys: set[str]) -> bool:
    """A key, or one that begins so and is not itself another control's."""
    begins = key.endswith("_") and any(name.startswith(key) and name not in keys for name in names)
    return is_named(key, names) or begins
