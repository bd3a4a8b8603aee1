"""The app as a server for many visitors: the layers between the network and Streamlit.

``python -m mha_viz.app.serving`` takes the options of ``streamlit run``; ``mha-viz serve`` starts it.
"""
