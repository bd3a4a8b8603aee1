"""Show one head from its input x to the words that it promotes, and the time and memory of the attention block."""

from mha_viz.app.inside import page as inside
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.ensure_frame()
url = address.get_url()
request.show_text_input(url, hint=False)
inside.show_head(url)
