"""The ledger: a file with all runs. Rows are only added, never changed.

`open_for_writing` and `open_for_reading` return a `Ledger`; docs/reference/document.md describes
the file. In reading order:

- ``opening.py``: opening a ledger, and the check of its owner
- ``store.py``: the class `Ledger`, which records a run trial by trial, lists runs and reads them
- ``file.py``: the open file: transactions, snapshots and error messages
- ``rows.py``: conversion of runs to rows and back
- ``parts.py``: parts of a run for another ledger, as rows or bytes
- ``merging.py``: the union of ledgers, and the runs that the result of a run needs
- ``versions.py``: all runs with the number of their rows, without their trials
- ``run_reference.py``: names and order of runs, and the search for a run
- ``schema.py``: the tables, and the migrations
- ``untrusted.py``: checks of a file from somebody else
"""

from equipoise.ledger.opening import ledger_exists, open_for_reading, open_for_writing
from equipoise.ledger.parts import Fork
from equipoise.ledger.store import FIRST_SEGMENT, Ledger
from equipoise.ledger.versions import RunVersion

__all__ = [
    "FIRST_SEGMENT",
    "Fork",
    "Ledger",
    "RunVersion",
    "ledger_exists",
    "open_for_reading",
    "open_for_writing",
]
