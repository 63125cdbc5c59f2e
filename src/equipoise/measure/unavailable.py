"""How a workload says that this machine cannot do what it was asked for (rule 7).

Exit status 69 (``EX_UNAVAILABLE`` of sysexits.h), and as the last line on standard error
``{"unavailable": "it needs two CPUs"}``: so a machine that forbids the work is told from a
workload that is broken.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

EXIT_STATUS = 69


@dataclass(frozen=True, slots=True)
class _Said:
    unavailable: str


def unavailable_reason(status: int | None, error_text: str) -> str | None:
    """The reason; ``None`` if that is not what the exit status and the last line say."""
    lines = error_text.strip().splitlines()
    if status != EXIT_STATUS or not lines:
        return None
    try:
        return msgspec.json.decode(lines[-1], type=_Said).unavailable
    except msgspec.DecodeError:
        return None
