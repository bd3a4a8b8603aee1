"""Write the bill of materials (CycloneDX) of a wheel next to it: python tools/sbom.py dist

It lists the packages that the image installs, with the hashes of deploy/requirements.lock. The image has its own bill,
of its actual contents, which the Dockerfile writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mha_viz import version

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements"]
OPTIONS = ["--pyproject", "pyproject.toml", "--mc-type", "application", "--output-reproducible", "--of", "JSON", "-"]


def build_bill() -> dict[str, object]:
    """Return the bill of this version. Raises CalledProcessError if the locked packages cannot be read."""
    pins = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    torch = next(line for line in pins if line.startswith("torch=="))  # comes from PyTorch's own index, without a hash
    requirements = f"{(ROOT / 'deploy' / 'requirements.lock').read_text('utf-8')}\n{torch}\n"
    process = subprocess.run(
        [*COMMAND, *OPTIONS], cwd=ROOT, input=requirements, stdout=subprocess.PIPE, text=True, check=True
    )
    bill_of_materials: dict[str, object] = json.loads(process.stdout)
    product = bill_of_materials["metadata"]["component"]  # type: ignore[index]
    product |= {"version": version.__version__, "purl": f"pkg:pypi/mha-viz@{version.__version__}"}  # not in pyproject
    components = [part["bom-ref"] for part in bill_of_materials["components"]]  # type: ignore[attr-defined]
    bill_of_materials["dependencies"] = [{"ref": product["bom-ref"], "dependsOn": sorted(components)}]
    return bill_of_materials


if __name__ == "__main__":
    target = Path(sys.argv[1]) / f"mha_viz-{version.__version__}.cdx.json"
    target.write_text(json.dumps(build_bill(), indent=1, sort_keys=True) + "\n", "utf-8")
    print(target)
