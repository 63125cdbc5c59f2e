"""The result of a campaign with the causes of its gap, and the campaign that tested them.

The rules of causes are loaded only for a campaign that was observed or that tests causes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.model.plan import Contrast
from equipoise.model.record import RunRecord, paused_garbage_collector
from equipoise.model.result import ResultDocument
from equipoise.why.kind import why_kind


class Reader(Protocol):
    """The part of the ledger that finds experiments."""

    def runs_explaining(self, run_id: str) -> tuple[str, ...]:
        """Return the campaigns that explain this one, the latest first."""

    def read_run(self, reference: str) -> RunRecord:
        """Return all that is known of one campaign."""


def result_of(record: RunRecord, experiment: RunRecord | None = None) -> ResultDocument:
    """Compute the result document of a campaign, with the causes of its gap.

    ``experiment`` is the campaign that tested causes of a gap of ``record``, if there is one.
    """
    document = analyse_campaign(record)
    if experiment is None and not record.observations and not _tests_causes(record):
        return document
    from equipoise.why.explanation import with_causes

    with paused_garbage_collector(), np.errstate(over="ignore", invalid="ignore"):
        return with_causes(document, record, experiment)


def _tests_causes(record: RunRecord) -> bool:
    """Return whether a campaign is of a kind that tests causes itself."""
    return why_kind(record.plan.terms).tests_causes


def with_experiment(record: RunRecord, ledger: Reader) -> tuple[RunRecord, ...]:
    """Return a campaign, and the latest one that tested a gap of it, if there is one."""
    experiment = latest_experiment(record, ledger)
    return (record,) if experiment is None else (record, experiment)


def latest_experiment(
    record: RunRecord, ledger: Reader, contrast: Contrast | None = None
) -> RunRecord | None:
    """Return the latest campaign that tested a gap of this one and has a complete block.

    Without a contrast, the gap of any contrast of ``record`` counts.
    """
    for run_id in ledger.runs_explaining(record.id):
        experiment = ledger.read_run(run_id)
        if not complete_blocks(experiment.draws, experiment.trials):
            continue
        if contrast is None:
            return experiment
        from equipoise.why.gap import explains_gap

        if explains_gap(experiment, record, contrast):
            return experiment
    return None
