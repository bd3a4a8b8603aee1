"""Interactive drawings as Streamlit components: thin wrappers over the JavaScript and styles of ``browser``."""

from __future__ import annotations

import streamlit as st
from streamlit.components.v2.component_registry import BidiComponentDefinition
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.types import ComponentRenderer

from mha_viz.browser import bundle


def drawing(component: str) -> ComponentRenderer:
    """The component of the folder of this name, drawn into one element of the class ``mha-NAME``.

    Its code is a static file if the server provides one (``mha_viz.serving``); otherwise it is part of each message.
    """
    name, html = f"mha_{component}", f'<div class="mha-{component}"></div>'
    css, js = bundle.style(component) or None, bundle.script(component)
    renderer = st.components.v2.component(name, html=html, css=css, js=js)
    manager = get_bidi_component_manager()
    if manager.get_metadata(bundle.SERVED):
        source = str(bundle.FOLDER / component / f"{component}.js")  # Streamlit expects an existing file
        file = bundle.served_file(component)
        manager.unregister(name)
        manager.register(BidiComponentDefinition(name, html, js=source, js_asset_relative_path=file))
    return renderer
