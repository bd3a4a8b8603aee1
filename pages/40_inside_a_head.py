"""Inside a head: every step from x to the output, with the numbers of one sentence; what the block costs."""

from mha_viz.ui import address, frame, request
from mha_viz.ui.inside import page as inside

frame.view()
what = address.url()
request.ask(what, hint=False)
inside.show_steps(what)
