"""Studies: reading their files, and the built-in studies of installed packages.

In reading order:

- ``reader``: a study's TOML file; every error names the file, the line and the key
- ``data_sets.py``: the rows for ``{data}``, in a file next to the ledger
- ``catalogue.py``: the built-in studies, and their analyses
- ``preparation.py``: a study before its campaign: quick form, chosen levels, levels missing here
"""
