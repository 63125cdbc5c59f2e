"""Finds whose mending is not on this branch yet: they are counted apart and named with the reason.

An entry goes away with its defect; `make fuzz` names those that no case shows any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.fuzz.case import Outcome


@dataclass(frozen=True, slots=True)
class Known:
    """A defect that is known and open."""

    target: str
    pattern: str
    """Of the beginning of its signature."""
    reason: str


KNOWN: tuple[Known, ...] = (
    Known(
        "metrics",
        r"OverflowError in ledger/store.py:_insert_trial",
        "an iteration beyond 64 bits (helper inputs)",
    ),
    Known(
        "formulas",
        r"more than 5 s|the process ended|MemoryError|_ArrayMemoryError",
        "powers and degrees without a limit (helper inputs)",
    ),
)


def is_known(target: str, outcome: Outcome) -> bool:
    """Say whether a find shows a defect that is known and open."""
    return any(one.target == target and re.match(one.pattern, outcome.signature) for one in KNOWN)
