"""The app as a server for many: what stands between the network and Streamlit.

``python -m mha_viz.serving`` takes Streamlit's options, as ``streamlit run`` does; ``mha-viz serve`` starts it.
"""
