"""Count what one iteration of a benchmark does, and report the counts.

::

    python -m equipoise.suites.counted_trial TOOL METRIC,… -- CMD

The command runs twice with each counter: with N and with 2·N iterations. N is 100, or the user's
own number in the command. The counts are those of one iteration: the difference, over N. Whatever
else the program does cancels out. They go to the file ``EQUIPOISE_METRICS``; times do not.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from equipoise.counting.run import COUNTERS, Counter
from equipoise.helpers.equipoise_metrics import report
from equipoise.model.errors import EquipoiseError
from equipoise.suites import TOOLS
from equipoise.suites.tool import BenchmarkTool, Measurement

ITERATIONS = 100
"""Default number of iterations."""


def counted_trial_command(
    tool: BenchmarkTool, metrics: Sequence[str], command: Sequence[str]
) -> tuple[str, ...]:
    """Return a command that counts an iteration of the only benchmark of another command."""
    # With -P, modules of the repository cannot replace modules of Equipoise.
    program = (sys.executable, "-P", "-m", __name__)
    return (*program, tool.name, ",".join(metrics), "--", *command)


def main(words: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with one line if the tool failed, or a count is not known.
    """
    name, metrics, _, *command = words
    for counter in COUNTERS:
        counted = [metric for metric in counter.metrics if metric in metrics.split(",")]
        if not counted:
            continue
        try:
            counts = _counts_of_iteration(counter, TOOLS[name], tuple(command))
        except EquipoiseError as error:
            raise SystemExit(f"{error.what}; {error.hint}") from None
        for metric in counted:
            if counts[metric] < 0:
                raise SystemExit(
                    f"more iterations have fewer {metric}: the program does not repeat"
                )
            report(metric, counts[metric])


def _counts_of_iteration(
    counter: Counter, tool: BenchmarkTool, command: tuple[str, ...]
) -> Mapping[str, float]:
    assert tool.listing is not None
    option = tool.listing.iterations
    assert option is not None
    chosen = re.compile(re.escape(option).replace(r"\{\}", r"(\d+)"))
    numbers = [int(match[1]) for word in command if (match := chosen.fullmatch(word))]
    count = numbers[-1] if numbers and numbers[-1] else ITERATIONS
    fewer, more = (
        _counts(counter, tool, (*command, option.format(number)), number)
        for number in (count, 2 * count)
    )
    return {metric: (more[metric] - fewer[metric]) / count for metric in more}


def _counts(
    counter: Counter, tool: BenchmarkTool, command: tuple[str, ...], iterations: int
) -> Mapping[str, int]:
    """Return the counts of one run; raise `SystemExit` unless it has so many iterations."""
    with tempfile.TemporaryDirectory() as counts, tempfile.TemporaryDirectory() as results:
        counted, environment = counter.counted_process(command, os.environ, Path(counts))
        variables = [
            f"{name}={value}"
            for name, value in environment.items()
            if os.environ.get(name) != value
        ]
        # The program `env` gives the variables to the benchmark alone.
        run = ("env", *variables, *counted)
        measured = tool.measure(run, Path(results))
        values = {item.metric: item.value for item in measured if isinstance(item, Measurement)}
        if values["iterations"] != iterations:
            raise SystemExit(
                f"the benchmark ran {values['iterations']:g} iterations instead of {iterations}: "
                "it sets their number or time itself"
            )
        return counter.counts_in(Path(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
