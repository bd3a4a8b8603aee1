"""What a visitor expects of an experiment: asked before a result is shown, and compared with it afterwards."""

from __future__ import annotations

import streamlit as st

from mha_viz.training.lab import EXPERIMENTS, compared
from mha_viz.training.record import Result
from mha_viz.ui import address
from mha_viz.ui.bound import bound
from mha_viz.ui.parts import formulas, plain

PARAMETER = "guess"
SKIP = "skip"
PAST = ("run", "step", "arm", "tour")  # a link with one of these shows a result, so that the question comes too late


def is_answered() -> bool:
    """True if the visitor has answered, or has opened a link that shows a result."""
    return any(name in address.now() for name in (PARAMETER, *PAST))


def ask(experiment: str) -> None:
    """Ask what will happen. No option is preselected."""
    row = EXPERIMENTS[experiment]
    guess = _guess(experiment)
    bound(
        st.radio,
        f"**What do you expect?** {formulas(row.prediction)}",
        PARAMETER,
        guess,
        list(row.options),
        change=lambda chosen: {PARAMETER: chosen or SKIP},
        key=f"lab_guess_{experiment}",
        index=None,
        format_func=lambda option: _capital(row.options[option]),
    )
    if not is_answered():
        st.button("Skip: show the run", key="lab_skip", on_click=address.go, kwargs={PARAMETER: SKIP})


def show_outcome(result: Result) -> None:
    """Compare what was expected with what happened, in one sentence; nothing for a visitor who skipped the question."""
    guess = _guess(result.settings.experiment)
    if guess is not None:
        st.markdown(f"**{formulas(plain(compared(guess, result)))}**")


def _guess(experiment: str) -> str | None:
    guess = address.now().get(PARAMETER, "")
    return guess if guess in EXPERIMENTS[experiment].options else None


def _capital(clause: str) -> str:
    return clause[:1].upper() + clause[1:]
