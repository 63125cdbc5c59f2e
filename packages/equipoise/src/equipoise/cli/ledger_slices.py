"""Write a ledger slice: a ledger with one run and the runs that its result needs."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from equipoise.cli.options.outputs import check_folder
from equipoise.cli.writing import write_file
from equipoise.ledger import Ledger, open_for_writing
from equipoise.ledger.merging import merge, needed_runs


def write_ledger_slice(ledger: Ledger, run: str, output: Path) -> None:
    """Write a ledger with a run and the runs that its result needs; only the owner can read it.

    Raise `UnusableInput` if the file cannot be written, or there is no such run.
    """
    check_folder(output)
    with tempfile.TemporaryDirectory(prefix="equipoise-slice-") as folder:
        needed_run_ids = needed_runs(ledger, run)
        slice_file = Path(folder, "ledger.db")
        with open_for_writing(slice_file, durable=False) as slice_ledger:
            report = merge(slice_ledger, ledger, needed_run_ids)
        for refusal in report.refused:
            raise refusal
        with suppress(OSError):
            # Create the file with the access rights of a ledger; `write_file` keeps the rights.
            os.close(os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        write_file(output, slice_file.read_bytes())
