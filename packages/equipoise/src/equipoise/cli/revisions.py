"""Options of `gate`, `bisect` and `history`: benchmarks, revisions, and kept builds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.options import Option, OutputOptions
from equipoise.design.limits import CampaignLimits, metric_names
from equipoise.measure.scratch import scratch_folder
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.revisions import Revision
from equipoise.revisions.benchmarks import (
    TOOLS,
    Benchmark,
    BenchmarkTool,
    Suite,
    parse_benchmarks,
    read_suite,
)
from equipoise.revisions.build_cache import open_cache
from equipoise.revisions.checkout import (
    find_revision,
    repository_at,
    revision_of_working_tree,
)
from equipoise.revisions.commit_plans import (
    BUDGET_S,
    CommitBuilds,
    builds_of_plan,
    repository_of,
    tool_of,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import RevisionsRequest
from equipoise.revisions.terms import commits_of

suite_options = options.option_group(
    click.option(
        "--kind",
        type=click.Choice(list(TOOLS)),
        metavar="TOOL",
        help="CMD runs benchmarks of cargo, go, pytest or google-benchmark; only the last needs "
        "CMD.",
    ),
    click.option(
        "--bench", "benches", multiple=True, metavar="NAME=CMD", help="One of several benchmarks."
    ),
    options.file_option("--suite", metavar="FILE.toml", help="Several benchmarks, in a file."),
)
"""The options that say what runs: one command, or several benchmarks."""
build_options = options.option_group(
    click.option("--build", metavar="LINE", help="Run this in each commit first, untimed."),
    suite_options,
)


def measuring_options(what_counts: str) -> Option:
    """Return the options on what is measured and how long; ``what_counts`` explains the metric."""
    return options.option_group(
        click.option(
            "--metrics",
            metavar="NAME,…",
            show_default="wall_s; with --kind, all benchmarks",
            help=f"{what_counts}: one metric; with --kind, benchmarks.",
        ),
        options.warmup_option(
            "Trials of each commit before its first block, never analysed.", default=1
        ),
        options.timeout_option,
        options.number_option(
            "--blocks", metavar="N", show_default="no limit", help="At most so many."
        ),
        options.number_option(
            "--budget",
            metavar="SECONDS",
            show_default=f"{BUDGET_S:g}",
            help="Stop after about so many seconds, builds of commits between included.",
        ),
        options.judging_options(),
    )


output_options = options.option_group(
    options.ledger_option,
    options.durable_option,
    options.report_option,
    options.show_env_option,
    options.concurrent_option,
    options.output_options,
)


class SuiteOptions(Struct, frozen=True):
    """Benchmarks that run in each revision, and how they are built."""

    words: tuple[str, ...] = ()
    """The command behind ``--``."""
    kind: str | None = None
    benches: tuple[str, ...] = ()
    suite: Path | None = None
    build: str | None = None

    @property
    def tool(self) -> BenchmarkTool | None:
        """The tool whose benchmarks the command runs."""
        return None if self.kind is None else TOOLS[self.kind]

    def read(self, called: str, example: str) -> Suite:
        """Return the benchmarks, which the user may name in one way only, and how they are built.

        Raise `UnusableInput` if nothing is named, or several things, or what is named cannot be
        read.

        Parameters
        ----------
        called
            What the command makes, with its article: ``a gate``.
        example
            A line that runs the command.
        """
        tool = self.tool
        words = self.words or (() if tool is None else tool.command)
        # Of a kind with a command of its own the command is the one thing.
        if sum(map(bool, (words, self.benches, self.suite))) != 1:
            raise UnusableInput(
                f"{called} needs one thing to run: a command behind --, --bench, --suite or --kind",
                hint=f"as in: {example}",
            )
        if self.benches:
            suite = Suite(parse_benchmarks(self.benches))
        elif self.suite is not None:
            suite = read_suite(self.suite)
        elif not words[0] or any("\0" in word for word in words):
            raise UnusableInput(
                "the command behind -- is empty", hint="write the program to be run"
            )
        else:
            suite = Suite((Benchmark(shlex.join(words), tuple(words)),))
        own_build = None if tool is None else tool.build
        return Suite(suite.benchmarks, self.build or suite.build or own_build)


class CommitsOptions(Struct, frozen=True, kw_only=True):
    """Options that `bisect` and `history` share."""

    program: SuiteOptions
    metrics: str | None
    limits: CampaignLimits
    output: OutputOptions

    def request(self, called: str, example: str) -> RevisionsRequest:
        """Return the benchmarks to run in each commit, in the repository of the working folder.

        Raise `UnusableInput` if there is no command, or several metrics are named without a tool.
        """
        tool, suite = self.program.tool, self.program.read(f"a {called}", example)
        metrics = None if self.metrics is None else metric_names(self.metrics)
        if tool is None and metrics is not None and len(metrics) > 1:
            raise UnusableInput(
                f"a {called} searches by one metric, and --metrics names {len(metrics)}",
                hint=f"run it once for each: --metrics {metrics[0]}",
            )
        return RevisionsRequest(
            repository=repository_at(Path.cwd()),
            benchmarks=suite.benchmarks,
            build=suite.build,
            tool=tool,
            # Names of benchmarks may have commas.
            metrics=self.metrics if tool is not None or metrics is None else metrics[0],
            limits=self.limits,
        )


def revision_of(repository: Repository, name: str | None, option: str) -> Revision:
    """Return the revision that an option names; else HEAD with the later changes of tracked files.

    Raise `UnusableInput` if the repository has no such commit, or none at all.
    """
    if name is None:
        return revision_of_working_tree(repository)
    return find_revision(repository, name, option)


@contextmanager
def kept_builds(record: RunRecord) -> Iterator[CommitBuilds]:
    """Yield the builds of the commits of a recorded campaign.

    Raise `UnusableInput` if the repository, a commit or the toolchain is no longer what it was.
    """
    terms = commits_of(record.plan)
    repository, tool = repository_of(terms), tool_of(terms)
    with scratch_folder() as scratch, open_cache(repository, terms.build, tool, scratch) as cache:
        yield builds_of_plan(record.plan, cache)
