"""The result of a campaign as reports show it.

Hidden values stay hidden, a study adds its findings, and a reference result its comparison.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.redaction.documents import (
    document_without_hidden_values,
    without_hidden_values,
)
from equipoise.cli.output_files import save_figures
from equipoise.figures.save import require_figures
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.document import Paragraph
from equipoise.report.renderers.terminal import print_parts
from equipoise.studies.catalogue import analysis_of

if TYPE_CHECKING:
    from equipoise.cli.output_options import OutputOptions


def reported_records(records: Sequence[RunRecord], *, show_env: bool) -> tuple[RunRecord, ...]:
    """Return records as they are reported together."""
    return tuple(records) if show_env else without_hidden_values(records)


def reported(
    record: RunRecord, experiment: RunRecord | None, *, show_env: bool
) -> tuple[RunRecord, RunRecord | None]:
    """Return a record and the campaign that tested its gap, if any, as they are reported."""
    if experiment is None:
        return reported_records((record,), show_env=show_env)[0], None
    first, second = reported_records((record, experiment), show_env=show_env)
    return first, second


def reported_document(document: ResultDocument, *, show_env: bool) -> ResultDocument:
    """Return a document that was read from a file, as it is reported."""
    return document if show_env else document_without_hidden_values(document)


def recorded_name(record: RunRecord, name: str | None) -> str | None:
    """Return the name of a condition in the ledger, given that name or the reported one."""
    conditions = reported_records((record,), show_env=False)[0].plan.conditions
    for recorded, reported_condition in zip(record.plan.conditions, conditions, strict=True):
        if name in (recorded.name, reported_condition.name):
            return recorded.name
    return name


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


def load_result(
    record: RunRecord, output: OutputOptions, experiment: RunRecord | None = None
) -> ResultDocument:
    """Return the result of a campaign, compared with the reference result if there is one.

    Parameters
    ----------
    record
        As it is reported.
    experiment
        The campaign that tested what was found to cause a gap of it, as it is reported.

    Raises
    ------
    UnusableInput
        The two have nothing in common, or differ in what was not allowed to.
    """
    # `equipoise compare` starts before it knows that this is needed.
    from equipoise.why.campaigns import result_of

    document = with_findings(result_of(record, experiment))
    if output.against is None:
        return document
    from equipoise.analysis.reference import compare_with_reference
    from equipoise.cli.environment_difference import allowed_only

    judgement = record.plan.judgement
    reference = compare_with_reference(
        output.against,
        document,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
    )
    if output.allowed is None:
        return replace(document, against=reference)
    warnings = allowed_only(reference.differences, output.allowed)
    return replace(document, against=reference, warnings=(*document.warnings, *warnings))
