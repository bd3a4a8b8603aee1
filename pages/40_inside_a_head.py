"""Inside a head: every step from x to the output, with the numbers of one sentence; what the block costs."""

from mha_viz.app.inside import page as inside
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.ensure_frame()
url = address.get_url()
request.ask_text(url, hint=False)
inside.show_head(url)
