"""The data sets that a study's ``{data}`` can stand for: one entry each.

Nothing is copied into the project: the rows are those of a package, if it is installed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from equipoise.model.errors import UnusableInput


class DataSet(Struct, frozen=True):
    """Rows that a workload reads."""

    text: Callable[[], str]
    """Returns the rows as CSV; raises UnusableInput with a hint if their package is missing."""
    otherwise: str
    """The word by which the workload makes up rows like them."""


def data_file(name: str, rows: str, home: Path) -> Path:
    """Write the rows of a data set into ``home``, unless they are there, and return the file.

    The name of the file contains a fingerprint of the rows: the rows of a campaign are never
    overwritten, so that it can be resumed after another version of the package came.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    content = rows.encode()
    fingerprint = hashlib.sha256(content).hexdigest()[:12]
    file = home.absolute() / f"{name}-{fingerprint}.csv"
    if file.exists():
        return file
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=home)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(unfinished, file)
    except OSError as error:
        raise UnusableInput(
            f"the rows of {name} cannot be written to {file}: {error.strerror}",
            hint="choose a folder that can be written to by --ledger",
        ) from error
    return file


def _lalonde() -> str:
    from equipoise.matching.datasets import lalonde

    return str(lalonde().to_csv(index=False))


DATA_SETS: Mapping[str, DataSet] = MappingProxyType({"lalonde": DataSet(_lalonde, "made-up")})
"""Data sets by the name that ``[workload] data`` gives them."""
