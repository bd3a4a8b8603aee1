"""One file that holds the screen's drawing and the file's drawing together: ``figures.json``.

``python -m tests.golden`` writes it from the Python side; ``tests/test_golden.py`` and ``tests/js/golden.test.mjs``
each draw the cases again and must find the same marks at the same places with the same opacities.
"""
