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
from equipoise.kinds.functions.functions import Side, code_sides, function_sides
from equipoise.kinds.functions.terms import functions_of
from equipoise.kinds.functions.trial_runs import ExaminedFunction
from equipoise.model.errors import UnusableInput


def first() -> int:
    return sum(range(100))


def second() -> int:
    return sum(range(100))


def test_functions_have_their_own_names_and_equal_names_are_numbered() -> None:
    names = [side.name for side in function_sides([first, second, first], None)]
    assert names == ["first", "second", "first (2)"]
    assert [side.name for side in function_sides([lambda: 1, lambda: 2], None)] == [
        "<lambda>",
        "<lambda> (2)",
    ]


def test_names_can_be_given() -> None:
    sides = function_sides([first, second], None, ["old", "new"])
    assert [side.name for side in sides] == ["old", "new"]
    with pytest.raises(UnusableInput, match="1 names for 2"):
        function_sides([first, second], None, ["old"])


def test_modules_are_imported_before_the_clock_runs() -> None:
    import fractions

    def third() -> object:
        return fractions.Fraction(1, 3)

    (side,) = function_sides([third], None)
    assert "fractions" in side.modules


def test_the_same_function_has_the_same_digest_and_another_one_another() -> None:
    first_side, same_side, other = (
        code_sides([code], "x = 1", {})[0].digest for code in ("x + 1", "x + 1", "x + 2")
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
        function_sides([first, function], None)
    assert refusal.value.hint


def test_a_setup_must_be_a_function() -> None:
    with pytest.raises(UnusableInput, match="setup is not a function"):
        function_sides([first, second], [3, 1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codes", "setup", "what"),
    [
        (["", "x"], "", "is empty"),
        (["x", "# nothing"], "", "is empty"),
        (["x"], "# nothing", "setup is empty"),
        (["x ="], "", "is not code that can be timed"),
        (["return 1"], "", "is not code that can be timed"),
        (["x"], "from math import *", "setup is not code that can be timed"),
        ([len], "", "is not a text"),
    ],
)
def test_code_that_cannot_be_compared_is_refused(codes: Any, setup: str, what: str) -> None:
    with pytest.raises(UnusableInput, match=what) as refusal:
        code_sides(codes, setup, {})
    assert refusal.value.hint


def test_only_the_names_that_code_uses_are_sent() -> None:
    available = {"x": 1, "lock": threading.Lock()}
    assert code_sides(["x + 1"], "", available)[0].names is not None
    with pytest.raises(UnusableInput, match="lock, which lock.locked"):
        code_sides(["lock.locked()"], "", available)


def test_a_name_that_shadows_a_builtin_is_sent_and_a_builtin_is_not() -> None:
    (shadowed,) = code_sides(["[sum(x) for x in ([1],)]"], "", {"sum": max, "len": len})
    assert shadowed.names is not None
    assert pickle.loads(shadowed.names) == {"sum": max}
    assert code_sides(["len([1])"], "", {"len": len})[0].names is None


def test_a_name_whose_value_is_none_is_sent() -> None:
    (side,) = code_sides(["x is None"], "", {"x": None})
    assert side.names is not None


def test_an_attribute_is_not_a_name() -> None:
    available = {"x": [1], "append": threading.Lock()}
    (side,) = code_sides(["(lambda: x.append(1))()"], "", available)
    assert side.names is not None
    assert pickle.loads(side.names) == {"x": [1]}


def test_code_that_awaits_is_awaited() -> None:
    plain, awaiting = code_sides(["f()", "await f()"], "async def f(): pass", {})
    assert (plain.awaits, awaiting.awaits) == (False, True)
    assert "asyncio" in awaiting.modules


def repeating_line(sides: Sequence[Side], *, names: Sequence[str] = (), **limits: Any) -> str:
    """Return the line that repeats the comparison."""
    examined = [ExaminedFunction(1e-6, 1e-6, changes=False)] * len(sides)
    request = FunctionsRequest(CampaignLimits(seed=7, **limits), names, ranking=False)
    plan = functions_plan(sides, examined, None, request)
    return functions_of(plan).again


def test_the_line_that_repeats_the_comparison_has_the_changed_limits() -> None:
    sides = code_sides(["1 + 1", "2"], "", {})
    usual: dict[str, Any] = {
        "alpha": 0.05,
        "min_effect": 1.0,
        "timeout": 600.0,
        "warmup": 1,
        "patient": False,
    }
    assert repeating_line(sides, **usual) == "eq.compare_code('1 + 1', '2', ranking=False, seed=7)"
    assert repeating_line(sides, names=["a", "b"], blocks=5, min_effect=3.0) == (
        "eq.compare_code('1 + 1', '2', blocks=5, min_effect=3.0, names=['a', 'b'], "
        "ranking=False, seed=7)"
    )
    assert repeating_line(function_sides([first, second], None), alpha=0.01) == (
        "eq.compare(first, second, alpha=0.01, ranking=False, seed=7)"
    )


def test_functions_whose_names_are_not_known_have_no_line() -> None:
    assert repeating_line(function_sides([first, lambda: 1], None)) == ""
    names = ["old", "new"]
    assert repeating_line(function_sides([first, second], None, names), names=names) == ""
