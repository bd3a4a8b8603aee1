"""Explain errors of downloads: answers of the Hub, and problems with the connection or the disk."""

from __future__ import annotations

import logging
import os

from mha_viz.errors import (
    MhaVizError,
    ModelError,
    ModelMissing,
    ModelUnreachable,
    ModelUnsupported,
)
from mha_viz.model_names import quote_model
from mha_viz.models.getting.catalog import Model, is_hosted

_log = logging.getLogger(__name__)

UNEXPLAINED = "unexplained"  # key of a library's message in the answer of a child process
CHOOSE_ANOTHER = "Choose another model."


def get_endpoint() -> str:
    """Return the Hub's address: the current value of HF_ENDPOINT, or else huggingface.co.

    huggingface_hub reads the variable only once.
    """
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def explain_error(error: Exception, model: Model) -> MhaVizError:
    """Build an error that explains why a request to the Hub failed."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    label = quote_model(model.name)
    if isinstance(error, MhaVizError):
        return error
    if isinstance(error, OfflineModeIsEnabled):
        return ModelUnreachable(
            choose_message(
                f"{label} is not on this machine, and HF_HUB_OFFLINE forbids downloads.",
                f"{label} is not on this machine, and this server does not download models.",
            ),
            CHOOSE_ANOTHER if is_hosted() else "Unset it, or choose another model.",
        )
    if isinstance(error, HfHubHTTPError):
        return make_http_error(error.response.status_code, error.response.headers.get("X-Error-Code"), label)
    if isinstance(error, OSError):
        return ModelError(
            choose_message(
                f"{label} cannot be stored: {error.strerror or type(error).__name__}.",
                f"{label} cannot be stored on this server.",
            ),
            CHOOSE_ANOTHER if is_hosted() else "Make room or give permission, or set HF_HUB_CACHE to another folder.",
        )
    unknown_error = make_unknown_error(model, f"{type(error).__name__}: {error}")
    unknown_error.__cause__ = error
    return unknown_error


def make_unknown_error(model: Model, message: str) -> ModelError:
    """Return the error for a network that failed.

    Its cause, for the log and a traceback, contains the library's message, ``message``.
    """
    _log.info("%s: %s", model.name, message)
    error = make_no_answer_error(model)
    error.__cause__ = ConnectionError(message)
    return error


def choose_message(local_message: str, public_message: str) -> str:
    """Return one of two messages, depending on the audience.

    The first reveals something about this machine. Visitors of a public server get the second, and the first goes to
    the log.
    """
    if not is_hosted():
        return local_message
    _log.warning(local_message)
    return public_message


def make_http_error(status: int, code: str | None, label: str) -> ModelError:
    """Return the error for an HTTP status of the Hub other than success."""
    if code == "GatedRepo" or status == 403:
        return make_gated_error(label)
    if code == "RevisionNotFound":
        return ModelMissing(
            f"The Hub does not have this revision: {label}.", "Give a branch, a tag or a commit of the model."
        )
    if status in (401, 404):
        return ModelMissing(f"The Hub has no public model {label}.", "Check the spelling; private ones cannot be read.")
    if status == 429:
        return ModelUnreachable("The Hub is rate-limiting: too many requests.", "Try again in a few minutes.")
    return ModelUnreachable(f"The Hub could not send {label} (HTTP status {status}).", "Try again later.")


def make_gated_error(label: str) -> ModelUnsupported:
    """Return the error for a model that the Hub gives only to approved members."""
    return ModelUnsupported(
        f"{label} is gated: its owner shares it only with people who have signed in and agreed to terms.",
        "Choose an open model, or download it yourself and choose the folder.",
    )


def make_no_answer_error(model: Model) -> ModelUnreachable:
    """Return the error for a Hub that does not answer, or stops answering."""
    label = quote_model(model.name)
    return ModelUnreachable(
        choose_message(
            f"The Hugging Face Hub ({get_endpoint()}) cannot be reached, or stopped answering, for {label}.",
            f"The Hugging Face Hub cannot be reached, or stopped answering, for {label}.",
        ),
        "Check the connection and try again, or choose a model that is already on this machine.",
    )


def make_too_slow_error(model: Model, done: int, total: int) -> ModelUnreachable:
    """Return the error for a download of which only ``done`` of ``total`` bytes arrived in the allowed time."""
    return ModelUnreachable(
        f"{quote_model(model.name)} arrives too slowly: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB so far.",
        "Nothing was kept. Try again on a faster connection.",
    )
