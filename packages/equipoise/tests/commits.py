"""Campaigns over commits on a scripted clock: builds, trials that fail, a ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from equipoise.campaign.conduct import JudgeFactory, resume, start
from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.campaign.segment import Runner
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.bisect.judge import BisectionJudge
from equipoise.ledger import Ledger, open_for_writing
from equipoise.measure.trials import TrialReport
from equipoise.model.plan import Plan
from equipoise.model.record import Draw, RunRecord
from equipoise.model.revisions import Commit
from equipoise.revisions.judging import CommitsSegment
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner

BUILD_S = 2.0
NOISE = 0.01


def commits_made(count: int) -> tuple[Commit, ...]:
    """A first commit and this many after it."""
    return tuple(
        Commit(f"{number:040x}", f"change {number}", "Ada", "2026-11-23T00:00:00Z", ())
        for number in range(count + 1)
    )


@dataclass
class ScriptedBuilds:
    """Builds that take their time on the scripted clock."""

    clock: ScriptedClock
    broken: frozenset[int] = frozenset()
    made: list[int] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def built_commits(self) -> Collection[int]:
        return set(self.made)

    def typical_seconds(self) -> float:
        return BUILD_S if self.made else 0.0

    def build_commits(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        missing = [commit for commit in commits if commit not in self.made]
        for commit in missing:
            self.before()
            self.clock.seconds += BUILD_S
            if commit not in self.broken:
                self.made.append(commit)
        return {name: "make: *** no such file" for name in missing if name in self.broken}


@dataclass
class Runs(ScriptedRunner):
    """Trials of which those of some conditions always fail."""

    failing: frozenset[int] = frozenset()
    fails_from: int = 0
    """Number of trials of a failing condition that succeed."""
    ran: dict[int, int] = field(default_factory=dict)

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        condition = draw.order[place]
        self.ran[condition] = self.ran.get(condition, 0) + 1
        if condition in self.failing and self.ran[condition] > self.fails_from:
            self.fails_at = (draw.phase, draw.block, condition)
        return super().trials_at(draw, place)


class Killed(BaseException):
    """The campaign's process is gone."""


class Stage(ProgressListener):
    """A ledger, a clock, builds and trials that follow a script."""

    def __init__(self, folder: Path, medians: tuple[float, ...], **script: object) -> None:
        folder.mkdir(exist_ok=True)
        self.clock = ScriptedClock()
        broken = script.pop("broken", frozenset())
        self.builds = ScriptedBuilds(self.clock, broken)  # type: ignore[arg-type]
        self.runner = Runs(self.clock, medians, NOISE, **script)  # type: ignore[arg-type]
        self.ledger: Ledger = open_for_writing(folder / "ledger.db", durable=False)
        self.heard: list[CampaignProgress] = []
        self.names_built: list[tuple[str, ...]] = []

    def block_ended(self, progress: CampaignProgress) -> None:
        self.heard.append(progress)

    def building(self, names: tuple[str, ...]) -> None:
        self.names_built.append(names)

    def kill_at(self, moment: int, *, in_builds: bool = False) -> None:
        """Have the campaign killed at its trial of this number, or at that build or trial."""
        left = [moment]

        def maybe_killed() -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        if in_builds:
            self.builds.before = maybe_killed
        self.runner.before_trial = lambda draw, place: maybe_killed()

    @contextmanager
    def hire(self, plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
        yield self.runner

    def now(self) -> float:
        return 1.7e9 + self.clock.seconds

    def start(self, plan: Plan, judge_factory: JudgeFactory | None = None) -> RunRecord:
        run_id = start(
            plan,
            self.ledger,
            self,
            judge_factory=judge_factory or partial(BisectionJudge, builds=self.builds),
            segment_factory=partial(CommitsSegment, builds=self.builds),
            runner_factory=self.hire,
            clock=self.clock,
            now=self.now,
        )
        return self.ledger.read_run(run_id)

    def resume(
        self, limits: CampaignLimits | None = None, judge_factory: JudgeFactory | None = None
    ) -> RunRecord:
        resume(
            "last",
            limits or CampaignLimits(),
            self.ledger,
            ProgressListener(),
            judge_factory=judge_factory or partial(BisectionJudge, builds=self.builds),
            segment_factory=partial(CommitsSegment, builds=self.builds),
            runner_factory=self.hire,
            clock=self.clock,
            now=self.now,
        )
        return self.ledger.read_run()


def steps(count: int, *at: int, by: float = 1.1) -> tuple[float, ...]:
    """Medians of a good commit and of those after it, which rise at some of them."""
    return tuple(0.010 * by ** sum(step <= number for step in at) for number in range(count + 1))
