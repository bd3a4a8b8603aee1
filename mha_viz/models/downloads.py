"""Many visitors, one download: who waits for which model, and what is left to wait for."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from weakref import WeakSet

from mha_viz.errors import Busy, Cancelled, MhaVizError
from mha_viz.models.catalog import Model, hosted, quoted
from mha_viz.models.hub import explained, fetch

MAX_DOWNLOADS = 2
# A page looks twice a second, one in a hidden tab once a minute. What nobody looks at for this long stops on a server
# for strangers; on one's own machine it runs on to its end.
FORGOTTEN_SECONDS = 90.0


class Download:
    """One visitor's hold on a download. All visitors who ask for one model share one transfer.

    ``cancel`` lets go for this visitor; the transfer itself stops when the last one lets go. A hold that is simply
    forgotten no longer counts; see FORGOTTEN_SECONDS.
    """

    def __init__(self, transfer: _Transfer, visitor: str = "") -> None:
        self._transfer = transfer
        self._visitor = visitor
        self._cancelled = False
        self._finished = threading.Event()

    @classmethod
    def start(cls, model: Model, visitor: str = "") -> Download:
        """Begin or join the download of a model.

        ``visitor`` is any text that tells people apart. Raises Busy when MAX_DOWNLOADS other models are under way, and
        on a server for strangers when this visitor waits for another one already.
        """
        with _lock:
            transfer = _under_way.get(model)
            if transfer is None:
                transfer = _begin(model, visitor)
            hold = cls(transfer, visitor)
            transfer.holds.add(hold)
            transfer.looked = time.monotonic()
            return hold

    @property
    def done_bytes(self) -> int:
        """Bytes that have arrived."""
        return self._transfer.done

    @property
    def total_bytes(self) -> int:
        """Bytes in all; 0 until the Hub has said how many, and for a model that was already here."""
        return self._transfer.total

    @property
    def fraction(self) -> float:
        """The share that has arrived, 0 to 1."""
        if self.folder is not None:
            return 1.0
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else 0.0

    @property
    def finished(self) -> bool:
        """True when nothing more will come: ``folder`` or ``error`` is set."""
        self._transfer.looked = time.monotonic()
        return self._finished.is_set()

    @property
    def folder(self) -> Path | None:
        """The model's folder, once complete."""
        return None if self._cancelled else self._transfer.folder

    @property
    def error(self) -> MhaVizError | None:
        """Why there is no folder."""
        return Cancelled("The download was stopped.") if self._cancelled else self._transfer.error

    def cancel(self) -> None:
        """Let go. After the end of the download this does nothing."""
        with _lock:
            if self.finished:
                return
            self._cancelled = True
            self._transfer.holds.discard(self)
            self._finished.set()
            if not self._transfer.holds:
                _forget(self._transfer)  # whoever asks from now on begins anew
                self._transfer.cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds for the end; True when it has come."""
        self._transfer.looked = math.inf  # for somebody who waits looks on
        try:
            return self._finished.wait(timeout)
        finally:
            self._transfer.looked = time.monotonic()


class _Transfer:
    """One running download."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.done = self.total = 0
        self.folder: Path | None = None
        self.error: MhaVizError | None = None
        self.cancel = threading.Event()
        self.holds: WeakSet[Download] = WeakSet()
        self.looked = time.monotonic()  # seconds; when anybody last asked how far it is

    def run(self) -> None:
        folder, error = None, None
        try:
            folder = fetch(self.model, self._count, self.cancel)
        except Exception as problem:
            error = explained(problem, self.model)
        with _lock:
            self.folder, self.error = folder, error
            _forget(self)
            for hold in self.holds:
                hold._finished.set()

    def _count(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if hosted() and time.monotonic() - self.looked > FORGOTTEN_SECONDS:
            self.cancel.set()


_lock = threading.Lock()
_under_way: dict[Model, _Transfer] = {}


def _begin(model: Model, visitor: str) -> _Transfer:
    others = [transfer for m, transfer in _under_way.items() if m.kind == "hub"]
    if model.kind == "hub":
        mine = [t for t in others if visitor and any(hold._visitor == visitor for hold in t.holds)]
        if mine and hosted():
            raise Busy(
                f"You are downloading {quoted(mine[0].model.name)} already.", "Wait until it is here, or cancel it."
            )
        if len(others) >= MAX_DOWNLOADS:
            names = " and ".join(quoted(t.model.name) for t in others)
            raise Busy(f"{names} are being downloaded already.", "Try again when one of them is here.")
    transfer = _under_way[model] = _Transfer(model)
    threading.Thread(target=transfer.run, name=f"download {model.name}", daemon=True).start()
    return transfer


def _forget(transfer: _Transfer) -> None:
    if _under_way.get(transfer.model) is transfer:
        del _under_way[transfer.model]
