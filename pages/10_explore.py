"""A sentence, every head at a glance, one head in full."""

from mha_viz.ui import address, frame, request
from mha_viz.ui.explore import continuing
from mha_viz.ui.explore import page as explore
from mha_viz.ui.switch_off import controls, page

frame.view()
what = address.url()
request.ask(what, explore.INTRODUCTION)
request.ask_part(what.where)
continuing.ask_words(what)
attention = explore.requested_reading(what)
if attention is not None:
    explore.draw(what, continuing.say_written(attention, what), page.mode, controls.on_head)
    explore.link_to_tasks(what)
    explore.say_shared_keys(attention)
explore.warm_up()
