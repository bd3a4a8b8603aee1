"""Switch heads off: what the model makes of a sentence without them."""

from mha_viz.ui import address, frame, request
from mha_viz.ui.switch_off import page as switch_off

frame.view()
what = address.url()
request.ask(what)
switch_off.show_effects(what)
