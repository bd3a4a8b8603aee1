"""The image's Dockerfile, as far as it can be checked without building it; tests/deploy/ builds its wheel."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import PurePosixPath

import pytest
import yaml

from mha_viz.app.serving.settings import from_environment
from mha_viz.models.getting import catalog
from tests.deploy.image import ROOT, list_copied_paths, list_texts, parse_instructions, read_environment

BUILD, FINAL = 0, 1


def test_both_stages_begin_with_one_exact_python() -> None:
    bases = [text.split()[0] for text in list_texts("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", bases[0])


def test_what_is_copied_is_there_and_reaches_the_build() -> None:
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    for path in list_copied_paths():
        assert (ROOT / path).exists(), path
        assert path in let_in
    assert sorted(let_in) == sorted(list_copied_paths()), "the build gets what it copies and nothing else"


def test_all_that_the_wheel_is_made_of_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    hatch = project["tool"]["hatch"]
    wheel = hatch["build"]["targets"]["wheel"]
    needed = [*wheel["packages"], *wheel["force-include"], "pyproject.toml", project["project"]["readme"]]
    needed += [*project["project"]["license-files"], hatch["version"]["path"]]
    places = [PurePosixPath(path) for path in list_copied_paths()]
    for path in map(PurePosixPath, needed):
        assert any(path == place or place in path.parents for place in places), path


def test_each_index_answers_for_its_own_packages_alone() -> None:
    installs = [
        part for line in list_texts("RUN") for part in line.split("&&") if " install " in part and "pip" in part
    ]
    for_torch, *others = [line for line in installs if "dist/" not in line]
    assert "--no-deps --index-url https://download.pytorch.org/whl/cpu" in for_torch
    torch = re.search(r"^torch==\S+$", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert torch
    assert for_torch.strip().endswith("\"$(grep '^torch==' requirements.txt)\"")
    assert len(others) == 2
    for line in others:
        assert "--no-deps --require-hashes --only-binary :all: -r " in line
        assert "index" not in line
    assert "--no-deps" in next(line for line in installs if "dist/" in line)
    assert not [step for step in parse_instructions() if "INDEX" in step.text]


def test_the_final_stage_holds_neither_sources_nor_pip() -> None:
    assert list_texts("COPY", FINAL) == ["--from=build /app /app", "deploy/healthy /app/bin/healthy"]
    assert "--without-pip" in list_texts("RUN", BUILD)[0]
    assert list_texts("RUN", FINAL)[0].startswith("pip uninstall --yes pip ")


def test_the_image_holds_a_bill_of_what_is_in_it() -> None:
    bill = list_texts("RUN", BUILD)[-1].split()
    assert bill[:4] == ["python", "-m", "cyclonedx_py", "environment"]
    assert bill[-2:] == ["/app/mha-viz.cdx.json", "/app/bin/python"], "of what is installed, and copied with it"
    assert "cyclonedx-bom==" in (ROOT / "deploy" / "build.lock").read_text("utf-8")


def test_the_program_runs_as_nobody_of_importance_and_gets_signals() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    program, *_ = next(step for step in parse_instructions() if step.name == "CMD").exec_form
    module, _, function = scripts[program].partition(":")
    assert callable(getattr(import_module(module), function))
    user, _, group = list_texts("USER", FINAL)[-1].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert list_texts("STOPSIGNAL") == ["SIGTERM"]
    assert '["healthy"]' in list_texts("HEALTHCHECK")[0]
    assert (ROOT / "deploy" / "healthy").stat().st_mode & 0o111 == 0o111


def test_it_offers_the_models_that_need_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MHA_VIZ_MODELS", read_environment(FINAL)["MHA_VIZ_MODELS"])
    assert [model.name for model in catalog.list_offered()] == ["minilm", "toy", "repeater"]
    assert "hub" not in {model.kind for model in catalog.list_offered()}


def test_a_read_only_root_is_enough() -> None:
    """Everything that is written goes to /tmp or to the two folders for volumes."""
    given = read_environment(FINAL)
    assert given["PYTHONDONTWRITEBYTECODE"] == "1"
    for name in ("HOME", "MPLCONFIGDIR", "HF_HUB_CACHE", "MHA_VIZ_HOME"):
        assert given[name].split("/")[1] in ("tmp", "models", "measured"), name
    assert list_texts("WORKDIR", FINAL) == ["/"], "where a program starts, nobody may write"
    assert "/models /measured" in list_texts("RUN", FINAL)[0]


@pytest.mark.parametrize("stage", [BUILD, FINAL])
def test_settings_of_the_app_are_settings_that_it_reads(stage: int) -> None:
    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "mha_viz").rglob("*.py"))
    for name in read_environment(stage):
        assert not name.startswith("MHA_VIZ_") or f'"{name}"' in code, name


def test_every_command_of_a_layer_is_correct_shell() -> None:
    for line in list_texts("RUN"):
        checked = subprocess.run(["sh", "-n", "-c", line], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_a_space_is_the_image_with_settings_that_the_server_accepts() -> None:
    heading = (ROOT / "deploy" / "space" / "heading.md").read_text("utf-8")
    facts = yaml.safe_load(heading.split("---\n")[1])
    assert (facts["sdk"], str(facts["app_port"])) == ("docker", read_environment(FINAL)["PORT"])
    lines = (ROOT / "deploy" / "space" / "settings").read_text("utf-8").splitlines()
    given = dict(pair.split("=", 1) for line in lines if line.startswith("ENV ") for pair in line.split()[1:])
    settings = from_environment(given)
    assert settings.frame_ancestors == ("https://huggingface.co",)
    assert settings.hosts
    assert settings.proxies
    assert len(given) == 3
