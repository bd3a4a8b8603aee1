"""Identify visitors: one key for all tabs of a browser, so that the server's capacity is shared fairly.

The key is derived from the address of the connection and the token in Streamlit's XSRF cookie, which every browser gets
with its first page. A class behind one address, or everybody behind one proxy, therefore counts as one visitor per
browser. This is for fairness and not for security: a program can make up tokens, so every queue also limits the number
of its jobs.
"""

from __future__ import annotations

import binascii
import hashlib

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

COOKIE = "_streamlit_xsrf"
TOKEN_BYTES = 16
NOBODY = ""  # the visitor and session of code outside a session: a worker thread, a test, a notebook


def get_visitor() -> str:
    """Return the key of the visitor whose script, callback or fragment runs in this thread: 16 hexadecimal digits.

    Tabs of one browser share it; without a cookie each session counts as a visitor. In a thread without a session it is
    :data:`NOBODY`, so call this before handing work to another thread.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return NOBODY
    address = st.context.ip_address  # None for this machine itself
    network_address = address if isinstance(address, str) else ""
    browser = parse_token(st.context.cookies.get(COOKIE)) or context.session_id.encode()
    return hashlib.sha256(f"{network_address}/".encode() + browser).hexdigest()[:16]


def get_session() -> str:
    """Return the session id of the tab whose script, callback or fragment runs in this thread, or :data:`NOBODY`."""
    context = get_script_run_ctx(suppress_warning=True)
    return NOBODY if context is None else context.session_id


def identify_asker() -> tuple[str, str]:
    """Return :func:`get_visitor` and :func:`get_session`, for queues that serve visitors in turn."""
    return get_visitor(), get_session()


def parse_token(cookie: object) -> bytes:
    """Return the token in an XSRF cookie, "2|mask|masked token|time"; empty if the cookie has another form.

    The mask differs from page to page, the token does not.
    """
    try:
        version, mask, masked_token, _ = str(cookie).strip("\"'").split("|")
        mask_bytes, token_bytes = binascii.unhexlify(mask), binascii.unhexlify(masked_token)
    except ValueError:  # binascii's error is a subclass
        return b""
    if version != "2" or len(mask_bytes) != 4 or len(token_bytes) != TOKEN_BYTES:
        return b""
    return bytes(byte ^ mask_bytes[index % 4] for index, byte in enumerate(token_bytes))
