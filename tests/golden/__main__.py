"""Write ``figures.json`` anew: ``python -m tests.golden``. Then look at what changed, and why."""

import json

from tests.golden.cases import FILE, everything

text = json.dumps(everything(), ensure_ascii=False, separators=(",", ":"))
FILE.write_text(text.replace('{"mark"', '\n{"mark"') + "\n", "utf-8")  # one mark a line
