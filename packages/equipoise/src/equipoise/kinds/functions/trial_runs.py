"""Trial runs before a campaign of functions: what a call takes, and what it changes.

Each function runs in a process of its own. Nothing of these runs is kept: they choose the number
of calls in a batch, and refuse what cannot be compared before anything is measured.
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
BATCH_S = 0.00025
"""Shortest batch of the faster function: five thousand times what the clock can tell."""
ROUNDS = 24
"""Batches of each function in a process, enough for the change-points of `stats.warm_up`."""
PROCESS_S = 0.25
"""Seconds of measuring in a process, beyond which there are fewer batches."""
_FRESH_BATCH_S = 0.002
"""Longest batch where each call has its own setup, the setups included."""
_ALIKE = 8
"""Ratio of the numbers of calls up to which all functions get the same."""
_CLOCK_S = 1e-6
"""Seconds of a call that is timed alone, below which reading the clock takes a part of it."""
_RUN_LATER = frozenset({"generator", "coroutine", "async_generator"})


class Examined(Struct, frozen=True):
    """One function after its trial run."""

    call_s: float
    """Seconds of one call."""
    whole_s: float
    """Seconds of one call with the setup that it needs."""
    changes: bool
    """Whether a call changes what the next call works on."""
    is_watched: bool = True
    """Whether every change of what a call works on would have been seen."""


def examine(sides: Sequence[Side], *, timeout_s: float) -> tuple[Examined, ...]:
    """Run each function by itself, in a process that may take ``timeout_s``.

    Raise `UnusableInput` if a function cannot be loaded in a fresh process, its call runs nothing,
    or each call takes longer than the one before; `ConditionFailed` if a function or its setup
    raises, takes too long or ends its process.
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


def _examined(side: Side, sides: Sequence[Side], answer: Answer, timeout_s: float) -> Examined:
    content = answer.content
    if content is None:
        _, ended = failure_of(answer.report, timeout_s)
        failure = ended or "its process ended early"
        raise ConditionFailed(
            f"{side.name} failed: {failure}{stderr_suffix(answer.report.error_tail)}",
            hint="call it by itself; what takes longer than timeout= needs a larger one",
        )
    if "failed" in content:
        raise _failure_in(sides, content)
    if content["returns"] in _RUN_LATER:
        raise runs_nothing(side.name, f"a {content['returns']}")
    if content["grows"]:
        raise UnusableInput(
            f"each call of {side.name} takes longer than the one before: it adds to what it "
            "works on",
            hint="give setup=, which makes what a call works on anew",
        )
    return Examined(
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
    return ConditionFailed(f"{name} failed: {text}", hint="correct it, or what it works on")


def calls_and_rounds(examined: Sequence[Examined], *, fresh_calls: bool) -> tuple[list[int], int]:
    """Return the number of calls in a batch of each function, and the number of batches.

    All functions get the same number of calls where they take about as long, so that what a batch
    adds is alike too. The rule treats all functions alike: exchanging two exchanges their numbers.
    """
    # The least power of two with which a batch is long enough.
    calls = [1 << (math.ceil(BATCH_S / function.call_s) - 1).bit_length() for function in examined]
    alike = max(calls) <= _ALIKE * min(calls)
    if alike:
        calls = [max(calls)] * len(calls)
    if fresh_calls:
        calls = [
            max(1, min(count, int(_FRESH_BATCH_S / function.whole_s)))
            for count, function in zip(calls, examined, strict=True)
        ]
        if alike:
            calls = [min(calls)] * len(calls)
    seconds = [function.whole_s if fresh_calls else function.call_s for function in examined]
    round_s = sum(count * call_s for count, call_s in zip(calls, seconds, strict=True))
    return calls, max(1, min(ROUNDS, int(PROCESS_S / round_s)))


def warnings_of(
    sides: Sequence[Side], examined: Sequence[Examined], functions: FunctionsPlan
) -> Iterator[CampaignWarning]:
    """Yield what the trial runs tell a user beyond numbers."""
    changing = [
        side.name for side, function in zip(sides, examined, strict=True) if function.changes
    ]
    if not changing:
        return
    names = changing[0] if len(changing) == 1 else f"each of {', '.join(changing)}"
    if not functions.fresh_calls:
        yield CampaignWarning(
            "changes_its_input",
            f"{names} changes what it works on: from the second call on, a call works on what the "
            "first one left",
            "give setup=, which then runs before each call, untimed; a function that only counts "
            "or caches needs none",
        )
        return
    yield CampaignWarning(
        "fresh_calls",
        f"{names} changes what it works on, so each call gets that anew, untimed",
        "nothing to do if that is what you want",
    )
    if min(function.call_s for function in examined) < _CLOCK_S:
        yield CampaignWarning(
            "clock_in_call",
            "each call is timed alone, and takes less than 1 µs: reading the clock is a part of "
            "it, so the true difference is larger",
            "let the setup make more to work on",
        )
