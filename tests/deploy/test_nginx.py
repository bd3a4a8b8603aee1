"""Which process nginx asks, with stand-ins for the processes: full ones, dead ones, and both."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

from tests.deploy.image import ROOT
from tests.deploy.site import BASE, HOST, NAMES, Answer, Site, Stub, nginx_program, wait_for

pytestmark = pytest.mark.deploy

STREAM = f"{BASE}/_stcore/stream"
UPLOAD = f"{BASE}/_stcore/upload_file/session/file"
MOST = 400  # requests under way from one address
TRIES = 20  # newcomers are spread by chance: not one of so many at a given process, 1 in a million


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site[Stub]]:
    one, two = map(Stub, NAMES)
    with Site(tmp_path, one, two) as running:
        yield running


def named(answer: Answer) -> str:
    """The process that the answer's cookie names; "" where it sets none."""
    cookies = answer.headers.get_all("Set-Cookie") or []
    return "".join(cookie.partition(";")[0].partition("=")[2] for cookie in cookies if "mha_process=" in cookie)


def test_newcomers_of_a_full_process_go_to_the_other(site: Site[Stub]) -> None:
    site.servers["one"].status = 503
    for _ in range(TRIES):
        answer = site.ask(f"{BASE}/")
        assert (answer.status, answer.body, named(answer)) == (200, b"two", "two")


def test_whoever_is_known_to_a_full_process_is_told_by_it(site: Site[Stub]) -> None:
    site.servers["one"].status = 503
    answer = site.ask(f"{BASE}/", Cookie="mha_process=one")
    assert (answer.status, answer.body, named(answer)) == (503, b"one", "")


def test_when_all_are_full_the_app_says_so(site: Site[Stub]) -> None:
    for stub in site.servers.values():
        stub.status = 503
    for _ in range(TRIES):
        answer = site.ask(f"{BASE}/roles")
        assert answer.status == 503
        assert answer.body.decode() in NAMES


def test_the_cookie_moves_with_the_websocket_alone(site: Site[Stub]) -> None:
    site.servers["one"].close()
    for path, moved in ((f"{BASE}/", ""), (f"{BASE}/media/figure.svg", ""), (STREAM, "two")):
        answer = site.ask(path, Cookie="mha_process=one")
        assert (answer.status, answer.body, named(answer)) == (200, b"two", moved)
    answer = site.ask(STREAM, Cookie="mha_process=two")
    assert (answer.body, named(answer)) == (b"two", "")


def test_newcomers_reach_the_process_that_is_left(site: Site[Stub]) -> None:
    site.servers["two"].close()
    assert {site.ask(f"{BASE}/roles?text=secret").body for _ in range(TRIES)} == {b"one"}
    assert "secret" not in site.wait_for_log(f"{BASE}/roles", TRIES)
    site.servers["one"].status = 503
    assert {site.ask(f"{BASE}/roles").status for _ in range(TRIES)} == {503}, "full and dead: the full one's word"


def test_without_any_process_nothing_is_logged_of_what_was_asked(site: Site[Stub]) -> None:
    for stub in site.servers.values():
        stub.close()
    assert site.ask(f"{BASE}/?text=secret", Referer="https://heads.example.org/heads/?text=secret").status == 502
    assert "secret" not in site.wait_for_log(f"{BASE}/")
    assert f'"GET {BASE}/" 502' in site.nginx_log()


def test_no_path_that_is_a_secret_is_logged(site: Site[Stub]) -> None:
    for path in ("media/secret.svg", "_stcore/upload_file/secret/file", "%5fstcore/upload_file/secret/file"):
        assert site.ask(f"{BASE}/{path}").status == 200
    site.wait_for_log(f"{BASE}/media/...")
    assert "secret" not in site.wait_for_log(f"{BASE}/_stcore/upload_file/...", 2)


def test_the_shipped_file_is_good_after_what_its_header_says(site: Site[Stub], tmp_path: Path) -> None:
    """Nothing is changed but the names of two containers, which no other machine knows, and the certificate's place;
    for an account that is not root, where it writes, too."""
    shipped = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    text = shipped.replace("/etc/nginx/tls/", f"{tmp_path}/")
    for name in NAMES:
        text = text.replace(f"server {name}:8501;", "server 127.0.0.1:8501;")
    [command] = re.findall(r"(?m)^#   (mkdir .+)$", shipped)
    if os.geteuid():
        (tmp_path / "run").mkdir()
        places = (("/run/", f"{tmp_path}/run/"), ("/var/cache/", f"{tmp_path}/cache/"))
        for place, here in places:
            text, command = text.replace(place, here), command.replace(place, here)
    (tmp_path / "shipped.conf").write_text(text, "utf-8")
    subprocess.run(command.split(), check=True)
    test = [nginx_program(), "-t", "-c", str(tmp_path / "shipped.conf")]
    checked = subprocess.run(test, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr


def test_one_address_that_asks_without_end_is_slowed_and_a_bystander_is_not(site: Site[Stub]) -> None:
    count = 1000
    with site.connection() as channel:
        connection = HTTPConnection(HOST)
        connection.sock = channel
        answers: Counter[int] = Counter()
        for _ in range(count):
            connection.request("GET", f"{BASE}/roles")
            answer = connection.getresponse()
            answer.read()
            answers[answer.status] += 1
    assert answers.keys() == {200, 429}
    assert answers[200] >= 600, "a class behind one router opens its tabs at once"
    assert site.ask(f"{BASE}/", source="127.0.0.2").status == 200
    assert site.ask(f"{BASE}/static/js/index.js").status == 200, "what a browser stores is not counted"


def test_half_a_head_is_waited_for_no_longer_than_the_deadline(site: Site[Stub]) -> None:
    with site.connection() as channel:
        channel.sendall(f"GET {BASE}/ HTTP/1.1\r\nHost: {HOST}\r\n".encode())
        assert channel.recv(1) == b"", "closed, and no answer"


def test_what_is_not_below_the_path_is_not_asked_for(site: Site[Stub]) -> None:
    answer = site.ask("/")
    assert (answer.status, answer.headers["Location"]) == (302, f"{BASE}/")
    answer = site.ask(f"{BASE}?text=a%20b")
    assert (answer.status, answer.headers["Location"]) == (302, f"{BASE}/?text=a%20b")
    assert site.ask("/elsewhere").status == 404
    assert site.ask("/headstrong").status == 404


def status(channel: ssl.SSLSocket) -> int:
    """Of the next answer on a connection."""
    return int(channel.recv(1000).split()[1])


@pytest.mark.parametrize(("path", "size"), [(f"{BASE}/", 17_000), (STREAM, 17_000), (UPLOAD, 9_500_000)])
def test_a_body_that_nothing_here_sends_is_refused(site: Site[Stub], path: str, size: int) -> None:
    with site.connection() as channel:
        site.put(channel, path, size)
        assert status(channel) == 413
    assert {stub.asked for stub in site.servers.values()} == {0}


def test_an_upload_is_passed_on_as_it_comes(site: Site[Stub]) -> None:
    part, size = b"x" * 1_000_000, 8_000_000
    stub = site.servers["one"]
    with site.connection() as channel:
        site.put(channel, UPLOAD, size)
        channel.sendall(part)
        wait_for(lambda: stub.received == len(part), "The proxy keeps what was sent.")
        channel.sendall(part * 7)
        assert status(channel) == 200
    assert stub.received == size


def test_one_address_has_no_more_than_its_share_of_requests(site: Site[Stub]) -> None:
    with ExitStack() as waiting:
        for _ in range(MOST - 1):
            site.put(waiting.enter_context(site.connection()), f"{BASE}/", 10)  # and sends nothing of it
        assert site.ask(f"{BASE}/").status == 200
        site.put(waiting.enter_context(site.connection()), f"{BASE}/", 10)
        wait_for(lambda: site.ask(f"{BASE}/").status == 429, "Nobody is refused.")
    wait_for(lambda: site.ask(f"{BASE}/").status == 200, "The address stays refused.")


def test_a_script_is_asked_for_once_and_only_its_plain_name_is_stored(site: Site[Stub]) -> None:
    script = f"{BASE}/static/js/index.B-2_x.js"
    for path, asked in ((script, 1), (f"{script}?1", 3), (script.replace("js/", "js/./"), 5), (f"{script}x", 6)):
        for _ in range(2):
            site.ask(path, Cookie="mha_process=one")
        assert site.servers["one"].asked == asked, path


def test_what_nginx_writes_fits_into_its_memory() -> None:
    proxy = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"]["proxy"]
    tmpfs = next(place for place in proxy["tmpfs"] if place.startswith("/var/cache/nginx:"))
    cache = (ROOT / "deploy" / "nginx.conf").read_text("utf-8").partition("max_size=")[2]
    megabytes = [int(text.partition("m")[0]) for text in (cache, tmpfs.partition("size=")[2], proxy["mem_limit"])]
    assert megabytes == sorted(set(megabytes))
