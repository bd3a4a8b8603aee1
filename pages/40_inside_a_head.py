"""Show every step inside a head, from x to the output, with the numbers of one sentence and the cost of the block."""

from mha_viz.app.inside import page as inside
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.ensure_frame()
url = address.get_url()
request.show_text_input(url, hint=False)
inside.show_steps(url)
