"""A short part of `make chaos`: what must hold after a fault, for a fixed list of faults.

The cases run side by side in two processes; each test waits for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos import disks
from tests.chaos.kills import Kill, Outcome
from tests.chaos.workers import Work, Workers

KILLS = (
    Kill("compare", "command", "KILL", 1.1),
    Kill("compare", "launcher", "KILL", 0.4),
    Kill("compare", "trial", "TERM", 0.9),
    Kill("compare", "descendant of the trial", "HUP", 0.7),
    Kill("compare", "command", "INT", 0.8),
    Kill("compare with strays", "launcher", "KILL", 0.9),
    Kill("run with a server", "server", "KILL", 0.9),
    Kill("run with a server", "launcher of a server", "KILL", 0.6),
    Kill("run with a server", "command", "KILL", 1.3),
    Kill("gate", "build", "KILL", 0.0),
    Kill("gate", "command", "KILL", 0.9),
    Kill("bisect", "build", "KILL", 0.0),
    Kill("bisect", "command", "KILL", 2.5),
    Kill("bisect", "launcher", "KILL", 2.0),
    Kill("history", "command", "KILL", 2.5),
    Kill("os", "cleaner", "KILL", 0.5),
    Kill("resume", "launcher", "STOP", 0.5),
)
DISKS = ("the ledger's disk fills during a campaign",)
SURROUNDINGS = (
    "standard output is full for a list",
    "standard streams are ASCII",
    "the working folder is deleted for a list",
    "the user has no account and no home",
)
WORK = (
    *(Work("kills", kill) for kill in KILLS),
    *(Work("disks", name=name) for name in DISKS),
    *(Work("environments", name=name) for name in SURROUNDINGS),
)
Case = Callable[[Work], Outcome]


def name_of(work: Work) -> str:
    """Return the name of the case in the name of its test."""
    return work.name or str(work.kill)


@pytest.fixture(scope="module")
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    """Start every case that was chosen, and give the outcome of one of them."""
    base: Path = tmp_path_factory.mktemp("chaos")
    names = {item.name for item in request.session.items if item.path == request.path}
    workers = Workers(2, base)
    submitted: dict[Work, Future[Outcome]] = {
        work: workers.submit(work) for work in WORK if any(name_of(work) in name for name in names)
    }

    def outcome(work: Work) -> Outcome:
        found = submitted[work].result()
        if work.kill is not None and not found.hit:
            # On this machine the moment was too late: the first process of the role will do.
            found = workers.submit(replace(work, kill=replace(work.kill, moment_s=0.0))).result()
        return found

    try:
        yield outcome
    finally:
        workers.close()


@pytest.mark.parametrize("work", WORK, ids=lambda work: name_of(work))
def test_what_was_measured_and_what_is_the_users_survive(work: Work, case: Case) -> None:
    if work.part == "disks" and (reason := disks.why_not()) is not None:
        pytest.skip(reason)
    outcome = case(work)
    assert outcome.hit, "no process of the role was found"
    assert outcome.problems == ()
