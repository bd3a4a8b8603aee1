"""The exit codes of the command, from the error family."""

from __future__ import annotations

from mha_viz import errors
from mha_viz.errors import MhaVizError

FAULT, USAGE, NOT_FOUND, NETWORK, BAD_INPUT, STOPPED = 1, 2, 3, 4, 5, 130

MEANINGS = {
    0: "done",
    FAULT: "an internal error",
    USAGE: "usage: an option, a value, a format or a place that cannot be used",
    NOT_FOUND: "not found: a model, a step, a head or a file that does not exist",
    NETWORK: "network: the Hub or a cluster cannot be reached, or stopped answering",
    BAD_INPUT: "bad input: a text, a corpus or a model that cannot be read",
    STOPPED: "stopped with Ctrl-C",
}
_CODES: dict[type[BaseException], int] = {
    errors.SettingError: USAGE,
    errors.ClusterMissing: USAGE,
    errors.ClusterError: NETWORK,
    errors.ExportError: USAGE,
    errors.UnknownModel: NOT_FOUND,
    errors.ModelNotAllowed: NOT_FOUND,
    errors.ModelMissing: NOT_FOUND,
    errors.UnknownHead: NOT_FOUND,
    errors.CorpusMissing: NOT_FOUND,
    errors.ModelUnreachable: NETWORK,
    errors.TextError: BAD_INPUT,
    errors.ShapeError: BAD_INPUT,
    errors.ModelError: BAD_INPUT,
    errors.CorpusError: BAD_INPUT,
    errors.OpenError: BAD_INPUT,
    errors.ResultUnreadable: BAD_INPUT,
    errors.Cancelled: STOPPED,
}


def exit_code(error: MhaVizError) -> int:
    """The exit code for an error: that of the nearest class of its family, or 1."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), FAULT)


def help_table() -> str:
    """The table of codes, for a help text."""
    return "exit codes:\n" + "".join(f"  {code:<5}{meaning}\n" for code, meaning in MEANINGS.items())
