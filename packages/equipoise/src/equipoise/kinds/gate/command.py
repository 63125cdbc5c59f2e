"""``equipoise gate``: check out, build and compare two revisions; fail if the later is slower."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign import conduct
from equipoise.campaign.plans import with_trials_at_once
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command, typed_parameter_besides
from equipoise.cli.completion import complete_revisions
from equipoise.cli.conducting import analyse, exit_status, measuring
from equipoise.cli.ledger_slices import write_ledger_slice
from equipoise.cli.options.outputs import OutputOptions, check_folder
from equipoise.cli.results import CampaignResult, write_files
from equipoise.cli.revisions import SuiteOptions, revision_of, suite_options
from equipoise.cli.streams import say
from equipoise.cli.writing import write_file
from equipoise.design.command_line import shell_line
from equipoise.design.limits import CampaignLimits, metric_names
from equipoise.kinds.gate.earlier import with_known_noises
from equipoise.kinds.gate.function_processes import function_pair_runner
from equipoise.kinds.gate.functions import (
    can_link_by_default,
    functions_plan,
    refuse_other_programs,
    warnings_of_one_link,
)
from equipoise.kinds.gate.join import join_slices
from equipoise.kinds.gate.report import gate_document, shortage_sentences
from equipoise.kinds.gate.slices import plan_of_slice
from equipoise.kinds.gate.terms import (
    COMMENT_MARK,
    MIN_EFFECT,
    STUDY,
    GateDocument,
    GatePlan,
    GateResult,
)
from equipoise.kinds.gate.touched import with_touched_order
from equipoise.measure.environment import snapshot
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import own_environment
from equipoise.model.errors import (
    EXIT_CONDITION_FAILED,
    EXIT_DONE,
    EXIT_GATE_FAILED,
    UnusableInput,
)
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.quantities import counted
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK_SUFFIX, SourcePlace
from equipoise.report.document import MAX_SIMILAR_LINES
from equipoise.report.renderers.markdown import to_markdown
from equipoise.revisions.benchmarks import Benchmark, Suite
from equipoise.revisions.checkout import (
    default_branch,
    find_revision,
    fork_point,
    repository_at,
    warnings_of_working_tree,
)
from equipoise.revisions.counted_metrics import Counting, with_counting
from equipoise.revisions.git import Repository
from equipoise.revisions.link_recording import recorder_for_build
from equipoise.revisions.pairs import (
    CheckoutPair,
    PairRequest,
    builds_of_pair,
    check_out_and_build,
)
from equipoise.revisions.peak_memory import reader_of
from equipoise.revisions.plan import (
    Checkout,
    bisect_command,
    common_benchmarks,
    conditions_of_gate,
)
from equipoise.revisions.probing import (
    BenchmarkStopped,
    Notify,
    SuiteMetrics,
    failure_warnings,
    metrics_of,
    silent,
    without_benchmark,
    working_benchmarks,
)
from equipoise.revisions.relinking import linking_again
from equipoise.shared.spelling import option
from equipoise.suites.finding import ToolSuite
from equipoise.suites.tool import BenchmarkTool


class GateRequest(PairRequest, frozen=True, kw_only=True):
    """The user's request for a gate: two revisions, and how to measure them."""

    fail_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""
    library: str | None = None
    """Path of the shared library whose functions are compared; ``None`` for a gate of programs."""
    counting: Counting | None = None
    """How the gate counts; ``None`` for a gate of times."""
    reader: BenchmarkTool | None = None
    """Tool that reads the results of each trial; ``None`` if the trial's command needs none."""


def gate_plan(
    request: GateRequest, checkouts: CheckoutPair, scratch: Path, notify: Notify = silent
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a gate, and warnings about benchmarks that are left out.

    ``notify`` gets a sentence about a benchmark that may hang.
    Raise `UnusableInput` if a program does not exist, nothing can be compared, or the options
    contradict each other. Raise `ConditionFailed` if no benchmark runs.
    """
    tool, counting = request.tool, request.counting
    request, suite = _working_suite(request, checkouts, scratch, notify)
    benchmarks, metrics = suite.benchmarks, suite.found.metrics
    conditions, contrasts = conditions_of_gate(benchmarks, checkouts, request.reader)
    if counting is not None:
        conditions = counting.conditions(conditions)
    plan = request.plan(
        STUDY,
        conditions,
        metrics,
        folder=str(checkouts[1].folder),
        # The benchmarks of a tool have just run, and are warm.
        warmup=1 if tool is None else 0,
        stopping=Stopping(leave_out_decided=True) if counting is None else counting.stopping,
        judgement=Judgement(min_effect=MIN_EFFECT),
    )
    plan = replace(
        plan,
        measure=plan.measure if counting is None else counting.measure(plan.measure),
        chosen_contrasts=contrasts,
        terms=GatePlan(
            baseline=request.baseline,
            candidate=request.candidate,
            metrics=metrics,
            fails_undecided=request.fail_undecided,
            bisect_argvs=dict(named_bisect_argvs(request, benchmarks, metrics)),
            places=_places(tool, checkouts[1], metrics),
            counted_by={} if counting is None else counting.counted_by,
            failures=dict(suite.found.failures),
        ),
    )
    return plan, suite.found.warnings


class _WorkingSuite(Struct, frozen=True):
    """The benchmarks that both revisions have, and that run."""

    benchmarks: tuple[Benchmark, ...]
    found: SuiteMetrics


def _working_suite(
    request: GateRequest, checkouts: CheckoutPair, scratch: Path, notify: Notify
) -> tuple[GateRequest, _WorkingSuite]:
    """Return the benchmarks that run, and the request without those that stop their process."""
    tool, counting = request.tool, request.counting
    stopped: dict[str, str] = {}
    while True:
        benchmarks, warnings = common_benchmarks(request, checkouts)
        failures: Mapping[str, str] = {}
        conditions, _ = conditions_of_gate(benchmarks, checkouts, request.reader)
        if counting is not None:
            conditions = counting.conditions(conditions)
        if tool is not None and tool.listing is not None:
            benchmarks, failures = working_benchmarks(
                request, benchmarks, checkouts, conditions, scratch, notify
            )
        try:
            if counting is None:
                found = metrics_of(request, checkouts, conditions, scratch, notify)
            else:
                found = counting.metrics_in(request, checkouts, conditions, scratch, notify)
        except BenchmarkStopped as error:
            if error.benchmark in stopped:
                raise
            request = without_benchmark(request, error)
            stopped[error.benchmark] = error.reason
            continue
        failures = {**stopped, **failures}
        warnings = (*warnings, *found.warnings, *failure_warnings(failures))
        found = replace(found, warnings=warnings, failures={**found.failures, **failures})
        return request, _WorkingSuite(benchmarks, found)


def _places(
    tool: BenchmarkTool | None, candidate: Checkout, metrics: Sequence[str]
) -> dict[str, SourcePlace]:
    """Return where the tool's benchmarks are defined in the candidate, as far as this is known."""
    if tool is None or tool.places is None:
        return {}
    names = (metric.removesuffix(BENCHMARK_SUFFIX) for metric in metrics)
    return dict(tool.places(candidate.tree, candidate.folder, names))


def named_bisect_argvs(
    request: GateRequest, benchmarks: Sequence[Benchmark], metrics: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each benchmark, and the argument vector that bisects the benchmark."""
    candidate = request.candidate
    if request.counting is not None:
        # A bisection does not count.
        return
    argv_for = partial(
        bisect_command,
        request.baseline.commit,
        None if candidate.uncommitted else candidate.commit,
        build=request.build,
    )
    tool = request.tool
    if tool is None and len(metrics) == 1:
        named_argvs = (
            (benchmark.name, argv_for(benchmark.command, metric=metrics[0]))
            for benchmark in benchmarks
        )
    elif tool is not None and len(request.benchmarks) == 1:
        names = [metric.removesuffix(BENCHMARK_SUFFIX) for metric in metrics]
        if tool.listing is not None:
            # Each benchmark runs in its own process, and all benchmarks have the same metrics.
            is_only_time = tuple(metrics) == (BENCHMARK_SUFFIX.strip(),)
            names = [benchmark.name for benchmark in benchmarks] if is_only_time else []
        command = request.benchmarks[0].command
        named_argvs = ((name, argv_for(command, kind=tool.name, metric=name)) for name in names)
    else:
        return
    yield from ((name, argv) for name, argv in named_argvs if argv is not None)


SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Environment variable of GitHub Actions: the file to which a step appends its summary."""


_JOIN_OPTIONS = frozenset(
    "join argv fail_undecided markdown ledger report_file json_file show_env quiet verbose color "
    "durable host allow_concurrent".split()
)
"""Parameters of the command that a join uses."""


class GateOptions(Struct, frozen=True, kw_only=True):
    """Parsed options of ``equipoise gate``."""

    baseline: str | None
    candidate: str | None
    merge_base: bool
    program: SuiteOptions
    metrics: str | None
    fail_undecided: bool
    touched: bool
    relink: int | None
    duet: bool
    functions: str | None
    markdown: Path | None
    slice_file: Path | None
    join: bool
    limits: CampaignLimits
    output: OutputOptions


@click.command(
    "gate",
    cls=CommandRecorder,
    epilog="Example: equipoise gate --baseline main --build make -- ./bench",
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--baseline",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="the commit at which the candidate branched off the default branch",
    help="The revision to compare with.",
)
@click.option(
    "--candidate",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="HEAD with the changes of tracked files",
    help="The revision to test.",
)
@options.flag(
    "--merge-base", help="Compare with the commit at which the candidate branched off --baseline."
)
@click.option("--build", metavar="LINE", help="Run this in each revision first, untimed.")
@suite_options
@click.option(
    "--metrics",
    metavar="NAME,…",
    show_default="wall_s, or the times that --kind reports",
    help="Metrics to compare, such as instructions or allocations; each of them decides.",
)
@options.flag(
    "--fail-undecided", help="Fail (status 1) also if a benchmark is undecided at the end."
)
@options.flag(
    "--touched",
    help="Measure benchmarks last that run no changed file (Python); observes one run of each.",
)
@click.option(
    "--relink",
    type=click.IntRange(min=1),
    metavar="K",
    help="Link both revisions again for each block, at least K times: the linker's luck is noise.",
)
@options.flag(
    "--duet",
    help="Run both revisions of a benchmark at once, each on CPUs of its own that the coin "
    "assigns; a pilot refuses benchmarks that disturb each other.",
)
@click.option(
    "--functions",
    metavar="LIBRARY",
    help="Compare the functions equipoise_bench_NAME of this shared library, such as ./libbench.so;"
    " each block is a process with both revisions, linked again if the host has lld.",
)
@options.file_option("--markdown", help="Write the summary to a file, too.")
@options.file_option(
    "--slice",
    "slice_file",
    help="Write the gate of this runner to a file for --join; the status is 0 also if it fails.",
)
@options.flag("--join", help="Join the slices in the files after the options: one verdict.")
@options.warmup_option(
    "Trials of each revision before the first block, never analysed.",
    show_default="1; 0 with the suite of a tool, whose benchmarks run once before",
)
@options.timeout_option
@options.stopping_options(
    min_blocks="5; an outcome at alpha 0.05 takes 6", min_seconds="1; 0.3 with --functions"
)
@options.judging_options(MIN_EFFECT)
@options.ledger_option
@options.report_option
@options.show_env_option
@options.host_options
@options.output_options
@options.pass_request(GateOptions)
def command(gate_options: GateOptions) -> int:
    """Is a revision of this repository slower than another? Exit 1 if it is.

    Both are checked out into private folders, built there, and compared in random order until it
    is known for each benchmark whether it is slower by more than --min-effect. Without CMD,
    --bench, --suite and --kind, the gate finds the suite of the current folder by its files.
    """
    output, markdown_file = gate_options.output.checked(), gate_options.markdown
    if markdown_file is not None:
        check_folder(markdown_file)
    if gate_options.join:
        _refuse_options_of_measuring()
        paths = tuple(map(Path, gate_options.program.argv))
        fails_undecided = gate_options.fail_undecided
        return _report(join_slices(paths, output, fails_undecided=fails_undecided), gate_options)
    slice_file = gate_options.slice_file
    if slice_file is not None:
        check_folder(slice_file)
    repository = repository_at(Path.cwd())
    program, found = _programs_of(gate_options)
    request = _gate_request(repository, gate_options, program)
    if slice_file is not None and request.counting is not None:
        raise UnusableInput(
            "--slice is for times, but --metrics names counts",
            hint="count in one job: the counts of a program are the same on every runner",
        )
    if found is not None and not output.quiet:
        line = shell_line(_recorded_command(request, program, seed=None))
        say(f"{found.suite.evidence}, so this gate is: {line}")
    # Without a terminal, nobody reads the lines about builds.
    on_step = say if sys.stderr.isatty() and not output.quiet else lambda step: None
    with (
        scratch_folder() as scratch,
        measuring(output, interrupt_hint="run the gate again") as (ledger, listener),
        builds_of_pair(request, scratch) as builds,
    ):
        checkouts = check_out_and_build(request, scratch, builds, show=on_step)
        one_link: tuple[CampaignWarning, ...] = ()
        if request.library is not None and gate_options.relink is None:
            one_link = tuple(warnings_of_one_link(request.library, checkouts, builds))
            request = replace(request, min_links=None) if one_link else request
        plan, warnings = _plan_of(request, checkouts, scratch, silent if output.quiet else say)
        plan = replace(plan, command_line=_recorded_command(request, program, plan.seed))
        if gate_options.duet:
            plan = with_trials_at_once(plan)
        plan = with_known_noises(plan, ledger, snapshot().get("cpu_model"))
        if gate_options.touched:
            plan, line = with_touched_order(
                plan, request, checkouts, ledger, scratch, now=time.time(), show=on_step
            )
            if not output.quiet:
                say(line)
        if slice_file is not None:
            plan = plan_of_slice(plan, request, request.baseline, request.candidate)
        of_revisions = _warnings(request, of_working_tree=gate_options.candidate is None)
        warnings = (*of_revisions, *one_link, *warnings)
        with linking_again(plan, request.min_links, checkouts, builds) as links:
            assert isinstance(links.plan.terms, GatePlan)
            terms = replace(links.plan.terms, relinking=links.relinking)
            run_id = conduct.start(
                replace(links.plan, terms=terms),
                ledger,
                listener,
                warnings=warnings,
                runner_factory=conduct.native_runner
                if request.library is None
                else function_pair_runner,
                adapt_runner=links.adapt_runner,
            )
        result = analyse(run_id, ledger, output)
        if slice_file is not None:
            write_ledger_slice(ledger, run_id, slice_file)
    status = _report(result, gate_options)
    if slice_file is None or status not in (EXIT_DONE, EXIT_GATE_FAILED):
        return status
    if not output.quiet:
        outcome = "fails" if status == EXIT_GATE_FAILED else "does not fail"
        say(f"{slice_file} has the gate of this runner alone, which {outcome}; --join decides")
    return EXIT_DONE


def _programs_of(gate_options: GateOptions) -> tuple[SuiteOptions, ToolSuite | None]:
    """Return the programs to compare, and the suite if they were found by the files of the folder.

    With ``--functions`` there are none. Raise `UnusableInput` if options contradict each other.
    """
    program = gate_options.program
    if gate_options.functions is None:
        return program.or_found_in(Path.cwd())
    refuse_other_programs(
        {
            "a command after --": program.argv,
            "--kind": program.kind,
            "--bench": program.benches,
            "--suite": program.suite,
            "--metrics": gate_options.metrics,
            "--touched": gate_options.touched,
            "--slice": gate_options.slice_file,
        }
    )
    return program, None


def _plan_of(
    request: GateRequest, checkouts: CheckoutPair, scratch: Path, notify: Notify
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    if request.library is None:
        return gate_plan(request, checkouts, scratch, notify)
    return functions_plan(
        request,
        request.library,
        checkouts,
        fails_undecided=request.fail_undecided,
        has_links=request.min_links is not None,
    )


def _report(result: CampaignResult, gate_options: GateOptions) -> int:
    """Write the requested files and the summary of a gate; return the exit status."""
    output, document = gate_options.output, result.document
    write_files(result, output)
    assert isinstance(document, GateDocument)
    _write_summary(document, gate_options.markdown, output)
    _report_failures(document.gate)
    _report_undecided(document.gate)
    return _gate_status(result)


def _refuse_options_of_measuring() -> None:
    typed_name = typed_parameter_besides(_JOIN_OPTIONS)
    if typed_name is not None:
        raise UnusableInput(
            f"--join measures nothing, so it cannot be combined with {typed_name}",
            hint=f"give {typed_name} to the jobs that run equipoise gate --slice FILE",
        )


def _gate_status(result: CampaignResult) -> int:
    """Return the exit status: 1 if the gate failed, else 3 if a benchmark failed or timed out."""
    document, terms = result.document, result.record.plan.terms
    assert isinstance(document, GateDocument)
    assert isinstance(terms, GatePlan)
    gate = document.gate
    if gate is None and terms.fails_undecided:
        # No block is complete.
        return EXIT_GATE_FAILED
    if gate is not None and not gate.passed:
        return EXIT_GATE_FAILED
    if gate is not None and gate.failures:
        return EXIT_CONDITION_FAILED
    is_decided = gate is not None and gate.shortage is None
    return EXIT_DONE if is_decided else exit_status(result)


def _report_failures(gate: GateResult | None) -> None:
    """Print on stderr which benchmarks failed, because the exit status is 3."""
    failures = [] if gate is None else list(failure_warnings(gate.failures))
    for failure in failures[:MAX_SIMILAR_LINES]:
        say(failure.summary, failure.hint)
    if len(failures) > MAX_SIMILAR_LINES:
        rest = counted(len(failures) - MAX_SIMILAR_LINES, "more benchmark")
        say(f"{rest} failed", f"see the warnings of {option('json')}")


def _report_undecided(gate: GateResult | None) -> None:
    """Print on stderr that the gate is undecided, because the exit status may be 0."""
    if gate is None:
        say("the gate is undecided, because no block is complete", "raise --budget")
    elif sentences := shortage_sentences(gate):
        problem, hint = sentences
        say(f"the gate is undecided. {problem}", hint)


def _write_summary(
    document: GateDocument, markdown_file: Path | None, output: OutputOptions
) -> None:
    """Write the summary to the file of ``--markdown``, to GitHub's step summary and to stdout."""
    screen_document = gate_document(document)
    summary = to_markdown(screen_document)
    if markdown_file is not None:
        write_file(markdown_file, f"{summary}\n{COMMENT_MARK}\n".encode())
    step_file = os.environ.get(SUMMARY_VARIABLE)
    if step_file:
        try:
            with Path(step_file).open("a", encoding="utf-8") as stream:
                stream.write(summary)
        except OSError as error:
            # A missing summary must not hide the outcome of the gate.
            say(
                f"cannot append to {SUMMARY_VARIABLE} {step_file}: {error.strerror}",
                f"unset {SUMMARY_VARIABLE}, or make the file writable",
            )
    # This comes last, because writing to stdout may fail.
    if output.prints_result and sys.stdout.isatty():
        from equipoise.report.renderers.terminal import print_document

        print_document(screen_document, color=output.color, form=output.terminal_form)
    elif output.prints_result:
        sys.stdout.write(summary)


def _gate_request(
    repository: Repository, gate_options: GateOptions, program: SuiteOptions
) -> GateRequest:
    tool = program.tool
    kind_option = "" if tool is None else f"--kind {tool.name} "
    example = f"equipoise gate --baseline main {kind_option}--build make -- ./bench"
    library, min_links = gate_options.functions, gate_options.relink
    if library is None:
        suite = program.read("a gate", example)
    else:
        suite = Suite((), program.build)
        if min_links is None and program.build is not None and can_link_by_default():
            min_links = 0
    candidate = revision_of(repository, gate_options.candidate, "--candidate")
    if gate_options.baseline is None:
        baseline = default_branch(repository)
    else:
        baseline = find_revision(repository, gate_options.baseline, "--baseline")
    if gate_options.merge_base or gate_options.baseline is None:
        baseline = fork_point(repository, baseline, candidate)
    request = GateRequest(
        repository=repository,
        baseline=baseline,
        candidate=candidate,
        benchmarks=suite.benchmarks,
        build=suite.build,
        tool=tool,
        metrics=None if gate_options.metrics is None else metric_names(gate_options.metrics),
        limits=gate_options.limits,
        fail_undecided=gate_options.fail_undecided,
        recorder=None if min_links is None else recorder_for_build(suite.build, own_environment()),
        min_links=min_links,
        library=library,
    )
    if gate_options.duet and request.min_links is not None:
        raise UnusableInput(
            "--duet cannot be combined with --relink: it links both revisions before each block",
            hint="leave out one of the two",
        )
    if library is not None:
        return request
    counted_request, counting = with_counting(request)
    if gate_options.duet and counting is not None:
        raise UnusableInput(
            "--duet is for times, but --metrics names counts",
            hint="leave out --duet: counts have hardly any noise",
        )
    reader = reader_of(request) if counting is None else counting.reader
    return replace(counted_request, counting=counting, reader=reader)


def _recorded_command(
    request: GateRequest, program: SuiteOptions, seed: int | None
) -> tuple[str, ...]:
    candidate = request.candidate
    return typed_command(
        argv=program.argv or None,
        kind=program.kind,
        build=program.build,
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
            "name an earlier revision with --baseline",
        )
    if of_working_tree:
        yield from warnings_of_working_tree(
            request.repository, holder="neither revision", owner="the candidate"
        )
