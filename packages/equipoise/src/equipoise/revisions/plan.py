"""Revisions as conditions: what is run in each; and the line that searches commits."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.design.command_line import shell_line_with_placeholders
from equipoise.design.commands import find_program
from equipoise.design.limits import CampaignLimits
from equipoise.measure.installation import native_programs
from equipoise.measure.launcher import counters_among
from equipoise.measure.trials import own_environment
from equipoise.measure.untimed import describe_status, run_untimed, stderr_suffix, tail
from equipoise.measure.workload_metrics import run_for_metrics
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import place_of
from equipoise.model.plan import (
    LAYOUT,
    PRIMARY_METRIC,
    Condition,
    Contrast,
    Judgement,
    Measure,
    Plan,
    Process,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX, REVISION, Revision
from equipoise.revisions.benchmarks import Benchmark, BenchmarkTool, Listing
from equipoise.revisions.build_cache import tool_variables
from equipoise.revisions.git import Repository
from equipoise.shared.spelling import option

_MAX_LISTED_BYTES = 1 << 20


class RevisionsRequest(Struct, frozen=True, kw_only=True):
    """What the user wants to run in revisions, and how."""

    repository: Repository
    benchmarks: tuple[Benchmark, ...]
    """Commands; a program with a slash in its name is looked for in each revision."""
    build: str | None = None
    """Line for a shell that builds a revision."""
    tool: BenchmarkTool | None = None
    """Tool that reads the results of the commands, if they report them in its form."""
    metrics: str | tuple[str, ...] | None = None
    """Of a gate, metrics: by default the wall time, or the benchmarks that both revisions report to
    the tool. Else one metric, by default the wall time; with a tool the names of benchmarks with
    commas between, by default all that the needed commits have."""
    limits: CampaignLimits = CampaignLimits()

    def plan(
        self,
        study: str,
        conditions: tuple[Condition, ...],
        metrics: Sequence[str],
        *,
        folder: str,
        warmup: int,
        stopping: Stopping,
        judgement: Judgement,
    ) -> Plan:
        """Return a plan without the terms of its study; its limits fill the defaults."""
        limits = self.limits
        return Plan(
            study=study,
            conditions=conditions,
            measure=limits.measure(
                Measure(folder, warmup=warmup, counters=counters_among(metrics))
            ),
            stopping=limits.stopping(stopping),
            judgement=limits.judgement(metrics, judgement),
            seed=limits.seed_or_random(),
        )


class CheckedOut(Struct, frozen=True):
    """A revision in a working tree of its own, now or once it is built."""

    role: str
    """``baseline`` or ``candidate``."""
    revision: Revision
    tree: Path
    """Root of the working tree."""
    repository: Repository
    """The user's own."""
    is_built: bool = True
    """Whether its programs have to be there already."""

    @property
    def folder(self) -> Path:
        """Folder in which the build and the benchmarks run: the one that the user is in."""
        return self.tree / self.repository.inside

    @property
    def label(self) -> str:
        """Role, name and commit, as in ``candidate HEAD (1a2b3c4d5e)``."""
        return f"{self.role} {self.revision.label}"


def benchmarks_in_all(
    request: RevisionsRequest, sides: Sequence[CheckedOut]
) -> tuple[tuple[Benchmark, ...], tuple[CampaignWarning, ...]]:
    """Return each benchmark that the programs of all sides list; without a listing, as given.

    Warnings name the benchmarks that only one side has.

    Raise `UnusableInput` if a program lists no benchmark, or the sides have none in common.
    """
    tool, given = request.tool, request.benchmarks
    if tool is None or tool.listing is None:
        return given, ()
    benchmarks: list[Benchmark] = []
    warnings: list[CampaignWarning] = []
    for program in given:
        conditions, _ = conditions_of_gate([program], sides, None)
        listed = [
            _names_listed(one, tool.name, tool.listing, request.limits.timeout_s)
            for one in conditions
        ]
        names, only_one = _in_all(tool.name, sides, listed)
        prefix = f"{program.name}: " if len(given) > 1 else ""
        benchmarks += (
            Benchmark(prefix + name, tool.listing.run_of(name, program.command)) for name in names
        )
        warnings += only_one
    return tuple(benchmarks), tuple(warnings)


def _names_listed(
    condition: Condition, kind: str, listing: Listing, timeout_s: float
) -> tuple[str, ...]:
    """Return the names of the benchmarks that the program of a condition lists."""

    def printed(*options: str) -> list[str]:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            command = (*condition.command, *options)
            folder = condition.process.working_folder
            try:
                status = run_untimed(command, own_environment(), folder, timeout_s, errors, output)
            except subprocess.TimeoutExpired:
                raise _no_program_of(kind, condition, f"it ran for {timeout_s:g} s") from None
            except OSError as error:
                raise _no_program_of(kind, condition, error.strerror) from None
            said = tail(errors.fileno())
            if status != 0:
                problem = f"{describe_status(status)}{stderr_suffix(said)}"
                raise _no_program_of(kind, condition, problem)
            output.seek(0)
            text = output.read(_MAX_LISTED_BYTES).decode("utf-8", "replace")
        return [line for line in text.splitlines() if line and line.isprintable()]

    # A program may print something of its own, whichever benchmarks are chosen.
    others = {*printed(listing.option, listing.none)}
    names = tuple(dict.fromkeys(one for one in printed(listing.option) if one not in others))
    if not names:
        raise _no_program_of(kind, condition, f"with {listing.option} it lists no benchmark")
    return names


def _no_program_of(kind: str, condition: Condition, problem: str | None) -> UnusableInput:
    return UnusableInput(
        f"{condition.name}: {os.path.basename(condition.command[0])} is no program of {kind}, "
        f"or its options choose no benchmark: {problem}",
        hint=f"leave {option('kind', kind)} out to time the whole program; else check its options",
    )


def _in_all(
    kind: str, sides: Sequence[CheckedOut], names: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the benchmarks that all sides have, and a warning of each other one."""
    common = [name for name in dict.fromkeys(names[0]) if all(name in one for one in names)]
    if not common:
        which = "the two revisions have" if len(sides) > 1 else f"the {sides[0].label} has"
        shared = " in common" if len(sides) > 1 else ""
        raise UnusableInput(
            f"{which} no benchmark of {kind}{shared}",
            hint="see docs/how-to/gate-benchmark-suites.md for what Equipoise reads of it",
        )
    roles = {name: side.role for side, one in zip(sides, names, strict=True) for name in one}
    return tuple(common), tuple(
        CampaignWarning(
            "only_in_one_revision",
            f"{name} is only in the {role}, and was not compared",
            "compare it once both revisions have it",
        )
        for name, role in roles.items()
        if name not in common
    )


def metrics_of(
    request: RevisionsRequest,
    sides: Sequence[CheckedOut],
    conditions: Sequence[Condition],
    scratch: Path,
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the metrics that are named, the wall time, or what all sides report to the tool.

    A tool without a listing has one command, which runs once in each side, with a condition each.
    Warnings name the benchmarks that only one side has.

    Raise `UnusableInput` if the sides have no benchmark in common. Raise `ConditionFailed` if the
    benchmarks failed.
    """
    tool = request.tool
    if isinstance(request.metrics, tuple):
        return request.metrics, ()
    if tool is None:
        return (request.metrics or PRIMARY_METRIC,), ()
    if tool.listing is not None:
        return (BENCHMARK_SUFFIX.strip(),), ()
    timeout_s = request.limits.timeout_s
    reported = [
        [
            one.metric.removesuffix(BENCHMARK_SUFFIX)
            for one in run_for_metrics(condition, own_environment(), scratch, timeout_s)
            if one.metric.endswith(BENCHMARK_SUFFIX)
        ]
        for condition in conditions
    ]
    names, warnings = _in_all(tool.name, sides, reported)
    return tuple(name + BENCHMARK_SUFFIX for name in names), warnings


def conditions_of_gate(
    benchmarks: Sequence[Benchmark], sides: Sequence[CheckedOut], tool: BenchmarkTool | None
) -> tuple[tuple[Condition, ...], tuple[Contrast, ...]]:
    """Return each benchmark of both revisions as a condition, and their contrasts.

    Raise `UnusableInput` if a program does not exist, or lies in the user's own working tree.
    """
    conditions: list[Condition] = []
    contrasts: list[Contrast] = []
    for benchmark in benchmarks:
        stratum = {BENCHMARK: benchmark.name} if len(benchmarks) > 1 else {}
        contrasts.append(Contrast(len(conditions), len(conditions) + 1, REVISION, stratum))
        for side in sides:
            levels = {BENCHMARK: benchmark.name, REVISION: side.label}
            name = f"{benchmark.name}: {side.label}" if stratum else side.label
            conditions.append(condition_in(side, benchmark, tool, name, levels))
    return tuple(conditions), tuple(contrasts)


def condition_in(
    side: CheckedOut,
    benchmark: Benchmark,
    tool: BenchmarkTool | None,
    name: str,
    levels: dict[str, str],
) -> Condition:
    """Return a benchmark in a revision as a condition; the tool, if any, reads its results.

    Raise `UnusableInput` if the program does not exist, or lies in the user's own working tree.
    """
    program, *arguments = benchmark.command
    command = (_program_in(side, program), *arguments)
    return Condition(
        name=name,
        command=command if tool is None else tool.reading(command),
        levels=levels,
        environment=tool_variables(tool, side.tree, side.repository),
        process=Process(working_folder=str(side.folder)),
    )


def _program_in(side: CheckedOut, name: str) -> str:
    """Return the path of the program of a command in a revision; errors as for `condition_in`."""
    if "/" not in name:
        return find_program(name, native_programs(), own_environment())
    top = side.repository.top
    real, own_tree = os.path.realpath(name), os.path.realpath(top)
    if os.path.isabs(name) and real.startswith(own_tree + os.sep):
        raise UnusableInput(
            f"{name} is a program of your own working tree: it would be run as each revision",
            hint=f"name it by its path in the repository, ./{os.path.relpath(name, top)}",
        )
    path = os.path.normpath(os.path.join(side.folder, name))
    if not side.is_built:
        return path
    # Of programs that differ in layout alone, the first represents all.
    file = path.replace(LAYOUT, "1")
    if os.path.isfile(file) and not os.access(file, os.X_OK):
        raise UnusableInput(f"{name} of the {side.label} cannot be executed", hint="chmod +x it")
    if not os.path.isfile(file):
        raise UnusableInput(
            f"the {side.label} has no program {name}",
            hint=f"let {option('build')} make it; the path is from the folder in which you run "
            "the command",
        )
    return path


SEARCH = "bisect"
"""Kind of campaign, and command, that finds the commit that made a difference."""


def bisect_command(
    good: str,
    bad: str | None,
    command: Sequence[str],
    *,
    build: str | None = None,
    kind: str | None = None,
    metric: str = PRIMARY_METRIC,
) -> tuple[str, ...] | None:
    """Return the words of the line that finds which commit between two made a difference.

    ``None`` where no search of commits is installed.

    ``bad`` is by default the working tree; ``kind`` is the tool that reads the results of
    benchmarks, of which ``metric`` is one then.
    """
    if place_of(SEARCH) is None:
        return None
    options = {"--bad": bad, "--build": build, "--kind": kind}
    if metric != PRIMARY_METRIC:
        options["--metrics"] = metric
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    return ("equipoise", SEARCH, "--good", good, *words, "--", *command)


def bisect_line(good: str, bad: str | None, command: Sequence[str], **options: Any) -> str | None:
    """Return `bisect_command` as a line for a shell."""
    words = bisect_command(good, bad, command, **options)
    return None if words is None else shell_line_with_placeholders(words)
