"""Modules of both packages: a wheel has a copy of this folder, and the repository has links to it.

These modules import neither `equipoise` nor `equipoise_matching`. In reading order:

- ``errors``: the error that a user can correct, with its hint and its exit status
- ``spelling``: how messages name an option, on the command line and in Python
- ``keywords``: keywords of a function from a ``TypedDict``
- ``extras``: packages of the extras, imported late, and the line that installs them
- ``numbers``: numbers and lists of names for sentences
- ``ratios``: ratios and their intervals for readers
- ``safe_text``: untrusted text on a terminal and in CSV
- ``theme``: colours, shapes and the two themes of charts
- ``density``: the kernel density estimate
- ``chart_parts``: parts of every chart
- ``pictures``: charts as SVG and PNG
- ``html``: pieces of HTML for notebooks
"""
