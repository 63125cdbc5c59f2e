"""The ledger: the append-only store of plans, draws, trials, samples and environments.

Open one with `open_for_writing` or `open_for_reading`; what comes back is a `Ledger`.
docs/document.md describes the file.
"""

from equipoise.ledger.opening import open_for_reading, open_for_writing
from equipoise.ledger.store import FIRST_SEGMENT, Ledger

__all__ = ["FIRST_SEGMENT", "Ledger", "open_for_reading", "open_for_writing"]
