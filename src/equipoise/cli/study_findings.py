"""A built-in study's own tables, paragraphs and figures, for the command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.cli.figure_files import save_figures
from equipoise.figures.save import require_figures
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument
from equipoise.report.document import Paragraph
from equipoise.report.renderers.terminal import print_parts
from equipoise.studies.catalogue import analysis_of

FOLDER = "figures"
"""Beside the ledger, with a folder for each run."""


def with_findings(document: ResultDocument) -> ResultDocument:
    """Return the document with the tables of its built-in study, if it is of one.

    Raises
    ------
    UnusableInput
        The document, which may be from a file, has levels that the study cannot have.
    """
    study = document.run.study
    own = analysis_of(study)
    if own is None:
        return document
    try:
        # A file may hold measurements whose ratio is beyond every number.
        with np.errstate(all="ignore"):
            findings = own.findings(document)
    except ValueError as error:
        raise UnusableInput(
            f"run {document.run.id} says that it is of the study {study}, whose tables cannot be "
            f"made of it: {error}",
            hint=f"see `equipoise list studies`, and the levels of {study} there",
        ) from error
    return replace(document, findings=findings)


def write_figures(document: ResultDocument, folder: Path, *, quiet: bool, color: bool) -> None:
    """Write a built-in study's own figures, and those of the iterations that it reported.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    own = analysis_of(document.run.study)
    if own is None:
        return
    try:
        require_figures()
    except UnusableInput as missing:
        # Not worth losing a result for: whoever asked for them by --figures was told before.
        print(
            f"equipoise: the study's own figures are left out: {missing.what}\n"
            f"  hint: {missing.hint}",
            file=sys.stderr,
        )
        return
    from equipoise.figures.gallery import iteration_figures

    written = save_figures([*own.figures(document), *iteration_figures(document)], folder)
    if written and not quiet:
        print_parts([Paragraph(f"figure: {file}") for file in written], color=color)
