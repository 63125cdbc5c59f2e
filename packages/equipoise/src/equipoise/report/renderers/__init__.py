"""Renderers: each writes any `Document` in one output format.

terminal: lines and tables of a terminal (uses rich).
html: one self-contained page with all figures (uses Jinja).
markdown: GitHub's Markdown, for a pull request.
latex: tables for a paper.
csv: the CSV rows, for other programs.
notebook: a small piece of HTML for ``_repr_html_``.
"""
