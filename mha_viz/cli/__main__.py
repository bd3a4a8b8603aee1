"""``python -m mha_viz.cli``."""

import sys

from mha_viz.cli import main

sys.exit(main())
