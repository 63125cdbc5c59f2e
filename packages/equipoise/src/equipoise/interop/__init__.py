"""Import from and export to the result files of other tools.

- ``reading.py``: a file within limits of size, its content, and the choice of its format
- ``formats``: readers of results, one file for each tool; also writes hyperfine's formats
- ``series``: readers of values over commits, one file for each tool; also writes Bencher's format
- ``trials.py``: trials as a flat table: JSON, CSV, Parquet
"""
