"""Functions that read, compare, write and print the result of a campaign, for several commands.

A result has the findings of the study. If the user names a reference result, the result also has
the comparison with it. Secret values are hidden. A fact is a value of the environment, such as the
kernel, in which the two results may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.display import records_for_display
from equipoise.cli.options import OutputOptions
from equipoise.cli.writing import write_file, write_json, write_report
from equipoise.ledger import Ledger
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import listed
from equipoise.model.record import CampaignWarning, RunRecord, RunSummary
from equipoise.model.reference import EnvironmentDifference
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode
from equipoise.shared.safe_text import visible

_MAX_LISTED = 4
"""Maximum number of differences in a message, and of values of one difference."""
_MAX_VALUE_LETTERS = 40
"""Maximum length of a value in a message."""

ValuesByFact = dict[str, tuple[str, ...]]
"""Values of a fact in each campaign, by the name of the fact; only facts that differ."""


class CampaignResult(Struct, frozen=True):
    """Result of a campaign as a report shows it."""

    document: ResultDocument
    record: RunRecord
    other_campaigns: Sequence[RunSummary]
    """Other campaigns of the same commands."""


def read_result(run: str, ledger: Ledger, output: OutputOptions) -> CampaignResult:
    """Return the result of the campaign with the id ``run``, which may be shortened.

    Raise `UnusableInput` if there is no such campaign, or no comparison with the reference result
    is possible.
    """
    # A late import, because `equipoise compare` starts faster without this module.
    from equipoise.why.result import with_experiment

    record = ledger.read_run(run)
    other_campaigns = other_campaigns_of(record, ledger)
    records = records_for_display(with_experiment(record, ledger), show_env=output.show_env)
    return CampaignResult(result_of_records(records, output), records[0], other_campaigns)


def other_campaigns_of(record: RunRecord, ledger: Ledger) -> list[RunSummary]:
    """Return the other campaigns of the same commands.

    A fleet's campaign is one entry. The earlier campaigns of a series belong to this campaign.
    """
    own_ids = {record.id, *(run.id for run in record.earlier_runs)}
    if record.plan.membership is not None:
        own_ids.add(ledger.id_of(record.plan.membership.fleet_identity) or record.id)
    runs = ledger.runs_with_same_commands(record.plan)
    return [run for run in runs if run.id not in own_ids and run.part_of is None]


def result_of_records(records: Sequence[RunRecord], output: OutputOptions) -> ResultDocument:
    """Return the result of a campaign, compared with the reference result if there is one.

    The first of ``records`` is the campaign. A second record is the experiment that tested the
    causes of the gap. Secret values must be hidden before the call.

    Raise `UnusableInput` if the result and the reference result have nothing in common, or if a
    difference between their environments is not allowed.
    """
    from equipoise.why.result import result_of

    document = result_of(*records)
    if document.run.study != COMPARE_STUDY:
        from equipoise.studies.catalogue import with_findings

        document = with_findings(document)
    if output.reference_result is None:
        return document
    from equipoise.analysis.reference import compare_with_reference

    judgement = records[0].plan.judgement
    reference = compare_with_reference(
        output.reference_result, document, min_effect=judgement.min_effect, alpha=judgement.alpha
    )
    if output.allowed is None:
        return replace(document, against=reference)
    warnings = warnings_if_allowed(reference.differences, output.allowed)
    return replace(document, against=reference, warnings=(*document.warnings, *warnings))


def warnings_if_allowed(
    differences: Sequence[EnvironmentDifference], allowed: Collection[str]
) -> tuple[CampaignWarning, ...]:
    """Return a warning for each difference between two environments.

    Raise `UnusableInput` if a difference is not allowed by name.
    """
    # Facts of the reference result are "there", facts of the new result are "here".
    values_by_fact: ValuesByFact = {
        difference.name: (_fact_text(difference.reference_value), _fact_text(difference.value))
        for difference in differences
    }
    require_allowed(values_by_fact, allowed, "measure both in one campaign")
    return tuple(
        environment_warning(
            name,
            values,
            "measure both in one campaign: the ratio includes the effect of this difference",
        )
        for name, values in values_by_fact.items()
    )


def require_allowed(differences: ValuesByFact, allowed: Collection[str], alternative: str) -> None:
    """Check that campaigns differ only in facts that are allowed by name.

    Raise `UnusableInput` if another fact differs. Its hint offers ``alternative``, in which the
    fact replaces ``{name}``, and then ``--allow``.
    """
    facts = [fact for fact in differences if fact not in allowed]
    if not facts:
        return
    fact_texts = [f"{fact}: {_values_text(differences[fact])}" for fact in facts]
    raise UnusableInput(
        f"the campaigns ran in different environments ({listed(fact_texts, _MAX_LISTED, '; ')})",
        hint=f"{alternative.format(name=facts[0])}; or allow the difference with "
        f"--allow {','.join(facts)}",
    )


def environment_warning(name: str, values: Sequence[str], hint: str) -> CampaignWarning:
    """Return the warning about a difference that the user allowed."""
    summary = f"the campaigns differ in {name} ({_values_text(values)}), which was allowed"
    return CampaignWarning("environment", summary, hint)


def _values_text(values: Sequence[str]) -> str:
    return listed(
        [visible(value)[:_MAX_VALUE_LETTERS] for value in dict.fromkeys(values)], _MAX_LISTED
    )


def _fact_text(value: Any) -> str:
    return "unknown" if value is None else str(value)


def name_in_ledger(record: RunRecord, name: str | None) -> str | None:
    """Return the name of a condition in the ledger; ``name`` may be its name in reports."""
    displayed_conditions = records_for_display((record,), show_env=False)[0].plan.conditions
    for recorded, displayed in zip(record.plan.conditions, displayed_conditions, strict=True):
        if name in (recorded.name, displayed.name):
            return recorded.name
    return name


def write_and_print(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files; print the result unless the JSON goes to stdout.

    Raise `UnusableInput` if a file cannot be written.
    """
    write_files(result, output)
    if output.prints_result:
        from equipoise.report.builders.result import ReportInput, campaign_document
        from equipoise.report.renderers.terminal import print_document

        report_input = ReportInput(
            result.document, ledger=output.ledger, other_campaigns=result.other_campaigns
        )
        document = campaign_document(report_input)
        print_document(document, color=output.color, form=output.terminal_form)


def write_files(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files; the JSON may go to stdout.

    Raise `UnusableInput` if a file cannot be written.
    """
    document = result.document
    exports = output.exports.files()
    if exports:
        from equipoise.interop.formats import hyperfine

        unit = output.exports.time_unit
        contents: dict[str, Callable[[], bytes]] = {
            "json": lambda: hyperfine.to_json(document),
            "csv": lambda: hyperfine.to_csv(document).encode(),
            "markdown": lambda: hyperfine.to_markdown(document, unit).encode(),
            "asciidoc": lambda: hyperfine.to_asciidoc(document, unit).encode(),
            "orgmode": lambda: hyperfine.to_orgmode(document, unit).encode(),
        }
        for format_name, path in exports.items():
            write_file(path, contents[format_name]())
    if output.report_file is not None:
        write_report(output.report_file, [(document, result.record)])
    write_json(output.json_file, lambda: encode(document))
