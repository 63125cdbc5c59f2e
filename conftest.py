"""What holds for every test: live tests say what they miss, and no process is left behind.

A live test is marked with the programs that it needs::

    @pytest.mark.live("hyperfine")
    @pytest.mark.live("mariadbd", package="mariadb-server-core")

It is skipped where one is missing, with the hint as the reason; with ``CI=true`` that is a
failure. The packages of benchmark tools are an exception, because they take minutes to fetch:
``make test-suites`` fetches them and runs their tests. The last line adds up the session;
``EQUIPOISE_TEST_SUMMARY`` names a file that gets the same as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest

import equipoise
from equipoise.measure.abandoned import environment_of
from equipoise.shared.spelling import command_line_spelling

SESSION_VARIABLE = "EQUIPOISE_TEST_SESSION"
SUMMARY_VARIABLE = "EQUIPOISE_TEST_SUMMARY"
GRACE_S = 20.0
"""A process that was just told to end may take so long on a busy host."""

NATIVE_FOLDER = Path(equipoise.__file__).parent / "_bin"

LAST_LINE = pytest.StashKey[str]()


FETCHING_SCRIPT = "scripts/test_tools.sh"
"""Script in the reason of a test that misses a package of a benchmark tool."""


LONG_FILES = (
    "tests/packaging/test_wheel.py",
    "packages/matching/tests/observation/test_coverage.py",
    "packages/matching/tests/matching/test_against_r.py",
    "packages/equipoise/tests/report/test_chromium_kinds.py",
    "packages/equipoise/tests/report/test_chromium.py",
    "tests/benchmarks/test_validity.py",
    "packages/equipoise/tests/interop/test_jmh.py",
    "packages/equipoise/tests/ledger/test_merge.py",
    "tests/fuzz/test_cases.py",
    "packages/equipoise/tests/why/test_planted.py",
    "tests/docs/test_examples.py",
    "packages/equipoise/tests/kinds/gate/test_tools.py",
    "packages/equipoise/tests/suites/adapters/test_jmh.py",
    "packages/equipoise/tests/cli/test_resume.py",
    "packages/equipoise/tests/kinds/explain/test_command_experiment.py",
    "packages/equipoise/tests/campaign/test_budget_sharing.py",
    "packages/equipoise/tests/kinds/fleet/test_command.py",
    "packages/equipoise/tests/kinds/bisect/test_command.py",
    "packages/equipoise/tests/test_kinds.py",
    "tests/chaos/test_chaos.py",
    "packages/equipoise/tests/cluster/test_faults.py",
    "packages/equipoise/tests/cli/test_hostile_names.py",
    "packages/equipoise/tests/kinds/explain/test_guarantees.py",
    "packages/equipoise/tests/kinds/bisect/test_command_why.py",
    "packages/equipoise/tests/kinds/explain/test_command.py",
)
"""Files that take longest. They start first, so that none of them runs alone at the end: all tests
of a file run in one process, and a processor without a file is idle."""


def pytest_configure() -> None:
    """Hear Ctrl-C also where the shell started the tests in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and leave the order of the others."""
    ranks = {file: rank for rank, file in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a live test whose program is missing."""
    for marker in item.iter_markers("live"):
        for program in marker.args:
            if shutil.which(program) is None:
                package = marker.kwargs.get("package") or program
                pytest.skip(f"misses {program}: apt-get install {package}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be missing, a live test that is skipped has failed."""
    report = yield
    live = item.get_closest_marker("live") is not None
    is_fetched_tool = report.skipped and FETCHING_SCRIPT in why_skipped(report)
    if live and report.skipped and not is_fetched_tool and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"a live test was skipped although CI=true: {why_skipped(report)}"
    return report


def why_skipped(report: pytest.TestReport) -> str:
    """The reason of a skipped test, without pytest's prefix."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Add up the session."""
    ended = terminalreporter.stats
    passed = len(ended.get("passed", [])) + len(ended.get("xfailed", []))
    failed = sum(len(ended.get(kind, [])) for kind in ("failed", "error", "xpassed"))
    skipped = [
        f"{report.nodeid.rpartition('::')[2]} {why_skipped(report)}"
        for report in ended.get("skipped", [])
        if isinstance(report, pytest.TestReport)
    ]
    if file := os.environ.get(SUMMARY_VARIABLE):
        Path(file).write_text(json.dumps({"passed": passed, "failed": failed, "skipped": skipped}))
    which = "; ".join(skipped) if skipped else "no live test misses anything"
    config.stash[LAST_LINE] = f"{passed} passed, {failed} failed, {len(skipped)} skipped: {which}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """After pytest's own last line."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and LAST_LINE in config.stash:
        reporter.write_line(config.stash[LAST_LINE])


@pytest.fixture(scope="session")
def native_folder() -> Path:
    """The folder of the native programs and the preloadable libraries."""
    if not NATIVE_FOLDER.is_dir():
        pytest.fail(f"no {NATIVE_FOLDER}: run `make build`")
    return NATIVE_FOLDER


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left_behind() -> Iterator[None]:
    """Fail the session if a process that a test started outlives it, and end that process.

    Descendants are found by a variable in their environment too: one that was orphaned is no
    child of ours any more.
    """
    session = uuid.uuid4().hex
    before = os.environ.get(SESSION_VARIABLE)
    os.environ[SESSION_VARIABLE] = session
    # Tests measure nothing: they need not wait until another campaign of this host ends.
    os.environ.setdefault("EQUIPOISE_ALLOW_CONCURRENT", "1")
    yield
    if before is None:
        del os.environ[SESSION_VARIABLE]
    else:
        os.environ[SESSION_VARIABLE] = before
    deadline = time.monotonic() + GRACE_S
    while (left := left_behind(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    # A second look: a process that was started while we looked was not among the processes.
    left = left or left_behind(session)
    described = ", ".join(f"{process.pid} {command}" for process, command in left)
    for process, _ in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"processes left behind by tests: {described}"


ROOMS_OF_THE_COMMAND_LINE = frozenset({"cluster", "report", "revisions", "why"})
"""Folders of tests whose messages only the command line shows, in its spelling; so are those of
all kinds of campaign but `functions`."""


@pytest.fixture(autouse=True)
def spelling_of_the_room(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spell options as those who read the messages of a room type them."""
    match request.path.relative_to(Path(__file__).parent).parts:
        case ("packages", "equipoise", "tests", "kinds", kind, *_):
            of_command_line = kind != "functions"
        case ("packages", "equipoise", "tests", room, *_):
            of_command_line = room in ROOMS_OF_THE_COMMAND_LINE
        case _:
            of_command_line = False
    with command_line_spelling() if of_command_line else contextlib.nullcontext():
        yield


@pytest.fixture(scope="session", autouse=True)
def state_of_the_user_is_left_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Give the tests folders of their own: for the state of a user, and for builds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("EQUIPOISE_BUILDS", str(tmp_path_factory.mktemp("builds")))
        yield


def left_behind(session: str) -> list[tuple[psutil.Process, str]]:
    """Living processes of this session besides our own, each with its command."""
    own = psutil.Process()
    variable = f"{SESSION_VARIABLE}={session}".encode()
    children = {child.pid for child in own.children(recursive=True)}
    left = []
    for process in psutil.process_iter():
        if process.pid == own.pid:
            continue
        try:
            ours = process.pid in children or variable in environment_of(process.pid).split(b"\0")
            command = " ".join(process.cmdline())
            # The standard library starts it for spawned processes; it ends with our interpreter.
            tracker = process.ppid() == own.pid and "multiprocessing.resource_tracker" in command
            if ours and not tracker and process.status() != psutil.STATUS_ZOMBIE:
                left.append((process, command))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # it ended while we looked, or it is another user's
    return left
