"""The version of the package, which the build reads from here."""

__version__ = "0.1.0"
