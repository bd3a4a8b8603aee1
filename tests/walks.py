"""Walks through the browser's history: for each page, a sequence of actions that change its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.browser_tab import open_by_search

Act = Callable[[Page], object]


class Step(NamedTuple):
    """A step of a walk: an action, and the control that it uses, named as in tests/controls.py.

    A control is named by its key (or the beginning of its key, if the name ends with ``_``), or by component and event;
    after a colon follows the part of the event that becomes a parameter of the address. A link is named by its page and
    the parameters that it changes (``tests/test_walks.py``).
    """

    control: str
    act: Act


def button(name: str, exact: bool = True) -> Act:
    return lambda page: page.get_by_role("button", name=name, exact=exact).first.click()


def choose_more(name: str) -> Act:
    """Choose an entry of the menu *More*."""
    return in_order(button("More"), button(name))


def radio(name: str) -> Act:
    return lambda page: page.get_by_role("radio", name=name, exact=True).first.click()


def check(name: str) -> Act:
    return lambda page: page.get_by_role("checkbox", name=name, exact=True).check()


def menu(label: str, option: str) -> Act:
    """Choose an option of a drawing's menu by its text or its value."""
    return lambda page: page.locator("label", has_text=label).locator("select").first.select_option(option)


def box(label: str, option: str) -> Act:
    """Choose an option of a Streamlit menu.

    The menu closes when the page scrolls, and sometimes for unknown reasons, so the choice is tried several times.
    """

    def act(page: Page) -> None:
        for _ in range(5):
            page.get_by_role("combobox", name=label, exact=True).click()
            with suppress(TimeoutError):
                return page.get_by_role("option", name=option).first.click(timeout=20_000)
        raise AssertionError(f"{label} has no {option}")

    return act


def segment(text: str) -> Act:
    return lambda page: page.locator(".segments").get_by_text(text, exact=True).first.click()


def in_drawing_menu(act: Act) -> Act:
    """Do ``act`` once the menu *Drawing* is open."""
    return in_section("details.drawing", act)


def in_section(selector: str, act: Act) -> Act:
    """Open a collapsed section of a drawing, and do ``act`` in it."""

    def open_and_act(page: Page) -> None:
        closed = page.locator(f"{selector}:not([open]) > summary")
        page.locator(selector).first.wait_for()
        if closed.count():
            closed.first.click()
        act(page)

    return open_and_act


def type_text(label: str, text: str) -> Act:
    def act(page: Page) -> None:
        page.get_by_label(label, exact=True).first.fill(text)
        page.get_by_label(label, exact=True).first.press("Enter")

    return act


def click_at(selector: str, x: float, y: float) -> Act:
    return lambda page: page.locator(selector).first.click(position={"x": x, "y": y})


def in_order(first: Act, second: Act) -> Act:
    """Do two actions; only the second one changes the address."""

    def act(page: Page) -> None:
        first(page)
        second(page)

    return act


def in_heads_box(act: Act) -> Act:
    """Do ``act`` in the box *Choose heads*, once that is open."""

    def open_and_act(page: Page) -> None:
        box_over = page.get_by_test_id("stPopoverBody")
        if not box_over.count():
            button("Choose heads")(page)
        box_over.wait_for()
        act(page)
        while box_over.count():  # Escape first closes an open menu in the box
            page.keyboard.press("Escape")
            page.wait_for_timeout(100)

    return open_and_act


def in_popover(act: Act) -> Act:
    """Do an action in a popover, and close the popover; the address does not contain whether it is open."""
    return in_order(act, lambda page: page.keyboard.press("Escape"))


def find_slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Training step")


def move_slider(page: Page) -> None:
    find_slider(page).press("ArrowRight")


def subtract(page: Page) -> None:
    page.get_by_role("button", name="Difference of panels 1 and 2").click()


def search(text: str) -> Act:
    return lambda page: open_by_search(page, text)


def unfold(title: str) -> Act:
    """Open a collapsed section. The address does not contain whether it is open."""

    def act(page: Page) -> None:
        summary = page.locator("details > summary", has_text=title).first
        summary.wait_for()
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.click()

    return act


def link(name: str) -> Act:
    return lambda page: page.get_by_role("link", name=name).first.click()


def row(heading: str, number: int) -> Act:
    """Open the head in a row of the table of *Roles* whose first column has this heading."""

    def act(page: Page) -> None:
        table = page.locator("table.mha-rows", has=page.get_by_role("columnheader", name=heading, exact=True))
        table.locator("td a").nth(number).click()

    return act


def click(selector: str) -> Act:
    return lambda page: page.locator(selector).first.click()


def sentence(place: str, shown_by: str = "gold=") -> Act:
    """Open the first sentence whose link has a parameter, in the part of *Roles* with this key."""
    return lambda page: page.locator(f".st-key-{place} a[href*='{shown_by}']").first.click()


def mark(chart: str, number: int = 0) -> Act:
    """Click a mark of a scatter plot or a bar chart."""

    def act(page: Page) -> None:
        drawn = page.locator(f".st-key-{chart} .js-plotly-plot >> visible=true").first
        drawn.locator(".nsewdrag").first.wait_for()
        point = drawn.locator(".point").nth(number)
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        assert box
        page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)  # avoid the mark inside a bar

    return act


def square(chart: str, head: str) -> Act:
    """Choose a square of a chart of layers × heads by keyboard, because an early click might be lost."""

    def act(page: Page) -> None:
        place = page.locator(f".st-key-wide_{chart}").get_by_role("button", name=f"{head} (")
        place.focus()
        place.press("Enter")

    return act


def play_training(act: Act) -> Act:
    """Do an action that plays a training run, and wait for its end."""

    def play(page: Page) -> None:
        act(page)
        page.get_by_role("button", name="Pause").wait_for()
        page.get_by_role("button", name="Play").wait_for()

    return play


def run_training(act: Act) -> Act:
    """Do an action that starts training, and wait for its end."""

    def train(page: Page) -> None:
        act(page)
        page.get_by_role("button", name="Stop", exact=True).first.wait_for()
        expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0, timeout=120_000)

    return train


def measure_files(*texts: str) -> Act:
    """Measure files with these sentences, one after the other.

    Afterwards, another file can be chosen.
    """

    def measure(page: Page) -> None:
        for number, text in enumerate(texts):
            page.locator("input[type=file]").set_input_files(
                {"name": f"file{number}.txt", "mimeType": "text/plain", "buffer": text.encode()}
            )
            page.get_by_role("button", name=f"Measure file{number}.txt").click()
            page.get_by_text(f"Measured on file{number}.txt").wait_for(timeout=300_000)
            page.get_by_role("button", name="Change file").click()

    return measure


def find_matches(title: str, key: str, until: str) -> Act:
    """Press a button that reads a corpus, in the collapsed section ``title``, and wait for the text ``until``."""

    def find(page: Page) -> None:
        unfold(title)(page)
        page.locator(f".st-key-{key} button").click()
        page.get_by_text(until).first.wait_for(timeout=300_000)

    return find


def wait_for_button(act: Act, name: str) -> Act:
    """Do an action and wait for a button of this name."""
    return in_order(act, lambda page: page.get_by_role("button", name=name).first.wait_for())


def link_exactly(name: str) -> Act:
    return lambda page: page.get_by_role("link", name=name, exact=True).click()


def click_second_panel(page: Page) -> None:
    page.locator(".panel").nth(1).locator("canvas:not(.over)").first.click(position={"x": 120, "y": 150})


EXAMPLE = in_order(button("Examples"), lambda page: page.get_by_role("button", name="The keys to the old").click())
ADD_SECOND_SENTENCE = in_order(button("+ Second sentence"), type_text("Second sentence", "It slept."))
ADD_VIEW = in_order(
    in_order(button("Make a lesson"), type_text("Remark", "Look at the subject.")), in_popover(button("Add this view"))
)
ADD_ANOTHER_VIEW = in_order(button("Lesson: 1 view", exact=False), in_popover(button("Add this view")))
REMOVE_VIEW = in_order(button("Lesson: 2 views", exact=False), in_popover(button("Remove")))
RENAME_PANEL = in_order(button("Name of panel 1", exact=False), type_text("Name of this panel", "first"))
TRAY = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L3H1", 0, "mine"], ["L2H4", 0, ""]]}'
TRAY_WITH_MISSING_HEAD = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L9H9", 0, ""]]}'
REPLACED_WORD = "The animal didn't cross the street because it was too old."
SECOND_TEXT = "Second text, to compare"
OPEN_SYNTAX = link_exactly("syntax")
TWO_STACKS = "A_FOLDER"  # placeholder for the folder of a small encoder–decoder, which a test makes
STEP_50 = in_order(move_slider, lambda page: expect(find_slider(page)).to_have_attribute("aria-valuetext", "step 50"))
TRAINING = "/roles?model=toy@400&corpus=folder"  # on a server whose folder has the profiles of two steps
RUSSIAN = "/?text=Кошка спит на диване, потому что она устала."
# The walks: for a path with its parameters, the steps in order, by name.
WALKS: Mapping[str, Mapping[str, Step]] = {
    "/": {
        "a sentence": Step("mha_sentence.read", type_text("Sentence", "Cats sleep.")),
        "an example": Step("mha_sentence.example", EXAMPLE),
        "a head": Step("mha_explorer.view:head", click_at(".grid canvas", 200, 100)),
        "a pinned word": Step(
            "mha_explorer.view:pin",
            in_drawing_menu(in_order(check("Token links"), click_at(".links canvas", 20, 60))),
        ),
        "links": Step("mha_explorer.view:links", in_drawing_menu(menu("Links", "top … per word"))),
        "special tokens": Step("mha_explorer.view:special", in_drawing_menu(segment("hidden"))),
        "pieces": Step("mha_explorer.view:unit", in_drawing_menu(segment("tokens"))),
        "colours": Step("mha_explorer.view:scale", in_drawing_menu(menu("Colour", "per row"))),
        "another head of the layer": Step(
            "mha_explorer.view:on",
            in_drawing_menu(lambda page: page.locator(".heads button[aria-pressed=false]").first.click()),
        ),
        "known roles": Step(
            "mha_explorer.view:roles",
            in_drawing_menu(lambda page: page.get_by_role("checkbox", name="Label roles").click()),
        ),
        "composition": Step(
            "mha_explorer.view:arrows",
            in_drawing_menu(lambda page: page.get_by_role("checkbox", name="Arrows between heads").click()),
        ),
        "a link of two words": Step(
            "mha_explorer.view:link",
            in_section("details.more", lambda page: page.locator(".ask select").first.select_option(index=3)),
        ),
        "a quantity": Step("mha_explorer.view:shown", in_drawing_menu(menu("Quantity", "norm"))),
        "heads switched off": Step("mha_explorer.off", button("Switch off")),
        "a compared head": Step("mha_explorer.compare", button("+ Compare")),
        "a search": Step("mha_search.open", search("L3H1")),
        "a model": Step("mha_sentence.model", menu("Model", "Toy, trained on the built-in grammar")),
        "a second sentence": Step("mha_sentence.read", ADD_SECOND_SENTENCE),
        "one sentence of two": Step("mha_explorer.view:side", in_drawing_menu(menu("Pair", "ab"))),
        "for a class": Step("mha_more.class", choose_more("Class view")),
        "leaving the class view": Step("class_out", button("Leave the class view")),
        "another page": Step("link", link("Compare")),
    },
    "/?head=L3H1&roles=on": {
        "the tour": Step("tour_first", button("Tour")),
        "the next step of the tour": Step("link", link("Next →")),
        "the previous step of the tour": Step("link", link("← Back")),
        "leaving the tour": Step("tour_out", button("Leave the tour")),
        "a card": Step("mha_explorer.card", lambda page: page.locator(".one .chip button").first.click()),
    },
    "/?head=L2H8": {"another sentence": Step("mha_explorer.elsewhere", click(".elsewhere button"))},
    "/?head=L0H2": {"why heads differ": Step("mha_explorer.why", link("Why do they differ?"))},
    "/?tour=6&head=L3H1&pin=q10": {
        "the end of the tour": Step("tour_out", button("Finish")),
    },
    "/?shown=gradient&model=toy&text=the dog [MASK] the [MASK] .": {
        "another place": Step("place", box("Masked token", "number 2")),
        "a word to follow": Step("word_", type_text("Word to score", "girl")),
        "a second text": Step("second_text_", type_text(SECOND_TEXT, "the cat sleeps .")),
    },
    "/compare": {
        "a layer": Step("show", radio("A whole layer")),
        "a word": Step("show", radio("Swap a word")),
        "similar": Step("show", radio("Most similar heads")),
        "colours": Step("mha_compare.view:scale", in_drawing_menu(menu("Colour scale", "logarithmic"))),
        "special tokens": Step("mha_compare.view:special", in_drawing_menu(segment("shown"))),
        "heatmaps": Step("mha_compare.view:as", in_drawing_menu(segment("links"))),
        "links": Step("mha_compare.view:links", in_drawing_menu(menu("Links", "top … per word"))),
        "pieces": Step("mha_compare.view:unit", in_drawing_menu(segment("tokens"))),
        "two models": Step("show", radio("Two models")),
        "another model": Step("with", box("Second model", "Repeater")),
        "a compared head": Step(
            "mha_compare.edit:pin", lambda page: page.locator(".panel button", has_text="Compare").first.click()
        ),
        "another page": Step("link:?", link("Edit in Explore")),
    },
    "/compare?show=word": {
        "a pinned head": Step("patched_heads", square("patched_heads", "L2H5")),
        "the side of paths": Step("path", radio("query")),
        "the first head of a path": Step("patched_paths", square("patched_paths", "L1H3")),
        "a third sentence": Step("like_", type_text("Measure the similarity of both to a third sentence", "It slept.")),
        "another second sentence": Step("second", type_text("Change a word, then press Enter", REPLACED_WORD)),
        "no pinned head": Step("patched_heads", square("patched_heads", "L1H3")),
    },
    f"/compare?show=tray&tray={TRAY}": {
        "a pinned word": Step("mha_compare.view:pin", click_at(".panel canvas:not(.over)", 120, 120)),
        "a word pinned in another panel": Step("mha_compare.view:at", click_second_panel),
        "a difference": Step("mha_compare.view:diff", subtract),
        "no difference": Step("mha_compare.view:diff", button("Close")),
        "a panel moved right": Step("mha_compare.edit:move", button("Move right: panel 1")),
        "a panel moved left": Step("mha_compare.edit:move", button("Move left: panel 2")),
        "a duplicated panel": Step("mha_compare.edit:duplicate", button("Duplicate: panel 2")),
        "a name": Step("mha_compare.edit:rename", RENAME_PANEL),
        "a removed panel": Step("mha_compare.edit:remove", button("Remove", exact=False)),
        "a quantity": Step("shown", box("Quantity", "norm-weighted")),
        "a layer": Step("show", radio("A whole layer")),
        "a head on its page": Step("mha_compare.edit:open", button("Open in Explore", exact=False)),
    },
    f"/compare?show=tray&tray={TRAY_WITH_MISSING_HEAD}": {
        "a panel that cannot be drawn": Step("remove_", button("Remove L9H9 from My heads")),
    },
    "/roles": {
        "a kind": Step("mha_scheme.linked:kinds", OPEN_SYNTAX),
        "a row": Step("rows:", lambda page: page.locator("ul.mha-rows a").first.click()),
        "a head": Step("mha_search.open", search("L3H1")),
        "a square": Step("mha_scheme.linked:head", lambda page: page.locator(".mha-map td a").nth(8).click()),
        "another corpus": Step("roles_corpus", radio("built-in")),
        "a file": Step("roles_corpus", radio("your file")),
        "another model": Step("roles_model", box("Model", "Toy, trained")),
        "another page": Step("link:why_heads_differ?experiment", link("Watch its heads learn")),
    },
    "/roles?level=full&head=L3H1": {
        "relations": Step("relation", type_text("Filter relations", "mod")),
        "all relations together": Step("level", radio("all together")),
        "your own corpus": Step("replicate_file", in_order(unfold("on another corpus"), button("Choose a file"))),
    },
    "/roles?level=full": {
        "a head of the table of roles": Step("rows:Role", row("Role", 4)),
        "a head of the table of relations": Step("rows:Relation", row("Relation", 5)),
        "a head of the table of coreference": Step("rows:Mention", row("Mention", 1)),
        "a sentence": Step("link:?case.gold.text", sentence("head_numbers")),
    },
    "/roles?head=L0H2": {"the head on Explore": Step("link:?", link("Open in Explore"))},
    "/roles?head=L3H1": {"the sentence of its gloss": Step("link:?case.text", sentence("head_card", "case="))},
    "/roles?head=L2H8": {"the sentence of a head": Step("link:?case.gold.text", sentence("head_card"))},
    "/roles?model=toy&corpus=file": {
        "a measured file": Step("file_", button("file0.txt")),
        "another file": Step("another_file", button("Change file")),
        "the other measured file": Step("file_", button("file1.txt")),
    },
    f"/?model={TWO_STACKS}&text=The animal was tired.": {
        "the decoder": Step("part", radio("decoder")),
        "a target": Step("target_", type_text("Target", "Das Tier war müde.")),
        "the encoder": Step("part", radio("encoder")),
        "cross-attention": Step("part", radio("cross")),
    },
    "/roles?model=toy&head=L1H1&level=full": {
        "links that are searched": Step(
            "search_links", find_matches("Search this head", "search_links", "links match")
        ),
        "links that are drawn": Step(
            "draw_links", find_matches("Everything this head does", "draw_links", "links from")
        ),
    },
    TRAINING: {
        "a step of the training": Step(
            "training_step", lambda page: page.get_by_role("slider", name="Training step").press("ArrowLeft")
        ),
    },
    RUSSIAN: {
        "the model of many languages": Step(
            "read_multilingual", wait_for_button(button("Try", exact=False), "Try again")
        ),
        "the previous model": Step("back_to_model", button("Back to MiniLM")),
    },
    "/roles?model=toy": {"a kind": Step("mha_scheme.linked:kinds", OPEN_SYNTAX)},
    "/why_heads_differ?experiment=toy": {
        "a step": Step("mha_player.step", STEP_50),
        "a training": Step("lab_trained_", radio("on hidden words only")),
        "another page": Step("link:roles?model", link("Its roles")),
    },
    "/inside_a_head?step=score&head=L4H3&q=10&k=7": {
        "an earlier head": Step("why:", click(".inside-why:not([hidden]) a"))
    },
    "/inside_a_head": {
        "a stage": Step("mha_block.stage", click(".mha-block [data-stage=share] .title")),
        "a key of the picture": Step("mha_block.key", click(".mha-block .key:nth-child(6)")),
        "without the division": Step(
            "inside_undivided", lambda page: page.get_by_text("Without the division by").click()
        ),
        "a query": Step("inside_q", box("Query", "street")),
        "a key": Step("inside_k", box("Key", "cross")),
        "a head of the map": Step("mha_block.head", radio("Head 5")),
        "a layer": Step("inside_layer", box("Layer", "1")),
        "costs": Step("costs_", type_text("tokens n", "65")),
        "a sentence": Step("mha_sentence.read", type_text("Sentence", "Cats sleep.")),
        "an example": Step("mha_sentence.example", EXAMPLE),
        "a model": Step("mha_sentence.model", menu("Model", "Toy, trained on the built-in grammar")),
        "another page": Step("link", link("Roles")),
    },
    "/why_heads_differ?experiment=toy&numbers=1": {
        "a step on Explore": Step("link:?model.text", link("In Explore")),
    },
    "/why_heads_differ?experiment=toy&tour=2": {
        "the next page of the tour": Step("link:inside_a_head?head.k.q", link("Continue →")),
    },
    "/why_heads_differ?experiment=repeater": {
        "heads switched off": Step("link:?model.off.text", link("Without L")),
    },
    "/why_heads_differ?experiment=count": {
        "an answer on Inside": Step("link:inside_a_head?step", link("Calculate it")),
    },
    "/why_heads_differ?experiment=cut": {
        "an answer on Explore": Step("link:?head", link("A head that looks one word back")),
    },
    "/why_heads_differ": {
        "an experiment": Step("lab_experiment", radio("Random start")),
        "numbers": Step("lab_numbers", lambda page: page.get_by_text("Numbers", exact=True).click()),
        "a step": Step("mha_player.step", move_slider),
        "another experiment": Step("lab_experiment", radio("Split input")),
        "another training": Step("lab_arm_", radio("in full")),
    },
    "/why_heads_differ?experiment=random": {
        "a related experiment": Step("to_", button("→ Watch two layers")),
        "a real head": Step("link:?head.model.pin.text", link("○ L0H2")),
    },
    "/why_heads_differ?experiment=identical&numbers=1": {
        "a guess": Step("lab_guess_", play_training(radio("heads differ"))),
        "seeds side by side": Step("lab_beside", run_training(radio("2"))),
        "your own run": Step("lab_run", run_training(in_order(type_text("Steps", "20"), button("Run")))),
    },
    "/?model=toy&off=L0H1": {
        "a replacement": Step("how", in_heads_box(radio("uniform attention"))),
        "a random head": Step("at_random", in_heads_box(button("Pick a random head"))),
        "a whole layer": Step("off_layer", in_heads_box(box("Add a layer", "L1"))),
        "all heads on": Step("all_on", in_heads_box(lambda page: page.locator(".st-key-all_on button").click())),
        "a head of the menu": Step("off", in_heads_box(box("Heads switched off", "L0H"))),
        "a sentence": Step("mha_sentence.read", type_text("Sentence", "The cat sleeps .")),
        "another text": Step("how", in_heads_box(radio("another text"))),
        "the words of the other text": Step(
            "from", type_text("Type the other text, then press Enter", "The girl sleeps .")
        ),
    },
    "/?model=toy&off=L0H1.L1H1": {
        "every head on": Step("switch_on", lambda page: page.locator(".st-key-switch_on button").click()),
    },
    "/?model=toy&off=none": {
        "a guess": Step("guess", button("Watch a prediction change (toy model)")),
        "a word to follow": Step("word_", in_heads_box(type_text("Word to score", "sees"))),
        "a second text": Step("second_text_", in_heads_box(type_text(SECOND_TEXT, "the cat sleeps ."))),
        "one text of two": Step("in", in_heads_box(radio("the first"))),
    },
    "/?model=toy&off=L0H1&how=text&from=": {"the end": Step("ended", button("Switch all heads back on"))},
    "/why_heads_differ?experiment=tasks": {
        "a task": Step("small_task", radio("2")),
        "an answer": Step("small_answer", lambda page: page.locator(".st-key-small_answer button").first.click()),
        "the next task": Step("mha_player.next", lambda page: page.locator(".mha-player .next").click()),
        "another task": Step("small_task", radio("1")),
        "a head of a task": Step("link:?head.model.text", link("in Explore")),
    },
    "/about": {
        "a chapter": Step("mha_scheme.linked:chapter", link_exactly("Glossary")),
        "another chapter": Step("chapter", box("Chapter", "Limits")),
        "no chapter": Step("mha_scheme.linked:chapter", link("What the pictures show")),
        "for a class": Step("mha_more.class", choose_more("Class view")),
        "a view of a lesson": Step("lesson_add", ADD_VIEW),
        "another view of a lesson": Step("lesson_add", ADD_ANOTHER_VIEW),
        "the previous view": Step("lesson_1", button("← Back")),
        "a removed view of a lesson": Step("lesson_remove_", REMOVE_VIEW),
        "leaving the class view": Step("class_out", button("Leave the class view")),
        "another page": Step("link:?head.pin", link("Open it in Explore")),
    },
}
# What precedes a walk and is not in the address: sections are opened, and files are measured.
PREPARATIONS: Mapping[str, Act] = {
    "/compare?show=word": unfold("Which heads carry the difference?"),
    "/why_heads_differ?experiment=random": unfold("Are layers parallel"),
    "/why_heads_differ?experiment=count": unfold("What does it cost"),
    "/why_heads_differ?experiment=cut": unfold("Is a head like a kernel"),
    "/roles?model=toy&corpus=file": measure_files(
        "The dog sleeps.\nThe girl sees the cat.\n", "The cat sees the dog.\n"
    ),
}
# Walks that open a section and leave the page at once; coming back finds the section collapsed.
FOLDED = tuple(f"/why_heads_differ?experiment={name}" for name in ("random", "count", "cut"))
FEW: Mapping[str, tuple[str, ...]] = {  # actions of each page in the default run
    "/": ("a sentence", "a pinned word", "special tokens", "a compared head"),
    f"/compare?show=tray&tray={TRAY}": ("a difference", "a removed panel", "a layer", "a head on its page"),
    "/roles?model=toy": ("a kind",),
    "/why_heads_differ?experiment=toy": ("a step",),
    "/why_heads_differ?experiment=tasks": ("a task", "an answer"),
}
