"""The catalogue: its rows, and what a typed name may refer to."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.errors import ModelError, ModelNotAllowed, ModelUnsupported, SettingError, UnknownModel
from mha_viz.models.getting import catalog, storage
from mha_viz.models.getting.catalog import CATALOG, Model, list_offered, resolve
from mha_viz.models.getting.folder import check_folder
from mha_viz.models.getting.storage import WEIGHTS_FILE

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
    monkeypatch.delenv(catalog.ACCESS, raising=False)


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
    for row in list_offered():
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


def test_a_hostile_name_is_refused_before_the_disk_is_touched() -> None:
    seen: list[str] = []
    watched = ""

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watched and event in ("open", "os.listdir", "os.scandir", "socket.connect", "socket.getaddrinfo"):
            seen.append(f"{event}: {watched}")

    sys.addaudithook(watch)  # for good: there is no way to remove it
    for name in HOSTILE:
        watched = ascii(name)
        try:
            with pytest.raises(UnknownModel) as caught:
                resolve(name)
        finally:
            watched = ""
        message = str(caught.value)
        assert message.encode()
        assert not any(c in message for c in "\0\r\n"), name
        assert "a" * 61 not in message
    assert seen == []


def test_a_hostile_name_is_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(path: Path, **_: object) -> bool:
        raise AssertionError(f"looked up {path!r}")

    monkeypatch.setattr(Path, "is_file", touched)
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


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder that looks like that of a model."""
    return model_at(tmp_path / "mine")


def model_at(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", WEIGHTS_FILE):
        (folder / name).write_text("{}")
    return folder


def test_a_folder_must_exist_and_be_spelled_as_one(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (str(mine), "./mine", "~/mine"):
        model = resolve(name)
        assert (model.kind, model.name, model.label) == ("folder", name, "mine")
        assert Path(model.path) == mine
    assert resolve("mine").kind == "hub"
    for name in (str(tmp_path / "absent"), str(tmp_path / "file"), "./absent"):
        with pytest.raises(UnknownModel):
            resolve(name)


def test_a_folder_without_a_model_and_no_folder_are_told_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a message contains the beginning of a long path
    Path("there").mkdir()
    answers = set()
    for name in ("there", "gone"):
        with pytest.raises(UnknownModel) as caught:
            resolve(f"./{name}")
        answers.add(str(caught.value).replace(name, "it"))
    assert len(answers) == 1


def test_the_account_is_named_in_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(model_at(tmp_path / "miller")))
    model = resolve("~/")
    assert "miller" not in model.label
    with pytest.raises(ModelError) as caught:
        check_folder(Path(model.path), model)
    assert "miller" not in str(caught.value)


def fake_account(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", folder)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"HF_HOME": "~/x"},
        {"XDG_CACHE_HOME": "/y"},
        {"HUGGINGFACE_HUB_CACHE": "/z"},
        {"HF_HOME": "/x", "HF_HUB_CACHE": "$HOME/cache"},
    ],
)
def test_the_cache_lies_where_its_library_puts_it(setting: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    fake_account(monkeypatch, "/home/someone")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.find_spec("huggingface_hub.constants")
    assert spec is not None
    assert spec.loader is not None
    constants = importlib.util.module_from_spec(spec)  # reads the environment when it is imported
    spec.loader.exec_module(constants)
    assert str(storage.find_cache_root()) == constants.HF_HUB_CACHE


# ---- a public server ------------------------------------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with GPT-2 and an incomplete RoBERTa."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for hub_id in ("openai-community/gpt2", "FacebookAI/roberta-base"):
        place, commit = storage.find_model_storage(hub_id), "0" * 40
        model_at(place / "snapshots" / commit)
        (place / "refs").mkdir()
        (place / "refs" / "main").write_text(commit)
    (storage.find_model_storage("FacebookAI/roberta-base") / "snapshots" / ("0" * 40) / WEIGHTS_FILE).unlink()
    return tmp_path


@pytest.fixture
def here(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.ACCESS, "here")


@pytest.mark.usefixtures("here")
def test_only_what_is_on_this_machine_is_offered() -> None:
    assert catalog.is_hosted()
    assert [m.name for m in list_offered()] == ["minilm", "toy", "repeater", "gpt2"]
    assert resolve("gpt2") is resolve("openai-community/gpt2") is CATALOG["gpt2"]
    assert resolve("toy@400").path == "toy@400"
    assert resolve("toy@400").label == "Toy, after 400 steps of training"
    assert resolve("toy@0").label == "Toy, before training"


@pytest.mark.usefixtures("here")
def test_a_listed_model_that_is_not_here_is_left_out(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, f"roberta-base,gpt2,{mine}")
    assert [m.name for m in list_offered()] == ["gpt2", str(mine)]
    assert resolve(str(mine)).kind == "folder"
    with pytest.raises(ModelNotAllowed):
        resolve("roberta-base")
    monkeypatch.setenv(catalog.SETTING, "roberta-base")
    with pytest.raises(SettingError, match=f"None of the models of {catalog.SETTING}"):
        list_offered()


@pytest.mark.usefixtures("here")
def test_what_is_refused_is_refused_in_one_sentence_and_never_looked_up(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*asked: object, **_: object) -> None:
        raise AssertionError(f"looked up {asked!r}")

    refused = (str(mine), f"{mine}-not-there", "~/", "/", "./x", "someone/else", "gpt-2", *HOSTILE)
    answers = set()
    with monkeypatch.context() as trap:
        for name in ("stat", "lstat", "open", "listdir", "scandir", "readlink"):
            trap.setattr(os, name, touched)
        for name in ("is_dir", "is_file", "exists", "stat", "open", "expanduser", "read_text"):
            trap.setattr(Path, name, touched)
        trap.setattr(socket, "getaddrinfo", touched)
        trap.setattr(socket.socket, "connect", touched)
        for name in refused:
            with pytest.raises(ModelNotAllowed) as caught:
                resolve(name)
            answers.add(str(caught.value).replace(catalog.quote(name.strip(" ")), "it"))
        with pytest.raises(AssertionError, match="looked up"):  # the traps work
            resolve("gpt2")
    assert answers == {"This server does not offer it. Choose one from the list."}


@pytest.mark.usefixtures("here")
def test_a_row_that_is_not_here_is_refused_like_any_other_name() -> None:
    for name in ("roberta-base", "bert-base-cased", "google-bert/bert-base-cased", "toy@401"):
        with pytest.raises(ModelNotAllowed, match=r"Choose one from the list\."):
            resolve(name)


@pytest.mark.parametrize("value", ["closed", "HERE", "1", "open,here"])
def test_a_wrong_access_is_named_and_never_opens_the_server(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.ACCESS, value)
    for question in (list_offered, catalog.is_hosted, lambda: resolve("gpt2")):
        with pytest.raises(SettingError, match=f"{catalog.ACCESS} is “{value}”"):
            question()


@pytest.mark.parametrize("value", ["", " ", "open"])
def test_an_open_server_allows_everything(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.ACCESS, value)
    assert not catalog.is_hosted()
    assert list_offered() == tuple(CATALOG.values())


def test_a_server_with_a_list_offers_it_and_nothing_else(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, f" gpt2, minilm,prajjwal1/bert-tiny,gpt2,{mine}")
    assert catalog.is_hosted()
    assert [m.name for m in list_offered()] == ["gpt2", "minilm", "prajjwal1/bert-tiny", str(mine)]
    assert resolve(str(mine)).kind == "folder"
    assert catalog.choose_default().name == "minilm"
    assert resolve("gpt2") is resolve("openai-community/gpt2") is CATALOG["gpt2"]
    for name in ("bert-base-cased", "someone/else", "/", *HOSTILE):
        with pytest.raises(ModelNotAllowed, match="gpt2, minilm"):
            resolve(name)


def test_a_list_without_the_default_begins_with_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "roberta-base,gpt2")
    assert catalog.choose_default().name == "roberta-base"


@pytest.mark.parametrize("value", ["minilm,minilmm,../x", "minilmm", "/no/such/folder", ","])
def test_a_wrong_setting_is_named_and_never_opens_the_server(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, value)
    with pytest.raises(SettingError) as caught:
        list_offered()
    assert catalog.SETTING in str(caught.value)
    assert all(f"“{n}”" in str(caught.value) for n in value.split(",") if n and n != "minilm")
    with pytest.raises(SettingError):
        resolve("gpt2")


def test_a_blank_setting_restricts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.SETTING, "  ")
    assert not catalog.is_restricted()
    assert list_offered() == tuple(CATALOG.values())


def test_a_model_of_the_hub_may_have_a_revision() -> None:
    pythia = resolve("EleutherAI/pythia-70m@step1000")
    assert (pythia.hub_id, pythia.revision) == ("EleutherAI/pythia-70m", "step1000")
    gpt2 = resolve("gpt2@refs/pr/1")
    assert (gpt2.hub_id, gpt2.revision, gpt2.layers) == ("openai-community/gpt2", "refs/pr/1", 12)
    assert gpt2.label == "GPT-2, refs/pr/1"
    for name in (
        "gpt2@",
        "gpt2@../x",
        "gpt2@a//b",
        "gpt2@/x",
        "gpt2@x.lock",
        "a/b@",
        "a/b@c@d",
        "toy@main",
        "minilm@1",
    ):
        with pytest.raises(UnknownModel):
            resolve(name)


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", ["cannot be reached", "Included, without a download: minilm, toy and repeater."]),
        (
            "minlm",
            ["Did you mean minilm? Check the connection", "Included, without a download: minilm, toy and repeater."],
        ),
        ("gpt2", ["“gpt2”", "Included, without a download: minilm, toy and repeater."]),
        ("mini lm", ["is not a model. Did you mean minilm? Choose one of minilm, toy, repeater, bert-base-uncased, "]),
        ("toy@7", ["“toy@7” does not exist. Give toy@ and one of the steps 0, 50"]),
    ],
)
def test_a_model_that_cannot_be_had_names_those_that_come_along(name: str, words: list[str]) -> None:
    import mha_viz as mv

    with pytest.raises(ModelError) as raised:
        mv.load(name)
    for part in words:
        assert part in str(raised.value)
    assert ("Did you mean" in str(raised.value)) is name.startswith("min")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("adapter_config.json", "adapter_model.safetensors"), "LoRA adapter.*Merge it into its model"),
        (("modules.json", "0_Transformer/config.json"), "sentence-transformers.*Give the folder 0_Transformer"),
        (("model-q4_0.gguf",), "GGUF, which are not read.*made from"),
    ],
)
def test_a_model_of_another_form_is_refused_with_the_way_on(
    files: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    for name in (str(tmp_path), *(str(tmp_path / file) for file in files if file.endswith(".gguf"))):
        with pytest.raises(ModelUnsupported, match=message):
            catalog.resolve(name)
    with pytest.raises(ModelUnsupported, match=message):
        catalog.check_form(files, "own/model")
    catalog.check_form((*files, "config.json"), "own/model")  # also a model in the usual form
