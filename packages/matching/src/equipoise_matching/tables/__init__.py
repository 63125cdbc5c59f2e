"""Matching and observing on tables: data frames and files in, results and matched data out.

- ``interface``: ``match``, ``match_balance``, ``gen_match``, ``observe``, exported here
- ``matchit_names``: arguments of R's MatchIt, which get an error that names ours
- ``reading``: a table as columns, from a file (CSV, Parquet) or a data frame, and back into a file
- ``csv_file``: CSV by the standard library
- ``strata``: the strata of Parquet files: the place of their rows, and the rows of one
- ``problem``: the named columns as matching takes them, words as indicators
- ``missing``: the policies on missing values, of a table and of a log
- ``matching``: a match of a table or a search for weights: its report, balance and matched data
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise_matching.tables.interface import gen_match, match, match_balance, observe

__all__ = ["gen_match", "match", "match_balance", "observe"]


def __getattr__(name: str) -> Any:
    # Imported when used: whoever reads a table needs no observation.
    if name not in __all__:
        raise AttributeError(f"module 'equipoise_matching.tables' has no attribute {name!r}")
    from equipoise_matching.tables import interface

    return getattr(interface, name)
