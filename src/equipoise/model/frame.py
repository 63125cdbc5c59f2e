"""Rows as a data frame of the library that somebody works with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    import pandas
    import polars

Library = Literal["pandas", "polars"]


def frame_of(
    rows: Sequence[Mapping[str, Any]], library: Library
) -> pandas.DataFrame | polars.DataFrame:
    """Return a data frame with a row for each mapping, its keys as columns.

    Raises
    ------
    UnusableInput
        The library is another, or not installed.
    """
    if library not in get_args(Library):
        raise UnusableInput(
            f"no frame of {library!r} can be made", hint='give "pandas" or "polars"'
        )
    try:
        if library == "polars":
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        import pandas

        return pandas.DataFrame(rows)
    except ImportError as error:
        raise UnusableInput(f"{library} is not installed", hint=f"pip install {library}") from error
