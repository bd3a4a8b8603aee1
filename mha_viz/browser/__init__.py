"""The interactive drawings as a browser runs them: JavaScript, styles, and the bundler that joins them into one text.

Modules in this folder are shared. Each component has a folder, with a style sheet if it needs one. The app's pages,
notebooks and HTML files use the same text (``browser.bundle``).
"""
