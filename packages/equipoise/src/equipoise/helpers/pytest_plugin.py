"""A pytest fixture whose benchmarks `equipoise gate --kind pytest` compares.

::

    def test_parse(equipoise_benchmark):
        assert equipoise_benchmark(parse, TEXT) == EXPECTED

The fixture `benchmark` of pytest-benchmark is read as well, where that plugin is installed.

Under a gate each pytest process is one trial: the function is called again and again, and the mean
of its calls is the metric ``file.py::test_parse time_s`` of that trial. In any other run of pytest
the function is called once, and nothing is timed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

FIXTURE = "equipoise_benchmark"
PYTEST_BENCHMARK = "benchmark"
"""Fixture of pytest-benchmark."""
PYTEST_BENCHMARK_S = 0.1
"""Seconds for which pytest-benchmark repeats a function under a gate, instead of its own 1 s."""
VARIABLE = "EQUIPOISE_METRICS"
TREE = "EQUIPOISE_GATE_TREE"
"""The working tree of the revision that is being measured."""
INSTEAD_OF = "EQUIPOISE_GATE_INSTEAD_OF"
"""The user's own working tree, from which nothing may come then."""

BATCHES = 10
BATCH_S = 0.01
"""A batch is of so many calls that it takes at least about so long; the clock is then no matter."""
_INSTALLED = ("site-packages", "dist-packages")

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class Benchmark:
    """Calls the function of one test."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._was_used = False

    def __call__(
        self,
        function: Callable[Arguments, Returned],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Returned:
        """Call the function, under a gate often; return the result of its first call.

        Raise `RuntimeError` if a test measures two things: they would be one metric.
        """
        if self._was_used:
            raise RuntimeError(f"{FIXTURE} was called twice in {self._name}: write two tests")
        self._was_used = True
        result = function(*args, **kwargs)
        if os.environ.get(VARIABLE):
            # Imported where it is used: most runs of pytest measure nothing.
            from equipoise.helpers.equipoise_metrics import report_iterations

            seconds, step_s = _timed(lambda: function(*args, **kwargs))
            report_iterations(f"{self._name} time_s", seconds, step_s)
        return result


@pytest.fixture
def equipoise_benchmark(request: pytest.FixtureRequest) -> Benchmark:
    """Call a function; under `equipoise gate` its time is compared between two revisions."""
    return Benchmark(request.node.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Under a gate let pytest-benchmark measure briefly, unless the user chose its time."""
    option = "--benchmark-max-time"
    chosen = any(word.startswith(option) for word in config.invocation_params.args)
    if os.environ.get(TREE) and not chosen and hasattr(config.option, "benchmark_max_time"):
        config.option.benchmark_max_time = Decimal(str(PYTEST_BENCHMARK_S))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Under a gate report what pytest-benchmark measured in a test."""
    if not os.environ.get(VARIABLE) or not os.environ.get(TREE):
        return
    fixture = getattr(item, "funcargs", {}).get(PYTEST_BENCHMARK)
    # A fixture of that name that is not pytest-benchmark's has no such figures.
    stats = getattr(getattr(fixture, "stats", None), "stats", None)
    mean = getattr(stats, "mean", None)
    if isinstance(mean, float):
        from equipoise.helpers.equipoise_metrics import report

        report(f"{item.nodeid} time_s", mean, unit="s")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under a gate run the benchmarks only."""
    if not os.environ.get(TREE):
        return
    benchmarks: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        uses = {FIXTURE, PYTEST_BENCHMARK}.intersection(getattr(item, "fixturenames", ()))
        (benchmarks if uses else others).append(item)
    items[:] = benchmarks
    config.hook.pytest_deselected(items=others)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under a gate nothing may have come from the user's tree: both revisions would share it."""
    user_tree = os.environ.get(INSTEAD_OF)
    if not os.environ.get(TREE) or not user_tree:
        return
    strangers = sorted(_modules_of(Path(user_tree)))
    if strangers:
        pytest.exit(
            f"{strangers[0]} was imported from {user_tree}, which is neither revision: let --build "
            "install the revision into an environment of its own, or set PYTHONPATH to its sources",
            pytest.ExitCode.USAGE_ERROR,
        )


def _modules_of(tree: Path) -> Iterator[str]:
    inside = f"{tree.resolve()}{os.sep}"
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # What is installed in an environment that lies in the tree is no source of the tree.
        if not isinstance(file, str) or any(folder in file for folder in _INSTALLED):
            continue
        helps = name == "equipoise" or name.startswith("equipoise.helpers")
        if not helps and os.path.realpath(file).startswith(inside):
            yield name


def _timed(call: Callable[[], object]) -> tuple[list[float], float]:
    """Return the seconds of one call, as the mean of each of several batches, and their step."""

    def batch_s(calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - started

    calls = 1
    while batch_s(calls) < BATCH_S and calls < 1 << 24:
        calls *= 2
    step_s = time.get_clock_info("perf_counter").resolution / calls
    return [batch_s(calls) / calls for _ in range(BATCHES)], step_s
