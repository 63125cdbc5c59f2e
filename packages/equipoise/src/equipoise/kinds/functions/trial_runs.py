"""Trial runs before a campaign of functions: the duration of a call, and the changes that it makes.

Each function runs in its own process. The results of these runs are not kept. They choose the
number of calls in a batch, and refuse functions that cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from equipoise.kinds.functions.functions import Side, runs_nothing
from equipoise.kinds.functions.processes import Answer, prepared_processes
from equipoise.kinds.functions.terms import FunctionsPlan
from equipoise.measure.trials import base_environment, failure_of, own_environment
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.record import CampaignWarning

_EXAMINATION = "examination"
"""Phase of the process of a trial run; its block is the place of the function."""
MIN_BATCH_S = 0.00025
"""Shortest batch of the faster function: five thousand times the resolution of the clock."""
ROUNDS = 24
"""Batches of each function in a process, enough for the change-points of `stats.warm_up`."""
MAX_PROCESS_S = 0.25
"""Seconds of measurement in a process; if it would take longer, there are fewer batches."""
_MAX_FRESH_BATCH_S = 0.002
"""Longest batch if each call has its own setup, with the setups."""
_MAX_RATIO_OF_CALLS = 8
"""Ratio of the numbers of calls up to which all functions get the same number."""
_MIN_CALL_S = 1e-6
"""Seconds of a separately timed call below which reading the clock is a relevant part."""
_LAZY_RESULTS = frozenset({"generator", "coroutine", "async_generator"})


class ExaminedFunction(Struct, frozen=True):
    """One function after its trial run."""

    call_s: float
    """Seconds of one call."""
    call_and_setup_s: float
    """Seconds of one call with its setup."""
    changes: bool
    """Whether a call changes the data of the next call."""
    is_watched: bool = True
    """Whether every change of the data would have been noticed."""


def examine(sides: Sequence[Side], *, timeout_s: float) -> tuple[ExaminedFunction, ...]:
    """Run each function alone, in a process that may take ``timeout_s``.

    Raise `UnusableInput` if a function cannot be loaded in a fresh process, its call runs nothing,
    or each call takes longer than the one before. Raise `ConditionFailed` if a function or its
    setup raises, takes too long or ends its process.
    """
    keys = [(_EXAMINATION, number) for number in range(len(sides))]
    environment = base_environment(own_environment())
    with prepared_processes(
        sides, lambda _: environment, lambda key: keys[key[1] :], timeout_s
    ) as processes:
        return tuple(
            _examined(side, sides, processes.run(key, {"examine": key[1]}), timeout_s)
            for key, side in zip(keys, sides, strict=True)
        )


def _examined(
    side: Side, sides: Sequence[Side], answer: Answer, timeout_s: float
) -> ExaminedFunction:
    content = answer.content
    if content is None:
        _, failure_text = failure_of(answer.report, timeout_s)
        failure = failure_text or "its process ended early"
        raise ConditionFailed(
            f"{side.name} failed: {failure}{stderr_suffix(answer.report.error_tail)}",
            hint="call it alone; if it takes longer than timeout=, give a larger timeout=",
        )
    if "failed" in content:
        raise _failure_in(sides, content)
    if content["returns"] in _LAZY_RESULTS:
        raise runs_nothing(side.name, f"a {content['returns']}")
    if content["grows"]:
        raise UnusableInput(
            f"each call of {side.name} takes longer than the one before: it adds to its data",
            hint="give setup=, which makes the data of each call again",
        )
    return ExaminedFunction(
        content["call_ns"] / 1e9,
        content["whole_ns"] / 1e9,
        content["changes"],
        content["is_watched"],
    )


def _failure_in(sides: Sequence[Side], content: dict[str, Any]) -> UnusableInput | ConditionFailed:
    """Return the error for a worker's answer that a function failed."""
    name, text = sides[content["failed"]].name, content["text"]
    match content["during"]:
        case "load":
            return UnusableInput(
                f"{name} cannot be loaded in a fresh process: {text}",
                hint="its module must be importable from this folder or from sys.path",
            )
        case "setup":
            return ConditionFailed(f"the setup of {name} failed: {text}", hint="correct setup=")
    return ConditionFailed(f"{name} failed: {text}", hint="correct it, or its data")


def calls_and_rounds(
    examined: Sequence[ExaminedFunction], *, fresh_calls: bool
) -> tuple[list[int], int]:
    """Return the number of calls in a batch of each function, and the number of batches.

    Functions that take about equally long get the same number of calls, so that the overhead of a
    batch is also equal. The rule is symmetric: exchanging two functions exchanges their numbers.
    """
    # The least power of two with which a batch is long enough.
    calls = [
        1 << (math.ceil(MIN_BATCH_S / function.call_s) - 1).bit_length() for function in examined
    ]
    are_similar = max(calls) <= _MAX_RATIO_OF_CALLS * min(calls)
    if are_similar:
        calls = [max(calls)] * len(calls)
    if fresh_calls:
        calls = [
            max(1, min(count, int(_MAX_FRESH_BATCH_S / function.call_and_setup_s)))
            for count, function in zip(calls, examined, strict=True)
        ]
        if are_similar:
            calls = [min(calls)] * len(calls)
    seconds = [
        function.call_and_setup_s if fresh_calls else function.call_s for function in examined
    ]
    round_s = sum(count * call_s for count, call_s in zip(calls, seconds, strict=True))
    return calls, max(1, min(ROUNDS, int(MAX_PROCESS_S / round_s)))


def warnings_of(
    sides: Sequence[Side], examined: Sequence[ExaminedFunction], functions: FunctionsPlan
) -> Iterator[CampaignWarning]:
    """Yield warnings about functions that change their data."""
    changing = [
        side.name for side, function in zip(sides, examined, strict=True) if function.changes
    ]
    if not changing:
        return
    names = changing[0] if len(changing) == 1 else f"each of {', '.join(changing)}"
    if not functions.fresh_calls:
        yield CampaignWarning(
            "changes_its_input",
            f"{names} changes its data: from the second call on, a call gets the data that the "
            "first one left",
            "give setup=, which then runs before each call, untimed; a function that only counts "
            "or caches does not need it",
        )
        return
    yield CampaignWarning(
        "fresh_calls",
        f"{names} changes its data, so the data of each call is made again, untimed",
        "nothing to do if you want this",
    )
    if min(function.call_s for function in examined) < _MIN_CALL_S:
        yield CampaignWarning(
            "clock_in_call",
            "each call is timed separately and takes less than 1 µs: reading the clock is a part "
            "of this time, so the true difference is larger",
            "let the setup make more data",
        )
