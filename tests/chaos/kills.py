"""One signal to one process of a long command at one moment, and what must hold after it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos import invariants
from tests.chaos.commands import COMMANDS, LongCommand
from tests.chaos.invariants import Kept
from tests.chaos.processes import Ended, Family, Running, by_role, children, start, subreaper
from tests.chaos.workplace import ENTRY, Canaries, Workplace, restored

SIGNALS = {
    "KILL": signal.SIGKILL,
    "TERM": signal.SIGTERM,
    "INT": signal.SIGINT,
    "HUP": signal.SIGHUP,
    "STOP": signal.SIGSTOP,
}
"""A stopped process is continued after a moment."""
WEIGHTS = {"KILL": 6, "TERM": 1, "INT": 1, "HUP": 1, "STOP": 1}
UNTOUCHED = "no fault"
_STOPPED_S = 0.3
_PAUSE_S = 0.005
_NO_RUN_YET = ("has no run yet", "no ledger at")
"""Answers where the command was hit before its run was recorded, or its ledger was made."""
_OF_ANOTHER = frozenset({0, 2, 3})
"""Exit statuses of a command, one of whose processes was hit."""
_OF_COMMAND = {
    "KILL": frozenset({-9}),
    "TERM": frozenset({130, -15}),
    "INT": frozenset({130, -2}),
    "HUP": frozenset({129, 130, -1}),
    "STOP": frozenset({0}),
}


@dataclass(frozen=True, slots=True)
class Kill:
    """What to hit, by what, and when."""

    command: str
    role: str
    """``none`` lets the command end by itself."""
    signal: str
    moment_s: float
    """Seconds after the start. The first process of the role from then on is hit."""

    def __str__(self) -> str:
        if self.role == "none":
            return f"`{self.command}` is left alone"
        return f"{self.signal} to the {self.role} of `{self.command}` after {self.moment_s:.2f} s"


@dataclass(frozen=True, slots=True)
class Seen:
    """When processes of one role were alive, in seconds after the start."""

    first_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case."""

    fault: str
    kind: str
    """What the case is counted under."""
    hit: bool
    problems: tuple[str, ...]
    trials_before: int = 0
    trials_after: int = 0
    seconds: float = 0.0
    seen: tuple[tuple[str, Seen], ...] = ()
    """Roles of a command that was left alone."""


def drawn_moment(seen: Mapping[str, Seen], role: str, drawn: random.Random) -> float:
    """Draw a moment between the start of a command and the last time that a role was seen."""
    return drawn.uniform(0.0, seen[role].last_s)


def drawn_signal(drawn: random.Random) -> str:
    """Draw a signal; most are KILL."""
    return drawn.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]


def attack(place: Workplace, kill: Kill) -> Outcome:
    """Run one case from the start of a command to what the next start leaves."""
    began = time.monotonic()
    with subreaper(), restored(place) as canaries:
        family = Family(children())
        try:
            case = _Case(place, family, COMMANDS[kill.command], kill)
            outcome = case.run(canaries, began)
        finally:
            family.end()
    return outcome


@dataclass(frozen=True, slots=True)
class _Case:
    place: Workplace
    family: Family
    command: LongCommand
    kill: Kill

    def run(self, canaries: Canaries, began: float) -> Outcome:
        command, place = self.command, self.place
        command.prepare(place)
        running = self._start(command.line(place), "struck")
        seen: dict[str, Seen] = {}
        before = self._strike(running, seen)
        ended = running.wait(self.family, command.longest_s)
        problems = invariants.answer_is_fit(ended, self._allowed(before), f"`{command.name}`")
        started = command.started_trials(place)
        problems += invariants.page_is_whole(place.report())
        kept = invariants.read_ledger(place.ledger)
        problems += invariants.ledger_is_intact(place.ledger)
        if before is not None:
            problems += invariants.nothing_is_lost(before, kept, "by the fault")
        if command.logs:
            present = kept.trials() - self._trials_of_template()
            problems += invariants.every_finished_trial_is_kept(started, present)
        problems += self._goes_on(ended, kept)
        problems += canaries.harmed()
        return Outcome(
            str(self.kill),
            _kind(self.kill),
            before is not None,
            tuple(problems),
            kept.trials(),
            invariants.read_ledger(place.ledger).trials(),
            time.monotonic() - began,
            tuple(seen.items()),
        )

    def _start(self, line: tuple[str, ...], name: str) -> Running:
        folder = self.place.work / self.command.folder
        environment = self.place.environment()
        return start(line, folder, environment, self.family, self.place.home / name)

    def _strike(self, running: Running, seen: dict[str, Seen]) -> Kept | None:
        """Hit the victim; return what was in the ledger just before, or None without a victim."""
        kill = self.kill
        while not running.ended():
            at = running.elapsed_s()
            roles = by_role(self.family.living(), running.process.pid)
            for role in roles:
                seen[role] = Seen(seen[role].first_s if role in seen else at, at)
            if kill.role in roles and at >= kill.moment_s:
                victim = random.Random(kill.moment_s).choice(roles[kill.role])
                kept = invariants.read_ledger(self.place.ledger)
                with contextlib.suppress(ProcessLookupError):
                    _send(victim.pid, kill.signal)
                    return kept
            if kill.role == "none" and at > self.command.latest_s:
                running.process.terminate()
                break
            self.family.reap()
            time.sleep(_PAUSE_S)
        return None

    def _allowed(self, before: Kept | None) -> frozenset[int]:
        if before is None:
            return self.command.repeated | frozenset({130})
        if self.kill.role == "command":
            # Whoever is hit at the very end has done its work.
            return _OF_COMMAND[self.kill.signal] | self.command.repeated
        return _OF_ANOTHER

    def _trials_of_template(self) -> int:
        if self.command.ledger is None:
            return 0
        return invariants.read_ledger(self.place.work / self.command.ledger).trials()

    def _goes_on(self, ended: Ended, kept: Kept) -> list[str]:
        """Start the next command: what was killed goes on, or is done anew."""
        command, place = self.command, self.place
        resumes = command.resume is not None
        again = self._start(command.next_line(place), "next").wait(self.family, command.longest_s)
        nothing_to_resume = any(map(again.err.__contains__, _NO_RUN_YET)) and not kept.trials()
        if nothing_to_resume:
            allowed = frozenset({2})
        elif resumes and ended.status == 3:
            allowed = frozenset({0, 3})
        else:
            allowed = command.repeated
        problems = invariants.answer_is_fit(again, allowed, "the next start")
        if resumes:
            problems += invariants.verdict_is_given(again)
        problems += invariants.ledger_is_intact(place.ledger)
        after = invariants.read_ledger(place.ledger)
        problems += invariants.nothing_is_lost(kept, after, "by the next start")
        left = invariants.nothing_is_left(place, self.family)
        if left and (again.status != 0 or not command.measures):
            doctor = self._start((*ENTRY, "doctor", "--quiet"), "doctor")
            problems += invariants.answer_is_fit(
                doctor.wait(self.family, 60), frozenset({0}), "`equipoise doctor`"
            )
            left = invariants.nothing_is_left(place, self.family)
        return problems + left


def _kind(kill: Kill) -> str:
    return UNTOUCHED if kill.role == "none" else f"{kill.signal} to the {kill.role}"


def _send(pid: int, name: str) -> None:
    os.kill(pid, SIGNALS[name])
    if name == "STOP":
        time.sleep(_STOPPED_S)
        os.kill(pid, signal.SIGCONT)
