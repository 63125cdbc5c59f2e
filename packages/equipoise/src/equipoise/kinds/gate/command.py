"""``equipoise gate``: fail if one revision is slower than another by more than is allowed.

Two revisions are checked out and built; the benchmarks of both are the conditions of its plan.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.completion import complete_revisions
from equipoise.cli.conducting import analyse, exit_status, measuring
from equipoise.cli.options.outputs import OutputOptions, check_folder
from equipoise.cli.results import CampaignResult, write_files
from equipoise.cli.revisions import SuiteOptions, revision_of, suite_options
from equipoise.cli.streams import say
from equipoise.cli.writing import write_file
from equipoise.design.limits import CampaignLimits, metric_names
from equipoise.kinds.gate.report import gate_document, shortage_sentences
from equipoise.kinds.gate.terms import MIN_EFFECT, STUDY, GateDocument, GatePlan, GateResult
from equipoise.measure.scratch import scratch_folder
from equipoise.model.errors import EXIT_DONE, EXIT_GATE_FAILED, UnusableInput
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK_SUFFIX, Revision
from equipoise.report.renderers.markdown import to_markdown
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import BuildCache, open_cache, source_of
from equipoise.revisions.checkout import (
    SIDES,
    check_out,
    fork_point,
    repository_at,
    revision_named,
    warnings_of_working_tree,
)
from equipoise.revisions.commits import trees_of
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import (
    CheckedOut,
    RevisionsRequest,
    benchmarks_in_all,
    bisect_command,
    conditions_of_gate,
    metrics_of,
)


class GateRequest(RevisionsRequest, frozen=True, kw_only=True):
    """What the user wants a gate to compare, and how."""

    baseline: Revision
    candidate: Revision
    fail_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""


Pair = tuple[CheckedOut, CheckedOut]
"""The baseline and the candidate, checked out and built."""


def check_out_and_build(
    request: GateRequest, scratch: Path, builds: BuildCache | None, *, say: Callable[[str], None]
) -> Pair:
    """Check both revisions out and build them, unless earlier builds of them are kept.

    ``builds`` are kept builds; ``None`` if nothing is built: then both are checked out into the
    scratch folder. ``say`` is called with a line on each step, for a user who waits.

    Raise `UnusableInput` if one cannot be checked out, or lacks the folder that the user is in.
    Raise `ConditionFailed` if one cannot be built.
    """
    repository = request.repository
    revisions = (request.baseline, request.candidate)
    if builds is not None:
        commits = trees_of(repository, [revision.commit for revision in revisions])
        sources = [source_of(repository, revision, commits) for revision in revisions]
    sides: list[CheckedOut] = []
    for role, revision in zip(("baseline", "candidate"), revisions, strict=True):
        if builds is None:
            say(f"checking out the {role} {revision.label}")
            parent = scratch / SIDES[len(sides)]
            parent.mkdir()
            tree = check_out(repository, revision, parent)
        else:
            say(f"building the {role} {revision.label}: {request.build}")
            tree = builds.get(sources[len(sides)], f"the {role} {revision.label}", sources).tree
        sides.append(CheckedOut(role, revision, tree, repository))
    for side in sides:
        if not side.folder.is_dir():
            raise UnusableInput(
                f"the {side.label} has no folder {repository.inside}",
                hint="run the gate in a folder that both revisions have",
            )
    return sides[0], sides[1]


def gate_plan(
    request: GateRequest, pair: Pair, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a gate, and warnings of benchmarks that only one revision has.

    Raise `UnusableInput` if a program does not exist, nothing can be compared, or the options
    contradict each other. Raise `ConditionFailed` if a benchmark failed when it was run to see what
    it reports.
    """
    tool = request.tool
    benchmarks, unlisted = benchmarks_in_all(request, pair)
    conditions, contrasts = conditions_of_gate(benchmarks, pair, tool)
    metrics, unreported = metrics_of(request, pair, conditions, scratch)
    plan = request.plan(
        STUDY,
        conditions,
        metrics,
        folder=str(pair[1].folder),
        # The benchmarks of a tool without a listing have just run once, to see what they report.
        warmup=1 if tool is None or tool.listing is not None else 0,
        stopping=Stopping(leave_out_decided=True),
        judgement=Judgement(min_effect=MIN_EFFECT),
    )
    plan = replace(
        plan,
        chosen_contrasts=contrasts,
        terms=GatePlan(
            request.baseline,
            request.candidate,
            metrics,
            request.fail_undecided,
            dict(bisect_lines(request, benchmarks, metrics)),
        ),
    )
    return plan, (*unlisted, *unreported)


def bisect_lines(
    request: GateRequest, benchmarks: Sequence[Benchmark], metrics: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each benchmark, and the words of the line that finds what made it slower.

    A bisection searches by one metric of commands, and by the times that a tool reports.
    """
    good, candidate = request.baseline.commit, request.candidate
    line = partial(
        bisect_command,
        good,
        None if candidate.uncommitted else candidate.commit,
        build=request.build,
    )
    tool = request.tool
    if tool is None and len(metrics) == 1:
        lines = ((one.name, line(one.command, metric=metrics[0])) for one in benchmarks)
    elif tool is not None and len(request.benchmarks) == 1:
        names = [metric.removesuffix(BENCHMARK_SUFFIX) for metric in metrics]
        if tool.listing is not None:
            is_time = tuple(metrics) == (BENCHMARK_SUFFIX.strip(),)
            names = [one.name for one in benchmarks] if is_time else []
        command = request.benchmarks[0].command
        lines = ((name, line(command, kind=tool.name, metric=name)) for name in names)
    else:
        return
    yield from ((name, one) for name, one in lines if one is not None)


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable that names the file to which a step of GitHub Actions appends its summary."""
MARK = "<!-- equipoise gate -->"
"""Ends what becomes a comment, unseen: by it the next run finds the comment and replaces it."""


class GateOptions(Struct, frozen=True, kw_only=True):
    """What `equipoise gate` is asked for; `GateRequest` has the revisions that it names."""

    baseline: str
    candidate: str | None
    merge_base: bool
    program: SuiteOptions
    metrics: str | None
    fail_undecided: bool
    markdown: Path | None
    limits: CampaignLimits
    output: OutputOptions


@click.command(
    "gate",
    cls=CommandRecorder,
    epilog="Example: equipoise gate --baseline main --build make -- ./bench",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--baseline",
    required=True,
    metavar="REV",
    shell_complete=complete_revisions,
    help="The revision to compare with.",
)
@click.option(
    "--candidate",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="HEAD with what tracked files have changed since",
    help="The revision that is to pass.",
)
@options.flag(
    "--merge-base",
    help="Compare with where the candidate left --baseline, without what came there since.",
)
@click.option("--build", metavar="LINE", help="Run this in each revision first, untimed.")
@suite_options
@click.option(
    "--metrics",
    metavar="NAME,…",
    show_default="wall_s, or the times that --kind reports",
    help="What is compared; each counts.",
)
@options.flag("--fail-undecided", help="Fail (status 1) what is undecided at the end, too.")
@options.file_option("--markdown", help="Write the summary to a file, too.")
@options.warmup_option(
    "Trials of each revision before the first block, never analysed.",
    show_default="1; 0 with cargo, go and pytest, which run once to see what they report",
)
@options.timeout_option
@options.stopping_options(min_blocks="5; an outcome at alpha 0.05 takes 6")
@options.judging_options(MIN_EFFECT)
@options.ledger_option
@options.report_option
@options.show_env_option
@options.host_options
@options.output_options
@options.request_of(GateOptions)
def command(asked: GateOptions) -> int:
    """Is a revision of this repository slower than another? Exit 1 if it is.

    Both are checked out into private folders, built there, and compared in random order until it
    is known for each benchmark whether it is slower by more than --min-effect.
    """
    output, markdown = asked.output.checked(), asked.markdown
    if markdown is not None:
        check_folder(markdown)
    request = _request(repository_at(Path.cwd()), asked)
    # For a user who waits at a terminal.
    on_step = say if sys.stderr.isatty() and not output.quiet else lambda step: None
    with (
        scratch_folder() as scratch,
        measuring(output, after_interrupt="run the gate again") as (ledger, listener),
        _builds(request, scratch) as builds,
    ):
        pair = check_out_and_build(request, scratch, builds, say=on_step)
        plan, warnings = gate_plan(request, pair, scratch)
        plan = replace(plan, command_line=_typed(request, plan.seed))
        warnings = (*_warnings(request, of_working_tree=asked.candidate is None), *warnings)
        run_id = conduct.start(plan, ledger, listener, warnings=warnings)
        result = analyse(run_id, ledger, output)
    write_files(result, output)
    document = result.document
    assert isinstance(document, GateDocument)
    _summarise(document, markdown, output)
    _say_undecided(document.gate)
    return _gate_status(result)


def _builds(request: GateRequest, scratch: Path) -> AbstractContextManager[BuildCache | None]:
    """Return the kept builds of the repository; ``None`` if the gate builds nothing."""
    if request.build is None:
        return nullcontext()
    return open_cache(request.repository, request.build, request.tool, scratch)


def _gate_status(result: CampaignResult) -> int:
    """Return 1 if the gate failed, 3 if a timeout left it undecided, else 0."""
    document, terms = result.document, result.record.plan.terms
    assert isinstance(document, GateDocument)
    assert isinstance(terms, GatePlan)
    gate = document.gate
    if gate is None and terms.fails_undecided:
        # No block ended.
        return EXIT_GATE_FAILED
    if gate is not None and not gate.passed:
        return EXIT_GATE_FAILED
    known = gate is not None and gate.shortage is None
    return EXIT_DONE if known else exit_status(result)


def _say_undecided(gate: GateResult | None) -> None:
    """Say on stderr that the gate left something open: a status of 0 alone would hide it."""
    if gate is None:
        say(
            "the gate is undecided. No block ended", "raise --budget, or make the benchmark shorter"
        )
    elif sentences := shortage_sentences(gate):
        problem, hint = sentences
        say(f"the gate is undecided. {problem}", hint)


def _summarise(document: GateDocument, markdown: Path | None, output: OutputOptions) -> None:
    """Write the summary to ``--markdown``, to the step of GitHub Actions and to stdout.

    A terminal shows it as a screen; a pipe gets the same Markdown as the files.
    """
    shown = gate_document(document)
    summary = to_markdown(shown)
    if markdown is not None:
        write_file(markdown, f"{summary}\n{MARK}\n".encode())
    step_file = os.environ.get(STEP_SUMMARY)
    if step_file:
        try:
            with Path(step_file).open("a", encoding="utf-8") as file:
                file.write(summary)
        except OSError as error:
            # The outcome of the gate matters more than this file.
            say(
                f"cannot append to {STEP_SUMMARY} {step_file}: {error.strerror}",
                f"unset {STEP_SUMMARY}, or make the file writable",
            )
    # Last: standard output may fail.
    if output.has_screen and sys.stdout.isatty():
        from equipoise.report.renderers.terminal import print_document

        print_document(shown, color=output.color, form=output.screen_form)
    elif output.has_screen:
        sys.stdout.write(summary)


def _request(repository: Repository, asked: GateOptions) -> GateRequest:
    tool = asked.program.tool
    own = "" if tool is None else f"--kind {tool.name} "
    example = f"equipoise gate --baseline main {own}--build make -- ./bench"
    suite = asked.program.read("a gate", example)
    baseline = revision_named(repository, asked.baseline, "--baseline")
    candidate = revision_of(repository, asked.candidate, "--candidate")
    if asked.merge_base:
        baseline = fork_point(repository, baseline, candidate)
    return GateRequest(
        repository=repository,
        baseline=baseline,
        candidate=candidate,
        benchmarks=suite.benchmarks,
        build=suite.build,
        tool=tool,
        metrics=None if asked.metrics is None else metric_names(asked.metrics),
        limits=asked.limits,
        fail_undecided=asked.fail_undecided,
    )


def _typed(request: GateRequest, seed: int) -> tuple[str, ...]:
    """Return the words that run the gate again, with the commits that its revisions name."""
    candidate = request.candidate
    return typed_command(
        baseline=request.baseline.commit,
        candidate=None if candidate.uncommitted else candidate.commit,
        merge_base=None,
        seed=seed,
    )


def _warnings(request: GateRequest, *, of_working_tree: bool) -> Iterator[CampaignWarning]:
    baseline, candidate = request.baseline, request.candidate
    if baseline.commit == candidate.commit and not candidate.uncommitted:
        yield CampaignWarning(
            "same_revision",
            f"baseline and candidate are the same commit {candidate.commit}",
            "name the revision that is to be compared with by --baseline",
        )
    if of_working_tree:
        yield from warnings_of_working_tree(request.repository, "neither revision", "the candidate")
