"""The ledger: the append-only store of plans, draws, trials, samples and environments.

`open_for_writing` and `open_for_reading` return a `Ledger`; docs/reference/document.md describes
the file. In reading order:

opening.py        opening a ledger, and the check of who could have written the file store.py
`Ledger`: record a run trial by trial, list runs, read a run file.py           the open file:
transactions, snapshots, and errors of SQLite as messages rows.py           conversion of runs to
rows and back parts.py          parts of a run for another ledger, as rows or bytes; forks
merging.py        the union of ledgers, and the runs that one run needs run_reference.py  names and
order of runs, and the search for a run by a reference schema.py         the tables, and the
migrations untrusted.py      checks of a file from somebody else
"""

from equipoise.ledger.opening import ledger_exists, open_for_reading, open_for_writing
from equipoise.ledger.parts import Fork
from equipoise.ledger.store import FIRST_SEGMENT, Ledger

__all__ = [
    "FIRST_SEGMENT",
    "Fork",
    "Ledger",
    "ledger_exists",
    "open_for_reading",
    "open_for_writing",
]
