"""A conclusion as a file, in the form of its ending, and its figures in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.model.conclusion import Conclusion


@dataclass(frozen=True, slots=True)
class Told:
    """A conclusion, and what draws its figures: that takes its time."""

    found: Conclusion
    draw: Callable[[], Iterable[Figure]]


def check_conclusion(source: Path, report: Path | None, figures: Path | None) -> None:
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


def write_conclusion(
    conclude: Callable[[], Told], report: Path | None, figures: Path | None
) -> None:
    """Write what was asked for; nothing is concluded where nothing was.

    Raises
    ------
    UnusableInput
        It cannot be written.
    """
    if report is None and figures is None:
        return
    told = conclude()
    if report is not None:
        from equipoise.cli.report_forms import write_documents
        from equipoise.report.builders.conclusion import conclusion_document

        write_documents(report, [conclusion_document(told.found, told.draw)])
    if figures is not None:
        from equipoise.cli.figure_files import save_figures

        save_figures(told.draw(), figures)
