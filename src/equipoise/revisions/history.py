"""A history of a repository: which commits it measures, and the plan of one campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from equipoise.design.coin import seed_of_campaign
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import HISTORY_STUDY, Commit, HistoryPlan, Judgement, Plan, Revision
from equipoise.model.record import CampaignWarning
from equipoise.revisions.build_cache import digest, digest_of_toolchain
from equipoise.revisions.commit_builds import (
    CommitBuilds,
    CommitsRequest,
    baseline_of,
    plan_of_commits,
    terms_of,
)
from equipoise.revisions.git import Repository, line_of, run_git, text_of

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


def every_nth(commits: Sequence[Commit], step: int) -> tuple[int, ...]:
    """Return the place of every so many-th commit, the first and the last among them."""
    return _with_ends(commits, range(0, len(commits), step))


def tagged(repository: Repository, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Return the places of the commits that have a tag, and of the first and the last.

    Raises
    ------
    UnusableInput
        No commit after the first has a tag.
    """
    # An annotated tag is an object of its own, and *objectname is its commit.
    form = "--format=%(objectname) %(*objectname)"
    names = set(text_of(run_git(repository.top, "for-each-ref", form, "refs/tags")).split())
    places = [place for place, commit in enumerate(commits) if place and commit.hash in names]
    if not places:
        raise UnusableInput(
            "--tags: no commit after the baseline has a tag",
            hint="fetch them: git fetch --tags, or measure every tenth commit: --every 10",
        )
    return _with_ends(commits, places)


def later_than(repository: Repository, commits: Sequence[Commit], date: str) -> tuple[int, ...]:
    """Return the places of the commits since a date, as git reads it, and of the two ends.

    Raises
    ------
    UnusableInput
        There is none.
    """
    range_ = f"{commits[0].hash}..{commits[-1].hash}"
    words = ("rev-list", "--first-parent", f"--since={date}", range_, "--")
    names = set(text_of(run_git(repository.top, *words)).split())
    places = [place for place, commit in enumerate(commits) if commit.hash in names]
    if not places:
        raise UnusableInput(
            f"--since {date}: no commit after the baseline is that late",
            hint="give an earlier date, such as --since 2026-01-31 or --since '3 months ago'",
        )
    return _with_ends(commits, places)


def last_before(repository: Repository, latest: Revision, date: str) -> Revision | None:
    """Return the last commit before a date along first parents; ``None`` if there is none."""
    words = ("rev-list", "--first-parent", "--max-count=1", f"--before={date}", latest.commit)
    commit = line_of(repository.top, *words, "--")
    return Revision(commit, commit) if commit else None


def history_plan(
    request: HistoryRequest, builds: CommitBuilds, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of the first campaign of a history whose baseline is built, and warnings.

    Raises
    ------
    UnusableInput
        The program does not exist in the baseline, or several benchmarks are meant.
    ConditionFailed
        The benchmarks of the tool failed when they were run to see what they report.
    """
    needed = (baseline_of(request.baseline),)
    plan, benchmarks, warnings = plan_of_commits(HISTORY_STUDY, request, builds, needed, scratch)
    if benchmarks:
        names = ", ".join(one.name for one in benchmarks[:20])
        raise UnusableInput(
            f"a history is of one benchmark, and these are {len(benchmarks)}: {names}",
            hint="run one for each: with --kind, --metrics names it; else its command behind --",
        )
    terms = HistoryPlan(
        **terms_of(request),
        baseline=request.baseline,
        latest=request.latest,
        selected=request.selected,
        series=_series(request, plan.judgement),
        era=_era(request, builds),
        only_new=request.only_new,
    )
    return replace(plan, history=terms), warnings


def following(plan: Plan, earlier: Sequence[str], engine: int) -> Plan:
    """Return the plan of a campaign that follows others of its series, judged by their engine."""
    assert plan.history is not None, "only a campaign of a history belongs to a series"
    return replace(
        plan,
        seed=seed_of_campaign(plan.seed, len(earlier)),
        judgement=replace(plan.judgement, engine=engine),
        history=replace(plan.history, earlier=tuple(earlier)),
    )


def _with_ends(commits: Sequence[Commit], places: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({0, *places, len(commits) - 1}))


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
