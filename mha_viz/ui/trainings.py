"""The desk for trainings: one runs at a time, a few may wait, and one that nobody looks at any more stops."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from mha_viz.errors import Busy, MhaVizError, ModelBroken
from mha_viz.training import apart
from mha_viz.training.record import Result, Settings, check, size
from mha_viz.ui.cache import Shelf

WAITING = 6  # trainings that run or wait
FORGOTTEN = 5.0  # seconds without a look after which a visitor counts as gone
KEPT = 64 * 1024 * 1024  # bytes of finished runs


class Training:
    """A run under way or done. ``fraction`` is the share that is done; ``finished`` when nothing more will come."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.fraction = 0.0
        self.finished = False
        self.error: MhaVizError | None = None
        self._seen: dict[str, float] = {}  # when each visitor last looked
        self._left: set[str] = set()  # visitors who pressed Stop

    def join(self) -> None:
        """This visitor wants it, after a Stop too."""
        self._left.discard(_visitor())
        self.look()

    def look(self) -> None:
        """This visitor still waits for it."""
        if not self.left:
            self._seen[_visitor()] = time.monotonic()

    def let_go(self) -> None:
        """This visitor waits no longer; without any other, it stops."""
        self._left.add(_visitor())
        self._seen.pop(_visitor(), None)

    @property
    def left(self) -> bool:
        """True when this visitor has let go."""
        return _visitor() in self._left

    def abandoned(self) -> bool:
        """True when nobody has looked for a while."""
        now = time.monotonic()
        return not any(now - seen < FORGOTTEN for seen in list(self._seen.values()))

    def tell(self, fraction: float) -> None:
        """The share that is done."""
        self.fraction = fraction


class Trainings:
    """The process-wide desk. Visitors who ask for the same run share it."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="training")
        self._lock = threading.Lock()
        self._under_way: dict[Settings, Training] = {}  # in the order in which they were asked for
        self._done: Shelf[Settings, Result] = Shelf(KEPT, size)

    def result(self, settings: Settings) -> Result | None:
        """The run with these settings, if this server has done it lately."""
        return self._done.get(settings)

    def under_way(self, settings: Settings) -> Training | None:
        """The run with these settings that runs or waits now, unless this visitor has let go of it."""
        training = self._under_way.get(settings)
        return None if training is None or training.left else training

    def before(self, training: Training) -> int:
        """How many runs come first."""
        with self._lock:
            asked = list(self._under_way.values())
        return asked.index(training) if training in asked else 0

    def start(self, settings: Settings) -> Training:
        """Begin a run, or join the one that is under way. Raises SettingError, and Busy when too many wait."""
        check(settings)
        with self._lock:
            training = self._under_way.get(settings)
            if training is None or training.abandoned():
                if len(self._under_way) >= WAITING:
                    raise Busy("Too many trainings wait on this server.", "Try again in a minute.")
                self._under_way.pop(settings, None)  # the abandoned one is on its way out
                training = self._under_way[settings] = Training(settings)
                training.join()  # before the worker can find it abandoned
                self._worker.submit(partial(self._run, training))
            training.join()
            return training

    def _run(self, training: Training) -> None:
        try:
            result = apart.run(training.settings, training.tell, training.abandoned)
            self._done.put(training.settings, result)
        except MhaVizError as error:
            training.error = error
        except Exception as error:  # a fault of ours or of the machine: the page says so, the server lives on
            training.error = ModelBroken(
                f"The training failed: {type(error).__name__}: {str(error)[:200]}", "Try again."
            )
        finally:
            training.finished = True
            with self._lock:
                if self._under_way.get(training.settings) is training:
                    del self._under_way[training.settings]


def _visitor() -> str:
    """The session that asks; one name for all where there is none."""
    context: Any = get_script_run_ctx(suppress_warning=True)
    return str(context.session_id) if context else ""


@st.cache_resource(show_spinner=False)
def trainings() -> Trainings:
    """The one desk of this process."""
    return Trainings()
