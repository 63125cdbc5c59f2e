"""A pytest fixture for benchmarks that `equipoise gate --kind pytest` compares.

::

    def test_parse(equipoise_benchmark):
        assert equipoise_benchmark(parse, TEXT) == EXPECTED

The fixture `benchmark` of pytest-benchmark is supported as well, if that plugin is installed.

Under a gate each pytest process is one trial. The fixture calls the function many times, and the
mean seconds of a call are the metric ``file.py::test_parse time_s``. In any other run of pytest the
fixture calls the function once, without timing.
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
"""Seconds for which pytest-benchmark repeats a function under a gate, instead of 1 s."""
METRICS_VARIABLE = "EQUIPOISE_METRICS"
"""Environment variable with the path of the file for metrics; a gate sets it."""
REVISION_TREE_VARIABLE = "EQUIPOISE_GATE_TREE"
"""Environment variable with the working tree of the measured revision."""
USER_TREE_VARIABLE = "EQUIPOISE_GATE_INSTEAD_OF"
"""Environment variable with the user's own working tree; no module may be imported from there."""

BATCH_COUNT = 10
MIN_BATCH_S = 0.01
"""Minimum seconds of a batch of calls, long enough for any clock."""
_MAX_BATCH_CALLS = 1 << 24
"""Maximum number of calls in a batch, for functions that take almost no time."""
_INSTALLATION_FOLDERS = ("site-packages", "dist-packages")

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class Benchmark:
    """A callable fixture that calls the function of one test."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._was_used = False

    def __call__(
        self,
        function: Callable[Arguments, Returned],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Returned:
        """Call the function, many times under a gate; return the result of the first call.

        Raise `RuntimeError` if a test calls the fixture twice: a test has only one metric.
        """
        if self._was_used:
            raise RuntimeError(f"{FIXTURE} was called twice in {self._name}: write two tests")
        self._was_used = True
        result = function(*args, **kwargs)
        if os.environ.get(METRICS_VARIABLE):
            # A late import, because most runs of pytest measure nothing.
            from equipoise.helpers.equipoise_metrics import report_iterations

            seconds, resolution_s = _time_calls(lambda: function(*args, **kwargs))
            report_iterations(f"{self._name} time_s", seconds, resolution_s)
        return result


@pytest.fixture
def equipoise_benchmark(request: pytest.FixtureRequest) -> Benchmark:
    """Fixture that calls a function; `equipoise gate` compares its times between revisions."""
    return Benchmark(request.node.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Under a gate, shorten the runs of pytest-benchmark, unless the user set their time."""
    option = "--benchmark-max-time"
    is_time_chosen = any(argument.startswith(option) for argument in config.invocation_params.args)
    if (
        os.environ.get(REVISION_TREE_VARIABLE)
        and not is_time_chosen
        and hasattr(config.option, "benchmark_max_time")
    ):
        config.option.benchmark_max_time = Decimal(str(PYTEST_BENCHMARK_S))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Under a gate, report the mean that pytest-benchmark measured in a test."""
    if not os.environ.get(METRICS_VARIABLE) or not os.environ.get(REVISION_TREE_VARIABLE):
        return
    fixture = getattr(item, "funcargs", {}).get(PYTEST_BENCHMARK)
    # Another fixture may have the name `benchmark`, but it lacks these statistics.
    stats = getattr(getattr(fixture, "stats", None), "stats", None)
    mean = getattr(stats, "mean", None)
    if isinstance(mean, float):
        from equipoise.helpers.equipoise_metrics import report

        report(f"{item.nodeid} time_s", mean, unit="s")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under a gate, select only the benchmarks."""
    if not os.environ.get(REVISION_TREE_VARIABLE):
        return
    benchmarks: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        fixtures = {FIXTURE, PYTEST_BENCHMARK}.intersection(getattr(item, "fixturenames", ()))
        (benchmarks if fixtures else deselected).append(item)
    items[:] = benchmarks
    config.hook.pytest_deselected(items=deselected)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under a gate, refuse modules from the user's tree: both revisions would use them."""
    user_tree = os.environ.get(USER_TREE_VARIABLE)
    if not os.environ.get(REVISION_TREE_VARIABLE) or not user_tree:
        return
    foreign_modules = sorted(_modules_from(Path(user_tree)))
    if foreign_modules:
        pytest.exit(
            f"{foreign_modules[0]} was imported from {user_tree}, which is neither revision: let "
            "--build install the revision in its own environment, or set PYTHONPATH to its sources",
            pytest.ExitCode.USAGE_ERROR,
        )


def _modules_from(tree: Path) -> Iterator[str]:
    prefix = f"{tree.resolve()}{os.sep}"
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # An environment inside the tree may contain installed packages, which are allowed.
        if not isinstance(file, str) or any(folder in file for folder in _INSTALLATION_FOLDERS):
            continue
        is_helper = name == "equipoise" or name.startswith("equipoise.helpers")
        if not is_helper and os.path.realpath(file).startswith(prefix):
            yield name


def _time_calls(call: Callable[[], object]) -> tuple[list[float], float]:
    """Return the mean seconds of a call in each batch, and the resolution of these means."""

    def batch_s(call_count: int) -> float:
        started_s = time.perf_counter()
        for _ in range(call_count):
            call()
        return time.perf_counter() - started_s

    call_count = 1
    while batch_s(call_count) < MIN_BATCH_S and call_count < _MAX_BATCH_CALLS:
        call_count *= 2
    resolution_s = time.get_clock_info("perf_counter").resolution / call_count
    return [batch_s(call_count) / call_count for _ in range(BATCH_COUNT)], resolution_s
