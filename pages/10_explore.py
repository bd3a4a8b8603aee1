"""A sentence, every head at a glance, one head in full."""

from mha_viz.ui import frame, inference, request
from mha_viz.ui.explore import page as explore

frame.view()
what = request.page_request()
request.ask(what, explore.introduction(what))
attention = inference.read_shown(what.text, what.where)
if attention is not None:
    explore.draw(what, attention)
explore.warm_up()
