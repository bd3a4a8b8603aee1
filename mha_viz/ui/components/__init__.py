"""Interactive drawings: each lies in a folder with its JavaScript and style beside a thin Python wrapper."""
