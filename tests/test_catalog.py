"""The catalogue: rows, and what a typed name may mean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.errors import ModelError, ModelNotAllowed, SettingError, UnknownModel
from mha_viz.models import catalog
from mha_viz.models.catalog import CATALOG, Model, offered, resolve

HOSTILE = (
    "",
    " ",
    "../../etc/passwd",
    "..",
    "a/../b",
    "./../x",
    "http://x",
    "https://huggingface.co/gpt2",
    "file:///etc/passwd",
    "a" * 300,
    "/" + "a" * 299,
    "a\0b",
    "/tmp\0",
    "gpt2\n",
    "/tmp\n",
    "gpt2\r\nHost: x",
    "\ud800",
    "/tmp/\udfff",
    "a/b/c",
    "a--b",
    "-a",
    "a.",
    ".hidden",
    "a.git",
    "café",
    "模型",
    "a b",
    "<script>alert(1)</script>",
    "![](http://x/y.png)",
    "~root/x",
    "C:\\models",
    "\\\\host\\share",
    "?a=b",
    "a%2e%2e",
)


@pytest.fixture(autouse=True)
def _unrestricted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(catalog.SETTING, raising=False)


def test_rows_are_complete_and_cannot_be_changed() -> None:
    assert next(iter(CATALOG)) == catalog.DEFAULT
    for name, row in CATALOG.items():
        assert row.name == name
        assert row.d_model % row.heads == 0
        assert all((row.layers, row.megabytes, row.label, row.note))
        assert row.path if row.kind == "own" else row.hub_id
    with pytest.raises(TypeError):
        CATALOG["x"] = Model("x", "x")  # type: ignore[index]


def test_every_row_resolves_to_itself_by_name_and_by_hub_id() -> None:
    for row in offered():
        assert resolve(row.name) is row
        assert row.kind == "own" or resolve(row.hub_id) is row


@pytest.mark.parametrize("name", [3, None, Path("/tmp")])
def test_a_name_is_text(name: object) -> None:
    with pytest.raises(UnknownModel, match="not the name of a model"):
        resolve(name)  # type: ignore[arg-type]


def test_any_hub_id_is_a_model_whose_shape_is_not_known_yet() -> None:
    model = resolve("  prajjwal1/bert-tiny ")
    assert (model.kind, model.name, model.hub_id) == ("hub", "prajjwal1/bert-tiny", "prajjwal1/bert-tiny")
    assert (model.layers, model.heads, model.d_model) == (0, 0, 0)
    assert resolve("a" * 96).kind == "hub"


@pytest.mark.parametrize("name", HOSTILE, ids=lambda n: ascii(n)[:30])
def test_a_hostile_name_is_refused_before_the_disk_is_touched(name: str) -> None:
    seen: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.listdir", "os.scandir", "socket.connect", "socket.getaddrinfo"):
            seen.append(event)

    sys.addaudithook(watch)
    try:
        with pytest.raises(UnknownModel) as caught:
            resolve(name)
    finally:
        watching = False
    assert seen == []
    message = str(caught.value)
    assert message.encode()
    assert not any(c in message for c in "\0\r\n")
    assert "a" * 61 not in message


def test_a_hostile_name_is_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(path: Path, **_: object) -> bool:
        raise AssertionError(f"looked up {path!r}")

    monkeypatch.setattr(Path, "is_dir", touched)
    for name in HOSTILE:
        with pytest.raises(UnknownModel):
            resolve(name)
    with pytest.raises(AssertionError, match="looked up"):
        resolve("/tmp")  # the trap works


@given(st.text(max_size=400))
def test_any_text_is_a_model_or_a_plain_refusal(name: str) -> None:
    try:
        model = resolve(name)
    except ModelError as error:
        answer = str(error)
    else:
        assert model.kind == "folder" or (model.hub_id.isascii() and ".." not in model.hub_id)
        answer = model.label
    assert answer.isprintable()


def test_a_folder_must_exist_and_be_spelled_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (str(tmp_path / "mine"), "./mine", "~/mine"):
        model = resolve(name)
        assert (model.kind, model.name, model.label) == ("folder", name, "mine")
        assert Path(model.path) == tmp_path / "mine"
    assert resolve("mine").kind == "hub"
    for name in (str(tmp_path / "absent"), str(tmp_path / "file"), "./absent"):
        with pytest.raises(UnknownModel):
            resolve(name)


def test_a_server_with_a_list_offers_it_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, f" gpt2, minilm,prajjwal1/bert-tiny,gpt2,{tmp_path}")
    assert catalog.restricted()
    assert [m.name for m in offered()] == ["gpt2", "minilm", "prajjwal1/bert-tiny", str(tmp_path)]
    assert catalog.default().name == "minilm"
    assert resolve("gpt2") is resolve("openai-community/gpt2") is CATALOG["gpt2"]
    for name in ("bert-base-cased", "someone/else", "/", *HOSTILE):
        with pytest.raises(ModelNotAllowed, match="gpt2, minilm"):
            resolve(name)


def test_a_list_without_the_default_begins_with_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "roberta-base,gpt2")
    assert catalog.default().name == "roberta-base"


@pytest.mark.parametrize("value", ["minilm,minilmm,../x", "minilmm", "/no/such/folder", ","])
def test_a_wrong_setting_is_named_and_never_opens_the_server(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, value)
    with pytest.raises(SettingError) as caught:
        offered()
    assert catalog.SETTING in str(caught.value)
    assert all(f"“{n}”" in str(caught.value) for n in value.split(",") if n and n != "minilm")
    with pytest.raises(SettingError):
        resolve("gpt2")


def test_a_blank_setting_restricts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "  ")
    assert not catalog.restricted()
    assert offered() == tuple(CATALOG.values())


def test_the_menu_needs_no_heavy_library() -> None:
    code = "import sys, mha_viz.models.catalog as c; c.offered(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mha_viz.models.catalog" in modules
    assert not {"torch", "transformers", "huggingface_hub", "streamlit"} & set(modules)
