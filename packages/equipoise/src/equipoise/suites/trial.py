"""Run one process of a benchmark tool and report what it measured.

::

    python -m equipoise.suites.trial go -- go test -bench .

The mean of each benchmark goes to the file ``EQUIPOISE_METRICS`` as ``NAME time_s``, one value for
each process. A process of a tool that lists its benchmarks runs only one of them, and reports it as
``time_s``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from equipoise.helpers.equipoise_metrics import report
from equipoise.model.errors import EquipoiseError
from equipoise.suites import TOOLS


def main(arguments: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with one line if the tool failed, or its output cannot be read.
    """
    if len(arguments) < 3 or arguments[0] not in TOOLS or arguments[1] != "--":
        raise SystemExit(f"usage: python -m equipoise.suites.trial {'|'.join(TOOLS)} -- COMMAND")
    with tempfile.TemporaryDirectory() as folder:
        try:
            for measurement in TOOLS[arguments[0]].measure(arguments[2:], Path(folder)):
                report(measurement.metric, measurement.value, unit=measurement.unit)
        except EquipoiseError as error:
            raise SystemExit(error.what) from None


if __name__ == "__main__":
    main(sys.argv[1:])
