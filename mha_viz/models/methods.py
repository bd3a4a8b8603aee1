"""The names of the ways to switch a head off, for code that does not need the model."""

from __future__ import annotations

METHODS = ("zero", "mean", "uniform")  # the first is the default
