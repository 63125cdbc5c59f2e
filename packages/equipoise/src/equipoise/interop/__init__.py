"""Other tools' result files, in and out.

reading.py   one file within bounds of size, and what it says
formats/     a file for each tool whose results are read; hyperfine's are written, too
series/      a file for each tool whose values over commits are read; Bencher's are written, too
trials.py    trials as a flat table: JSON, CSV, Parquet
"""
