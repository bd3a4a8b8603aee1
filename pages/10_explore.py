"""Show every head on a sentence at a glance, and one head in full."""

from mha_viz.app.explore import continuation
from mha_viz.app.explore import page as explore
from mha_viz.app.switch_off import controls
from mha_viz.app.switch_off import page as switch_off
from mha_viz.app.url import address
from mha_viz.app.widgets import frame, request

frame.ensure_frame()
url = address.get_url()
request.show_text_input(url, explore.INTRODUCTION)
request.show_part_controls(url.location)
continuation.show_continue_button(url)
reading = explore.read_page(url)
if reading is not None:
    explore.draw(reading, switch_off.make_mode, controls.toggle_head)
    explore.report_model_limits(reading)
explore.warm_up()
