"""Run nginx with the bundled nginx.conf before two server processes, with TLS and a base path, on free ports."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar
from urllib.error import URLError

import yaml

from tests.deploy.image import ROOT, parse_instructions
from tests.ports import find_free_port
from tests.waiting import PATIENCE

HOST = "heads.example.org"
BASE = "/heads"
NAMES = ("one", "two")
NO_NGINX = """No nginx was found: the tests of the deployment cannot run.
Install it (Debian and Ubuntu: apt-get install nginx; macOS: brew install nginx), then run this again."""


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class Server:
    """One process of the app, as ``mha-viz serve`` runs it; :meth:`kill` ends it with SIGKILL."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.port = find_free_port()
        self._folder = folder
        self._log = folder / f"{name}.log"
        self._settings = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"][name][
            "environment"
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program, *arguments = next(step for step in parse_instructions() if step.name == "CMD").exec_form
        assert program == "mha-viz"
        command = [sys.executable, "-m", "mha_viz.cli", *arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_for(self.healthy, f"The server does not answer:\n{self.log()}")

    def kill(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def healthy(self) -> bool:
        assert self._process
        assert self._process.poll() is None, f"The server ended:\n{self.log()}"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(f"http://127.0.0.1:{self.port}{BASE}/_stcore/health", timeout=5) as answer:
                return bool(answer.read() == b"ok")
        except (URLError, OSError):
            return False

    def log(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def _environment(self) -> dict[str, str]:
        """Return the environment of compose.yaml, with the folders and addresses of this test."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("MHA_VIZ_", "STREAMLIT_"))}
        changes = {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "MHA_VIZ_PROXIES": "127.0.0.1",
            "MHA_VIZ_HOME": str(self._folder / "measured"),
            "HF_HUB_CACHE": str(self._folder / "models"),
            "STREAMLIT_SERVER_COOKIE_SECRET": "one secret for both processes",
            "STREAMLIT_SERVER_HEADLESS": "true",
        }
        return outside | self._settings | changes


class Stub:
    """A stand-in for an app process, for tests of the proxy alone.

    It answers with ``status`` and its name. ``received`` counts the bytes of bodies, ``asked`` the requests.
    """

    def __init__(self, name: str) -> None:
        self.status = 200
        self.asked = self.received = 0
        self._closed = False
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.asked += 1
                self.send_response(stub.status)
                self.end_headers()
                self.wfile.write(name.encode())

            def do_PUT(self) -> None:
                left = int(self.headers["Content-Length"])
                while left and (part := self.rfile.read1(left)):
                    stub.received += len(part)
                    left -= len(part)
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        if not self._closed:
            self._closed = True
            self._server.shutdown()
            self._server.server_close()


P = TypeVar("P", Server, Stub)


class Site(Generic[P]):
    """nginx before two servers: ``with Site(folder, one, two) as site`` serves both at ``site.url``."""

    def __init__(self, folder: Path, *servers: P) -> None:
        self._folder = folder
        self.port, self.plain_port = find_free_port(), find_free_port()
        self.url = f"https://{HOST}:{self.port}{BASE}"
        self.servers: dict[str, P] = dict(zip(NAMES, servers, strict=True))
        self._ends = ExitStack()

    def __enter__(self) -> Site[P]:
        with ExitStack() as ends:
            for server in self.servers.values():
                ends.callback(server.close)
                server.start()
            self._start_nginx(ends)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.close()

    def _start_nginx(self, ends: ExitStack) -> None:
        program = nginx_program()
        make_certificate(self._folder)
        (self._folder / "nginx").mkdir()
        settings = self._folder / "nginx.conf"
        settings.write_text(self.nginx_settings(), "utf-8")
        with (self._folder / "stdout.log").open("wb") as out, (self._folder / "stderr.log").open("wb") as errors:
            user = "user root; " if os.geteuid() == 0 else ""  # nginx's workers read this test's private folder
            command = [program, "-c", str(settings), "-g", f"{user}daemon off;"]
            nginx = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        ends.callback(nginx.wait, 15)
        ends.callback(nginx.terminate)
        wait_for(lambda: listens(self.port), f"nginx does not answer:\n{self.nginx_log()}")

    def nginx_settings(self) -> str:
        """Return the bundled file with only the ports and folders of this test changed."""
        text = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
        for bundled, local in {
            "server one:8501;": f"server 127.0.0.1:{self.servers['one'].port};",
            "server two:8501;": f"server 127.0.0.1:{self.servers['two'].port};",
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ": f"listen 127.0.0.1:{self.port} ",
            "/etc/nginx/tls/": f"{self._folder}/",
            "/var/cache/nginx/": f"{self._folder}/nginx/",
            "/run/": f"{self._folder}/nginx/",
            "/dev/stdout": str(self._folder / "access.log"),
            "/dev/stderr": str(self._folder / "error.log"),
        }.items():
            assert bundled in text, bundled
            text = text.replace(bundled, local)
        return text

    def wait_for_log(self, path: str, times: int = 1) -> str:
        """Return everything that nginx wrote, once it has ``times`` lines for ``path``.

        nginx writes a line only after it has sent the answer.
        """
        wait_for(lambda: self.nginx_log().count(f' {path}"') >= times, f"The log lacks {path}.")
        return self.nginx_log()

    def nginx_log(self) -> str:
        """Return everything that nginx wrote: its accesses, its errors and its terminal."""
        names = ("access.log", "error.log", "stdout.log", "stderr.log")
        files = [self._folder / name for name in names]
        return "\n".join(file.read_text("utf-8", errors="replace") for file in files if file.exists())

    def ask(self, path: str, source: str = "127.0.0.1", **headers: str) -> Answer:
        """Return the answer to one GET over TLS, sent from one of this machine's addresses."""
        with self.connection(source) as channel:
            connection = HTTPConnection(f"{HOST}:{self.port}")
            connection.sock = channel
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def put(self, channel: ssl.SSLSocket, path: str, size: int) -> None:
        """Begin to send a body of ``size`` bytes, with the cookie of a browser that the server ``one`` serves."""
        head = f"PUT {path} HTTP/1.1\r\nHost: {HOST}\r\nCookie: mha_process=one\r\nContent-Length: {size}\r\n\r\n"
        channel.sendall(head.encode())

    def connection(self, source: str = "127.0.0.1") -> ssl.SSLSocket:
        """Return an encrypted connection to the site."""
        return self.handshake(ssl.create_default_context(cafile=str(self._folder / "fullchain.pem")), source=source)

    def handshake(self, context: ssl.SSLContext, name: str = HOST, source: str = "127.0.0.1") -> ssl.SSLSocket:
        """Return an encrypted connection that asks for ``name``. Raises ssl.SSLError if the site has another name."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE, source_address=(source, 0))
        return context.wrap_socket(plain, server_hostname=name)


def nginx_program() -> str:
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    program = shutil.which("nginx", path=places)
    assert program, NO_NGINX
    return program


def make_certificate(folder: Path) -> None:
    """Make a self-signed certificate for HOST that is valid for a day."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={HOST}"]
    command += ["-addext", f"subjectAltName=DNS:{HOST}"]
    command += ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run(command, check=True, capture_output=True)


def listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.1)
