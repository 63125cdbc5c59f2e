"""Options that `gate`, `bisect` and `history` share: benchmarks, builds and git revisions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli import options
from equipoise.cli.options import Option, OutputOptions
from equipoise.design.limits import CampaignLimits, metric_names
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.revisions import Revision
from equipoise.revisions.benchmarks import Benchmark, Suite, parse_benchmarks, read_suite
from equipoise.revisions.build_cache import open_cache
from equipoise.revisions.checkout import find_revision, repository_at, revision_of_working_tree
from equipoise.revisions.commit_plans import (
    BUDGET_S,
    CommitBuilds,
    builds_of_plan,
    repository_of,
    tool_of,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.link_recording import recorder_for_build
from equipoise.revisions.plan import RevisionsRequest
from equipoise.revisions.terms import commits_terms
from equipoise.suites import TOOLS
from equipoise.suites.finding import ToolSuite, only_suite_in
from equipoise.suites.tool import BenchmarkTool

suite_options = options.option_group(
    click.option(
        "--kind",
        type=click.Choice(list(TOOLS)),
        metavar="TOOL",
        help=f"Benchmark tool: {', '.join(TOOLS)}. Without a default command, it needs CMD.",
    ),
    click.option(
        "--bench", "benches", multiple=True, metavar="NAME=CMD", help="Name and add a benchmark."
    ),
    options.file_option(
        "--suite", metavar="FILE.toml", help="Read several benchmarks from a file."
    ),
)
build_options = options.option_group(
    click.option(
        "--build", metavar="LINE", help="Build each commit with this command line, untimed."
    ),
    suite_options,
)


def measuring_options(metrics_help: str) -> Option:
    """Return the options for metrics and limits; ``metrics_help`` begins the help of --metrics."""
    return options.option_group(
        click.option(
            "--metrics",
            metavar="NAME,…",
            show_default="wall_s; with --kind, all benchmarks",
            help=f"{metrics_help}: one metric; with --kind, benchmarks.",
        ),
        options.warmup_option(
            "Trials of each commit before its first block, never analysed.", default=1
        ),
        options.timeout_option,
        options.number_option(
            "--blocks", metavar="N", show_default="no limit", help="Run at most N blocks."
        ),
        options.number_option(
            "--budget",
            metavar="SECONDS",
            show_default=f"{BUDGET_S:g}",
            help="Stop after about this many seconds, including later builds of commits.",
        ),
        options.flag(
            "--relink",
            help="Link the commits of each block again, with functions in another order.",
        ),
        options.judging_options(),
    )


result_options = options.option_group(
    options.ledger_option,
    options.durable_option,
    options.report_option,
    options.show_env_option,
    options.concurrent_option,
    options.output_options,
)


class SuiteOptions(Struct, frozen=True):
    """Options that name the benchmarks of each revision, and the build."""

    argv: tuple[str, ...] = ()
    """Command after ``--``: a program with its arguments."""
    kind: str | None = None
    """Name of a benchmark tool, such as ``cargo``, which runs many benchmarks at once."""
    benches: tuple[str, ...] = ()
    """Values of ``--bench``, such as ``sort=./sort words``."""
    suite: Path | None = None
    """File with a suite, which is a list of benchmarks."""
    build: str | None = None
    """Command line that builds a revision."""

    @property
    def tool(self) -> BenchmarkTool | None:
        """Benchmark tool that ``--kind`` names."""
        return None if self.kind is None else TOOLS[self.kind]

    def or_found_in(self, folder: Path) -> tuple[SuiteOptions, ToolSuite | None]:
        """Return these options, or if they name no benchmark, the suite that a folder has.

        Raise `UnusableInput` if a suite is needed, and the folder has none or several.
        """
        tool = self.tool
        if self.argv or self.benches or self.suite or (tool is not None and tool.command):
            return self, None
        found = only_suite_in(folder, None if tool is None else tool.name)
        build = self.build or found.suite.build
        return replace(self, argv=found.suite.command, kind=found.tool.name, build=build), found

    def read(self, purpose: str, example: str) -> Suite:
        """Return the benchmarks and the command line that builds them.

        In messages, ``purpose`` names the campaign, such as ``a gate``, and ``example`` is a
        complete command line.

        Raise `UnusableInput` if not exactly one option names benchmarks, or they cannot be read.
        """
        tool = self.tool
        # Some tools have a default command.
        command = self.argv or (() if tool is None else tool.command)
        if sum(map(bool, (command, self.benches, self.suite))) != 1:
            raise UnusableInput(
                f"{purpose} needs exactly one of --bench, --suite, --kind, or a command after --",
                hint=f"run, for example: {example}",
            )
        if self.benches:
            suite = Suite(parse_benchmarks(self.benches))
        elif self.suite is not None:
            suite = read_suite(self.suite)
        elif not command[0] or any("\0" in argument for argument in command):
            raise UnusableInput(
                "the command after -- is empty, or has a null character",
                hint="write a program after --, such as -- ./benchmark",
            )
        else:
            suite = Suite((Benchmark(shlex.join(command), tuple(command)),))
        default_build = None if tool is None else tool.build
        return Suite(suite.benchmarks, self.build or suite.build or default_build)


class CommitsOptions(Struct, frozen=True, kw_only=True):
    """Options that `bisect` and `history` share."""

    benchmarks: SuiteOptions
    metrics: str | None
    """Value of ``--metrics``: a metric or, with a tool, benchmarks."""
    limits: CampaignLimits
    relink: bool
    output: OutputOptions

    def request(self, campaign_noun: str, example: str) -> RevisionsRequest:
        """Return the benchmarks to run in each commit of the repository in the working folder.

        ``campaign_noun`` names the campaign in messages, such as ``history``. ``example`` is a
        complete command line for a hint.

        Raise `UnusableInput` if there is no command, if several metrics are named without a tool,
        or if programs cannot be linked again as ``--relink`` asks.
        """
        tool = self.benchmarks.tool
        suite = self.benchmarks.read(f"a {campaign_noun}", example)
        metrics = None if self.metrics is None else metric_names(self.metrics)
        if tool is None and metrics is not None and len(metrics) > 1:
            raise UnusableInput(
                f"a {campaign_noun} uses one metric, but --metrics names {len(metrics)}",
                hint=f"run the command once for each metric, first with --metrics {metrics[0]}",
            )
        return RevisionsRequest(
            repository=repository_at(Path.cwd()),
            benchmarks=suite.benchmarks,
            build=suite.build,
            tool=tool,
            # With a tool, --metrics names benchmarks. Their names may have commas.
            metrics=self.metrics if tool is not None or metrics is None else metrics[0],
            limits=self.limits,
            recorder=recorder_for_build(suite.build, own_environment()) if self.relink else None,
        )


def revision_of(repository: Repository, name: str | None, option: str) -> Revision:
    """Return the revision that an option names; without a name, the working tree.

    The working tree is HEAD with the uncommitted changes of tracked files. Raise `UnusableInput` if
    the repository has no such commit, or no commit at all.
    """
    if name is None:
        return revision_of_working_tree(repository)
    return find_revision(repository, name, option)


@contextmanager
def builds_of_record(record: RunRecord) -> Iterator[CommitBuilds]:
    """Yield the builds of the commits of a recorded campaign.

    Raise `UnusableInput` if the repository, a commit or the toolchain has changed since the
    campaign.
    """
    commits_plan = commits_terms(record.plan)
    repository, tool = repository_of(commits_plan), tool_of(commits_plan)
    build_line = commits_plan.build
    recorder = None
    if commits_plan.linker is not None:
        recorder = recorder_for_build(build_line, own_environment())
    with (
        scratch_folder() as scratch,
        open_cache(repository, build_line, tool, scratch, recorder) as cache,
    ):
        yield builds_of_plan(record.plan, cache)
