"""The file ``figures.json``, which checks that drawings on screen and in files agree.

``python -m tests.golden`` writes it from Python; ``tests/test_golden.py`` and ``tests/js/golden.test.mjs`` each draw
the cases again and must produce the same marks at the same positions with the same opacities.
"""
