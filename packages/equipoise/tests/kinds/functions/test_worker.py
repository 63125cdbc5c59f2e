"""Functions in fresh processes; no test depends on a time."""

from __future__ import annotations

import math
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from equipoise.kinds.functions import worker
from equipoise.kinds.functions.functions import Benchmark, code_benchmarks, function_benchmarks
from equipoise.kinds.functions.processes import Answer, process_pool
from equipoise.kinds.functions.trial_runs import TrialRunResult, trial_run_results
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput

SETUP = "x = [3, 1, 2]"


def examine_all(benchmarks: Sequence[Benchmark]) -> tuple[TrialRunResult, ...]:
    """Return functions after their trial runs."""
    return trial_run_results(benchmarks, timeout_s=600.0)


def answer_of(
    benchmarks: Sequence[Benchmark],
    calls: int = 1,
    *,
    fresh_data: bool = False,
    timeout_s: float = 600.0,
) -> Answer:
    """The answer of one process that runs all functions in two rounds."""
    everybody = list(range(len(benchmarks)))
    order = {
        "definition_order": everybody[::-1],
        "round_orders": [everybody, everybody[::-1]],
        "calls": [calls] * len(benchmarks),
        "fresh_data": fresh_data,
    }
    environment = dict(os.environ)
    with process_pool(benchmarks, lambda _: environment, lambda key: [key], timeout_s) as processes:
        return processes.run(("measured", 1), order)


def content(answer: Answer) -> dict[str, Any]:
    assert answer.content is not None
    return answer.content


def test_every_function_has_a_batch_in_every_round() -> None:
    batches = content(answer_of(code_benchmarks(["1 + 1", "2 + 2"], "", {}), calls=100))["batches"]
    assert [len(series) for series in batches] == [2, 2]
    assert all(value > 0 for series in batches for value in series)


def test_a_call_that_changes_its_data_is_noticed() -> None:
    benchmarks = code_benchmarks(["sorted(x)", "x.sort()", "x = x + [1]", "y = x"], SETUP, {})
    assert [function.changes_data for function in examine_all(benchmarks)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_changed_argument_is_noticed() -> None:
    benchmarks = function_benchmarks([sorted, list.sort], lambda: [3, 1, 2])
    assert [function.changes_data for function in examine_all(benchmarks)] == [False, True]


def test_changed_globals_and_closures_are_noticed() -> None:
    data, words = [3, 1, 2], ["b", "a"]
    benchmarks = function_benchmarks([lambda: sorted(data), lambda: words.sort()], None)
    assert [function.changes_data for function in examine_all(benchmarks)] == [False, True]


def test_fresh_calls_get_the_data_of_the_setup() -> None:
    code = "assert x == [3, 1, 2]; x.sort()"
    assert "batches" in content(answer_of(code_benchmarks([code], SETUP, {}), 5, fresh_data=True))
    once = content(answer_of(code_benchmarks([code], SETUP, {}), 5))
    assert (once["failed"], once["stage"]) == (0, "call")
    assert once["text"].startswith("AssertionError")


def test_fresh_calls_get_fresh_names() -> None:
    (benchmark,) = code_benchmarks(["assert x == [3, 1, 2]; x.sort()"], "", {"x": [3, 1, 2]})
    assert "batches" in content(answer_of([benchmark], 5, fresh_data=True))


def test_the_setup_s_names_are_kept_from_one_batch_to_the_next() -> None:
    (benchmark,) = code_benchmarks(["i += 1; assert i < 7"], "i = 0", {})
    assert "batches" in content(answer_of([benchmark], 3))
    assert "failed" in content(answer_of([benchmark], 4))


def test_async_functions_and_code_are_awaited() -> None:
    async def slow() -> None:
        import asyncio

        await asyncio.sleep(0.0)

    answer = answer_of(function_benchmarks([slow], None), 3)
    assert "batches" in content(answer)
    code = code_benchmarks(["await asyncio.sleep(0)"], "import asyncio", {})
    assert "batches" in content(answer_of(code, 3, fresh_data=True))


def test_processes_differ_in_addresses_and_hash_seeds() -> None:
    # Addresses and hash seeds of a fresh process, read by the code itself.
    probe = "raise ValueError(f\"{id(object)} {hash('a')}\")"
    seen = [content(answer_of(code_benchmarks([probe], "", {})))["text"] for _ in range(3)]
    assert len(set(seen)) == 3


def test_functions_are_defined_in_the_order_that_was_drawn() -> None:
    # A definition takes the next number of a module that the process shares.
    code = "import builtins; builtins.n = getattr(builtins, 'n', 0) + 1; number = builtins.n"
    benchmarks = code_benchmarks(["assert number == 2", "assert number == 1"], code, {})
    assert "batches" in content(answer_of(benchmarks))


def test_the_output_of_a_function_is_discarded(capfd: pytest.CaptureFixture[str]) -> None:
    assert "batches" in content(answer_of(code_benchmarks(["print('chatter')"], "", {})))
    assert capfd.readouterr().out == ""


def grows() -> Callable[[], int]:
    """Return a function that does more in every call."""
    data: list[int] = []

    def append() -> int:
        data.append(1)
        return sum(value * value for value in data)

    return append


@pytest.mark.parametrize(
    ("second_look", "answer"), [([20] * 16, False), ([*range(20, 52, 2)], True)]
)
def test_a_machine_that_slows_down_once_is_not_a_growing_function(
    monkeypatch: pytest.MonkeyPatch, second_look: list[int], answer: bool
) -> None:
    slows_down = [*range(10, 26)]
    looks = iter((slows_down, second_look))

    class Scripted:
        def __init__(self, *_: object, **__: object) -> None:
            self.batches: Iterator[int] = iter([1, *next(looks)])

        def start(self) -> None:
            pass

        def batch_ns(self, _: int) -> int:
            return next(self.batches)

    monkeypatch.setattr(worker, "Timer", Scripted)
    assert worker.calls_get_slower(0, {}, 1) is answer


def iter_of(numbers: list[int]) -> Iterator[int]:
    yield from numbers


def raises() -> None:
    raise ValueError("frobnicated")


@pytest.mark.parametrize(
    ("function", "setup", "kind", "what"),
    [
        (grows(), None, UnusableInput, "takes longer than the call before"),
        (raises, None, ConditionFailed, r"raises failed: ValueError: frobnicated \(line \d+"),
        (sorted, raises, ConditionFailed, "the setup of sorted failed: ValueError"),
        (lambda: iter_of([1]), None, UnusableInput, "returns a generator"),
        (lambda: os._exit(3), None, ConditionFailed, "failed: exit status 3"),
        (lambda: os.kill(os.getpid(), 9), None, ConditionFailed, "signal 9"),
    ],
)
def test_a_function_that_cannot_be_compared_is_refused(
    function: Callable[..., object],
    setup: Callable[[], object] | None,
    kind: type[EquipoiseError],
    what: str,
) -> None:
    with pytest.raises(kind, match=what) as refusal:
        examine_all(function_benchmarks([function], setup))
    assert refusal.value.hint


def test_a_function_that_takes_too_long_is_ended() -> None:
    benchmarks = code_benchmarks(["time.sleep(60)"], "import time", {})
    with pytest.raises(ConditionFailed, match=r"timed out after 0\.5 s"):
        trial_run_results(benchmarks, timeout_s=0.5)


@pytest.mark.parametrize("place", [0, 1])
def test_the_function_that_ends_its_process_is_known(place: int) -> None:
    codes = ["1 + 1", "1 + 1"]
    codes[place] = "os.kill(os.getpid(), 11)"
    answer = answer_of(code_benchmarks(codes, "import os", {}))
    assert (answer.content, answer.report.signal, answer.running_index) == (None, 11, place)


def test_the_function_that_hangs_is_known() -> None:
    benchmarks = code_benchmarks(["1 + 1", "time.sleep(60)"], "import time", {})
    answer = answer_of(benchmarks, timeout_s=3.0)
    assert (answer.content, answer.report.timed_out, answer.running_index) == (None, True, 1)


def test_a_process_that_answers_names_no_function() -> None:
    assert answer_of(code_benchmarks(["1 + 1"], "", {})).running_index is None


def test_a_method_of_a_module_is_as_fresh_as_a_function() -> None:
    benchmarks = function_benchmarks([random.random, os.getpid], None)
    assert "batches" in content(answer_of(benchmarks))


def test_a_function_has_its_modules_its_closure_its_defaults_and_itself() -> None:
    value = 7

    def again(number: int = 2, *, step: int = 1) -> int:
        return value if number == 0 else again(number - step)

    def reached(default: tuple[int, ...] = (1, 2)) -> None:
        words = {again(), *default, len(os.sep), int(math.sqrt(4))}
        raise ValueError(f"{sorted(words)} {reached.__name__}")

    text = content(answer_of(function_benchmarks([reached], None)))["text"]
    assert text.startswith("ValueError: [1, 2, 7] reached")


def test_the_module_that_a_function_was_defined_in_is_not_imported() -> None:
    def reached() -> None:
        raise ValueError([name for name in sys.modules if "functions.test_" in name])

    assert content(answer_of(function_benchmarks([reached], None)))["text"].startswith(
        "ValueError: []"
    )


def test_an_object_of_a_class_of_the_user_is_sent_by_cloudpickle() -> None:
    class Counter:
        def __call__(self) -> None:
            raise ValueError(type(self).__name__)

    benchmarks = function_benchmarks([Counter()], None)
    assert "cloudpickle.cloudpickle" in benchmarks[0].modules
    assert content(answer_of(benchmarks))["text"].startswith("ValueError: Counter")
