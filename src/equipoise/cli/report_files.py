"""Reports as files: the form follows the ending of the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.cli.output_files import check_folder, write_file
from equipoise.design.command_line import command_of_plan
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.report.builders.result import CampaignReport
    from equipoise.report.document import Document


class ReportedCampaign(Struct, frozen=True):
    """One campaign that is reported."""

    document: ResultDocument
    record: RunRecord | None
    """``None`` where only the document is left."""

    def report(self) -> CampaignReport:
        """Return what a report without figures says."""
        from equipoise.report.builders.result import CampaignReport

        command = None if self.record is None else command_of_plan(self.record.plan)
        return CampaignReport(self.document, command=command)


def with_figures(found: ReportedCampaign) -> CampaignReport:
    """Return a report with what its figures are made of, and the figures of its study.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    from equipoise.figures.save import require_figures

    require_figures()
    from equipoise.cli.pictures import flame_graph_of
    from equipoise.studies.catalogue import analysis_of

    document, record = found.document, found.record
    study = analysis_of(document.run.study)
    return replace(
        found.report(),
        sequences=sequences_of_document(document) if record is None else sequences_of(record),
        study_figures=() if study is None else tuple(study.figures(document)),
        flame_graph=None if record is None else flame_graph_of(record, document),
    )


def check_report(path: Path) -> None:
    """Check that a report can be written there at all, before the work for it is done.

    Raises
    ------
    UnusableInput
        The ending is of no form, the folder is missing, or nothing can be drawn here.
    """
    if path.suffix.lower() not in FORMS:
        raise UnusableInput(
            f"{path}: no report is written as '{path.suffix}'",
            hint=f"end the name in {', '.join(FORMS)}",
        )
    check_folder(path)
    if draws(path):
        from equipoise.figures.save import require_figures

        require_figures()


def draws(path: Path) -> bool:
    """Return whether a report in this file has figures."""
    return FORMS[path.suffix.lower()] is page


def write_report(path: Path, found: Sequence[ReportedCampaign]) -> None:
    """Write these campaigns into one file, in the form of its ending.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    write_documents(path, documents_of(found, draws=draws(path)))


def documents_of(found: Sequence[ReportedCampaign], *, draws: bool) -> list[Document]:
    """Build a document for each campaign."""
    from equipoise.report.builders.result import campaign_documents

    return campaign_documents([with_figures(one) if draws else one.report() for one in found])


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write documents of any kind into one file, in the form of its ending.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    text = FORMS[path.suffix.lower()](documents)
    write_file(path, text.encode("utf-8", "backslashreplace"))


def page(documents: Sequence[Document]) -> str:
    """Write one self-contained page with every figure."""
    from equipoise.report.renderers import html

    return html.page(documents)


def markdown(documents: Sequence[Document]) -> str:
    """Write Markdown for pull requests."""
    from equipoise.report.renderers.markdown import to_markdown

    return "\n".join(map(to_markdown, documents))


def latex(documents: Sequence[Document]) -> str:
    """Write tables for a paper."""
    from equipoise.report.renderers.latex import to_latex

    return "\n".join(map(to_latex, documents))


def numbers(documents: Sequence[Document]) -> str:
    """Write one table for other programs."""
    from equipoise.report.renderers.csv import to_csv

    return to_csv(documents)


FORMS: dict[str, Callable[[Sequence[Document]], str]] = {
    ".html": page,
    ".htm": page,
    ".md": markdown,
    ".tex": latex,
    ".csv": numbers,
}


def check_report_files(source: Path, report: Path | None, figures: Path | None) -> None:
    """Check that both can be written, before the work for them is done.

    Raises
    ------
    UnusableInput
        The ending is of no form, the folder is missing, nothing can be drawn here, or the report
        would take the place of what is read.
    """
    if report is not None:
        if report.resolve() == source.resolve():
            raise UnusableInput(
                f"--report {report} is the table itself", hint="name another file for the report"
            )

        check_report(report)
    if figures is not None:
        from equipoise.figures.save import require_figures

        require_figures()


def write_report_files(document: Document, report: Path | None, figures: Path | None) -> None:
    """Write the report and the figures of a document, as far as files are named.

    Raises
    ------
    UnusableInput
        A file cannot be written.
    """
    if report is not None:
        write_documents(report, [document])
    if figures is not None:
        from equipoise.cli.output_files import save_figures
        from equipoise.report.document import figures_of

        save_figures(figures_of(document), figures)
