"""Reads and writes the result files of other tools.

- ``reading.py``: reads a file, and recognises its format
- ``formats``: reads results of campaigns, with one module for each tool; writes hyperfine's formats
- ``series``: reads values over commits, with one module for each tool; writes Bencher's format
- ``trials.py``: writes trials as a flat table: JSON, CSV, Parquet
"""
