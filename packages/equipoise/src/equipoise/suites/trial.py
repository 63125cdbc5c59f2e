"""Run one process of a benchmark tool and report what it measured.

::

    python -m equipoise.suites.trial go -- go test -bench .

The mean of each benchmark goes to the file ``EQUIPOISE_METRICS`` as ``NAME time_s``, one value for
each process. A process of a tool that lists its benchmarks runs only one of them, and reports it as
``time_s``. The file also has the reason why a benchmark has no time. The exit status is 0 if the
process measured all other benchmarks, and 4 if a benchmark stopped the process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from equipoise.helpers.equipoise_metrics import report, report_unknown
from equipoise.interop.reading import SAVE_AGAIN, TIME
from equipoise.model.errors import EquipoiseError
from equipoise.suites import TOOLS
from equipoise.suites.running import READ_HINT, StoppedAt
from equipoise.suites.tool import BenchmarkTool, Failure


def main(arguments: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with one line if the tool failed, or its output cannot be read.
    """
    if len(arguments) < 3 or arguments[0] not in TOOLS or arguments[1] != "--":
        raise SystemExit(f"usage: python -m equipoise.suites.trial {'|'.join(TOOLS)} -- COMMAND")
    tool = TOOLS[arguments[0]]
    has_values, failures = False, []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for item in tool.measure(arguments[2:], Path(folder)):
                if isinstance(item, Failure):
                    reason = _named(tool, item.reason)
                    failures.append(f"{item.benchmark}: {reason}")
                    report_unknown(f"{item.benchmark} {TIME}", reason)
                else:
                    has_values = True
                    report(item.metric, item.value, unit=item.unit)
        except StoppedAt as stopped:
            reason = _named(tool, stopped.reason)
            report_unknown(f"{stopped.benchmark} {TIME}", reason)
            raise SystemExit(StoppedAt.exit_status) from None
        except EquipoiseError as error:
            hint = READ_HINT if error.hint == SAVE_AGAIN else error.hint
            raise SystemExit(_named(tool, _one_line(f"{error.what}; {hint}"))) from None
        except SystemExit as error:
            # A tool that failed may have printed several lines before the reason.
            *printed, reason = str(error.code).splitlines() or [""]
            raise SystemExit("\n".join((*printed, _named(tool, reason)))) from None
    if failures and not has_values:
        raise SystemExit(_one_line("; ".join(failures)))


def _named(tool: BenchmarkTool, text: str) -> str:
    """Return a text that begins with the name of the tool; some have the tool's version already."""
    name = tool.name.replace("-", " ")
    return text if text.lower().startswith(name) else f"{tool.name}: {text}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main(sys.argv[1:])
