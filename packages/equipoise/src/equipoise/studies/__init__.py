"""Studies: how their files are read, and where installed packages have built-in ones.

In reading order:

reader/         a study's TOML file: every error names the file, the line and the key
data_sets.py    the rows that ``{data}`` stands for, in a file beside the ledger
catalogue.py    the built-in studies, and the analysis of each
preparation.py  a study before its campaign: its quick form, its levels, what this host lacks
"""
