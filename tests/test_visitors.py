"""The identity of visitors: tabs of one browser are one visitor, browsers behind one address are many."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from mha_viz.app.service import visitors
from mha_viz.app.service.visitors import NOBODY, get_visitor, parse_token


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the session of this thread: its address, cookie and id can be set."""
    asks = SimpleNamespace(address="192.0.2.7", cookie=None, session_id="one")

    class Context:
        @property
        def ip_address(self) -> str | None:
            return asks.address

        @property
        def cookies(self) -> dict[str, str]:
            return {} if asks.cookie is None else {visitors.COOKIE: asks.cookie}

    monkeypatch.setattr(visitors.st, "context", Context())
    monkeypatch.setattr(visitors, "get_script_run_ctx", lambda **_: asks)
    return asks


def test_two_tabs_of_one_browser_are_one_visitor(session: Any) -> None:
    browser, keys = os.urandom(16), set()
    for tab in range(8):
        session.session_id, session.cookie = f"tab {tab}", generate_xsrf_token_string(browser)
        keys.add(get_visitor())
    assert len(keys) == 1


def test_a_hundred_browsers_behind_one_address_are_a_hundred_visitors(session: Any) -> None:
    keys = set()
    for _ in range(100):
        session.cookie = generate_xsrf_token_string()
        keys.add(get_visitor())
    assert len(keys) == 100


def test_one_cookie_at_two_addresses_is_two_visitors(session: Any) -> None:
    session.cookie = generate_xsrf_token_string()
    here = get_visitor()
    session.address = None  # Streamlit's value for the machine itself
    assert get_visitor() != here


@pytest.mark.parametrize("cookie", [None, "", "2|", "3|00|11|4", "2|zz|zz|1", "2|00000000|00|1", "2|é|é|1", "x" * 9000])
def test_without_a_cookie_that_can_be_read_each_session_is_a_visitor(session: Any, cookie: str | None) -> None:
    session.cookie = cookie
    first = get_visitor()
    assert get_visitor() == first
    session.session_id = "two"
    assert get_visitor() != first


def test_the_token_is_what_streamlit_put_into_the_cookie() -> None:
    for _ in range(50):
        browser = os.urandom(16)
        assert parse_token(generate_xsrf_token_string(browser)) == browser
        assert parse_token(f'"{generate_xsrf_token_string(browser)}"') == browser


def test_a_thread_without_a_session_is_nobody() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(get_visitor).result() == NOBODY


def test_the_key_names_neither_address_nor_cookie(session: Any) -> None:
    session.cookie = generate_xsrf_token_string(b"k" * 16)
    assert session.address not in get_visitor()
    assert (b"k" * 16).hex() not in get_visitor()
    assert len(get_visitor()) == 16
