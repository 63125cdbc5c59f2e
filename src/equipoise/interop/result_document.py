"""Result documents that were written by ``--json``, here or elsewhere, read back."""

from __future__ import annotations

from pathlib import Path

import msgspec

from equipoise.model.errors import UnusableInput
from equipoise.model.result import SCHEMA
from equipoise.model.stored import StoredResult

_MEND = "name a file that `equipoise os --json FILE` wrote"


def read_result(path: Path) -> StoredResult:
    """Read as much of a result document as is held against another one.

    Raises
    ------
    UnusableInput
        The file cannot be read, or is no result document of this version.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}", mend=_MEND) from None
    try:
        found = msgspec.json.decode(content, type=StoredResult)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{path} is no result document: {error}", mend=_MEND) from None
    if found.schema != SCHEMA:
        raise UnusableInput(
            f"{path} is written as {found.schema!r}, not as {SCHEMA!r}",
            mend="write it again with this version of Equipoise",
        )
    return found
