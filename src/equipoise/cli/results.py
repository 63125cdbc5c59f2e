"""The result of a campaign as reports show it: read, compared, written and printed.

Hidden values stay hidden, a study adds its findings, and a reference result its comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.engine import judged_by
from equipoise.analysis.redaction.documents import without_hidden_values
from equipoise.cli.output_options import OutputOptions, write_file, write_json, write_report
from equipoise.ledger import Ledger
from equipoise.model.record import RunRecord, RunSummary
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode
from equipoise.studies.catalogue import with_findings


class CampaignResult(Struct, frozen=True):
    """Result of a campaign, as it is reported."""

    document: ResultDocument
    record: RunRecord
    earlier: Sequence[RunSummary]
    """Campaigns of the same commands."""


def read_result(
    run: str, ledger: Ledger, output: OutputOptions, engine: int | None = None
) -> CampaignResult:
    """Return the result of a campaign of the ledger, by its own engine or by another one.

    Raises
    ------
    UnusableInput
        There is no such campaign, or it cannot be compared with the reference result.
    """
    # `equipoise compare` starts before it knows that this is needed.
    from equipoise.why.campaigns import latest_experiment

    record = ledger.read_run(run)
    if engine is not None:
        record = judged_by(record, engine)
    experiment = latest_experiment(record, ledger)
    earlier = earlier_campaigns(record, ledger)
    record, experiment = reported(record, experiment, show_env=output.show_env)
    return CampaignResult(load_result(record, output, experiment), record, earlier)


def earlier_campaigns(record: RunRecord, ledger: Ledger) -> list[RunSummary]:
    """Return the other campaigns of the same commands; a fleet stands for those of its hosts."""
    own = {record.id}
    if record.plan.membership is not None:
        own.add(ledger.id_of(record.plan.membership.fleet) or record.id)
    others = ledger.same_commands(record.plan)
    return [other for other in others if other.id not in own and other.fleet is None]


def load_result(
    record: RunRecord, output: OutputOptions, experiment: RunRecord | None = None
) -> ResultDocument:
    """Return the result of a campaign, compared with the reference result if there is one.

    Parameters
    ----------
    record
        The campaign, as it is reported.
    experiment
        The campaign that tested the causes of a gap of it, as it is reported.

    Raises
    ------
    UnusableInput
        The two have nothing in common, or differ in what was not allowed to.
    """
    from equipoise.why.campaigns import result_of

    document = with_findings(result_of(record, experiment))
    if output.against is None:
        return document
    from equipoise.analysis.reference import compare_with_reference
    from equipoise.cli.environment_difference import allowed_only

    judgement = record.plan.judgement
    reference = compare_with_reference(
        output.against, document, min_effect=judgement.min_effect, alpha=judgement.alpha
    )
    if output.allowed is None:
        return replace(document, against=reference)
    warnings = allowed_only(reference.differences, output.allowed)
    return replace(document, against=reference, warnings=(*document.warnings, *warnings))


def reported_records(records: Sequence[RunRecord], *, show_env: bool) -> tuple[RunRecord, ...]:
    """Return records as they are reported together."""
    return tuple(records) if show_env else without_hidden_values(records)


def reported(
    record: RunRecord, experiment: RunRecord | None, *, show_env: bool
) -> tuple[RunRecord, RunRecord | None]:
    """Return a record and the campaign that tested its gap, if any, as they are reported."""
    records = (record,) if experiment is None else (record, experiment)
    record, *experiments = reported_records(records, show_env=show_env)
    return record, experiments[0] if experiments else None


def recorded_name(record: RunRecord, name: str | None) -> str | None:
    """Return the name of a condition in the ledger, given that name or the reported one."""
    conditions = reported_records((record,), show_env=False)[0].plan.conditions
    for recorded, reported_condition in zip(record.plan.conditions, conditions, strict=True):
        if name in (recorded.name, reported_condition.name):
            return recorded.name
    return name


def show(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files, and the screen unless stdout is taken.

    Raises
    ------
    UnusableInput
        A file cannot be written.
    """
    write_files(result, output)
    if output.has_screen:
        from equipoise.report.builders.result import CampaignReport, campaign_document
        from equipoise.report.renderers.terminal import print_document

        report = CampaignReport(result.document, ledger=output.ledger, earlier=result.earlier)
        print_document(campaign_document(report), color=output.color)


def write_files(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files; the document may go to stdout.

    Raises
    ------
    UnusableInput
        A file cannot be written.
    """
    document = result.document
    if output.exports():
        from equipoise.interop.formats import hyperfine

        unit = output.time_unit
        forms: tuple[tuple[Path | None, Callable[[], bytes]], ...] = (
            (output.export_json, lambda: hyperfine.to_json(document)),
            (output.export_csv, lambda: hyperfine.to_csv(document).encode()),
            (output.export_markdown, lambda: hyperfine.to_markdown(document, unit).encode()),
            (output.export_asciidoc, lambda: hyperfine.to_asciidoc(document, unit).encode()),
            (output.export_orgmode, lambda: hyperfine.to_orgmode(document, unit).encode()),
        )
        for path, content in forms:
            if path is not None:
                write_file(path, content())
    if output.report_file is not None:
        write_report(output.report_file, [(document, result.record)])
    write_json(output.json_file, lambda: encode(document))
