"""What both wheels carry: each has a copy of this folder, and the tree has links to it.

It knows neither `equipoise` nor `equipoise_matching`, and imports its own modules relatively. In
reading order:

- ``errors``: the error that a user can end, with its hint and its exit status
- ``spelling``: how messages name an option, on the command line and in Python
- ``keywords``: keywords of a function that a ``TypedDict`` names
- ``extras``: packages of the extras, imported when they are used, and the line that installs them
- ``numbers``: numbers and lists of names as people read them
- ``ratios``: ratios and their intervals as people read them
- ``safe_text``: untrusted text on a terminal and in CSV
- ``theme``: colours, shapes and the two themes of charts
- ``density``: the kernel density estimate
- ``chart_parts``: parts of every chart
- ``pictures``: charts as SVG and PNG
- ``html``: pieces of HTML for notebooks
"""
