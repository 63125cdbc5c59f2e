"""Which metrics a condition reports: asked by running it once, untimed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from equipoise.measure import own_metrics
from equipoise.measure.hooks import end_group, last_words, status_words, tail
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Condition
from equipoise.model.record import Sample


def metrics_reported(
    condition: Condition, environment: Mapping[str, str], scratch: Path, timeout_s: float
) -> tuple[Sample, ...]:
    """Run a condition once and give what it reported of the whole process.

    Parameters
    ----------
    environment
        What its own is set over.
    scratch
        A private folder, for the file that it reports to.

    Raises
    ------
    ConditionFailed
        It failed, took too long, or wrote nothing but what cannot be read.
    """
    file = own_metrics.MetricsFile(scratch)
    file.clear()
    surroundings = {**environment, own_metrics.VARIABLE: str(file.path), **condition.environment}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            condition.command,
            env=surroundings,
            cwd=condition.process.working_folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            raise ConditionFailed(
                f"{condition.name} takes longer than {timeout_s:g} s", hint="raise --timeout"
            ) from None
        except BaseException:
            end_group(process)
            raise
        if status != 0:
            raise ConditionFailed(
                f"{condition.name} failed: {status_words(status)}"
                + last_words(tail(errors.fileno())),
                hint="run it by hand in that revision",
            )
    reported = file.read()
    # A bad line beside good ones is warned of by the campaign that follows.
    problem = reported.unreadable or (None if reported.samples else reported.problem)
    if problem is not None:
        raise ConditionFailed(
            f"{condition.name}: {problem}", hint="see docs/gate.md for what is read"
        )
    return tuple(one for one in reported.samples if one.iteration is None)
