"""The result of a campaign as reports show it: read, compared, written and printed.

Hidden values stay hidden, a study adds its findings, and a reference result its comparison.
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

_MAX_NAMED = 4
_MAX_LETTERS = 40

Differing = dict[str, tuple[str, ...]]
"""Differences by name: the value of each campaign."""


class CampaignResult(Struct, frozen=True):
    """Result of a campaign, as it is reported."""

    document: ResultDocument
    record: RunRecord
    earlier: Sequence[RunSummary]
    """Campaigns of the same commands."""


def read_result(run: str, ledger: Ledger, output: OutputOptions) -> CampaignResult:
    """Return the result of a campaign of the ledger.

    Raise `UnusableInput` if there is no such campaign, or it cannot be compared with the reference
    result.
    """
    # `equipoise compare` starts before it knows that this is needed.
    from equipoise.why.result import with_experiment

    record = ledger.read_run(run)
    earlier = earlier_campaigns(record, ledger)
    records = records_for_display(with_experiment(record, ledger), show_env=output.show_env)
    return CampaignResult(load_result(records, output), records[0], earlier)


def earlier_campaigns(record: RunRecord, ledger: Ledger) -> list[RunSummary]:
    """Return the other campaigns of the same commands; a fleet counts for those of its hosts."""
    own = {record.id}
    if record.plan.membership is not None:
        own.add(ledger.id_of(record.plan.membership.whole) or record.id)
    others = ledger.runs_with_same_commands(record.plan)
    return [other for other in others if other.id not in own and other.whole is None]


def load_result(records: Sequence[RunRecord], output: OutputOptions) -> ResultDocument:
    """Return the result of a campaign, compared with the reference result if there is one.

    Raise `UnusableInput` if the two have nothing in common, or differ in what was not allowed to.

    Parameters
    ----------
    records
        The campaign, and the one that tested the causes of a gap of it, if any, as reported.
    """
    from equipoise.why.result import result_of

    document = result_of(*records)
    if document.run.study != COMPARE_STUDY:
        from equipoise.studies.catalogue import with_findings

        document = with_findings(document)
    if output.against is None:
        return document
    from equipoise.analysis.reference import compare_with_reference

    judgement = records[0].plan.judgement
    reference = compare_with_reference(
        output.against, document, min_effect=judgement.min_effect, alpha=judgement.alpha
    )
    if output.allowed is None:
        return replace(document, against=reference)
    warnings = allowed_only(reference.differences, output.allowed)
    return replace(document, against=reference, warnings=(*document.warnings, *warnings))


def allowed_only(
    differences: Sequence[EnvironmentDifference], allowed: Collection[str]
) -> tuple[CampaignWarning, ...]:
    """Refuse two campaigns unless each difference is allowed by name; return it as warnings.

    Raise `UnusableInput` if something else differs.
    """
    differing: Differing = {
        difference.name: (_text(difference.there), _text(difference.here))
        for difference in differences
    }
    check_allowed(differing, allowed, "measure both in one campaign")
    return tuple(
        difference_warning(
            name,
            values,
            "measure both in one campaign: the ratio includes the effect of this difference",
        )
        for name, values in differing.items()
    )


def check_allowed(differing: Differing, allowed: Collection[str], instead: str) -> None:
    """Check that campaigns differ only in what is allowed by name.

    Raise `UnusableInput` if something else differs; the error lists it with its values.

    Parameters
    ----------
    instead
        What the user can do instead of allowing a difference; ``{name}`` is replaced by its name.
    """
    names = [name for name in differing if name not in allowed]
    if not names:
        return
    differences = [f"{name}: {_values_text(differing[name])}" for name in names]
    raise UnusableInput(
        f"the campaigns ran in different environments ({listed(differences, _MAX_NAMED, '; ')})",
        hint=f"{instead.format(name=names[0])}; --allow {','.join(names)} lets it differ",
    )


def difference_warning(name: str, values: Sequence[str], hint: str) -> CampaignWarning:
    """Return the warning of what was allowed to differ."""
    summary = f"the campaigns differ in {name} ({_values_text(values)}), which was allowed"
    return CampaignWarning("environment", summary, hint)


def _values_text(values: Sequence[str]) -> str:
    """Return the first few different values, each shortened."""
    return listed([visible(value)[:_MAX_LETTERS] for value in dict.fromkeys(values)], _MAX_NAMED)


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)


def recorded_name(record: RunRecord, name: str | None) -> str | None:
    """Return the name of a condition in the ledger, given that name or the reported one."""
    conditions = records_for_display((record,), show_env=False)[0].plan.conditions
    for recorded, reported_condition in zip(record.plan.conditions, conditions, strict=True):
        if name in (recorded.name, reported_condition.name):
            return recorded.name
    return name


def show(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files, and the screen unless stdout is taken.

    Raise `UnusableInput` if a file cannot be written.
    """
    write_files(result, output)
    if output.has_screen:
        from equipoise.report.builders.result import CampaignReport, campaign_document
        from equipoise.report.renderers.terminal import print_document

        report = CampaignReport(result.document, ledger=output.ledger, earlier=result.earlier)
        print_document(campaign_document(report), color=output.color, form=output.screen_form)


def write_files(result: CampaignResult, output: OutputOptions) -> None:
    """Write the requested files; the document may go to stdout.

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
        for form, path in exports.items():
            write_file(path, contents[form]())
    if output.report_file is not None:
        write_report(output.report_file, [(document, result.record)])
    write_json(output.json_file, lambda: encode(document))
