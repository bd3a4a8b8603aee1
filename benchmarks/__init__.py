"""Speed, measured: `python -m benchmarks`. What is compared, and how, stands in README.md beside this file."""
