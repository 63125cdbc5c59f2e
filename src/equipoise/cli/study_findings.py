"""A built-in study's own tables, paragraphs and figures, for the command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from equipoise.cli.figure_files import save_figures
from equipoise.figures.library import require_figures
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument
from equipoise.report.findings import print_figure_files, print_findings
from equipoise.studies.own_findings import own_findings

FOLDER = "figures"
"""Beside the ledger, with a folder for each run."""


def with_findings(document: ResultDocument) -> ResultDocument:
    """The document with what a built-in study makes of it."""
    own = own_findings(document.run.study)
    return document if own is None else replace(document, findings=own.findings(document))


def show_findings(document: ResultDocument, *, color: bool) -> None:
    """Print what a built-in study makes of its result."""
    if document.findings is not None:
        print_findings(document.findings, color=color)


def write_figures(document: ResultDocument, folder: Path, *, quiet: bool, color: bool) -> None:
    """Write a built-in study's own figures, and those of the iterations that it reported.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    own = own_findings(document.run.study)
    if own is None:
        return
    try:
        require_figures()
    except UnusableInput as missing:
        # Not worth losing a result for: whoever asked for them by --figures was told before.
        print(
            f"equipoise: the study's own figures are left out: {missing.what}\n"
            f"  mend: {missing.mend}",
            file=sys.stderr,
        )
        return
    from equipoise.figures.gallery import iteration_figures

    written = save_figures([*own.figures(document), *iteration_figures(document)], folder)
    if written and not quiet:
        print_figure_files(written, color=color)
