"""Benchmarks: `python -m benchmarks`. README.md beside this file says what is compared, and how."""
