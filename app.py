"""Run the app: apply its settings, then show the page that the URL names."""

import streamlit as st

if __name__ == "__main__":  # Streamlit runs the page
    from mha_viz.app.widgets import frame

    frame.show_page()
else:  # `streamlit run` looks for an application here, by name, and imports this file
    from mha_viz.app.serving.handover import replace_server

    replace_server()
    app = st.App(__file__)
