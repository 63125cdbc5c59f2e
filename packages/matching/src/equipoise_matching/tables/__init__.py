"""Matching and observing on tables: data frames and files in, results and matched data out.

- ``interface``: what Python has of it: ``eq.match``, ``eq.gen_match``, ``eq.observe``, …
- ``matchit_names``: arguments of R's MatchIt, which get an error that names ours
- ``reading``: a table as columns, from a file (CSV, Parquet) or a data frame, and back into a file
- ``csv_file``: CSV by the standard library
- ``strata``: the strata of Parquet files: where their rows lie, and the rows of one
- ``problem``: the named columns as matching takes them, words as indicators
- ``missing``: what is done about missing values, of a table and of a log
- ``matching``: a match of a table or a search for weights: its report, balance and matched data
"""
