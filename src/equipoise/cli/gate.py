"""``equipoise gate``: is one revision slower than another, by more than may be?"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from equipoise.campaign import conduct
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options
from equipoise.cli.finish import conducted, exit_status
from equipoise.cli.output_file import check_folder, write_file
from equipoise.cli.wanted import Wanted, write_files
from equipoise.measure.scratch import scratch_folder
from equipoise.model.errors import EXIT_DONE, EXIT_GATE_FAILED, EXIT_INTERRUPTED, UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.model.result import ResultDocument
from equipoise.report.gate import to_comment, to_markdown
from equipoise.revisions.benchmark_tools import TOOLS
from equipoise.revisions.checkout import (
    Repository,
    changed_submodules,
    fork_point,
    repository_at,
    revision_named,
    revision_of_working_tree,
    untracked_files,
)
from equipoise.revisions.conditions import Benchmark
from equipoise.revisions.plan import Asked, checked_out_and_built, planned
from equipoise.revisions.suite import Suite, benchmarks_named, read_suite

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file to which a step of GitHub Actions appends what is shown of its job."""


@click.command("gate", epilog="Example: equipoise gate --baseline main --build make -- ./bench")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option("--baseline", required=True, metavar="REV", help="The revision to compare with.")
@click.option(
    "--candidate",
    metavar="REV",
    show_default="HEAD with what tracked files have changed since",
    help="The revision that is to pass.",
)
@click.option(
    "--merge-base",
    is_flag=True,
    help="Compare with where the candidate left --baseline, without what came there since.",
)
@click.option("--build", metavar="LINE", help="Run this in each revision first, untimed.")
@click.option(
    "--kind",
    type=click.Choice(list(TOOLS)),
    help="CMD runs the benchmarks of this tool; without CMD, all of them.",
)
@click.option(
    "--bench", "benches", multiple=True, metavar="NAME=CMD", help="One of several benchmarks."
)
@click.option(
    "--suite",
    "suite_file",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Several benchmarks, in a file.",
)
@click.option(
    "--metrics",
    metavar="NAME,…",
    show_default="wall_s, or the times that --kind reports",
    help="What is compared; each counts.",
)
@click.option("--fail-undecided", is_flag=True, help="Fail what is not known at the end, too.")
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the summary to a file, too.",
)
@click.option(
    "-w",
    "--warmup",
    type=click.IntRange(min=0, max=1000),
    metavar="N",
    show_default="1; 0 with --kind, which runs each once to see what it reports",
    help="Trials of each revision before the first block, never analysed.",
)
@options.timeout_option
@options.gate_stopping_options
@options.gate_judging_options
@options.ledger_option
@options.report_option
@options.show_env_option
@options.turn_option
@options.output_options
def command(**given: Any) -> int:
    """Is a revision of this repository slower than another? Exit 1 if it is.

    Both are checked out into a private folder, built there, and compared in random order until it
    is known for each benchmark whether it is slower by more than --min-effect.
    """
    wanted = Wanted.from_options(given)
    files = _summary_files(given)
    repository = repository_at(Path.cwd())
    asked = _asked(repository, given)
    with scratch_folder() as scratch:

        def campaign(ledger: conduct.CampaignStore, watcher: ProgressListener) -> str:
            pair = checked_out_and_built(asked, scratch, say=_sayer(wanted))
            plan, more = planned(asked, pair, scratch)
            notices = (*_notices(asked, given["candidate"] is None), *more)
            return conduct.start(plan, ledger, watcher, warnings=notices)

        try:
            done = conducted(campaign, wanted, going_on="run the gate again")
        except KeyboardInterrupt:
            # While it was built: no campaign had begun.
            return EXIT_INTERRUPTED
    if done is None:
        return EXIT_INTERRUPTED
    write_files(done.document, done.record, wanted)
    _summarise(done.document, files, wanted)
    gate = done.document.gate
    if gate is not None and not gate.passed:
        return EXIT_GATE_FAILED
    known = gate is not None and all(row.outcome != "undecided" for row in gate.rows)
    return EXIT_DONE if known else exit_status(done.record, done.document)


@dataclass(frozen=True, slots=True)
class _SummaryFiles:
    """Where the summary goes beside stdout."""

    own: Path | None
    of_step: Path | None


def _summary_files(given: dict[str, Any]) -> _SummaryFiles:
    own: Path | None = given["markdown_file"]
    if own is not None:
        check_folder(own)
    of_step = os.environ.get(STEP_SUMMARY)
    return _SummaryFiles(own, Path(of_step) if of_step else None)


def _summarise(document: ResultDocument, files: _SummaryFiles, wanted: Wanted) -> None:
    summary = to_markdown(document)
    if files.own is not None:
        write_file(files.own, to_comment(document).encode())
    if files.of_step is not None:
        try:
            with files.of_step.open("a", encoding="utf-8") as file:
                file.write(summary)
        except OSError as error:
            # The outcome counts, whoever may read of it.
            print(
                f"equipoise: cannot append to {STEP_SUMMARY} {files.of_step}: {error.strerror}\n"
                f"  hint: unset {STEP_SUMMARY}, or make the file writable",
                file=sys.stderr,
            )
    if wanted.has_screen:
        # Last: standard output may fail.
        sys.stdout.write(summary)


def _asked(repository: Repository, given: dict[str, Any]) -> Asked:
    tool = None if given["kind"] is None else TOOLS[given["kind"]]
    suite = _suite(given)
    baseline = revision_named(repository, given["baseline"], "--baseline")
    named = given["candidate"]
    if named is None:
        candidate = revision_of_working_tree(repository)
    else:
        candidate = revision_named(repository, named, "--candidate")
    build = given["build"] or suite.build or (None if tool is None else tool.build)
    return Asked(
        repository=repository,
        baseline=fork_point(repository, baseline, candidate) if given["merge_base"] else baseline,
        candidate=candidate,
        benchmarks=suite.benchmarks,
        build=build,
        tool=tool,
        options=given,
    )


def _suite(given: dict[str, Any]) -> Suite:
    """What is run, by the one way in which it was named."""
    words, benches, file, kind = (given[key] for key in ("words", "benches", "suite_file", "kind"))
    if sum(map(bool, (words or kind, benches, file))) != 1:
        raise UnusableInput(
            "a gate needs one thing to run: a command behind --, --bench, --suite or --kind",
            hint="as in: equipoise gate --baseline main --build make -- ./bench",
        )
    if benches:
        return Suite(benchmarks_named(benches))
    if file is not None:
        return read_suite(file)
    words = words or TOOLS[kind].command
    if not words[0] or any("\0" in word for word in words):
        raise UnusableInput("the command behind -- is empty", hint="write the program to be run")
    return Suite((Benchmark(shlex.join(words), tuple(words)),))


def _notices(asked: Asked, is_working_tree: bool) -> tuple[CampaignWarning, ...]:
    notices = []
    same = asked.baseline.commit == asked.candidate.commit
    if same and not asked.candidate.uncommitted:
        notices.append(
            CampaignWarning(
                "same_revision",
                f"baseline and candidate are the same commit {asked.candidate.commit}",
                "name the revision that is to be compared with by --baseline",
            )
        )
    if not is_working_tree:
        return tuple(notices)
    submodules = changed_submodules(asked.repository)
    if submodules:
        notices.append(
            CampaignWarning(
                "changed_submodules",
                f"what changed in submodules is in neither revision: {len(submodules)}, "
                f"{submodules[0]} among them",
                "commit it there, and here which commit is meant",
            )
        )
    untracked = untracked_files(asked.repository)
    if untracked:
        notices.append(
            CampaignWarning(
                "untracked_files",
                f"untracked files of the working tree are in neither revision: "
                f"{len(untracked)}, {untracked[0]} among them",
                "git add what belongs to the candidate; .gitignore the rest",
            )
        )
    return tuple(notices)


def _sayer(wanted: Wanted) -> Any:
    if wanted.quiet or not sys.stderr.isatty():
        return lambda words: None
    return lambda words: print(f"equipoise: {words}", file=sys.stderr, flush=True)
