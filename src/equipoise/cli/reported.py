"""The records that reports are made of: without hidden values, unless ``--show-env`` is given."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.analysis.redaction.documents import (
    document_without_hidden_values,
    without_hidden_values,
)
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument


def reported_records(records: Sequence[RunRecord], *, show_env: bool) -> tuple[RunRecord, ...]:
    """The records as they are reported together."""
    return tuple(records) if show_env else without_hidden_values(records)


def reported(
    record: RunRecord, experiment: RunRecord | None, *, show_env: bool
) -> tuple[RunRecord, RunRecord | None]:
    """A record and the campaign that tested its gap, if there is one, as they are reported."""
    if experiment is None:
        return reported_records((record,), show_env=show_env)[0], None
    first, second = reported_records((record, experiment), show_env=show_env)
    return first, second


def reported_document(document: ResultDocument, *, show_env: bool) -> ResultDocument:
    """A document that was read from a file, as it is reported."""
    return document if show_env else document_without_hidden_values(document)


def recorded_name(record: RunRecord, name: str | None) -> str | None:
    """The name of a condition in the ledger, given that name or the one that reports show."""
    shown = reported_records((record,), show_env=False)[0].plan.conditions
    for recorded, one in zip(record.plan.conditions, shown, strict=True):
        if name in (recorded.name, one.name):
            return recorded.name
    return name
