"""Write ``figures.json`` again: ``python -m tests.golden``. Then check what has changed, and why."""

import json

from tests.golden.cases import FILE, build_file

text = json.dumps(build_file(), ensure_ascii=False, separators=(",", ":"))
FILE.write_text(text.replace('{"mark"', '\n{"mark"') + "\n", "utf-8")  # one mark per line
