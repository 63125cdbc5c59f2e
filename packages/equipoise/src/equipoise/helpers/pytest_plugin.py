"""A pytest fixture for benchmarks that `equipoise gate --kind pytest` compares.

::

    def test_parse(equipoise_benchmark):
        assert equipoise_benchmark(parse, TEXT) == EXPECTED

If the plugin pytest-benchmark or pytest-codspeed is installed, the tests with its fixture
`benchmark` are benchmarks, too. So are the tests with the marker `benchmark` of pytest-codspeed.
If both plugins are installed, pytest-codspeed measures, as it does with the option `--codspeed`.

Under a gate each pytest process is one trial. The fixture calls the function many times, and the
mean seconds of a call are the metric ``file.py::test_parse time_s``. In any other run of pytest the
fixture calls the function once, without timing. The fixtures wait for async functions.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

FIXTURE = "equipoise_benchmark"
PLUGIN_FIXTURES = ("benchmark", "codspeed_benchmark")
"""Fixtures of pytest-benchmark and pytest-codspeed; the latter has both."""
PLUGIN_PACKAGES = ("pytest_benchmark.", "pytest_codspeed.")
"""Prefixes of the modules of both plugins."""
PYTEST_BENCHMARK_S = 0.1
"""Seconds for which pytest-benchmark repeats a function under a gate, instead of 1 s."""
CODSPEED_OPTIONS = {
    "codspeed": True,
    "codspeed_mode": "walltime",
    "codspeed_warmup_time": 0.02,
    "codspeed_max_time": 0.1,
}
"""Options of pytest-codspeed under a gate: it measures seconds, and warms up and repeats a function
for so many seconds, instead of 1 s and 3 s."""
CODSPEED_MARKERS = ("benchmark", "codspeed_benchmark")
"""Markers of pytest-codspeed for a whole test that is a benchmark."""
METRICS_VARIABLE = "EQUIPOISE_METRICS"
"""Environment variable with the path of the file for metrics; a gate sets it."""
ALLOCATIONS_VARIABLE = "EQUIPOISE_ALLOCATIONS"
"""Environment variable with the folder of counted allocations; a gate that counts sets it."""
RUNNING_VARIABLE = "EQUIPOISE_PYTEST_RUNNING"
"""Environment variable with the path of a file that has the name of the running test, until the
session ends."""
REVISION_TREE_VARIABLE = "EQUIPOISE_GATE_TREE"
"""Environment variable with the working tree of the measured revision."""
USER_TREE_VARIABLE = "EQUIPOISE_GATE_INSTEAD_OF"
"""Environment variable with the user's own working tree; no module may be imported from there."""

NODE_VARIABLE = "EQUIPOISE_PYTEST_NODE"
"""Environment variable with the id of the only benchmark to run; only its file is collected."""
LIST_VARIABLE = "EQUIPOISE_PYTEST_LIST"
"""Environment variable with a file for the ids of the benchmarks, which then do not run."""

BATCH_COUNT = 10
MIN_BATCH_S = 0.01
"""Minimum seconds of a batch of calls, long enough for any clock."""
_MAX_BATCH_CALLS = 1 << 24
"""Maximum number of calls in a batch, for functions that take almost no time."""
_CODSPEED_PLUGIN = "codspeed_plugin"
"""Name under which pytest-codspeed registers its own state."""
_CODSPEED_COUNT = pytest.StashKey[int]()
"""Number of measurements of pytest-codspeed before a test."""

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
        with awaiting(function) as call:
            result: Returned = call(*args, **kwargs)
            if not os.environ.get(METRICS_VARIABLE):
                return result
            if os.environ.get(ALLOCATIONS_VARIABLE):
                from equipoise.helpers.pytest_counting import report_counts

                report_counts(self._name, lambda: call(*args, **kwargs))
            else:
                # A late import, because most runs of pytest measure nothing.
                from equipoise.helpers.equipoise_metrics import report_iterations

                seconds, resolution_s = _time_calls(lambda: call(*args, **kwargs))
                report_iterations(f"{self._name} time_s", seconds, resolution_s)
        return result


@pytest.fixture
def equipoise_benchmark(request: pytest.FixtureRequest) -> Benchmark:
    """Fixture that calls a function; `equipoise gate` compares its times between revisions."""
    return Benchmark(request.node.nodeid)


@contextlib.contextmanager
def awaiting(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield a function that waits for the result of an async function.

    A plain function stays as it is. The new function raises `RuntimeError` in an async test.
    """
    if not inspect.iscoroutinefunction(function):
        yield function
        return
    import asyncio

    with asyncio.Runner() as runner:
        loop = runner.get_loop()

        def wait(*args: object, **kwargs: object) -> object:
            coroutine = function(*args, **kwargs)
            try:
                return loop.run_until_complete(coroutine)
            finally:
                coroutine.close()

        yield wait


class AwaitingFixture:
    """The fixture of pytest-benchmark or pytest-codspeed, which waits for async functions."""

    def __init__(self, fixture: Callable[..., Any]) -> None:
        object.__setattr__(self, "_fixture", fixture)

    def __call__(self, function: Callable[..., Any], *args: object, **kwargs: object) -> object:
        """Call the fixture."""
        with awaiting(function) as call:
            return self._fixture(call, *args, **kwargs)

    def pedantic(self, target: Callable[..., Any], *args: object, **kwargs: object) -> object:
        """Call the method of the fixture with the same name."""
        with awaiting(target) as call:
            return self._fixture.pedantic(call, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fixture."""
        return getattr(self._fixture, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute of the fixture, such as ``group``."""
        setattr(self._fixture, name, value)


def _fixture_under_gate(fixture: Any, name: str) -> AwaitingFixture:
    if not os.environ.get(ALLOCATIONS_VARIABLE):
        return AwaitingFixture(fixture)
    from equipoise.helpers.pytest_counting import CountingFixture

    return AwaitingFixture(CountingFixture(fixture, name))


def _is_measured() -> bool:
    return bool(os.environ.get(METRICS_VARIABLE)) and _is_under_gate()


def _is_under_gate() -> bool:
    return bool(os.environ.get(REVISION_TREE_VARIABLE))


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Under a gate, let the installed plugins measure, and briefly; options of the user win."""
    if not _is_under_gate():
        return
    options, arguments = vars(config.option), config.invocation_params.args
    chosen = {
        argument.partition("=")[0].removeprefix("--").replace("-", "_")
        for argument in arguments
        if argument.startswith("--")
    }
    gate_options: dict[str, object] = {
        **CODSPEED_OPTIONS,
        "benchmark_max_time": Decimal(str(PYTEST_BENCHMARK_S)),
    }
    if not chosen & {"benchmark_disable", "benchmark_skip"}:
        # The configuration of a project may switch its benchmarks off for ordinary tests.
        gate_options |= {"benchmark_enable": True, "benchmark_skip": False}
    options.update(
        (name, value)
        for name, value in gate_options.items()
        if name in options and name not in chosen
    )
    options["collectonly"] = options["collectonly"] or bool(os.environ.get(LIST_VARIABLE))
    node = os.environ.get(NODE_VARIABLE)
    if node:
        config.args = [str(config.rootpath / node)]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Under a gate, let the fixtures of plugins wait for async functions."""
    arguments: dict[str, Any] = pyfuncitem.funcargs
    fixtures = {name: arguments[name] for name in PLUGIN_FIXTURES if name in arguments}
    if not _is_under_gate():
        return (yield)
    arguments.update(
        (name, _fixture_under_gate(fixture, pyfuncitem.nodeid))
        for name, fixture in fixtures.items()
        # Another fixture may have the name `benchmark`, too.
        if type(fixture).__module__.startswith(PLUGIN_PACKAGES)
    )
    try:
        return (yield)
    finally:
        arguments.update(fixtures)


def _codspeed_means(config: pytest.Config) -> list[float]:
    """Return the mean seconds of each benchmark that pytest-codspeed has measured."""
    plugin = config.pluginmanager.get_plugin(_CODSPEED_PLUGIN)
    if plugin is None or not plugin.is_codspeed_enabled:
        return []
    benchmarks = getattr(getattr(plugin, "instrument", None), "benchmarks", None)
    if benchmarks is None:
        pytest.exit(
            "pytest-codspeed does not measure wall time: install version 3 or later, or add "
            "-p no:codspeed",
            pytest.ExitCode.USAGE_ERROR,
        )
    return [benchmark.stats.mean_ns / 1e9 for benchmark in benchmarks]


def _plugin_mean(item: pytest.Item) -> float | None:
    """Return the mean seconds of a test, by the plugin that measured it; ``None`` if none did."""
    count = item.stash.get(_CODSPEED_COUNT, None)
    if count is not None and (means := _codspeed_means(item.config)[count:]):
        return means[0]
    fixture = getattr(item, "funcargs", {}).get(PLUGIN_FIXTURES[0])
    # Another fixture may have the name `benchmark`, but it lacks these statistics.
    stats = getattr(getattr(fixture, "stats", None), "stats", None)
    mean = getattr(stats, "mean", None)
    return mean if isinstance(mean, float) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Under a gate, count the measurements of pytest-codspeed before a test."""
    if running := os.environ.get(RUNNING_VARIABLE):
        Path(running).write_text(item.nodeid, encoding="utf-8")
    if _is_under_gate():
        item.stash[_CODSPEED_COUNT] = len(_codspeed_means(item.config))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Under a gate, report the mean that a plugin measured in a test."""
    if _is_measured():
        mean_s = _plugin_mean(item)
        if mean_s is not None:
            from equipoise.helpers.equipoise_metrics import report

            report(f"{item.nodeid} time_s", mean_s, unit="s")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under a gate, select only the benchmarks."""
    if not _is_under_gate():
        return
    has_codspeed = config.pluginmanager.has_plugin(_CODSPEED_PLUGIN)
    benchmarks: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        fixtures = {FIXTURE, *PLUGIN_FIXTURES}.intersection(getattr(item, "fixturenames", ()))
        is_benchmark = bool(fixtures) or (has_codspeed and _is_marked(item))
        (benchmarks if is_benchmark else deselected).append(item)
    if not benchmarks and any(map(_is_marked, items)):
        pytest.exit(
            "tests have the marker of pytest-codspeed, but no fixture: install pytest-codspeed",
            pytest.ExitCode.USAGE_ERROR,
        )
    items[:] = benchmarks
    config.hook.pytest_deselected(items=deselected)
    list_file = os.environ.get(LIST_VARIABLE)
    if list_file:
        # In JSON, each id is one line of letters of ASCII.
        lines = (f"{json.dumps(item.nodeid)}\n" for item in items)
        Path(list_file).write_text("".join(lines), encoding="ascii")


def _is_marked(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, CODSPEED_MARKERS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under a gate, report the reason why a benchmark failed."""
    report = yield
    if _is_measured() and call.excinfo is not None and report.failed:
        # A late import, because most runs of pytest measure nothing.
        from equipoise.helpers.equipoise_metrics import report_unknown

        version = f"pytest {pytest.__version__}"
        reason = " ".join(call.excinfo.exconly().split())
        report_unknown(f"{item.nodeid} time_s", f"{version}: {reason}")
    return report


def _has_measured_others(session: pytest.Session) -> bool:
    # With the option -x, pytest does not run the tests after a failure.
    ran_all = not session.shouldfail and not session.shouldstop
    return _is_measured() and ran_all and session.testsfailed < session.testscollected


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under a gate, refuse modules that both revisions would use.

    If only some benchmarks failed, the exit status is 0, because the gate compares the others.
    """
    if running := os.environ.get(RUNNING_VARIABLE):
        # The session ends, so no test ended the process.
        Path(running).unlink(missing_ok=True)
    if session.exitstatus == pytest.ExitCode.TESTS_FAILED and _has_measured_others(session):
        session.exitstatus = pytest.ExitCode.OK
    user_tree = os.environ.get(USER_TREE_VARIABLE)
    if not _is_under_gate() or not user_tree:
        return
    # A late import, because most runs of pytest measure nothing.
    from equipoise.helpers.asv_program import modules_from

    foreign_modules = [(name, user_tree) for name in sorted(modules_from(Path(user_tree)))]
    foreign_modules += _installed_packages(Path(os.environ[REVISION_TREE_VARIABLE]))
    if foreign_modules:
        name, place = foreign_modules[0]
        pytest.exit(
            f"{name} was imported from {place}, which is neither revision: let "
            "--build install the revision in its own environment, or set PYTHONPATH to its sources",
            pytest.ExitCode.USAGE_ERROR,
        )


def _installed_packages(tree: Path) -> list[tuple[str, str]]:
    """Return packages that the revision has, but that were imported from elsewhere.

    Each has the folder from which it was imported.
    """
    tree = tree.resolve()
    found: list[tuple[str, str]] = []
    for sources in {tree / "src", tree, Path.cwd() / "src", Path.cwd()}:
        for file in sources.glob("*/__init__.py"):
            name = file.parent.name
            imported = getattr(sys.modules.get(name), "__file__", None)
            if imported is None or name in sys.stdlib_module_names or name == "equipoise":
                continue
            place = Path(imported).resolve()
            if not place.is_relative_to(tree):
                found.append((name, str(place.parent)))
    return sorted(found)


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
