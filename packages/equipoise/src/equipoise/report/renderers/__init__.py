"""Renderers: each writes any `Document` in one form and knows no kind of result.

terminal: the screen, by rich.
html: one self-contained page, by Jinja, with the figures drawn.
markdown: GitHub's Markdown, for a pull request.
latex: tables for a paper.
csv: the numbers, for other programs.
notebook: a small piece of HTML for ``_repr_html_``.
"""
