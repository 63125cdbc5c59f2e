"""The forms of a report, by the ending of its file: a page, Markdown, LaTeX, a table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.cli.again import again_of, os_again_of, why_again_of
from equipoise.cli.output_file import check_folder, write_file
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import WHY_STUDY
from equipoise.model.primitives import OS_STUDY
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.report.html import Reported


@dataclass(frozen=True, slots=True)
class Found:
    """One campaign that is reported."""

    document: ResultDocument
    record: RunRecord | None
    """``None`` where only the document is left."""

    @property
    def again(self) -> str | None:
        """The command that runs it again, where more is known than the document says."""
        if self.record is None:
            return None
        plan = self.record.plan
        if plan.study == OS_STUDY:
            return os_again_of(plan)
        if plan.study == WHY_STUDY:
            return why_again_of(plan)
        return again_of(plan) if plan.study == "compare" else None


def drawn(found: Found) -> Reported:
    """With what its figures are made of, and a study's own figures.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    from equipoise.figures.save import require_figures

    require_figures()
    from equipoise.cli.pictures import flame_graph_of
    from equipoise.report.html import Reported
    from equipoise.studies.catalogue import analysis_of

    document, record = found.document, found.record
    own = analysis_of(document.run.study)
    return Reported(
        document,
        sequences_of_document(document) if record is None else sequences_of(record),
        found.again,
        own_figures=() if own is None else tuple(own.figures(document)),
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
    if FORMS[path.suffix.lower()] is page:
        from equipoise.figures.save import require_figures

        require_figures()


def write_report(path: Path, found: Sequence[Found]) -> None:
    """Write these campaigns into one file, in the form of its ending.

    Raises
    ------
    UnusableInput
        It cannot be written.
    """
    write_file(path, FORMS[path.suffix.lower()](found).encode("utf-8", "backslashreplace"))


def page(found: Sequence[Found]) -> str:
    """One self-contained page with every figure."""
    reported = [drawn(one) for one in found]
    from equipoise.report import html

    return html.page(reported)


def markdown(found: Sequence[Found]) -> str:
    """For pull requests."""
    from equipoise.report.markdown import to_markdown

    return "\n".join(to_markdown(one.document, one.again) for one in found)


def latex(found: Sequence[Found]) -> str:
    """Tables for a paper."""
    from equipoise.report.latex import to_latex

    return "\n".join(to_latex(one.document, one.again) for one in found)


def numbers(found: Sequence[Found]) -> str:
    """One table for other programs."""
    from equipoise.report.csv_table import to_csv

    return to_csv([one.document for one in found])


FORMS: dict[str, Callable[[Sequence[Found]], str]] = {
    ".html": page,
    ".htm": page,
    ".md": markdown,
    ".tex": latex,
    ".csv": numbers,
}
