"""Packages that are imported late, and the line that installs a missing package."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from .errors import UnusableInput

if TYPE_CHECKING:
    import pandas
    import polars

Library = Literal["pandas", "polars"]
"""Library for data frames."""
DISTRIBUTION = __name__.partition(".")[0].replace("_", "-")
"""Distribution that contains this copy of the module."""
CHARTS_EXTRA = "report" if DISTRIBUTION == "equipoise" else "charts"
"""Extra of the distribution that includes altair and vl-convert."""


def install_line(package: str) -> str:
    """Return the line that installs a package into the environment of Equipoise.

    pipx and ``uv tool`` install a program into a separate environment, which needs another line.
    """
    prefix, package = Path(sys.prefix), shlex.quote(package)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx runpip equipoise install {package}"
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv pip install --python {shlex.quote(sys.executable)} {package}"
    return f"pip install {package}"


def require(package: str, purpose: str, extra: str | None = None) -> Any:
    """Import a package. ``purpose`` is a plural noun for the message, such as "data frames".

    Raise `UnusableInput` if the package is not installed. The hint installs the package or, if
    ``extra`` is set, this extra of the distribution.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        distribution = package.partition(".")[0].replace("_", "-")
        raise UnusableInput(
            f"{purpose} need {package}, which is not installed",
            hint=install_line(distribution if extra is None else f"{DISTRIBUTION}[{extra}]"),
        ) from error


def frame_of(
    rows: Sequence[Mapping[str, Any]], library: Library
) -> pandas.DataFrame | polars.DataFrame:
    """Return a data frame with a row for each mapping; the keys are the columns.

    Raise `UnusableInput` if the library is unknown, or not installed.
    """
    if library not in get_args(Library):
        raise UnusableInput(
            f"{library!r} is not a library for data frames", hint='give "pandas" or "polars"'
        )
    try:
        if library == "polars":
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        import pandas

        return pandas.DataFrame(rows)
    except ImportError as error:
        raise UnusableInput(f"{library} is not installed", hint=install_line(library)) from error
