"""Visitors do not disturb each other: files made for downloads stay, and so does what the server caches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import streamlit as st
from streamlit.proto.BackMsg_pb2 import BackMsg

from mha_viz import figures as figure_api
from mha_viz.app.service.caches import Once, get_model_service, load_first_reading
from mha_viz.app.service.jobs import QUEUES
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT
from tests.app_server import AppServer
from tests.web_session import WebSession, run

UNKNOWN_FIELD = (
    b"\xfa\x01\xc8\x01" + b"x" * 200
)  # number 31, of 200 bytes: a message may be as long as its sender likes


# ---- Files that are made on demand -----------------------------------------------------------------------


def test_a_file_waits_for_the_one_who_asked_while_another_visitor_turns_pages(server: AppServer) -> None:
    async def fetched() -> bytes:
        async with WebSession(server.url, "explore", head="L3H1") as one, WebSession(server.url, "about") as other:
            await one.set("download_panel", True)
            address = await one.file_url("take.svg")
            for page in ("inside_a_head", "compare", "about"):
                await other.go(page)
            return await one.http(address)

    assert run(fetched()) == figure_api.heatmap(load_first_reading(), heads=["L3H1"]).to_bytes(".svg")


# ---- Shared caches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", [get_model_service, QUEUES["study"], QUEUES["training"]])
def test_clearing_streamlits_caches_leaves_what_is_kept_for_all(maker: Callable[[], object]) -> None:
    assert isinstance(maker, Once)
    before = maker()
    st.cache_resource.clear()
    st.cache_data.clear()
    assert maker() is before


CLEAR = BackMsg(clear_cache=True).SerializeToString()


def test_no_browser_can_take_a_training_from_another(server: AppServer) -> None:
    """The queue still has the work: another visitor from the same address joins it."""

    async def watch() -> str:
        async with WebSession(server.url, "why_heads_differ", experiment=HEAD_COUNT, numbers="1") as one:
            await one.set(f"lab_{HEAD_COUNT}_steps", EXPERIMENTS[HEAD_COUNT].max_steps)
            await one.press("lab_run")
            async with WebSession(server.url, "about") as other:
                await other.send(CLEAR)
                await other.go("about")
            async with WebSession(server.url, "why_heads_differ") as third:
                await third.visit(one.query_string)
                page_text = "\n".join(third.texts)
            await one.press("lab_stop")
            return page_text

    assert "Until the training is done, the saved default run is shown below." in run(watch())
