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
THINK = (5.0, 10.0)  # seconds between two actions
LATE = 10.0  # seconds after which a URL that does not change counts as a fault
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
_LINKS = "because while although when after before until and but since"
_PLACES = "near behind beside above below beyond inside outside across"
_PAGES = {
    "Compare": "compare",
    "Inside": "inside_a_head",
    "Roles": "roles",
}  # other actions belong to Explore


def draw_sentence(random: Random, words: int | None = None) -> str:
    """Return a random English sentence of 6 to 25 words, practically never the same one twice."""
    count = random.randint(6, 25) if words is None else words
    chain = _draw_clause(random)
    while len(chain) < count:
        chain += random.choice(
            ([_draw_word(random, _LINKS), *_draw_clause(random)], [_draw_word(random, _PLACES), *_draw_noun(random)])
        )
    return f"{' '.join(chain[:count])}.".capitalize()


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
    """One visitor, who does one action after another; each returns its name and how many seconds it took."""

    def __init__(self, session: WebSession, random: Random) -> None:
        self.session, self._random = session, random
        self._text = ""

    def thinks(self) -> float:
        """Return the seconds until the next action."""
        return self._random.uniform(*THINK)

    async def acts(self) -> tuple[str, float]:
        """Do the next action; return its name and its seconds.

        An action on another page includes the way there. Raises RuntimeError if the page shows an error or does not do
        what was requested.
        """
        name = self._random.choices(list(SHARES), list(SHARES.values()))[0]
        if self.session.page and _PAGES.get(name) in (None, self.session.page):
            name = "back to Explore"
        took = await self.does(name)
        if self.session.exceptions:
            raise RuntimeError(f"{name}: {self.session.exceptions[0]}")
        return name, took

    async def does(self, name: str) -> float:
        """Do one of SHARES, or "back to Explore"; the seconds it took."""
        if name == "read a sentence":
            return await self._read()
        if name == "open a head":
            return await self._head()
        if name == "words or pieces":
            return await self._unit()
        return await self.session.go(_PAGES.get(name, ""))

    async def _read(self) -> float:
        self._text = draw_sentence(self._random)
        took = await self.session.trigger("mha_sentence", "read", {"text": self._text, "pair": ""})
        await self._expect("text", self._text)
        return took

    async def _head(self) -> float:
        before = self.session.query.get("head")
        heads = [f"L{layer}H{head}" for layer in range(6) for head in range(12)]
        head = self._random.choice([name for name in heads if name != before])
        return await self._view("head", head)

    async def _unit(self) -> float:
        return await self._view("unit", None if self.session.query.get("unit") else "pieces")

    async def _view(self, name: str, value: str | None) -> float:
        if not self._text:
            return await self._read()
        view = {
            key: shown for key, shown in self.session.query.items() if key in VIEW_PATTERNS
        }  # a drawing sends all of it
        sent = {"of": compute_text_key(self._text, ""), **view, name: value}
        took = await self.session.trigger("mha_explorer", "view", sent)
        await self._expect(name, value)
        return took

    async def _expect(self, name: str, value: str | None) -> None:
        """Check that the URL contains the parameter, at the latest when the next runs have ended.

        Another run of the page that began by itself may end before the requested one.
        """
        end = time.monotonic() + LATE
        while self.session.query.get(name) != value:
            if time.monotonic() > end:
                raise RuntimeError(f"The URL does not say {name}={value} but {self.session.query_string[:200]}.")
            await asyncio.sleep(0.05)
