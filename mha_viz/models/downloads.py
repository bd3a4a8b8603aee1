"""Many visitors, one download: who waits for which model, and what is left to wait for."""

from __future__ import annotations

import threading
from pathlib import Path
from weakref import WeakSet

from mha_viz.errors import Busy, Cancelled, MhaVizError
from mha_viz.models.catalog import Model, quoted
from mha_viz.models.hub import explained, fetch

MAX_DOWNLOADS = 2


class Download:
    """One visitor's hold on a download. All visitors who ask for one model share one transfer.

    ``cancel`` lets go for this visitor; the transfer itself stops when the last one lets go. A hold that is simply
    forgotten no longer counts, and the transfer runs on to its end.
    """

    def __init__(self, transfer: _Transfer) -> None:
        self._transfer = transfer
        self._cancelled = False
        self._finished = threading.Event()

    @classmethod
    def start(cls, model: Model) -> Download:
        """Begin or join the download of a model. Raises Busy when MAX_DOWNLOADS other models are under way."""
        with _lock:
            transfer = _under_way.get(model)
            if transfer is None:
                transfer = _begin(model)
            hold = cls(transfer)
            transfer.holds.add(hold)
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
        return self._finished.wait(timeout)


class _Transfer:
    """One running download."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.done = self.total = 0
        self.folder: Path | None = None
        self.error: MhaVizError | None = None
        self.cancel = threading.Event()
        self.holds: WeakSet[Download] = WeakSet()

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


_lock = threading.Lock()
_under_way: dict[Model, _Transfer] = {}


def _begin(model: Model) -> _Transfer:
    busy = [quoted(m.name) for m in _under_way if m.kind == "hub"]
    if model.kind == "hub" and len(busy) >= MAX_DOWNLOADS:
        raise Busy(f"{' and '.join(busy)} are being downloaded already.", "Try again when one of them is here.")
    transfer = _under_way[model] = _Transfer(model)
    threading.Thread(target=transfer.run, name=f"download {model.name}", daemon=True).start()
    return transfer


def _forget(transfer: _Transfer) -> None:
    if _under_way.get(transfer.model) is transfer:
        del _under_way[transfer.model]
