"""The report and the figures of an analysis of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.report.document import Document


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
        from equipoise.cli.report_forms import check_report

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
        from equipoise.cli.report_forms import write_documents

        write_documents(report, [document])
    if figures is not None:
        from equipoise.cli.figure_files import save_figures
        from equipoise.report.document import figures_of

        save_figures(figures_of(document), figures)
