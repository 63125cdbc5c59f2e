"""What a server or a command says where the disk is full, among much else."""

from __future__ import annotations

import re
from pathlib import Path

from equipoise.model.errors import ConditionFailed

MEND = "make room there, or set TMPDIR to a folder of a larger disk"
_SAYS = re.compile(
    r"no space left|disk (is )?full|could not (write|extend).*space|\berr(or|no)[:=]? 28\b",
    re.IGNORECASE,
)


def full_disk(failure: str, said: str, folder: str) -> ConditionFailed | None:
    """The error for it, if that is why something failed.

    Parameters
    ----------
    failure
        What failed.
    said
        What it wrote.
    folder
        Where it ran.
    """
    line = next((line.strip() for line in said.splitlines() if _SAYS.search(line)), None)
    if line is None:
        return None
    return ConditionFailed(
        f"{failure}: the disk of {Path(folder).parent} is full: {line}", hint=MEND
    )
