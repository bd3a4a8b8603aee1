"""Simulated visitors of the app: what they type, what they do, how long they think."""

from __future__ import annotations

import asyncio
import time
from random import Random

from mha_viz.app.url.address import VIEW_PATTERNS
from mha_viz.figures.layout.packet import compute_text_key
from tests.web_session import WebSession

# Frequencies of actions, in percent.
SHARES = {"read a sentence": 40, "open a head": 20, "words or pieces": 10, "Compare": 10, "Inside": 10, "Roles": 10}
PAUSE_SECONDS = (5.0, 10.0)  # seconds between two actions
MAX_URL_SECONDS = 10.0  # seconds after which a URL that does not change counts as a fault
_NOUNS = (
    "animal street teacher student dog river doctor letter garden engine pilot window market writer captain kitchen "
    "mountain lawyer bridge painting soldier village farmer station winter hospital journey neighbour picture machine "
    "forest island actor director nurse museum question answer festival guest baker scientist"
)
_VERBS = (
    "crossed watched followed found painted answered opened carried remembered visited repaired described called "
    "helped noticed avoided surprised admired questioned believed trusted warned joined ignored"
)
_ADJECTIVES = (
    "old tired small famous quiet broken green curious heavy distant young careful empty foreign gentle modern "
    "patient narrow strange bright"
)
_CONJUNCTIONS = "because while although when after before until and but since"
_PREPOSITIONS = "near behind beside above below beyond inside outside across"
_PAGES = {
    "Compare": "compare",
    "Inside": "inside_a_head",
    "Roles": "roles",
}  # other actions belong to Explore


def draw_sentence(random: Random, words: int | None = None) -> str:
    """Return a random English sentence of 6 to 25 words, practically never the same one twice."""
    count = random.randint(6, 25) if words is None else words
    forms = _draw_clause(random)
    while len(forms) < count:
        forms += random.choice(
            (
                [_draw_word(random, _CONJUNCTIONS), *_draw_clause(random)],
                [_draw_word(random, _PREPOSITIONS), *_draw_noun(random)],
            )
        )
    return f"{' '.join(forms[:count])}.".capitalize()


def _draw_clause(random: Random) -> list[str]:
    return [
        *_draw_noun(random),
        _draw_word(random, _VERBS),
        *random.choice((_draw_noun(random), [_draw_word(random, "it them")])),
    ]


def _draw_noun(random: Random) -> list[str]:
    return [_draw_word(random, "the the his their our"), _draw_word(random, _ADJECTIVES), _draw_word(random, _NOUNS)]


def _draw_word(random: Random, words: str) -> str:
    return random.choice(words.split())


class Visitor:
    """A simulated visitor, who does one action after another."""

    def __init__(self, session: WebSession, random: Random) -> None:
        self.session, self._random = session, random
        self._text = ""

    def draw_pause(self) -> float:
        """Return the seconds until the next action."""
        return self._random.uniform(*PAUSE_SECONDS)

    async def act(self) -> tuple[str, float]:
        """Do the next action; return its name and its seconds.

        An action on another page includes opening that page. Raises RuntimeError if the page shows an error or does
        not do what was requested.
        """
        name = self._random.choices(list(SHARES), list(SHARES.values()))[0]
        if self.session.page and _PAGES.get(name) in (None, self.session.page):
            name = "back to Explore"
        seconds = await self.perform(name)
        if self.session.exceptions:
            raise RuntimeError(f"{name}: {self.session.exceptions[0]}")
        return name, seconds

    async def perform(self, name: str) -> float:
        """Perform an action of SHARES, or "back to Explore"; return the seconds that it took."""
        if name == "read a sentence":
            return await self._type_sentence()
        if name == "open a head":
            return await self._open_head()
        if name == "words or pieces":
            return await self._toggle_unit()
        return await self.session.go(_PAGES.get(name, ""))

    async def _type_sentence(self) -> float:
        self._text = draw_sentence(self._random)
        seconds = await self.session.trigger("mha_sentence", "read", {"text": self._text, "pair": ""})
        await self._wait_for_parameter("text", self._text)
        return seconds

    async def _open_head(self) -> float:
        previous_head = self.session.query.get("head")
        heads = [f"L{layer}H{head}" for layer in range(6) for head in range(12)]
        head = self._random.choice([name for name in heads if name != previous_head])
        return await self._change_view("head", head)

    async def _toggle_unit(self) -> float:
        return await self._change_view("unit", None if self.session.query.get("unit") else "pieces")

    async def _change_view(self, name: str, value: str | None) -> float:
        if not self._text:
            return await self._type_sentence()
        # A drawing sends its whole view.
        view = {key: view_value for key, view_value in self.session.query.items() if key in VIEW_PATTERNS}
        event = {"of": compute_text_key(self._text, ""), **view, name: value}
        seconds = await self.session.trigger("mha_explorer", "view", event)
        await self._wait_for_parameter(name, value)
        return seconds

    async def _wait_for_parameter(self, name: str, value: str | None) -> None:
        """Wait until the URL contains the parameter. Raises RuntimeError after MAX_URL_SECONDS.

        A run of the page that began by itself may end before the requested one.
        """
        end = time.monotonic() + MAX_URL_SECONDS
        while self.session.query.get(name) != value:
            if time.monotonic() > end:
                raise RuntimeError(f"The URL does not say {name}={value} but {self.session.query_string[:200]}.")
            await asyncio.sleep(0.05)
