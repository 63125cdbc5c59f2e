"""``equipoise why``: where the extra time of the slower condition is, and what mends it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.conducting import measuring
from equipoise.cli.evidence_options import evidence_options, evidence_request
from equipoise.cli.experiment import say_it_was_tested, with_experiment
from equipoise.cli.experiment_options import asks_for_more, experiment_options, trying_of
from equipoise.cli.observing import with_evidence
from equipoise.cli.output_file import write_file
from equipoise.cli.pictures import (
    picture_options,
    pictures_of,
    say_that_none_is_drawn,
    write_pictures,
)
from equipoise.cli.report_forms import Found, write_report
from equipoise.cli.reported import recorded_name, reported
from equipoise.cli.shown import shown_document
from equipoise.cli.study_data import require_data
from equipoise.cli.wanted import Wanted
from equipoise.ledger import Ledger, open_for_reading
from equipoise.measure.installation import host_site
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.document import Paragraph, Part
from equipoise.report.json_document import encode
from equipoise.why.campaigns import latest_experiment
from equipoise.why.evidence.collect import EvidenceRequest, missing_runs
from equipoise.why.experiment.plan import OpenGap
from equipoise.why.experiment.proposing import Trying, check_names
from equipoise.why.explanation import evidence_of_gap, explaining
from equipoise.why.gap import Gap, as_reported, choose, nothing_to_explain


@click.command("why", epilog="Example: equipoise why last")
@click.argument("run")
@click.option("--baseline", metavar="NAME", help="Of the comparison that is meant.")
@click.option("--candidate", metavar="NAME", help="Of the comparison that is meant.")
@evidence_options
@experiment_options
@click.option("--again", is_flag=True, help="Observe and test also what was before.")
@picture_options
@options.ledger_option
@options.report_option
@options.show_env_option
@options.concurrent_option
@options.output_options
def command(**given: Any) -> int:
    """Say why one condition of RUN (an id, its beginning, or 'last') is slower.

    Both conditions of a comparison that was called are run again under several sources of
    evidence, in random order; these runs are never timed. Then what they suggest is changed on
    both, block by block, and judged. What is known already is not observed or tested again.
    docs/why.md lists the causes and what can be changed.
    """
    wanted = Wanted.from_options(given)
    request = evidence_request(given)
    pictures = pictures_of(given)
    with open_for_reading(wanted.ledger) as ledger:
        record = _explained(ledger.read_run(given["run"]), ledger)
        names = (recorded_name(record, given[one]) for one in ("baseline", "candidate"))
        gap = choose(record, *names)
        experiment = latest_experiment(record, ledger, gap.contrast)
    trying = trying_of(given, record.plan)
    check_names(OpenGap(record, gap.contrast), trying, host_site())
    if gap.is_called:
        record = _with_evidence(record, gap, request, wanted)
        if pictures.files():
            shown, _ = reported(record, None, show_env=wanted.show_env)
            write_pictures(pictures, evidence_of_gap(shown, as_reported(gap, record, shown)))
        if wanted.test:
            known = None if asks_for_more(given) else experiment
            experiment = _with_experiment(record, gap, trying, known, wanted)
    else:
        say_that_none_is_drawn(pictures)
    _show(record, gap, experiment, wanted)
    return 0


def _explained(record: RunRecord, ledger: Ledger) -> RunRecord:
    """The campaign whose gap it is: ``last`` may name the one that tested it."""
    explains = record.plan.explains
    return record if explains is None else ledger.read_run(explains.run)


def _with_evidence(
    record: RunRecord, gap: Gap, request: EvidenceRequest, wanted: Wanted
) -> RunRecord:
    """The evidence half; a ledger that has everything already may be one that is only read."""
    if not missing_runs(record, gap, request):
        return record
    require_data(record.plan, wanted.ledger)
    with measuring(wanted) as (ledger, _):
        return with_evidence(record, gap, request, ledger, wanted)


def _with_experiment(
    record: RunRecord, gap: Gap, trying: Trying, known: RunRecord | None, wanted: Wanted
) -> RunRecord | None:
    """The other half: the campaign that tested what was found; ``None`` if there is none."""
    if known is not None:
        if not wanted.quiet:
            say_it_was_tested(known)
        return known
    require_data(record.plan, wanted.ledger)
    with measuring(wanted) as (ledger, _):
        with_experiment(record, gap, trying, ledger, wanted)
        return latest_experiment(record, ledger, gap.contrast)


def _show(record: RunRecord, gap: Gap, experiment: RunRecord | None, wanted: Wanted) -> None:
    recorded = record
    record, experiment = reported(recorded, experiment, show_env=wanted.show_env)
    gap = as_reported(gap, recorded, record)
    document = shown_document(record, wanted, experiment)
    if gap.is_called:
        document = explaining(document, record, gap, experiment)
    _write_files(document, record, wanted)
    if wanted.json_file == "-":
        sys.stdout.buffer.write(encode(document))
    elif not wanted.quiet:
        _print(document, gap, wanted)


def _print(document: ResultDocument, gap: Gap, wanted: Wanted) -> None:
    from equipoise.report.builders.why import why_parts
    from equipoise.report.renderers.terminal import print_parts

    parts: list[Part] = []
    if gap.chosen_because is not None:
        parts.append(Paragraph(f"{gap.chosen_because}; --baseline and --candidate name another"))
    if not gap.is_called:
        parts.append(Paragraph(nothing_to_explain(gap)))
    else:
        parts += [Paragraph(gap.comparison.summary), *why_parts(document)]
    print_parts(parts, color=wanted.color)


def _write_files(document: ResultDocument, record: RunRecord, wanted: Wanted) -> None:
    if wanted.json_file not in (None, "-"):
        write_file(Path(str(wanted.json_file)), encode(document))
    if wanted.report_file is not None:
        write_report(wanted.report_file, [Found(document, record)])
