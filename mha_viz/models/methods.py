"""The ways of switching a head off, for whoever needs their names and not the model."""

from __future__ import annotations

METHODS = ("zero", "mean", "uniform")  # the first is meant where none is named
