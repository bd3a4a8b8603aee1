"""Walks through the browser's history: on each page, a sequence of controls that change its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.browser_tab import open_by_search

Act = Callable[[Page], object]


class Walk(NamedTuple):
    """An action, and the control that it uses, named as in tests/controls.py.

    A control is named by its key (or the beginning of its key, if the name ends with ``_``), or by component and event;
    after a colon follows the part of the event that becomes a parameter of the address. A link is named by its page and
    the parameters that it changes (``tests/test_walks.py``).
    """

    control: str
    act: Act


def button(name: str, exact: bool = True) -> Act:
    return lambda page: page.get_by_role("button", name=name, exact=exact).first.click()


def more(name: str) -> Act:
    """Choose an entry of the menu *More*."""
    return after(button("More"), button(name))


def radio(name: str) -> Act:
    return lambda page: page.get_by_role("radio", name=name, exact=True).first.click()


def checks(name: str) -> Act:
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


def drawing(act: Act) -> Act:
    """Do ``act`` once the menu *Drawing* is open."""
    return within("details.drawing", act)


def within(fold: str, act: Act) -> Act:
    """Open a collapsed section of a drawing, and do ``act`` in it."""

    def opened(page: Page) -> None:
        closed = page.locator(f"{fold}:not([open]) > summary")
        page.locator(fold).first.wait_for()
        if closed.count():
            closed.first.click()
        act(page)

    return opened


def types(label: str, text: str) -> Act:
    def act(page: Page) -> None:
        page.get_by_label(label, exact=True).first.fill(text)
        page.get_by_label(label, exact=True).first.press("Enter")

    return act


def at(selector: str, x: float, y: float) -> Act:
    return lambda page: page.locator(selector).first.click(position={"x": x, "y": y})


def after(first: Act, second: Act) -> Act:
    """Do two actions; only the second one changes the address."""

    def act(page: Page) -> None:
        first(page)
        second(page)

    return act


def choosing(act: Act) -> Act:
    """Do ``act`` in the box *Choose heads*, once that is open."""

    def chosen(page: Page) -> None:
        box_over = page.get_by_test_id("stPopoverBody")
        if not box_over.count():
            button("Choose heads")(page)
        box_over.wait_for()
        act(page)
        while box_over.count():  # Escape first closes an open menu in the box
            page.keyboard.press("Escape")
            page.wait_for_timeout(100)

    return chosen


def closes_after(act: Act) -> Act:
    """Do an action in a popover, and close the popover.

    The address does not contain whether it is open.
    """
    return after(act, lambda page: page.keyboard.press("Escape"))


def slider_of(page: Page) -> Locator:
    return page.get_by_role("slider", name="Training step")


def slider(page: Page) -> None:
    slider_of(page).press("ArrowRight")


def subtract(page: Page) -> None:
    page.get_by_role("button", name="Difference of panels 1 and 2").click()


def finds(text: str) -> Act:
    return lambda page: open_by_search(page, text)


def unfolds(title: str) -> Act:
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


def within_text(selector: str) -> Act:
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

    def acted(page: Page) -> None:
        act(page)
        page.get_by_role("button", name="Pause").wait_for()
        page.get_by_role("button", name="Play").wait_for()

    return acted


def run_training(act: Act) -> Act:
    """Do an action that starts training, and wait for its end."""

    def acted(page: Page) -> None:
        act(page)
        page.get_by_role("button", name="Stop", exact=True).first.wait_for()
        expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0, timeout=120_000)

    return acted


def measure_files(*texts: str) -> Act:
    """Measure files with these sentences, one after the other.

    Afterwards, another file can be chosen.
    """

    def acted(page: Page) -> None:
        for number, text in enumerate(texts):
            page.locator("input[type=file]").set_input_files(
                {"name": f"file{number}.txt", "mimeType": "text/plain", "buffer": text.encode()}
            )
            page.get_by_role("button", name=f"Measure file{number}.txt").click()
            page.get_by_text(f"Measured on file{number}.txt").wait_for(timeout=300_000)
            page.get_by_role("button", name="Change file").click()

    return acted


def find_matches(title: str, key: str, until: str) -> Act:
    """Press a button that reads a corpus, in the collapsed section ``title``, and wait for the text ``until``."""

    def acted(page: Page) -> None:
        unfolds(title)(page)
        page.locator(f".st-key-{key} button").click()
        page.get_by_text(until).first.wait_for(timeout=300_000)

    return acted


def wait_for_button(act: Act, name: str) -> Act:
    """Do an action and wait for a button of this name."""
    return after(act, lambda page: page.get_by_role("button", name=name).first.wait_for())


def link_exactly(name: str) -> Act:
    return lambda page: page.get_by_role("link", name=name, exact=True).click()


def in_the_second_panel(page: Page) -> None:
    page.locator(".panel").nth(1).locator("canvas:not(.over)").first.click(position={"x": 120, "y": 150})


EXAMPLES = after(button("Examples"), lambda page: page.get_by_role("button", name="The keys to the old").click())
PAIR = after(button("+ Second sentence"), types("Second sentence", "It slept."))
ADDED = after(
    after(button("Make a lesson"), types("Remark", "Look at the subject.")), closes_after(button("Add this view"))
)
ADDED_AGAIN = after(button("Lesson: 1 view", exact=False), closes_after(button("Add this view")))
DROPPED = after(button("Lesson: 2 views", exact=False), closes_after(button("Remove")))
RENAMED = after(button("Name of panel 1", exact=False), types("Name of this panel", "first"))
COMPARED = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L3H1", 0, "mine"], ["L2H4", 0, ""]]}'
NOT_HERE = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L9H9", 0, ""]]}'
OLD = "The animal didn't cross the street because it was too old."
SECOND_TEXT = "Second text, to compare"
KIND = link_exactly("syntax")
TWO_STACKS = "A_FOLDER"  # placeholder for the folder of a small encoder–decoder, which a test makes
STEP_50 = after(slider, lambda page: expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 50"))
TRAINING = "/roles?model=toy@400&corpus=folder"  # on a server whose folder has the profiles of two steps
RUSSIAN = "/?text=Кошка спит на диване, потому что она устала."
# The walks: a path with its parameters, and the controls that change the address, one after another.
WALKS: Mapping[str, Mapping[str, Walk]] = {
    "/": {
        "a sentence": Walk("mha_sentence.read", types("Sentence", "Cats sleep.")),
        "an example": Walk("mha_sentence.example", EXAMPLES),
        "a head": Walk("mha_explorer.view:head", at(".grid canvas", 200, 100)),
        "a held word": Walk(
            "mha_explorer.view:pin",
            drawing(after(checks("Token links"), at(".links canvas", 20, 60))),
        ),
        "links": Walk("mha_explorer.view:links", drawing(menu("Links", "top … per word"))),
        "special tokens": Walk("mha_explorer.view:special", drawing(segment("hidden"))),
        "pieces": Walk("mha_explorer.view:unit", drawing(segment("tokens"))),
        "colours": Walk("mha_explorer.view:scale", drawing(menu("Colour", "per row"))),
        "another head of the layer": Walk(
            "mha_explorer.view:on",
            drawing(lambda page: page.locator(".heads button[aria-pressed=false]").first.click()),
        ),
        "known roles": Walk(
            "mha_explorer.view:roles",
            drawing(lambda page: page.get_by_role("checkbox", name="Label roles").click()),
        ),
        "composition": Walk(
            "mha_explorer.view:arrows",
            drawing(lambda page: page.get_by_role("checkbox", name="Arrows between heads").click()),
        ),
        "a link of two words": Walk(
            "mha_explorer.view:link",
            within("details.more", lambda page: page.locator(".ask select").first.select_option(index=3)),
        ),
        "a quantity": Walk("mha_explorer.view:shown", drawing(menu("Quantity", "norm"))),
        "heads switched off": Walk("mha_explorer.off", button("Switch off")),
        "a compared head": Walk("mha_explorer.compare", button("+ Compare")),
        "a search": Walk("mha_search.open", finds("L3H1")),
        "a model": Walk("mha_sentence.model", menu("Model", "Toy, trained on the built-in grammar")),
        "a second sentence": Walk("mha_sentence.read", PAIR),
        "one sentence of two": Walk("mha_explorer.view:side", drawing(menu("Pair", "ab"))),
        "for a class": Walk("mha_more.class", more("Class view")),
        "out of the class": Walk("class_out", button("Leave the class view")),
        "another page": Walk("link", link("Compare")),
    },
    "/?head=L3H1&roles=on": {
        "the tour": Walk("tour_first", button("Tour")),
        "its next step": Walk("link", link("Next →")),
        "its previous step": Walk("link", link("← Back")),
        "out of the tour": Walk("tour_out", button("Leave the tour")),
        "a card": Walk("mha_explorer.card", lambda page: page.locator(".one .chip button").first.click()),
    },
    "/?head=L2H8": {"another sentence": Walk("mha_explorer.elsewhere", within_text(".elsewhere button"))},
    "/?head=L0H2": {"why heads differ": Walk("mha_explorer.why", link("Why do they differ?"))},
    "/?tour=6&head=L3H1&pin=q10": {
        "the end of the tour": Walk("tour_out", button("Finish")),
    },
    "/?shown=gradient&model=toy&text=the dog [MASK] the [MASK] .": {
        "another place": Walk("place", box("Masked token", "number 2")),
        "a word to follow": Walk("word_", types("Word to score", "girl")),
        "a second text": Walk("second_text_", types(SECOND_TEXT, "the cat sleeps .")),
    },
    "/compare": {
        "a layer": Walk("show", radio("A whole layer")),
        "a word": Walk("show", radio("Swap a word")),
        "similar": Walk("show", radio("Most similar heads")),
        "colours": Walk("mha_compare.view:scale", drawing(menu("Colour scale", "logarithmic"))),
        "special tokens": Walk("mha_compare.view:special", drawing(segment("shown"))),
        "heatmaps": Walk("mha_compare.view:as", drawing(segment("links"))),
        "links": Walk("mha_compare.view:links", drawing(menu("Links", "top … per word"))),
        "pieces": Walk("mha_compare.view:unit", drawing(segment("tokens"))),
        "two models": Walk("show", radio("Two models")),
        "another model": Walk("with", box("Second model", "Repeater")),
        "a compared head": Walk(
            "mha_compare.edit:pin", lambda page: page.locator(".panel button", has_text="Compare").first.click()
        ),
        "another page": Walk("link:?", link("Edit in Explore")),
    },
    "/compare?show=word": {
        "a held head": Walk("patched_heads", square("patched_heads", "L2H5")),
        "the side of paths": Walk("path", radio("query")),
        "a head that a path begins at": Walk("patched_paths", square("patched_paths", "L1H3")),
        "a third sentence": Walk("like_", types("Measure the similarity of both to a third sentence", "It slept.")),
        "another second sentence": Walk("second", types("Change a word, then press Enter", OLD)),
        "no held head": Walk("patched_heads", square("patched_heads", "L1H3")),
    },
    f"/compare?show=tray&tray={COMPARED}": {
        "a held word": Walk("mha_compare.view:pin", at(".panel canvas:not(.over)", 120, 120)),
        "a word held in another panel": Walk("mha_compare.view:at", in_the_second_panel),
        "a difference": Walk("mha_compare.view:diff", subtract),
        "no difference": Walk("mha_compare.view:diff", button("Close")),
        "a panel moved right": Walk("mha_compare.edit:move", button("Move right: panel 1")),
        "a panel moved left": Walk("mha_compare.edit:move", button("Move left: panel 2")),
        "a panel twice": Walk("mha_compare.edit:duplicate", button("Duplicate: panel 2")),
        "a name": Walk("mha_compare.edit:rename", RENAMED),
        "a removed panel": Walk("mha_compare.edit:remove", button("Remove", exact=False)),
        "a quantity": Walk("shown", box("Quantity", "norm-weighted")),
        "a layer": Walk("show", radio("A whole layer")),
        "a head on its page": Walk("mha_compare.edit:open", button("Open in Explore", exact=False)),
    },
    f"/compare?show=tray&tray={NOT_HERE}": {
        "a panel that cannot be drawn": Walk("remove_", button("Remove L9H9 from My heads")),
    },
    "/roles": {
        "a kind": Walk("mha_scheme.linked:kinds", KIND),
        "a row": Walk("rows:", lambda page: page.locator("ul.mha-rows a").first.click()),
        "a head": Walk("mha_search.open", finds("L3H1")),
        "a square": Walk("mha_scheme.linked:head", lambda page: page.locator(".mha-map td a").nth(8).click()),
        "another corpus": Walk("roles_corpus", radio("built-in")),
        "a file": Walk("roles_corpus", radio("your file")),
        "another model": Walk("roles_model", box("Model", "Toy, trained")),
        "another page": Walk("link:why_heads_differ?experiment", link("Watch its heads learn")),
    },
    "/roles?level=full&head=L3H1": {
        "relations": Walk("relation", types("Filter relations", "mod")),
        "all relations together": Walk("level", radio("all together")),
        "a corpus of one's own": Walk("replicate_file", after(unfolds("on another corpus"), button("Choose a file"))),
    },
    "/roles?level=full": {
        "a head of the table of roles": Walk("rows:Role", row("Role", 4)),
        "a head of the table of relations": Walk("rows:Relation", row("Relation", 5)),
        "a head of the table of coreference": Walk("rows:Mention", row("Mention", 1)),
        "a sentence": Walk("link:?case.gold.text", sentence("head_numbers")),
    },
    "/roles?head=L0H2": {"the head on Explore": Walk("link:?", link("Open in Explore"))},
    "/roles?head=L3H1": {"the sentence of its gloss": Walk("link:?case.text", sentence("head_card", "case="))},
    "/roles?head=L2H8": {"the sentence of a head": Walk("link:?case.gold.text", sentence("head_card"))},
    "/roles?model=toy&corpus=file": {
        "a measured file": Walk("file_", button("file0.txt")),
        "another file": Walk("another_file", button("Change file")),
        "the other measured file": Walk("file_", button("file1.txt")),
    },
    f"/?model={TWO_STACKS}&text=The animal was tired.": {
        "the decoder": Walk("part", radio("decoder")),
        "a target": Walk("target_", types("Target", "Das Tier war müde.")),
        "the encoder": Walk("part", radio("encoder")),
        "from decoder to encoder": Walk("part", radio("cross")),
    },
    "/roles?model=toy&head=L1H1&level=full": {
        "links that are searched": Walk(
            "search_links", find_matches("Search this head", "search_links", "links match")
        ),
        "links that are drawn": Walk(
            "draw_links", find_matches("Everything this head does", "draw_links", "links from")
        ),
    },
    TRAINING: {
        "a step of the training": Walk(
            "training_step", lambda page: page.get_by_role("slider", name="Training step").press("ArrowLeft")
        ),
    },
    RUSSIAN: {
        "the model of many languages": Walk(
            "read_multilingual", wait_for_button(button("Try", exact=False), "Try again")
        ),
        "the model before": Walk("back_to_model", button("Back to MiniLM")),
    },
    "/roles?model=toy": {"a kind": Walk("mha_scheme.linked:kinds", KIND)},
    "/why_heads_differ?experiment=toy": {
        "a step": Walk("mha_player.step", STEP_50),
        "a training": Walk("lab_trained_", radio("on hidden words only")),
        "another page": Walk("link:roles?model", link("Its roles")),
    },
    "/inside_a_head?step=score&head=L4H3&q=10&k=7": {
        "an earlier head": Walk("why:", within_text(".inside-why:not([hidden]) a"))
    },
    "/inside_a_head": {
        "a stage": Walk("mha_block.stage", within_text(".mha-block [data-stage=share] .title")),
        "a key of the picture": Walk("mha_block.key", within_text(".mha-block .key:nth-child(6)")),
        "undivided": Walk("inside_undivided", lambda page: page.get_by_text("Without the division by").click()),
        "a query": Walk("inside_q", box("Query", "street")),
        "a key": Walk("inside_k", box("Key", "cross")),
        "a head of the map": Walk("mha_block.head", radio("Head 5")),
        "a layer": Walk("inside_layer", box("Layer", "1")),
        "costs": Walk("costs_", types("tokens n", "65")),
        "a sentence": Walk("mha_sentence.read", types("Sentence", "Cats sleep.")),
        "an example": Walk("mha_sentence.example", EXAMPLES),
        "a model": Walk("mha_sentence.model", menu("Model", "Toy, trained on the built-in grammar")),
        "another page": Walk("link", link("Roles")),
    },
    "/why_heads_differ?experiment=toy&numbers=1": {
        "a step on Explore": Walk("link:?model.text", link("In Explore")),
    },
    "/why_heads_differ?experiment=toy&tour=2": {
        "what comes after it": Walk("link:inside_a_head?head.k.q", link("Continue →")),
    },
    "/why_heads_differ?experiment=repeater": {
        "heads switched off": Walk("link:?model.off.text", link("Without L")),
    },
    "/why_heads_differ?experiment=count": {
        "an answer on Inside": Walk("link:inside_a_head?step", link("Calculate it")),
    },
    "/why_heads_differ?experiment=cut": {
        "an answer on Explore": Walk("link:?head", link("A head that looks one word back")),
    },
    "/why_heads_differ": {
        "an experiment": Walk("lab_experiment", radio("Random start")),
        "numbers": Walk("lab_numbers", lambda page: page.get_by_text("Numbers", exact=True).click()),
        "a step": Walk("mha_player.step", slider),
        "another experiment": Walk("lab_experiment", radio("Split input")),
        "another training": Walk("lab_arm_", radio("in full")),
    },
    "/why_heads_differ?experiment=random": {
        "what answers another question": Walk("to_", button("→ Watch two layers")),
        "a real head": Walk("link:?head.model.pin.text", link("○ L0H2")),
    },
    "/why_heads_differ?experiment=identical&numbers=1": {
        "a guess": Walk("lab_guess_", play_training(radio("heads differ"))),
        "seeds side by side": Walk("lab_beside", run_training(radio("2"))),
        "a run of one's own": Walk("lab_run", run_training(after(types("Steps", "20"), button("Run")))),
    },
    "/?model=toy&off=L0H1": {
        "a way": Walk("how", choosing(radio("uniform attention"))),
        "one at random": Walk("at_random", choosing(button("Pick a random head"))),
        "a whole layer": Walk("off_layer", choosing(box("Add a layer", "L1"))),
        "all on": Walk("all_on", choosing(lambda page: page.locator(".st-key-all_on button").click())),
        "a head of the menu": Walk("off", choosing(box("Heads switched off", "L0H"))),
        "a sentence": Walk("mha_sentence.read", types("Sentence", "The cat sleeps .")),
        "another text": Walk("how", choosing(radio("another text"))),
        "the words of the other text": Walk(
            "from", types("Type the other text, then press Enter", "The girl sleeps .")
        ),
    },
    "/?model=toy&off=L0H1.L1H1": {
        "every head on": Walk("switch_on", lambda page: page.locator(".st-key-switch_on button").click()),
    },
    "/?model=toy&off=none": {
        "a guess": Walk("guess", button("Watch a prediction change (toy model)")),
        "a word to follow": Walk("word_", choosing(types("Word to score", "sees"))),
        "a second text": Walk("second_text_", choosing(types(SECOND_TEXT, "the cat sleeps ."))),
        "one text of two": Walk("in", choosing(radio("the first"))),
    },
    "/?model=toy&off=L0H1&how=text&from=": {"the end": Walk("ended", button("Switch all heads back on"))},
    "/why_heads_differ?experiment=tasks": {
        "a task": Walk("small_task", radio("2")),
        "an answer": Walk("small_answer", lambda page: page.locator(".st-key-small_answer button").first.click()),
        "the task after it": Walk("mha_player.next", lambda page: page.locator(".mha-player .next").click()),
        "another task": Walk("small_task", radio("1")),
        "a head of a task": Walk("link:?head.model.text", link("in Explore")),
    },
    "/about": {
        "a chapter": Walk("mha_scheme.linked:chapter", link_exactly("Glossary")),
        "another chapter": Walk("chapter", box("Chapter", "Limits")),
        "no chapter": Walk("mha_scheme.linked:chapter", link("What the pictures show")),
        "for a class": Walk("mha_more.class", more("Class view")),
        "a view of a lesson": Walk("lesson_add", ADDED),
        "another view of a lesson": Walk("lesson_add", ADDED_AGAIN),
        "the view before": Walk("lesson_1", button("← Back")),
        "no view of a lesson": Walk("lesson_remove_", DROPPED),
        "out of the class": Walk("class_out", button("Leave the class view")),
        "another page": Walk("link:?head.pin", link("Open it in Explore")),
    },
}
# Sections that are opened before a walk begins. The address does not contain whether they are open.
FIRST: Mapping[str, Act] = {
    "/compare?show=word": unfolds("Which heads carry the difference?"),
    "/why_heads_differ?experiment=random": unfolds("Are layers parallel"),
    "/why_heads_differ?experiment=count": unfolds("What does it cost"),
    "/why_heads_differ?experiment=cut": unfolds("Is a head like a kernel"),
    "/roles?model=toy&corpus=file": measure_files(
        "The dog sleeps.\nThe girl sees the cat.\n", "The cat sees the dog.\n"
    ),
}
# Walks that open a section and leave the page at once; coming back finds the section collapsed.
FOLDED = tuple(f"/why_heads_differ?experiment={name}" for name in ("random", "count", "cut"))
FEW: Mapping[str, tuple[str, ...]] = {  # actions of each page in the default run
    "/": ("a sentence", "a held word", "special tokens", "a compared head"),
    f"/compare?show=tray&tray={COMPARED}": ("a difference", "a removed panel", "a layer", "a head on its page"),
    "/roles?model=toy": ("a kind",),
    "/why_heads_differ?experiment=toy": ("a step",),
    "/why_heads_differ?experiment=tasks": ("a task", "an answer"),
}
