"""Trials of one condition with a server, for the tests of servers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec.structs
import psutil

from equipoise.measure.environment import CovariateReader
from equipoise.measure.launcher import Launcher
from equipoise.measure.servers import Servers
from equipoise.measure.trials import TrialReport, TrialRunner, own_environment
from equipoise.model.plan import Condition, Plan, Server
from equipoise.model.record import Draw
from packages.equipoise.tests.plans import plan_of


class Stage:
    """Runs trials of one condition with a server."""

    def __init__(self, launcher_program: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.program = launcher_program
        self.servers = Servers(lambda: Launcher(launcher_program), scratch)
        self.client = Launcher(launcher_program)

    def run(self, command: tuple[str, ...], server: Server) -> TrialReport:
        """Run one trial."""
        condition = Condition("served", command, server=server)
        plan: Plan = msgspec.structs.replace(plan_of(), conditions=(condition,))
        with CovariateReader() as beside:
            runner = TrialRunner(
                plan, self.client, self.scratch, own_environment(), beside, servers=self.servers
            )
            (run,) = runner.trials_at(Draw("measured", 1, (0,), 0), 0)
            return run()

    def nothing_is_left(self) -> bool:
        """Return whether no server and no folder of a server is left."""
        return not list(self.scratch.glob("server-*")) and not any(
            str(self.scratch) in " ".join(words) for words in commands_of_descendants()
        )


def commands_of_descendants() -> Iterator[list[str]]:
    """Return the command of each descendant of this process."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            yield process.cmdline()


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-c", *words)
