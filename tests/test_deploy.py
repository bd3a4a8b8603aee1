"""The shipped deployment is consistent with itself, the image and the code: ports, settings, folders, versions."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from mha_viz.cli import main
from mha_viz.models.getting import catalog
from tests.deploy.image import ROOT, list_texts, read_environment

DEPLOY = ROOT / "deploy"
NGINX = (DEPLOY / "nginx.conf").read_text("utf-8")
PORT = list_texts("EXPOSE")[0]
FINAL = 1
BY_PLACE = ("MHA_VIZ_PROXIES", "STREAMLIT_SERVER_COOKIE_SECRET")  # differ from one place to another
PLACE = "heads.example.org"


@cache
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return read


def test_no_log_grows_without_end() -> None:
    for name, service in compose()["services"].items():
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}, name


@cache
def kubernetes() -> dict[str, dict[str, Any]]:
    """One object of each kind, and Traefik's middlewares by name."""
    objects = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    named = {each["metadata"]["name"] if each["kind"] == "Middleware" else each["kind"]: each for each in objects}
    assert len(named) == len(objects)
    return named


def route_of_the_gateway_api() -> dict[str, Any]:
    """What a comment of the manifest offers in place of Traefik's objects."""
    text = (DEPLOY / "kubernetes.yaml").read_text("utf-8")
    lines = text[text.index("#   apiVersion: gateway") :].splitlines()
    read: dict[str, Any] = yaml.safe_load("\n".join(line.removeprefix("#   ") for line in lines))
    return read


def pod(kind: str) -> dict[str, Any]:
    read: dict[str, Any] = kubernetes()[kind]["spec"]["template"]["spec"]
    return read


def container(kind: str) -> dict[str, Any]:
    [only] = pod(kind)["containers"]
    read: dict[str, Any] = only
    return read


def settings() -> dict[str, dict[str, str]]:
    """The settings of the app in each place, by the place's name; values from a Secret are left out."""
    services = {name: service["environment"] for name, service in compose()["services"].items() if name != "proxy"}
    pods = {kind: {e["name"]: e.get("value", "") for e in container(kind)["env"]} for kind in ("Deployment", "Job")}
    return services | pods


# ---- Settings, ports, folders


@pytest.mark.parametrize("place", ["one", "two", "download", "Deployment", "Job"])
def test_what_is_set_is_read_by_somebody(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit import config

    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "mha_viz").rglob("*.py"))
    of_streamlit = {option.env_var for option in config._config_options_template.values()}
    for name, value in settings()[place].items():
        assert name in of_streamlit or f'"{name}"' in code, name
        assert isinstance(value, str), f"{name} is no text"
    monkeypatch.setenv("MHA_VIZ_MODELS", settings()[place]["MHA_VIZ_MODELS"])
    assert catalog.list_offered()


def test_the_same_is_set_in_every_process() -> None:
    places = settings()
    assert places["one"] == places["two"]
    assert set(places["Deployment"]) == set(places["one"])
    theirs = {name: value for name, value in places["Deployment"].items() if name not in BY_PLACE}
    assert theirs == {name: value for name, value in places["one"].items() if name not in BY_PLACE}
    assert "COOKIE_SECRET:?" in places["one"]["STREAMLIT_SERVER_COOKIE_SECRET"]
    secret = next(e for e in container("Deployment")["env"] if e["name"] == "STREAMLIT_SERVER_COOKIE_SECRET")
    assert secret["valueFrom"]["secretKeyRef"] == {"name": "mha-viz", "key": "cookie-secret"}


def test_ports_and_paths_agree() -> None:
    assert read_environment(FINAL)["PORT"] == PORT
    assert re.findall(r"server (\w+):(\d+);", NGINX) == [("one", PORT), ("two", PORT)]
    [port] = container("Deployment")["ports"]
    assert str(port["containerPort"]) == PORT
    [service_port] = kubernetes()["Service"]["spec"]["ports"]
    base = settings()["one"]["STREAMLIT_SERVER_BASE_URL_PATH"]
    [route] = kubernetes()["IngressRoute"]["spec"]["routes"]
    assert route["match"] == f"Host(`{PLACE}`) && PathPrefix(`/{base}`)"
    assert [(each["name"], each["port"]) for each in route["services"]] == [("mha-viz", service_port["name"])]
    assert {each["name"] for each in route["middlewares"]} <= kubernetes().keys()
    other = route_of_the_gateway_api()["spec"]
    assert other["rules"][0]["matches"] == [{"path": {"type": "PathPrefix", "value": f"/{base}"}}]
    assert other["rules"][0]["backendRefs"] == [{"name": "mha-viz", "port": service_port["port"]}]
    assert service_port["targetPort"] == port["name"]
    assert f"location /{base}/ {{" in NGINX
    assert f"location = /{base}/_stcore/stream" in NGINX
    names = {*other["hostnames"], *re.findall(r"server_name (\S+);", NGINX), settings()["one"]["MHA_VIZ_HOSTS"]}
    assert names == {PLACE}
    assert "command" not in compose()["services"]["one"], "the image's own"
    assert "command" not in container("Deployment")


def test_the_proxy_that_is_believed_is_the_proxy() -> None:
    services = compose()["services"]
    addresses = [services[name]["networks"]["inside"]["ipv4_address"] for name in ("proxy", "one", "two")]
    assert settings()["one"]["MHA_VIZ_PROXIES"] == addresses[0]
    assert len(set(addresses)) == 3
    assert compose()["networks"]["inside"]["internal"] is True
    assert "X-Forwarded-For $remote_addr;" in NGINX


def test_models_are_read_only_but_for_who_downloads_them() -> None:
    given = read_environment(FINAL)
    cache_, measured = given["HF_HUB_CACHE"], given["MHA_VIZ_HOME"]
    services = compose()["services"]
    assert services["one"]["volumes"] == [f"models:{cache_}:ro", f"measured:{measured}"]
    assert services["download"]["volumes"] == [f"models:{cache_}"]
    mounts = {kind: {m["mountPath"]: m for m in container(kind)["volumeMounts"]} for kind in ("Deployment", "Job")}
    assert set(mounts["Deployment"]) == {cache_, measured, "/tmp"}
    assert mounts["Deployment"][cache_]["readOnly"] is True
    assert "readOnly" not in mounts["Job"][cache_]
    for kind in mounts:
        [claim] = [v["persistentVolumeClaim"] for v in pod(kind)["volumes"] if v["name"] == "models"]
        assert claim["claimName"] == kubernetes()["PersistentVolumeClaim"]["metadata"]["name"]
        assert {m["name"] for m in mounts[kind].values()} == {v["name"] for v in pod(kind)["volumes"]}


def test_a_download_is_a_reading_on_the_command_line(tmp_path: Path) -> None:
    job = container("Job")["command"]
    service = [*compose()["services"]["download"]["entrypoint"], "toy"]
    assert job[:-1] == service[:-1]
    assert catalog.resolve(job[-1]).kind == "hub"
    program, *words = service
    assert program == "mha-viz"
    out = words.index("--out") + 1
    assert words[out].startswith("/tmp/")
    words[out] = str(tmp_path / "weights.npz")
    assert main(words) == 0


# ---- Bounds


@pytest.mark.parametrize("name", ["one", "two", "proxy"])
def test_services_are_bounded_and_can_write_nowhere_else(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["ulimits"] == {"nofile": 65536}
    if name != "proxy":
        assert service["user"] == list_texts("USER")[-1]
        assert service["init"] is True
    places = [place.partition(":") for place in service["tmpfs"]]  # an unquoted comma makes two values of one
    assert [place for place, _, _ in places] == (["/var/cache/nginx", "/run"] if name == "proxy" else ["/tmp"])
    assert all("size=" in options for _, _, options in places)


def test_nginx_writes_where_only_root_makes_folders_and_its_header_makes_them() -> None:
    """A fixed name in /tmp could be made first by anybody, with links in it."""
    [made] = re.findall(r"(?m)^#   mkdir -p (\S+)$", NGINX)
    directives = r"(?m)^\s*(?:pid|\w+_temp_path|proxy_cache_path|error_log|access_log) ([^\s;]+)"
    written = re.findall(directives, NGINX)
    assert len(written) == 9
    parents = {Path(path).parent.as_posix() for path in written}
    assert parents == {made, "/run", "/dev"}, "nginx makes no parents"
    assert made.startswith("/var/cache/")


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_pods_are_bounded_and_can_write_nowhere_else(kind: str) -> None:
    user, _, group = list_texts("USER")[-1].partition(":")
    who = pod(kind)["securityContext"]
    assert (who["runAsUser"], who["runAsGroup"], who["runAsNonRoot"]) == (int(user), int(group), True)
    assert container(kind)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(kind)["resources"]["limits"]["memory"]


def test_replicas_are_asked_whether_they_answer() -> None:
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container("Deployment")[probe]["exec"]["command"] == ["healthy"]
    labels = kubernetes()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert kubernetes()["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert kubernetes()["Service"]["spec"]["selector"] == labels
    assert kubernetes()["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert kubernetes()["Deployment"]["spec"]["replicas"] > 1


def test_no_proxy_writes_a_sentence_down() -> None:
    """The URL contains it, so neither the whole request nor the referrer may be logged, at any level that includes
    them."""
    [layout] = re.findall(r"log_format paths ([^;]+);", NGINX)
    assert not re.search(r"\$(request|request_uri|uri|args|query_string|http_referer|is_args)\b", layout)
    assert re.findall(r"^\s*access_log (.+);", NGINX, re.MULTILINE) == ["/dev/stdout paths"]
    assert re.findall(r"^\s*error_log (.+);", NGINX, re.MULTILINE) == ["/dev/stderr emerg"]


def test_a_browser_stays_at_one_replica_and_nothing_rests_on_a_retired_controller() -> None:
    assert "Ingress" not in kubernetes()
    [route] = kubernetes()["IngressRoute"]["spec"]["routes"]
    cookie = route["services"][0]["sticky"]["cookie"]
    assert cookie == {"name": "mha_process", "secure": True, "httpOnly": True, "sameSite": "lax"}
    persistence = route_of_the_gateway_api()["spec"]["rules"][0]["sessionPersistence"]
    assert persistence == {"type": "Cookie", "sessionName": cookie["name"]}


def test_only_the_proxy_reaches_a_replica_and_it_reaches_nothing() -> None:
    policy = kubernetes()["NetworkPolicy"]["spec"]
    labels = kubernetes()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["egress"] == []
    [rule] = policy["ingress"]
    assert rule["ports"] == [{"port": container("Deployment")["ports"][0]["name"]}]
    [who] = rule["from"]
    assert set(who) == {"namespaceSelector", "podSelector"}, "both hold for one pod"


# ---- What is installed


def locked(file: str) -> dict[str, str]:
    """Versions by name; every package has a hash."""
    text = (DEPLOY / file).read_text("utf-8")
    blocks = re.split(r"\n(?=[a-z0-9])", "\n" + re.sub(r"(?m)^#.*\n", "", text))[1:]
    for block in blocks:
        assert re.fullmatch(r"\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n?", block), block[:80]
    return dict(block.split()[0].split("==") for block in blocks)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_is_in_step_with_the_requirements() -> None:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    asked = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pinned = {canonical(name): version for name, version in asked.items()}
    pinned.pop("torch")  # from a separate index
    held = locked("requirements.lock")
    assert {name: held.get(name) for name in pinned} == pinned
    assert not [name for name in held if name.startswith(("torch", "nvidia", "cuda", "triton"))]


def test_the_lock_is_complete() -> None:
    """Every package that a locked one needs, by name, as far as this environment has the locked version, because a
    later version's requirements say nothing about the lock."""
    from importlib.metadata import distributions, requires

    from packaging.requirements import Requirement

    here = {canonical(package.name): package.version for package in distributions()}
    held = locked("requirements.lock") | {"torch": here["torch"]}
    linux = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "extra": ""}
    same = [name for name, locked_version in held.items() if here.get(name) == locked_version]
    assert {"streamlit", "transformers", "torch", "pandas"} <= set(same)
    for name in same:
        for line in requires(name) or []:
            requirement = Requirement(line)
            cuda = canonical(requirement.name).startswith(("nvidia", "cuda", "triton"))
            if not cuda and (requirement.marker is None or requirement.marker.evaluate(linux)):
                assert canonical(requirement.name) in held, f"{name} needs {requirement.name}"


def test_the_build_s_own_tools_are_locked() -> None:
    assert "hatchling" in locked("build.lock")


@pytest.mark.parametrize("file", ["requirements.lock", "build.lock"])
def test_a_lock_names_no_index(file: str) -> None:
    assert not re.search(r"://|--index|--find-links", (DEPLOY / file).read_text("utf-8"))


# ---- The health check


@contextmanager
def answering(path: str, body: bytes) -> Iterator[int]:
    """A server that answers one path with ``body``; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == path else 404)
            self.end_headers()
            self.wfile.write(body if self.path == path else b"no")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def healthy(port: int, base: str = "") -> bool:
    given = os.environ | {"PORT": str(port), "STREAMLIT_SERVER_BASE_URL_PATH": base}
    return subprocess.run([DEPLOY / "healthy"], env=given, capture_output=True, check=False).returncode == 0


def test_health_is_the_body_of_the_answer() -> None:
    with answering("/_stcore/health", b"ok") as port:
        assert healthy(port)
        assert not healthy(port, "heads")
    with answering("/heads/_stcore/health", b"ok") as port:
        assert healthy(port, "heads")
        assert healthy(port, "/heads")
    with answering("/_stcore/health", b"<!doctype html>") as port:
        assert not healthy(port)
    assert not healthy(port), "nobody listens any more"


# ---- The documentation


def test_every_setting_for_strangers_is_written_down_where_it_is_looked_for() -> None:
    names = ("MODELS", "ACCESS", "SESSIONS", "SESSIONS_PER_ADDRESS", "DISK_MB", "DOWNLOADS_MB", "HOSTS", "PROXIES")
    for file in ("docs/hosting.md", "SECURITY.md"):
        text = (ROOT / file).read_text("utf-8")
        assert [name for name in (*names, "FRAMES") if f"`MHA_VIZ_{name}`" not in text] == [], file


def test_documents_link_to_files_that_exist() -> None:
    for file in (ROOT / "docs" / "hosting.md", ROOT / "SECURITY.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", file.read_text("utf-8")):
            assert (file.parent / link).exists(), link
