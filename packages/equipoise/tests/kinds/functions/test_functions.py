"""Functions and code of the user, before anything runs."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from equipoise.campaign.plans import FunctionsRequest
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.functions.conducting import functions_plan
from equipoise.kinds.functions.functions import Benchmark, code_benchmarks, function_benchmarks
from equipoise.kinds.functions.terms import functions_of
from equipoise.kinds.functions.trial_runs import TrialRunResult
from equipoise.model.errors import UnusableInput


def first() -> int:
    return sum(range(100))


def second() -> int:
    return sum(range(100))


def test_functions_have_their_own_names_and_equal_names_are_numbered() -> None:
    names = [benchmark.name for benchmark in function_benchmarks([first, second, first], None)]
    assert names == ["first", "second", "first (2)"]
    assert [benchmark.name for benchmark in function_benchmarks([lambda: 1, lambda: 2], None)] == [
        "<lambda>",
        "<lambda> (2)",
    ]


def test_names_can_be_given() -> None:
    benchmarks = function_benchmarks([first, second], None, ["old", "new"])
    assert [benchmark.name for benchmark in benchmarks] == ["old", "new"]
    with pytest.raises(UnusableInput, match="names= has 1 name for 2"):
        function_benchmarks([first, second], None, ["old"])


def test_modules_are_imported_before_the_clock_runs() -> None:
    import fractions

    def third() -> object:
        return fractions.Fraction(1, 3)

    (benchmark,) = function_benchmarks([third], None)
    assert "fractions" in benchmark.modules


def test_the_same_function_has_the_same_digest_and_another_one_another() -> None:
    first_side, same_side, other = (
        code_benchmarks([code], "x = 1", {})[0].digest for code in ("x + 1", "x + 1", "x + 2")
    )
    assert first_side == same_side != other


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda: (yield 1), "returns a generator"),
        (threading.Lock().acquire, "cannot be sent to a fresh process"),
    ],
)
def test_a_function_that_cannot_be_compared_is_refused(function: Any, what: str) -> None:
    with pytest.raises(UnusableInput, match=what) as refusal:
        function_benchmarks([first, function], None)
    assert refusal.value.hint


def test_a_setup_must_be_a_function() -> None:
    with pytest.raises(UnusableInput, match="setup is not a function"):
        function_benchmarks([first, second], [3, 1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codes", "setup", "what"),
    [
        (["", "x"], "", "is empty"),
        (["x", "# nothing"], "", "is empty"),
        (["x"], "# nothing", "setup is empty"),
        (["x ="], "", "is not code that can be timed"),
        (["return 1"], "", "is not code that can be timed"),
        (["x"], "from math import *", "setup is not code that can be timed"),
        ([len], "", "is not a string of Python code"),
    ],
)
def test_code_that_cannot_be_compared_is_refused(codes: Any, setup: str, what: str) -> None:
    with pytest.raises(UnusableInput, match=what) as refusal:
        code_benchmarks(codes, setup, {})
    assert refusal.value.hint


def test_only_the_names_that_code_uses_are_sent() -> None:
    available = {"x": 1, "lock": threading.Lock()}
    assert code_benchmarks(["x + 1"], "", available)[0].variables is not None
    with pytest.raises(UnusableInput, match="lock, which lock.locked"):
        code_benchmarks(["lock.locked()"], "", available)


def test_a_name_that_shadows_a_builtin_is_sent_and_a_builtin_is_not() -> None:
    (shadowed,) = code_benchmarks(["[sum(x) for x in ([1],)]"], "", {"sum": max, "len": len})
    assert shadowed.variables is not None
    assert pickle.loads(shadowed.variables) == {"sum": max}
    assert code_benchmarks(["len([1])"], "", {"len": len})[0].variables is None


def test_a_name_whose_value_is_none_is_sent() -> None:
    (benchmark,) = code_benchmarks(["x is None"], "", {"x": None})
    assert benchmark.variables is not None


def test_an_attribute_is_not_a_name() -> None:
    available = {"x": [1], "append": threading.Lock()}
    (benchmark,) = code_benchmarks(["(lambda: x.append(1))()"], "", available)
    assert benchmark.variables is not None
    assert pickle.loads(benchmark.variables) == {"x": [1]}


def test_code_that_awaits_is_awaited() -> None:
    plain, awaiting = code_benchmarks(["f()", "await f()"], "async def f(): pass", {})
    assert (plain.is_async, awaiting.is_async) == (False, True)
    assert "asyncio" in awaiting.modules


def repeating_line(
    benchmarks: Sequence[Benchmark], *, names: Sequence[str] = (), **limits: Any
) -> str:
    """Return the line that repeats the comparison."""
    examined = [TrialRunResult(1e-6, 1e-6, changes_data=False)] * len(benchmarks)
    request = FunctionsRequest(CampaignLimits(seed=7, **limits), names, ranking=False)
    plan = functions_plan(benchmarks, examined, None, request)
    return functions_of(plan).python_line


def test_the_line_that_repeats_the_comparison_has_the_changed_limits() -> None:
    benchmarks = code_benchmarks(["1 + 1", "2"], "", {})
    usual: dict[str, Any] = {
        "alpha": 0.05,
        "min_effect": 1.0,
        "timeout": 600.0,
        "warmup": 1,
        "patient": False,
    }
    assert (
        repeating_line(benchmarks, **usual)
        == "eq.compare_code('1 + 1', '2', ranking=False, seed=7)"
    )
    assert repeating_line(benchmarks, names=["a", "b"], blocks=5, min_effect=3.0) == (
        "eq.compare_code('1 + 1', '2', blocks=5, min_effect=3.0, names=['a', 'b'], "
        "ranking=False, seed=7)"
    )
    assert repeating_line(function_benchmarks([first, second], None), alpha=0.01) == (
        "eq.compare(first, second, alpha=0.01, ranking=False, seed=7)"
    )


def test_functions_whose_names_are_not_known_have_no_line() -> None:
    assert repeating_line(function_benchmarks([first, lambda: 1], None)) == ""
    names = ["old", "new"]
    assert repeating_line(function_benchmarks([first, second], None, names), names=names) == ""
