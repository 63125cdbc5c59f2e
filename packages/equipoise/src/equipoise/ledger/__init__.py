"""The ledger: the append-only store of plans, draws, trials, samples and environments.

`open_for_writing` and `open_for_reading` return a `Ledger`; docs/reference/document.md describes
the file. In reading order:

opening.py        how a ledger is opened, and who could have written the file
store.py          `Ledger`: record a run trial by trial, list runs, read one
file.py           the open file: transactions, snapshots, and errors of SQLite as messages
rows.py           a run as rows, and rows as a run
parts.py          stretches of a run that go from one ledger to another, as rows or bytes; forks
merging.py        the union of ledgers, and the runs that one run needs
run_reference.py  names and order of runs, and the run that a reference means
schema.py         the tables, and the steps from each version to the next
untrusted.py      checks of a file that somebody sent
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
