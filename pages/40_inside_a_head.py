"""Inside a head: every step from x to the output, with the numbers of one sentence; what the block costs."""

from mha_viz.app.inside import page as inside
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.ensure_frame()
what = address.url()
request.ask_text(what, hint=False)
inside.show_steps(what)
