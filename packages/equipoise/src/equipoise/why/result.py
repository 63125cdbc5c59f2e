"""Compute the result document of any campaign, with the causes of its gap if some are known.

A gap is the difference in wall time between two conditions. An experiment is a later campaign that
tested causes of the gap. Without observations or an experiment, ``explanation.py`` is not loaded.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.model.garbage_collection import paused_garbage_collector
from equipoise.model.plan import Contrast
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.why.kind import why_kind


class ExperimentReader(Protocol):
    """Interface of the ledger for finding the experiments of a campaign."""

    def runs_explaining(self, run_id: str) -> tuple[str, ...]:
        """Return the ids of the experiments about a campaign, the latest first."""

    def read_run(self, reference: str) -> RunRecord:
        """Return the complete record of one campaign."""


def result_of(record: RunRecord, experiment: RunRecord | None = None) -> ResultDocument:
    """Compute the result document of a campaign; ``experiment`` tested the causes of its gap."""
    document = analyse_campaign(record)
    is_experiment = why_kind(record.plan.terms).is_experiment
    if experiment is None and not record.observations and not is_experiment:
        return document
    from equipoise.why.explanation import with_causes

    with paused_garbage_collector(), np.errstate(over="ignore", invalid="ignore"):
        return with_causes(document, record, experiment)


def with_experiment(record: RunRecord, ledger: ExperimentReader) -> tuple[RunRecord, ...]:
    """Return a campaign and, if there is one, its latest experiment."""
    experiment = latest_experiment(record, ledger)
    return (record,) if experiment is None else (record, experiment)


def latest_experiment(
    record: RunRecord, ledger: ExperimentReader, contrast: Contrast | None = None
) -> RunRecord | None:
    """Return the latest experiment about this campaign with a complete block, or ``None``.

    If ``contrast`` is given, the experiment must have tested the gap of this contrast.
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
