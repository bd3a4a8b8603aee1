"""Models in a process of their own: a page never waits for the interpreter while a model reads, and a model that takes
too long or too much memory ends without taking the server with it."""

from mha_viz.reader.client import Reader

__all__ = ["Reader"]
