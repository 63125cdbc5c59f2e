"""Match and observe tables: take data frames or files, return results and matched data.

- ``interface``: the functions ``match``, ``match_balance``, ``gen_match`` and ``observe``
- ``matchit_names``: errors for arguments of R's MatchIt, which name the argument to use
- ``reading``: read a table from a file (CSV, Parquet) or a data frame, and write it to a file
- ``csv_file``: read and write CSV with the standard library
- ``strata``: find the strata of Parquet files, and read the rows of one stratum
- ``problem``: the columns of a question as arrays, with indicators for texts
- ``missing``: the policies on missing values
- ``covariates``: the covariates of a table as numbers for a design
- ``matching``: the result of a match or a search: report, balance and matched data
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise_matching.tables.covariates import design_covariates
    from equipoise_matching.tables.interface import gen_match, match, match_balance, observe

__all__ = ["design_covariates", "gen_match", "match", "match_balance", "observe"]


def __getattr__(name: str) -> Any:
    # The module is imported when it is used: reading a table does not need it.
    if name not in __all__:
        raise AttributeError(f"module 'equipoise_matching.tables' has no attribute {name!r}")
    if name == "design_covariates":
        from equipoise_matching.tables.covariates import design_covariates

        return design_covariates
    from equipoise_matching.tables import interface

    return getattr(interface, name)
