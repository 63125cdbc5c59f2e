"""``equipoise why``: where the extra time of the slower condition goes, and why.

A gap is the extra wall time of the slower condition. The command observes both conditions to find
causes of the gap. Then it runs an experiment: a campaign that tests the causes by interventions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.display import records_for_display
from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.completion import complete_runs
from equipoise.cli.conducting import clear_killed_campaigns, measuring
from equipoise.cli.options.outputs import OutputOptions, check_folder
from equipoise.cli.progress import progress_for
from equipoise.cli.results import CampaignResult, name_in_ledger, result_of_records, write_files
from equipoise.cli.streams import is_watched, say
from equipoise.cli.work_bars import work_bar
from equipoise.cli.writing import write_file
from equipoise.design.coin import fresh_seed
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.explain.plan import (
    ExperimentRequest,
    GapWithCauses,
    NothingToTry,
    check_names,
    plan_experiment,
)
from equipoise.kinds.explain.reach import UnalteredEvidence
from equipoise.kinds.explain.terms import ExperimentPlan, experiment_of
from equipoise.ledger import Ledger, open_for_reading
from equipoise.measure.installation import host_site
from equipoise.model.kinds import load
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.document import BRIEF_TERMINAL, Document, Paragraph, Part
from equipoise.shared.spelling import option
from equipoise.studies.data_sets import require_data
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.differences.stacks import Picture, draw_profiles
from equipoise.why.evidence.collect import MIN_REPETITIONS, EvidenceRequest, missing_runs, observe
from equipoise.why.evidence.sources import DEFAULT_SOURCES, SLOW_SOURCE, known_sources
from equipoise.why.explanation import GapEvidence, evidence_of_gap, with_causes
from equipoise.why.gap import (
    Gap,
    choose_gap,
    gap_with_public_names,
    largest_gap,
    nothing_to_explain_sentence,
)
from equipoise.why.interventions.catalogue import user_command, user_variable
from equipoise.why.kind import why_kind
from equipoise.why.result import latest_experiment

MIN_ANNOUNCED_S = 120.0
"""If the observed runs take fewer seconds and no progress bar is shown, they are not announced."""
MIN_BUDGET_S = 120.0
"""Minimum of the default budget of an experiment, in seconds."""


def explain_largest_gap(record: RunRecord, ledger: Ledger, output: OutputOptions) -> None:
    """Observe the largest gap of a campaign, and test its causes unless ``--no-test`` is given.

    Raise `KeyboardInterrupt`, after a message, if the user interrupted the observation.
    """
    gap = largest_gap(record)
    if gap is None:
        say(f"there is nothing to explain: {why_kind(record.plan.terms).nothing_to_explain_reason}")
    elif not gap.is_explainable:
        say(nothing_to_explain_sentence(gap))
    else:
        record = observe_gap(record, gap, EvidenceRequest(), ledger, output)
        if output.tests_causes:
            run_experiment(record, gap, default_request(record.plan), ledger, output)


def default_request(explained_plan: Plan) -> ExperimentRequest:
    """Return the request for an experiment with all interventions that fit the causes."""
    budget_s = max(MIN_BUDGET_S, explained_plan.stopping.budget_s)
    return ExperimentRequest(
        Stopping(budget_s=budget_s), explained_plan.judgement.alpha, fresh_seed()
    )


def observe_gap(
    record: RunRecord, gap: Gap, request: EvidenceRequest, ledger: Ledger, output: OutputOptions
) -> RunRecord:
    """Make the requested runs that the ledger lacks; return the campaign with their evidence.

    Raise `KeyboardInterrupt`, after a message, if the user interrupted the runs.
    """
    runs = missing_runs(record, gap, request)
    if not runs:
        return record
    if not output.quiet and (is_watched() or len(runs) * gap.longest_trial_s >= MIN_ANNOUNCED_S):
        conditions = f"{gap.comparison.candidate} and {gap.comparison.baseline}"
        sources = ", ".join(dict.fromkeys(run.source for run in runs))
        repetitions = len({run.repetition for run in runs})
        times = "once" if repetitions == 1 else f"{repetitions} times"
        say(f"observing {conditions} {times} under each of {sources}: {len(runs)} runs")
    try:
        with work_bar("observing", quiet=output.quiet, color=output.color) as show_progress:

            def on_progress(count: int) -> None:
                if show_progress is not None:
                    show_progress(count, len(runs))

            on_progress(0)
            observe(record, gap, runs, ledger, on_progress=on_progress)
    except KeyboardInterrupt:
        say("interrupted; the evidence so far is kept", f"run equipoise why {record.id} again")
        raise
    return ledger.read_run(record.id)


def run_experiment(
    record: RunRecord, gap: Gap, request: ExperimentRequest, ledger: Ledger, output: OutputOptions
) -> None:
    """Run the experiment that tests the causes of a gap, or report that nothing can be tried.

    Raise `Interrupted` if the user interrupted the experiment. Raise `ConditionFailed` if one of
    the two conditions failed without an intervention.
    """
    gap_evidence = evidence_of_gap(record, gap)
    causes = suggested_causes(gap_evidence.difference)
    evidence = UnalteredEvidence(gap_evidence.evidence, gap_evidence.difference.slower)
    gap_with_causes = GapWithCauses(
        record, gap.contrast, causes, evidence, gap.longest_trial_s, gap.ratio_nearest_to_1
    )
    try:
        plan = plan_experiment(gap_with_causes, request, host_site())
    except NothingToTry as error:
        say(f"nothing is tested: {error.what}", error.hint)
        return
    if not output.quiet:
        names = [
            attempt.intervention
            for attempt in experiment_of(plan).attempts
            if attempt.may_reach_cause
        ]
        if names:
            say(f"testing by interventions on both: {', '.join(names)}")
        for attempt in experiment_of(plan).attempts:
            if not attempt.may_reach_cause:
                sentences = (check.unchanged_sentence for check in attempt.reach_checks)
                reason = next(filter(None, sentences))
                say(f"not tested: {attempt.intervention} cannot reach the cause ({reason})")
    listener = progress_for(quiet=output.quiet, color=output.color)
    conduct.start(plan, ledger, listener)


Pictures = dict[Path, Picture]
"""Kinds of the pictures to draw, by the file of each picture."""

evidence_options = options.option_group(
    click.option(
        "--sources",
        metavar="NAME,…",
        help="Sources of evidence; by default "
        f"{', '.join(DEFAULT_SOURCES)} (docs/reference/causes.md).",
    ),
    options.flag("--instructions", help="Count instructions, too: 20 to 100 times as slow."),
    click.option(
        "--repetitions",
        type=click.IntRange(min=MIN_REPETITIONS, max=1000),
        metavar="N",
        help="Runs of each condition under each source; by default 3, or 2 if runs are long.",
    ),
)
experiment_options = options.option_group(
    options.no_test_option,
    click.option(
        "--try",
        "tries",
        multiple=True,
        metavar="NAME:KEY=VALUE",
        help="Try a variable of the environment on both conditions.",
    ),
    click.option(
        "--try-command",
        "try_commands",
        multiple=True,
        metavar="NAME=CMD",
        help="Try CMD with each command as its argument, or in the place of {command} in CMD.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Try this intervention of the catalogue only (docs/reference/causes.md).",
    ),
    options.stopping_options(budget=f"the campaign's, at least {MIN_BUDGET_S:g}"),
    options.number_option(
        "--alpha",
        show_default="the campaign's",
        help="The largest chance of a wrong outcome, over all interventions.",
    ),
    options.seed_option,
)
picture_options = options.option_group(
    options.file_option(
        "--flame-graph",
        metavar="FILE.svg",
        help="Draw both profiles as one flame graph: red where the slower one takes more.",
    ),
    options.file_option(
        "--firefox", metavar="FILE.json", help="Write both profiles for profiler.firefox.com."
    ),
)


class WhyRequest(Struct, frozen=True, kw_only=True):
    """Options of `equipoise why`."""

    run: str
    baseline: str | None
    candidate: str | None
    sources: str | None
    instructions: bool
    repetitions: int | None
    tries: tuple[str, ...]
    try_commands: tuple[str, ...]
    only: tuple[str, ...]
    again: bool
    flame_graph: Path | None
    firefox: Path | None
    limits: CampaignLimits
    output: OutputOptions

    @property
    def needs_new_experiment(self) -> bool:
        """Whether the options need a new experiment, even if the ledger has one of this gap."""
        return bool(self.tries or self.try_commands or self.only or self.again)

    def evidence_request(self) -> EvidenceRequest:
        """Return the request for evidence."""
        sources = DEFAULT_SOURCES
        if self.sources is not None:
            sources = known_sources([name.strip() for name in self.sources.split(",")])
        if self.instructions:
            sources = tuple(dict.fromkeys((*sources, SLOW_SOURCE)))
        return EvidenceRequest(sources, self.repetitions, self.again)

    def experiment_request(self, explained_plan: Plan) -> ExperimentRequest:
        """Return the request for an experiment on a gap of the explained campaign."""
        variables = [user_variable(text) for text in self.tries]
        commands = [user_command(text, host_site()) for text in self.try_commands]
        default = default_request(explained_plan)
        return ExperimentRequest(
            stopping=self.limits.stopping(default.stopping),
            alpha=self.limits.alpha or default.alpha,
            seed=self.limits.seed_or_random(),
            user_interventions=(*variables, *commands),
            only=self.only,
        )

    def pictures(self) -> Pictures:
        """Return the pictures to draw; raise `UnusableInput` if a folder is not writable."""
        pictures: Pictures = {}
        if self.flame_graph is not None:
            pictures[self.flame_graph] = "flame-graph"
        if self.firefox is not None:
            pictures[self.firefox] = "firefox"
        for path in pictures:
            check_folder(path)
        return pictures


@click.command("why", cls=CommandRecorder, epilog="Example: equipoise why last")
@click.argument("run", shell_complete=complete_runs)
@click.option("--baseline", metavar="NAME", help="The baseline of the comparison to explain.")
@click.option("--candidate", metavar="NAME", help="The candidate of the comparison to explain.")
@evidence_options
@experiment_options
@options.flag("--again", help="Observe and test again, even if the ledger has the results.")
@picture_options
@options.ledger_option
@options.report_option
@options.show_env_option
@options.host_options
@options.output_options
@options.pass_request(WhyRequest)
def command(request: WhyRequest) -> int:
    """Explain why one condition of RUN (an id, its beginning, or 'last') is slower.

    Equipoise runs both conditions again under several sources of evidence, in random order. These
    runs are never timed. They suggest causes. Then Equipoise tests these causes by interventions on
    both conditions, block by block. Results in the ledger are not measured again.
    docs/reference/causes.md lists the causes and the interventions.
    """
    output, pictures = request.output.checked(), request.pictures()
    evidence_request = request.evidence_request()
    with open_for_reading(output.ledger) as ledger:
        record = ledger.read_run(request.run)
        if isinstance(record.plan.terms, ExperimentPlan):
            # ``last`` may be an experiment, which tested the causes of a gap.
            record = ledger.read_run(record.plan.terms.reference)
        names = (name_in_ledger(record, name) for name in (request.baseline, request.candidate))
        gap = choose_gap(record, *names)
        experiment = latest_experiment(record, ledger, gap.contrast)
    experiment_request = request.experiment_request(record.plan)
    baseline, candidate = record.plan.names_of(gap.contrast)
    argv = typed_command(
        run=record.id,
        again=True,
        seed=experiment_request.seed,
        baseline=baseline,
        candidate=candidate,
    )
    experiment_request = replace(experiment_request, command_line=argv)
    check_names(GapWithCauses(record, gap.contrast), experiment_request, host_site())
    if gap.is_explainable:
        record = _record_with_evidence(record, gap, evidence_request, output)
        if pictures:
            (displayed,) = records_for_display((record,), show_env=output.show_env)
            displayed_gap = gap_with_public_names(gap, record, displayed)
            write_pictures(pictures, evidence_of_gap(displayed, displayed_gap))
        if output.tests_causes:
            known = None if request.needs_new_experiment else experiment
            experiment = _known_or_new_experiment(record, gap, known, experiment_request, output)
    else:
        report_missing_pictures(pictures)
    _show(record, gap, experiment, output)
    return 0


def write_pictures(pictures: Pictures, gap_evidence: GapEvidence) -> None:
    """Write the files of the pictures; raise `UnusableInput` if a profile is missing."""
    comparison, evidence = gap_evidence.gap.comparison, gap_evidence.evidence
    names, slower = (comparison.baseline, comparison.candidate), gap_evidence.difference.slower
    for path, picture in pictures.items():
        write_file(path, draw_profiles(picture, evidence, names, slower))


def report_missing_pictures(pictures: Pictures) -> None:
    """Report the files that are not written, because there is nothing to explain."""
    for path in pictures:
        say(f"{path} is not written, because there is nothing to explain")


def _record_with_evidence(
    record: RunRecord, gap: Gap, request: EvidenceRequest, output: OutputOptions
) -> RunRecord:
    """Return the campaign with its evidence; if no run is missing, do not write to the ledger."""
    if not missing_runs(record, gap, request):
        clear_killed_campaigns(output)
        return record
    with _ledger_for_runs(record, gap, output) as ledger:
        return observe_gap(record, gap, request, ledger, output)


@contextmanager
def _ledger_for_runs(record: RunRecord, gap: Gap, output: OutputOptions) -> Iterator[Ledger]:
    """Provide the ledger after building both conditions, if they are commits."""
    require_data(record.plan, output.ledger)
    with measuring(output) as (ledger, _):
        name = record.plan.kind.build_commits_of_gap
        with nullcontext() if name is None else load(name)(record, gap, ledger):
            yield ledger


def _known_or_new_experiment(
    record: RunRecord,
    gap: Gap,
    known_experiment: RunRecord | None,
    request: ExperimentRequest,
    output: OutputOptions,
) -> RunRecord | None:
    """Return ``known_experiment`` or, without a known experiment, run and return a new one."""
    if known_experiment is not None:
        if not output.quiet:
            say(
                f"campaign {known_experiment.id} has already tested the causes of this gap",
                f"add --again to test once more, or run equipoise resume {known_experiment.id} "
                "--min-blocks 40 for narrower intervals",
            )
        return known_experiment
    with _ledger_for_runs(record, gap, output) as ledger:
        run_experiment(record, gap, request, ledger, output)
        return latest_experiment(record, ledger, gap.contrast)


def _show(
    unredacted: RunRecord, gap: Gap, experiment: RunRecord | None, output: OutputOptions
) -> None:
    records = (unredacted,) if experiment is None else (unredacted, experiment)
    record, *experiments = records_for_display(records, show_env=output.show_env)
    gap = gap_with_public_names(gap, unredacted, record)
    document = result_of_records((record, *experiments), output)
    if gap.is_explainable:
        document = with_causes(document, record, next(iter(experiments), None), gap)
    write_files(CampaignResult(document, record, ()), output)
    if output.prints_result:
        from equipoise.report.renderers.terminal import print_document

        explanation = explanation_document(document, gap)
        print_document(explanation, color=output.color, form=output.terminal_form)


def explanation_document(document: ResultDocument, gap: Gap) -> Document:
    """Build the document that the terminal shows: the gap, and its explanation."""
    from equipoise.report.builders.why import why_parts
    from equipoise.report.kind import kind_report

    title = gap.comparison.summary if gap.is_explainable else nothing_to_explain_sentence(gap)
    parts: list[Part] = [Paragraph(title, "strong")]
    if gap.is_explainable:
        parts += [*why_parts(document), *kind_report(document).gap_parts(document)]
    if gap.chosen_because is not None:
        choice = f"{gap.chosen_because}; --baseline and --candidate choose another comparison"
        parts.append(Paragraph(choice, "dim"))
    footer = f"run {document.run.id} (more: {option('verbose')})"
    parts.append(Paragraph(footer, "dim", forms=BRIEF_TERMINAL))
    return Document(document.run.id, title, tuple(parts))
