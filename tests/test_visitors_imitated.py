"""The visitors of the load benchmark: their sentences are new, and their actions are verified."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks import soak
from benchmarks.visitors import SHARES, Visitor, draw_sentence
from tests.app_server import AppServer
from tests.web_session import WebSession, run


def test_sentences_are_new_and_as_long_as_wanted() -> None:
    random = Random(1)
    sentences = [draw_sentence(random) for _ in range(2_000)]
    assert len(set(sentences)) == len(sentences)
    lengths = {len(text.split()) for text in sentences}
    assert lengths == set(range(6, 26))
    assert [draw_sentence(Random(1)) for _ in range(2)] == [sentences[0]] * 2, "The seed says which sentence comes."


@pytest.mark.slow
def test_a_visitor_does_each_thing_and_notices_what_was_not_done(server: AppServer) -> None:
    async def visit() -> None:
        async with WebSession(server.url, light=True) as session:
            visitor = Visitor(session, Random(1))
            for name in SHARES:
                assert await visitor.perform(name) > 0
                if session.page:
                    await visitor.perform("back to Explore")
            assert set(session.query) == {"text", "head", "unit"}
            with pytest.raises(RuntimeError, match="does not say"):
                await visitor._change_view("unit", "no unit")

    run(visit())
    assert not server.faults()


@pytest.mark.slow
@pytest.mark.parametrize("name", soak.TASK_FUNCTIONS)
def test_what_visitors_of_the_soak_order_is_on_the_pages(server: AppServer, name: str) -> None:
    async def order() -> None:
        async with WebSession(server.url, light=True) as session:
            for seed in (1, 2):  # again with what the first left in the address
                await soak.TASK_FUNCTIONS[name](session, Random(seed))
            assert not session.exceptions
            assert session.page == ""

    run(order())
    assert not server.faults()
