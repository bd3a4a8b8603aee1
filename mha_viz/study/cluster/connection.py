"""Connect to a Dask cluster: a running one, by the address of its scheduler, or worker processes on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from mha_viz.errors import ClusterError, ClusterMissing, MhaVizError, SettingError, shorten_value
from mha_viz.quotes import quote

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_ANSWER = 10  # for the scheduler
_ADDRESS = re.compile(r"(\w+://)?(\[[\da-f:.]+\]|[^\s/:\[\]]+):\d{1,5}", re.ASCII | re.IGNORECASE)
SECONDS_FOR_WORKERS = 60
_SAFE_PATH = "PYTHONSAFEPATH"  # if it is set, Python imports nothing from the current folder, as with -P


@contextmanager
def connect(address: str = "", workers: int = 0, dashboard: bool = False) -> Iterator[Client]:
    """Yield a client of a scheduler, or of a new cluster on this machine.

    Without an address, the cluster has ``workers`` processes with one thread each and ends with the block. All its
    connections are encrypted, with a certificate that only its own processes have: whoever reaches a scheduler can run
    code as the account that started it, and every account of a machine reaches its loopback addresses. With
    ``dashboard``, its dashboard is served only at :func:`dashboard_link`, which nobody can guess. Its scratch files are
    in a folder that only this account can read. Until the block ends, new processes import nothing from the current
    folder.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.5:8786".
        workers: the number of worker processes, without an address.
        dashboard: whether the dashboard of a new cluster is served.

    Raises ClusterMissing if Dask is not installed, ClusterError if no scheduler answers, and SettingError for an
    invalid address.
    """
    old_value = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        with _connect(address, workers, dashboard) as client:
            yield client
    finally:
        os.environ.pop(_SAFE_PATH)
        os.environ.update({} if old_value is None else {_SAFE_PATH: old_value})


@contextmanager
def _connect(address: str, workers: int, dashboard: bool) -> Iterator[Client]:
    """Connect as :func:`connect` does, without changing the environment."""
    if address and not _ADDRESS.fullmatch(address):
        raise SettingError(f"{quote(address)} is not the address of a scheduler.", "Write it as tcp://HOST:PORT.")
    for name in ("distributed.client", "distributed.core", "distributed.comm", "distributed.scheduler"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported in one sentence instead
    with (
        nullcontext() if address else _apply_local_settings(dashboard),
        _start_client(address, workers, dashboard) as client,
    ):
        yield client


def _start_client(address: str, workers: int, dashboard: bool) -> Client:
    """Connect to a scheduler, or start one with workers on this machine. Raises ClusterMissing and ClusterError."""
    distributed = import_distributed()
    client: Client
    try:
        if address:
            client = distributed.Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
            return client
        with _block_interrupts():
            client = distributed.Client(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=None,
                scheduler_kwargs={  # a secret HTTP prefix, because every account reaches a loopback address
                    "dashboard": dashboard,
                    "dashboard_address": "127.0.0.1:0",
                    "http_prefix": f"/{secrets.token_urlsafe(24)}",
                },
                silence_logs=logging.CRITICAL,
                set_as_default=False,
                security=True,
            )
            return client
    except ImportError as error:
        raise _make_missing_error("The package cryptography") from error
    except (TypeError, AssertionError) as error:  # raised by Dask for a missing certificate
        raise ClusterError(
            f"A scheduler at {quote(address)} cannot be reached without a certificate.",
            "Name its files in Dask’s configuration: https://distributed.dask.org/en/stable/tls.html.",
        ) from error
    except (OSError, ValueError, TimeoutError, RuntimeError) as error:
        location = f"at {quote(address)}" if address else "on this machine"
        raise ClusterError(
            f"No Dask scheduler answers {location}: {' '.join(str(error).split())[:120]}.",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`; or let --workers N start them.",
        ) from error


@contextmanager
def _apply_local_settings(dashboard: bool) -> Iterator[None]:
    """Apply the settings of a cluster on this machine within the block.

    Scratch files are in a folder that only this account can read, instead of one whose name every account knows. No
    HTTP address answers unless a dashboard is wanted, and then there is no list of addresses.
    """
    import_distributed()
    from distributed.http.routing import DirectoryHandler

    settings: dict[str, Any] = {"distributed.worker.profile.enabled": False}  # would take a tenth of a worker's time
    settings["distributed.worker.http.routes"] = []
    if not dashboard:
        settings["distributed.scheduler.http.routes"] = []
    listing: Any = DirectoryHandler
    original_get = listing.get
    listing.get = lambda handler: handler.send_error(404)  # the original lists all addresses to everybody
    scratch = tempfile.TemporaryDirectory(prefix="mha-viz-", ignore_cleanup_errors=True)
    try:
        with scratch as folder, _get_config().set({**settings, "temporary-directory": folder}):
            yield
    finally:
        listing.get = original_get


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block Ctrl-C in processes that start in the block, because this process ends them itself.

    Otherwise Ctrl-C would reach the whole process group.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # start it now, because its start unblocks Ctrl-C for this thread
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def dashboard_link(client: Client) -> str:
    """Return the address of the dashboard of a cluster; empty if it has none."""
    if client.cluster is None:  # the cluster was not started by this client
        return str(client.dashboard_link or "")
    scheduler, options = client.cluster.scheduler, client.cluster.scheduler_spec["options"]
    if not options["dashboard"]:
        return ""
    page = "status" if scheduler.http_application.applications else "info/main/workers.html"  # without bokeh
    return f"http://127.0.0.1:{scheduler.http_server.port}{options['http_prefix']}/{page}"


def import_distributed() -> Any:
    """Import and return the module ``distributed``. Raises ClusterMissing."""
    try:
        import distributed
    except ImportError as error:
        raise _make_missing_error("Dask") from error
    return distributed


def _make_missing_error(package: str) -> ClusterMissing:
    """Return the error for a package that is not installed."""
    problem = f"{package} is not installed, which a study on several processes or machines needs."
    return ClusterMissing(problem, 'Install it, in a copy of the repository: pip install ".[cluster]".')


def _get_config() -> Any:
    """Return Dask's configuration."""
    import dask

    return dask.config


def check_client(client: Any) -> None:
    """Raise ClusterError unless this is a connected client whose scheduler has a worker or gets one within a minute."""
    distributed = import_distributed()
    if not isinstance(client, distributed.Client):
        raise ClusterError(f"{shorten_value(client, 60)!r} is not a Dask client.", "Give a distributed.Client.")
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_WORKERS)
    except (TimeoutError, OSError, ValueError, RuntimeError) as error:
        raise ClusterError(
            "The cluster has no worker.", "Start some, as in `dask worker ADDRESS`, with mha-viz installed."
        ) from error


def convert_client_error(error: BaseException | None, saved_results: str) -> MhaVizError:
    """Convert an exception of the client, or None for a lost task, to an MhaVizError.

    ``saved_results`` is a sentence that says which results are stored.
    """
    if error is None or isinstance(error, (OSError, TimeoutError, RuntimeError, *_list_cancellations())):
        return ClusterError("The cluster stopped answering.", f"Start it and try again. {saved_results}".rstrip())
    return convert_task_error(error, saved_results)


def convert_task_error(error: BaseException, saved_results: str) -> MhaVizError:
    """Convert the exception that a task ended with to an MhaVizError."""
    if isinstance(error, MhaVizError):
        return error
    if isinstance(error, import_distributed().KilledWorker):
        return ClusterError(
            f"A part of the corpus killed its worker {error.allowed_failures + 1} times.",
            f"The log of the worker says why; most often it needs more memory. {saved_results}".rstrip(),
        )
    if isinstance(error, _list_cancellations()):
        return convert_client_error(None, saved_results)
    words = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".: ")
    return ClusterError(
        f"A worker could not do its part: {words}.",
        "Its log says where. Every worker needs the same version of mha-viz, enough memory, and the files under the "
        f"same paths. {saved_results}".rstrip(),
    )


def _list_cancellations() -> tuple[type[BaseException], ...]:
    """Return the exceptions that mean that a call was cancelled."""
    return asyncio.CancelledError, CancelledError, import_distributed().client.ClosedClientError
