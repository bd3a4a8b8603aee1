"""A sentence, every head at a glance, one head in full."""

from mha_viz.app.explore import continuing
from mha_viz.app.explore import page as explore
from mha_viz.app.switch_off import controls, page
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.view()
what = address.url()
request.ask(what, explore.INTRODUCTION)
request.ask_part(what.where)
continuing.ask_words(what)
reading = explore.read_page(what)
if reading is not None:
    explore.draw(reading, page.begin_mode, controls.on_head)
    explore.say_shared_keys(reading)
explore.warm_up()
