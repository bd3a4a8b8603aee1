"""A visitor's session without a browser: messages to the server, the URL, drawings and texts."""

from __future__ import annotations

import json
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BidiComponent_pb2 import BidiComponent
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from mha_viz.app.service import caches
from mha_viz.app.service.caches import Once
from mha_viz.app.service.reader import Reader
from mha_viz.app.widgets.navigation import PENDING_PAGE_KEY
from mha_viz.app.widgets.parts import UNEXPECTED
from mha_viz.files.assets import page_files, redirect_address
from tests.copies import CopiesOfThis
from tests.packets import Unpacked, unpack
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
TEXT_ELEMENTS = ("text", "markdown", "error", "warning", "info", "caption")  # kinds of elements with text for visitors

# AppTest scans all installed packages for every session, which takes longer than running a page.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


class _CopiedReader(Reader):
    """A reader whose processes are forks of this one, which has already imported the libraries."""

    def __init__(self) -> None:
        super().__init__()
        self._starter: Any = CopiesOfThis()


# Applies to all tests of this process, including modules that do not import this one. Tests that need another reader
# make one.
caches._get_reader = Once(_CopiedReader)


def _split_packet(data: bytes) -> tuple[bytes, bytes]:
    """Split the explorer's data into the packet and the roles; the length of the roles is at the end."""
    begin = len(data) - 4 - int.from_bytes(data[-4:], "little")
    return data[:begin], data[begin:-4]


class PageSession:
    """One visitor's session on the page."""

    def __init__(self, url: dict[str, Any] | None = None, page: str | None = None) -> None:
        self.at = AppTest.from_file(ROOT / "app.py", default_timeout=PATIENCE)
        name, url = redirect_address(
            Path(page or "").stem.partition("_")[2], url or {}
        )  # as the server does for old addresses
        for parameter, value in url.items():
            self.at.query_params[parameter] = value
        if page:
            self.at.switch_page(str(page_files()[name]))
        self.at.run()
        self.check()

    def check(self) -> None:
        """Check that the run had no error.

        If the page asks the browser to follow a link at once, follow it.
        """
        self._check()
        if PENDING_PAGE_KEY in self.at.session_state:
            link = self.at.get("page_link")[0].proto
            self.at.query_params.clear()
            self.at.query_params.update(parse_qsl(link.query_string))
            self.at.switch_page(str(page_files()[link.label.replace(" ", "_")])).run()
            self._check()
        assert PENDING_PAGE_KEY not in self.at.session_state

    def _check(self) -> None:
        assert not self.at.exception, [e.value for e in self.at.exception]
        assert UNEXPECTED not in self.said, self.said

    def send(self, component: str, event: str, value: object) -> None:
        """Send the message of a component's event like the browser.

        Messages of the explorer that have fields also name the drawn reading.
        """
        name = _make_trigger_id(self._drawn()[component].id, "events")
        sent = json.dumps([{"event": event, "value": self.add_reading_key(component, value)}])
        self.at._run(WidgetStates(widgets=[WidgetState(id=name, json_trigger_value=sent)]))
        self.check()

    def add_reading_key(self, component: str, value: object) -> object:
        """Return the value of a message, completed by the key of the drawn reading if the value has fields."""
        picture = self.picture if component == "mha_explorer" and isinstance(value, dict) else None
        return {"of": picture.header["of"], **value} if picture is not None else value  # type: ignore[dict-item]

    def forge(self, widget: str, **value: Any) -> None:
        """Send a value of a wrong type to the widget with this id, as no browser does."""
        self.at._run(WidgetStates(widgets=[WidgetState(id=widget, **value)]))

    def pick(self, chart: str, *points: dict[str, object]) -> None:
        """Click marks of the chart with this key."""
        name = next(c.proto.id for c in self.at.get("plotly_chart") if c.proto.id.endswith(f"-{chart}"))
        sent = json.dumps({"selection": {"points": list(points), "point_indices": [], "box": [], "lasso": []}})
        self.at._run(WidgetStates(widgets=[WidgetState(id=name, string_value=sent)]))
        self.check()

    def open_numbers(self) -> PageSession:
        """Open *Numbers* on Roles and return this session."""
        return self.unfold("numbers")

    def unfold(self, key: str) -> PageSession:
        """Open the expander with this key and return this session."""
        self.at.session_state[key] = True
        self.at.run()
        self.check()
        return self

    def view(self, **changes: object) -> None:
        """Change the view of the drawing."""
        self.send("mha_explorer", "view", {"of": self.shown().header["of"], **changes})

    def read(self, text: str, pair: str = "") -> None:
        self.send("mha_sentence", "read", {"text": text, "pair": pair})

    @property
    def url(self) -> dict[str, str]:
        parameters = self.at.query_params
        return {name: v if isinstance(v, str) else v[-1] for name, v in parameters.items()}

    @property
    def typed(self) -> dict[str, Any]:
        """The data of the sentence component."""
        data: dict[str, Any] = json.loads(self._drawn()["mha_sentence"].json)
        return data

    @property
    def shared(self) -> dict[str, str]:
        """The parameters that a copied link adds to the address; empty if no link can be copied."""
        drawn = self._drawn().get("mha_more")
        full: dict[str, str] = json.loads(drawn.json)["full"] if drawn else {}
        return full

    @property
    def picture(self) -> Unpacked | None:
        drawn = self._drawn().get("mha_explorer")
        return unpack(_split_packet(drawn.bytes)[0]) if drawn else None

    @property
    def badges(self) -> dict[str, Any]:
        """The explorer's data about the roles of heads."""
        roles: dict[str, Any] = json.loads(_split_packet(self._drawn()["mha_explorer"].bytes)[1])
        return roles

    @property
    def reasons(self) -> dict[str, Any] | None:
        """The last explanation of links; empty if there is none yet, None if the page cannot explain links."""
        drawn = self._drawn().get("mha_reasons")
        return json.loads(drawn.json) if drawn else None

    @property
    def said(self) -> str:
        """All texts of the page outside the drawings."""
        by_kind: dict[str, list[Any]] = {kind: [] for kind in ("html", *TEXT_ELEMENTS)}
        for element in self.at._tree:  # cached, because it is read after every run
            if element.type in by_kind:
                by_kind[element.type].append(element)
        pieces = [e.proto.body for e in by_kind["html"]]
        notes = [unescape(p) for p in pieces if p.startswith(('<div class="mha-problem"', '<div class="mha-remark"'))]
        return "\n".join([*notes, *(str(e.value) for kind in TEXT_ELEMENTS for e in by_kind[kind])])

    def shown(self) -> Unpacked:
        picture = self.picture
        assert picture is not None, f"no drawing; page: {self.said}"
        return picture

    def _drawn(self) -> dict[str, BidiComponent]:
        return {c.proto.component_name: c.proto for c in self.at.get("bidi_component")}


def press(session: PageSession, key: str) -> None:
    """Press a button."""
    session.at.button(key=key).click().run()
    session.check()
