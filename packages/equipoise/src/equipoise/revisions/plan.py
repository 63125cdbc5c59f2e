"""Makes conditions from benchmarks and revisions; writes the command line of a bisection.

The metrics of a benchmark tool are ``NAME time_s`` for each benchmark. If the tool can list its
benchmarks, each benchmark instead has its own conditions, with the metric ``time_s``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
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
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import import_path_of
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
from equipoise.model.quantities import names_of
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK, REVISION, Revision
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import tool_variables
from equipoise.revisions.git import Repository
from equipoise.revisions.link_recording import LinkRecorder
from equipoise.shared.spelling import option
from equipoise.suites.tool import BenchmarkTool, Listing

_MAX_LISTED_BYTES = 1 << 24
"""Maximum bytes that are read from a program that lists its benchmarks."""


class RevisionsRequest(Struct, frozen=True, kw_only=True):
    """The user's request to run benchmarks in revisions of a repository."""

    repository: Repository
    benchmarks: tuple[Benchmark, ...]
    build: str | None = None
    """Shell line that builds a revision."""
    tool: BenchmarkTool | None = None
    """Tool that reads the results of the commands."""
    metrics: str | tuple[str, ...] | None = None
    """Metrics, or with a tool the names of benchmarks; by default the wall time, or all benchmarks.
    A gate has a tuple. Other campaigns have a text with commas between the names."""
    limits: CampaignLimits = CampaignLimits()
    recorder: LinkRecorder | None = None
    """Programs that record the links of builds; ``None`` unless programs are linked again."""

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
        """Return a plan without terms; limits of the request replace the given limits."""
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


class Checkout(Struct, frozen=True):
    """A revision, and its separate working tree, which may not exist yet."""

    role: str
    """Role of the revision for messages, such as ``baseline``."""
    revision: Revision
    tree: Path
    """Root of the working tree."""
    repository: Repository
    """The user's repository."""
    is_built: bool = True
    """Whether the programs in ``tree`` exist already."""

    @property
    def folder(self) -> Path:
        """Folder in which the build and the benchmarks run."""
        return self.tree / self.repository.inside

    @property
    def label(self) -> str:
        """Role, name and commit, such as ``candidate HEAD (1a2b3c4d5e)``."""
        return f"{self.role} {self.revision.label}"


def common_benchmarks(
    request: RevisionsRequest, checkouts: Sequence[Checkout]
) -> tuple[tuple[Benchmark, ...], tuple[CampaignWarning, ...]]:
    """Return the benchmarks that the programs of all checkouts list.

    If programs cannot list benchmarks, each program is a benchmark. Warnings name the benchmarks
    that only one checkout has.

    Raise `UnusableInput` if a program lists no benchmark, or if no benchmark is in all checkouts.
    """
    tool, programs = request.tool, request.benchmarks
    if tool is None or tool.listing is None:
        return programs, ()
    benchmarks: list[Benchmark] = []
    warnings: list[CampaignWarning] = []
    for program in programs:
        reader = tool if tool.listing.is_printed_by_adapter else None
        conditions, _ = conditions_of_gate([program], checkouts, reader)
        selections = [
            _list_benchmarks(
                condition,
                tool.name,
                tool.listing,
                tool_variables(tool, checkout.tree, checkout.repository),
                request.limits.timeout_s,
            )
            for condition, checkout in zip(conditions, checkouts, strict=True)
        ]
        timed_selections = [
            {name: selection for name, selection in listed.items() if selection is not None}
            for listed in selections
        ]
        names, program_warnings = common_names(
            tool.name, checkouts, list(map(tuple, timed_selections))
        )
        prefix = f"{program.name}: " if len(programs) > 1 else ""
        benchmarks += (
            Benchmark(
                prefix + name,
                tool.listing.command_for(timed_selections[0][name], program.command),
            )
            for name in names
        )
        warnings += (*program_warnings, *_untimed_warnings(tool.name, selections))
    return tuple(benchmarks), tuple(warnings)


def _untimed_warnings(
    tool_name: str, all_selections: Sequence[Mapping[str, tuple[str, ...] | None]]
) -> tuple[CampaignWarning, ...]:
    names = list(
        dict.fromkeys(
            name
            for selections in all_selections
            for name, selection in selections.items()
            if selection is None
        )
    )
    if not names:
        return ()
    has, was = ("has", "was") if len(names) == 1 else ("have", "were")
    return (
        CampaignWarning(
            "benchmark_without_time",
            f"{names_of(names)} {has} no time, and {was} not compared",
            f"choose another metric of {tool_name} with {option('metrics')}",
        ),
    )


def _list_benchmarks(
    condition: Condition,
    tool_name: str,
    listing: Listing,
    variables: Mapping[str, str],
    timeout_s: float,
) -> Mapping[str, tuple[str, ...] | None]:
    """Return the options that choose each benchmark of a program, by the benchmark's name."""

    def printed_lines(*options: str) -> list[str]:
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            program, *arguments = condition.command
            command = (program, *listing.script, *arguments, *options)
            environment = {**own_environment(), **variables}
            folder = condition.process.working_folder
            try:
                status = run_untimed(command, environment, folder, timeout_s, stderr, stdout)
            except subprocess.TimeoutExpired:
                problem = f"it did not end within {timeout_s:g} s"
                raise _listing_error(tool_name, condition, problem) from None
            except OSError as error:
                raise _listing_error(tool_name, condition, error.strerror) from None
            error_tail = tail(stderr.fileno())
            if status != 0:
                problem = f"{describe_status(status)}{stderr_suffix(error_tail)}"
                raise _listing_error(tool_name, condition, problem)
            stdout.seek(0)
            text = stdout.read(_MAX_LISTED_BYTES + 1).decode("utf-8", "replace")
            if stdout.tell() > _MAX_LISTED_BYTES:
                problem = f"its list has more than {_MAX_LISTED_BYTES} bytes"
                raise _listing_error(tool_name, condition, problem)
        return [line for line in text.splitlines() if line and line.isprintable()]

    selections = listing.benchmarks(printed_lines)
    if not selections:
        raise _listing_error(tool_name, condition, "it lists no benchmark")
    return selections


def _listing_error(tool_name: str, condition: Condition, problem: str | None) -> UnusableInput:
    return UnusableInput(
        f"{condition.name}: {os.path.basename(condition.command[0])} is not a program of "
        f"{tool_name}, or its options choose no benchmark: {problem}",
        hint=f"remove {option('kind', tool_name)} to time the whole program, or check its options",
    )


def common_names(
    tool_name: str, checkouts: Sequence[Checkout], all_names: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the benchmarks that all checkouts have, and warnings of other benchmarks.

    Raise `UnusableInput` if the checkouts have no benchmark in common.
    """
    common_names = [
        name for name in dict.fromkeys(all_names[0]) if all(name in names for names in all_names)
    ]
    if not common_names:
        is_plural = len(checkouts) > 1
        subject = "the two revisions have" if is_plural else f"the {checkouts[0].label} has"
        suffix = " in common" if is_plural else ""
        raise UnusableInput(
            f"{subject} no benchmark of {tool_name}{suffix}",
            hint="see docs/reference/benchmark-tools.md for the benchmarks that Equipoise reads",
        )
    roles = {
        name: checkout.role
        for checkout, names in zip(checkouts, all_names, strict=True)
        for name in names
    }
    return tuple(common_names), tuple(
        CampaignWarning(
            "only_in_one_revision",
            f"{name} is only in the {role}, and was not compared",
            "compare it once both revisions have it",
        )
        for name, role in roles.items()
        if name not in common_names
    )


def conditions_of_gate(
    benchmarks: Sequence[Benchmark], checkouts: Sequence[Checkout], tool: BenchmarkTool | None
) -> tuple[tuple[Condition, ...], tuple[Contrast, ...]]:
    """Return a condition for each benchmark and revision, and the contrasts between revisions.

    Raise `UnusableInput` if a program does not exist, or is in the user's own working tree.
    """
    conditions: list[Condition] = []
    contrasts: list[Contrast] = []
    for benchmark in benchmarks:
        benchmark_level = {BENCHMARK: benchmark.name} if len(benchmarks) > 1 else {}
        contrasts.append(Contrast(len(conditions), len(conditions) + 1, REVISION, benchmark_level))
        for checkout in checkouts:
            levels = {BENCHMARK: benchmark.name, REVISION: checkout.label}
            name = f"{benchmark.name}: {checkout.label}" if benchmark_level else checkout.label
            conditions.append(condition_in(checkout, benchmark, tool, name, levels))
    return tuple(conditions), tuple(contrasts)


def condition_in(
    checkout: Checkout,
    benchmark: Benchmark,
    tool: BenchmarkTool | None,
    name: str,
    levels: dict[str, str],
) -> Condition:
    """Return the condition of a benchmark in a revision; ``tool``, if any, reads its results.

    Raise `UnusableInput` if the program does not exist, or is in the user's own working tree.
    """
    program, *arguments = benchmark.command
    command = (_program_path(checkout, program), *arguments)
    return Condition(
        name=name,
        command=command if tool is None else tool.reading_command(command),
        levels=levels,
        environment=tool_variables(tool, checkout.tree, checkout.repository),
        process=Process(working_folder=str(checkout.folder)),
    )


def _program_path(checkout: Checkout, name: str) -> str:
    """Return the path of a command's program in a revision; errors as for `condition_in`."""
    if "/" not in name:
        return find_program(name, native_programs(), own_environment())
    own_root = checkout.repository.top
    real_path, real_root = os.path.realpath(name), os.path.realpath(own_root)
    if os.path.isabs(name) and real_path.startswith(real_root + os.sep):
        raise UnusableInput(
            f"{name} is a program of your own working tree and would run for every revision",
            hint=f"give its path in the repository: ./{os.path.relpath(name, own_root)}",
        )
    path = os.path.normpath(os.path.join(checkout.folder, name))
    if not checkout.is_built:
        return path
    # With memory layouts, check the program of the first layout.
    checked_path = path.replace(LAYOUT, "1")
    if os.path.isfile(checked_path) and not os.access(checked_path, os.X_OK):
        problem = f"{name} of the {checkout.label} cannot be executed"
        raise UnusableInput(problem, hint=f"add `chmod +x {name}` to {option('build')}")
    if not os.path.isfile(checked_path):
        raise UnusableInput(
            f"the {checkout.label} has no program {name}",
            hint=f"build the program with {option('build')}, and give its path from the current "
            "folder",
        )
    return path


BISECT_KIND = "bisect"
"""Name of the kind of campaign, and of the command, that finds the commit of a change."""


def bisect_command(
    good: str,
    bad: str | None,
    command: Sequence[str],
    *,
    build: str | None = None,
    kind: str | None = None,
    metric: str = PRIMARY_METRIC,
) -> tuple[str, ...] | None:
    """Return the arguments of the command line that finds the commit of a change.

    The result is ``None`` if `BISECT_KIND` is not installed. Without ``bad``, the command uses the
    working tree. ``kind`` names a benchmark tool; with a tool, ``metric`` names a benchmark.
    """
    if import_path_of(BISECT_KIND) is None:
        return None
    options = {"--bad": bad, "--build": build, "--kind": kind}
    if metric != PRIMARY_METRIC:
        options["--metrics"] = metric
    arguments: list[str] = []
    for name, value in options.items():
        if value is not None:
            arguments += (name, value)
    return ("equipoise", BISECT_KIND, "--good", good, *arguments, "--", *command)


def bisect_line(good: str, bad: str | None, command: Sequence[str], **options: Any) -> str | None:
    """Return `bisect_command` as a shell line."""
    arguments = bisect_command(good, bad, command, **options)
    return None if arguments is None else shell_line_with_placeholders(arguments)
