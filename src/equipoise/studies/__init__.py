"""Studies: how their files are read, and the built-in ones.

In reading order:

reader/         a study's TOML file: every error names the file, the line and the key
data_sets.py    the rows that ``{data}`` stands for, in a file beside the ledger
catalogue.py    the built-in studies, and the analysis of each
preparation.py  a study before its campaign: its quick form, its levels, what this host lacks
study_data.py   the numbers of a result by the levels of its factors
ranking.py      levels ranked on each task, as tables, sentences and a chart
builtin/        a folder for each built-in study
"""
