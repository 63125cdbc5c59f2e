"""Run each function alone before a campaign, to see how long a call is and whether it changes data.

Each function runs in its own process. The results of these trial runs are not stored. They decide
the number of calls in a batch, and the functions that cannot be compared. A batch is a number of
calls that are timed together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from equipoise.kinds.functions.functions import Benchmark, lazy_result_error
from equipoise.kinds.functions.processes import Answer, process_pool
from equipoise.kinds.functions.terms import FunctionsPlan
from equipoise.measure.trials import base_environment, failure_of, own_environment
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.model.record import CampaignWarning

_TRIAL_RUN_PHASE = "examination"
"""First part of the process key of a trial run; the index of the function is the second part."""
MIN_BATCH_S = 0.00025
"""Minimum seconds of a batch: 5000 times the resolution of the clock."""
ROUNDS = 24
"""Number of batches of each function in a process, which suffices for `stats.warm_up`."""
MAX_PROCESS_S = 0.25
"""Seconds of measurement in a process; slow functions get fewer batches."""
_MAX_FRESH_BATCH_S = 0.002
"""Largest seconds of a batch together with its setups, if a setup precedes each call."""
_MAX_CALLS_RATIO = 8
"""If the numbers of calls differ by at most this factor, all functions get the same number."""
_MIN_CALL_S = 1e-6
"""If a call takes fewer seconds, the time to read the clock is a relevant part of it."""
_LAZY_RESULT_TYPES = frozenset({"generator", "coroutine", "async_generator"})


class TrialRunResult(Struct, frozen=True):
    """Results of the trial run of one function."""

    call_s: float
    call_and_setup_s: float
    """Seconds of one call with its setup."""
    changes_data: bool
    """Whether a call changes the data of the next call."""
    sees_every_change: bool = True
    """Whether the trial run would have noticed every change of the data."""


def trial_run_results(
    benchmarks: Sequence[Benchmark], *, timeout_s: float
) -> tuple[TrialRunResult, ...]:
    """Run each function alone, in a process that may take ``timeout_s``.

    Raise `UnusableInput` if a function cannot be loaded, a call does not run its body, or calls get
    slower and slower. Raise `ConditionFailed` if a function or its setup fails.
    """
    keys = [(_TRIAL_RUN_PHASE, index) for index in range(len(benchmarks))]
    environment = base_environment(own_environment())
    with process_pool(
        benchmarks, lambda _: environment, lambda key: keys[keys.index(key) :], timeout_s
    ) as pool:
        return tuple(
            _result_of_answer(benchmark, benchmarks, pool.run(key, {"trial_run": index}), timeout_s)
            for index, (key, benchmark) in enumerate(zip(keys, benchmarks, strict=True))
        )


def _result_of_answer(
    benchmark: Benchmark, benchmarks: Sequence[Benchmark], answer: Answer, timeout_s: float
) -> TrialRunResult:
    content = answer.content
    if content is None:
        _, failure_text = failure_of(answer.report, timeout_s)
        failure = failure_text or "its process ended early"
        raise ConditionFailed(
            f"{benchmark.name} failed: {failure}{stderr_suffix(answer.report.error_tail)}",
            hint="call the function alone to see its error, or give a larger timeout=",
        )
    if "failed" in content:
        raise _error_of_failure(benchmarks, content)
    if content["result_type"] in _LAZY_RESULT_TYPES:
        raise lazy_result_error(benchmark.name, f"a {content['result_type']}")
    if content["gets_slower"]:
        raise UnusableInput(
            f"each call of {benchmark.name} takes longer than the call before: data accumulate",
            hint="give setup=, a function that makes the data again for each call",
        )
    return TrialRunResult(
        content["call_ns"] / 1e9,
        content["call_and_setup_ns"] / 1e9,
        content["changes_data"],
        content["sees_every_change"],
    )


def _error_of_failure(benchmarks: Sequence[Benchmark], content: dict[str, Any]) -> EquipoiseError:
    name, text = benchmarks[content["failed"]].name, content["text"]
    match content["stage"]:
        case "load":
            return UnusableInput(
                f"{name} cannot be loaded in a fresh process: {text}",
                hint="make its module importable from this folder or from sys.path",
            )
        case "setup":
            return ConditionFailed(f"the setup of {name} failed: {text}", hint="correct setup=")
    return ConditionFailed(f"{name} failed: {text}", hint="correct the function, or its data")


def calls_and_rounds(
    results: Sequence[TrialRunResult], *, fresh_data: bool
) -> tuple[list[int], int]:
    """Return the number of calls in a batch of each function, and the number of rounds.

    A round has a batch of each function.

    If functions take about equally long, they get the same number of calls. Then the overhead of a
    batch is equal, too. The order of the functions has no influence.
    """
    # The smallest power of two with which a batch is long enough.
    calls = [1 << (math.ceil(MIN_BATCH_S / result.call_s) - 1).bit_length() for result in results]
    are_similar = max(calls) <= _MAX_CALLS_RATIO * min(calls)
    if are_similar:
        calls = [max(calls)] * len(calls)
    if fresh_data:
        calls = [
            max(1, min(count, int(_MAX_FRESH_BATCH_S / result.call_and_setup_s)))
            for count, result in zip(calls, results, strict=True)
        ]
        if are_similar:
            calls = [min(calls)] * len(calls)
    call_seconds = [result.call_and_setup_s if fresh_data else result.call_s for result in results]
    round_s = sum(count * call_s for count, call_s in zip(calls, call_seconds, strict=True))
    return calls, max(1, min(ROUNDS, int(MAX_PROCESS_S / round_s)))


def warnings_of(
    benchmarks: Sequence[Benchmark], results: Sequence[TrialRunResult], functions: FunctionsPlan
) -> Iterator[CampaignWarning]:
    """Yield warnings about functions that change their data."""
    names = [benchmark.name for benchmark in benchmarks]
    changing = [name for name, result in zip(names, results, strict=True) if result.changes_data]
    if not changing:
        return
    subject = changing[0] if len(changing) == 1 else f"each of {', '.join(changing)}"
    if not functions.fresh_data:
        yield CampaignWarning(
            "changes_its_input",
            f"{subject} changes its data: every call after the first gets data that an earlier "
            "call has changed",
            "give setup=, a function that makes the data before each call, untimed; ignore this "
            "warning if the function only counts or caches",
        )
        return
    yield CampaignWarning(
        "fresh_data",
        f"{subject} changes its data, so the data of each call is made again, untimed",
        "ignore this warning if each call should get new data",
    )
    if min(result.call_s for result in results) < _MIN_CALL_S:
        yield CampaignWarning(
            "clock_in_call",
            "each call is timed separately and takes less than 1 µs: the time to read the clock is "
            "a relevant part, so the true difference is larger",
            "let the setup make more data, so that a call takes longer",
        )
