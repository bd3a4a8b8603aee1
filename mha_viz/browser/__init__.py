"""The interactive drawings as a browser runs them: JavaScript, styles, and the bundler that makes one text of them.

Modules in this folder are shared. Each component has a folder of its own, with a style sheet where it has one. The
app's pages, notebooks and HTML files use the same text (``browser.bundle``).
"""
