"""The built-in studies, a folder each.

study.toml   what is run and compared
analysis.py  ``findings``: tables and paragraphs that the study adds to its result
charts.py    ``figures``: its charts
page.md      what the study is about, with its numbers
"""
