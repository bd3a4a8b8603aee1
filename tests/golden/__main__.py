"""Write ``figures.json`` anew: ``python -m tests.golden``. Then look at what changed, and why."""

import json

from tests.golden.cases import FILE, everything

FILE.write_text(json.dumps(everything(), ensure_ascii=False, indent=1) + "\n", "utf-8")
