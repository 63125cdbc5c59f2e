"""The commits whose history the user wants, and the plan of a campaign of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import asdict, replace

from equipoise.campaign.plans import PlanAndWarnings
from equipoise.design.coin import seed_of_campaign
from equipoise.kinds.history.terms import STUDY, HistoryPlan, history_of
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement, Plan
from equipoise.model.revisions import Revision
from equipoise.revisions.build_cache import digest, digest_of_toolchain
from equipoise.revisions.commit_builds import CommitBuilds, NeededCommit
from equipoise.revisions.commit_plans import CommitsRequest, plan_of_commits
from equipoise.shared.spelling import option

_FORM = 1


class HistoryRequest(CommitsRequest, frozen=True, kw_only=True):
    """The commits whose history the user wants, and how they are measured."""

    baseline: Revision
    latest: Revision
    selected: tuple[int, ...]
    """Places of the commits that the curve shows."""
    only_new: bool = False
    host: str
    """Name of the host: campaigns of one host are one history."""
    command_line: tuple[str, ...] = ()
    """Words that add what is new."""

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The baseline."""
        return (baseline_of(self.baseline),)


def baseline_of(revision: Revision) -> NeededCommit:
    """Return what a history needs."""
    return NeededCommit(0, "baseline", revision, "--from")


def needed_of(terms: HistoryPlan) -> tuple[NeededCommit, ...]:
    """Return what a recorded history needs."""
    return (baseline_of(terms.baseline),)


def history_plan(request: HistoryRequest, builds: CommitBuilds, scratch: Path) -> PlanAndWarnings:
    """Return the plan of the first campaign of a history whose baseline is built, and warnings.

    Raise `UnusableInput` if the program does not exist in the baseline, or several benchmarks are
    meant. Raise `ConditionFailed` if the benchmarks of the tool failed when they were run to see
    what they report.
    """
    plan, shared, warnings = plan_of_commits(STUDY, request, builds, scratch)
    if shared.benchmarks:
        names = ", ".join(one.name for one in shared.benchmarks[:20])
        raise UnusableInput(
            f"a history is of one benchmark, and these are {len(shared.benchmarks)}: {names}",
            hint=f"run one for each: with {option('kind')}, {option('metrics')} names it; else "
            "its command behind --",
        )
    terms = HistoryPlan(
        **asdict(shared),
        baseline=request.baseline,
        latest=request.latest,
        selected=request.selected,
        series=_series(request, plan.judgement),
        era=_era(request, builds),
        only_new=request.only_new,
    )
    return replace(plan, terms=terms, command_line=request.command_line), warnings


def following(plan: Plan, earlier: Sequence[str]) -> Plan:
    """Return the plan of a campaign that follows others of its series."""
    return replace(
        plan,
        seed=seed_of_campaign(plan.seed, len(earlier)),
        terms=replace(history_of(plan), earlier=tuple(earlier)),
    )


def _series(request: HistoryRequest, judgement: Judgement) -> str:
    """Return the digest of what makes campaigns one history.

    The baseline's name stands for the repository: clones of it may lie anywhere.
    """
    return digest(
        [
            _FORM,
            request.host,
            request.baseline.commit,
            request.repository.inside,
            _command(request),
            # A tool that runs each benchmark in a process of its own calls all their metrics alike.
            request.metrics if request.tool is not None and request.tool.listing else None,
            request.build,
            None if request.tool is None else request.tool.name,
            judgement.primary_metric,
            judgement.min_effect,
            judgement.alpha,
        ]
    )


def _era(request: HistoryRequest, builds: CommitBuilds) -> str:
    """Return the digest of what has to be the same for numbers to be comparable."""
    # The command may be a program of the toolchain, such as an interpreter.
    line = " ".join([request.build or "", *_command(request)])
    tools = digest_of_toolchain(line, own_environment(), request.repository)
    recipe = builds.recipe
    return digest([_FORM, tools, recipe.environment, recipe.submodules, snapshot().get("kernel")])


def _command(request: HistoryRequest) -> tuple[str, ...]:
    (command,) = request.benchmarks
    return command.command
