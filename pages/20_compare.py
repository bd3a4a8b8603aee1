"""Show heads of any layer, sentence and model side by side, on one scale."""

from mha_viz.app.compare import page as compare
from mha_viz.app.url import address
from mha_viz.app.widgets import frame

frame.ensure_frame()
compare.show_comparison(address.get_url())
