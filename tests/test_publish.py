"""One page in one file: chosen heads, interactive drawings, and remarks as text."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.app.widgets import download_panel
from mha_viz.errors import ExportError, SettingError
from mha_viz.figures import publication
from mha_viz.figures.publishing import MAX_REMARK, MAX_TITLE
from mha_viz.models.reading.encoder import Encoder
from tests import hostile
from tests.page_session import PageSession

TEXT = "The animal didn't cross the street because it was too tired."
COMPARED = json.dumps({"of": [[TEXT, "", "minilm"]], "heads": [["L3H1", 0, "pronouns"], ["L0H2", 0, ""]]})


@pytest.fixture(scope="module")
def panels(minilm: Encoder) -> list[Any]:
    attention = minilm.encode(TEXT)
    return [(attention, "L3H1", "pronouns"), (attention, "L0H2")]


def test_the_page_holds_each_head_with_its_remark_and_calls_nobody(panels: list[Any], tmp_path: Path) -> None:
    file = mv.publish(panels, tmp_path / "heads.html", title="Two heads", introduction="Read on.", remarks=["Look: it"])
    page = file.read_text("utf-8")
    assert [unescape(h) for h in re.findall("<h[12]>(.*?)</h[12]>", page)] == [
        "Two heads", "Side by side", "L3H1 (4-2): pronouns", "L0H2 (1-3)",
    ]  # fmt: skip
    assert re.findall('<p class="remark">(.*?)</p>', page) == ["Read on.", "Look: it"]
    assert page.count('data-alone="yes"') == 3
    assert not re.search(r"(src|href)=(?!\"data:,)", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("first", range(0, len(hostile.KINDS), 8))
def test_remarks_are_text_and_never_html(panels: list[Any], first: int) -> None:
    remarks = [text[:MAX_REMARK] for text in hostile.KINDS.values()][first : first + 8]
    several = (panels * 4)[: len(remarks)]
    title, introduction = "".join(remark[:12] for remark in remarks), "\n".join(remark[:200] for remark in remarks)
    page = publication(several, title=title[:MAX_TITLE], introduction=introduction, remarks=remarks)
    plain = publication(several, title="a", introduction="a", remarks=["a"] * len(several))
    for tag in (b"<script", b"<img", b"<iframe", b"<a ", b"<style", b"<p", b"</p>", b"<h1"):
        assert page.count(tag) <= plain.count(tag)


def test_what_cannot_be_published_is_said(panels: list[Any], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="3 remarks on 2 heads"):
        mv.publish(panels, tmp_path / "a.html", remarks=["", "", ""])
    with pytest.raises(SettingError, match="2,001 characters"):
        mv.publish(panels, tmp_path / "a.html", introduction="a" * 2001)
    with pytest.raises(ExportError):
        mv.publish(panels, tmp_path / "none" / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_the_app_publishes_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, bytes] = {}

    def keep(label: str, file: str, make: Any, key: str) -> None:
        made[key] = make()

    monkeypatch.setattr(download_panel, "show_download_button", keep)
    here = PageSession({"tray": COMPARED, "special": "hide", "diff": "1-0"}, "pages/20_compare.py")
    here.at.session_state["publish"] = True
    here.at.run()
    here.check()
    here.at.text_area[1].set_value("It finds <b>animal</b>").run()
    here.check()
    page = made["publish_page"].decode()
    assert "It finds &lt;b&gt;animal&lt;/b&gt;" in page
    assert page.index("<h2>L3H1") < page.index("It finds") < page.index("<h2>L0H2")
    assert "special=hide" in page
    assert page.count("diff=1-0") == 1, "side by side"
    here.at.switch_page("pages/10_explore.py").run()
    here.at.switch_page("pages/20_compare.py").run()
    here.at.session_state["publish"] = True
    here.at.run()
    assert here.at.text_area[1].value == "It finds <b>animal</b>"


def test_one_head_of_two_sentences_has_two_remarks_of_different_names() -> None:
    here = PageSession({"head": "L3H1"}, "pages/20_compare.py")
    here.at.session_state["publish"] = True
    here.at.run()
    labels = [area.label for area in here.at.text_area]
    assert labels == ["Introduction", "Remark on panel 1, L3H1 (4-2)", "Remark on panel 2, L3H1 (4-2)"]
