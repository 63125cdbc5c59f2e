"""Which campaign says what a gap comes from: the newest that tested it."""

from __future__ import annotations

from typing import Protocol

from equipoise.campaign.blocks import complete_blocks
from equipoise.model.plan import Contrast
from equipoise.model.record import RunRecord


class Reader(Protocol):
    """The part of the ledger that this needs."""

    def explaining(self, run_id: str) -> tuple[str, ...]:
        """The campaigns that explain this one, the newest first."""

    def read_run(self, reference: str) -> RunRecord:
        """All that is known of one campaign."""


def newest_experiment(
    record: RunRecord, ledger: Reader, contrast: Contrast | None = None
) -> RunRecord | None:
    """The newest campaign that tested a gap of this one and has a complete block, or ``None``.

    Parameters
    ----------
    contrast
        Whose gap; by default any.
    """
    for run_id in ledger.explaining(record.id):
        found = ledger.read_run(run_id)
        if not complete_blocks(found.draws, found.trials):
            continue
        if contrast is None or explains_gap(found, record, contrast):
            return found
    return None


def explains_gap(experiment: RunRecord, record: RunRecord, contrast: Contrast) -> bool:
    """Whether a campaign tested the gap of this contrast of another one."""
    tested = experiment.plan.conditions[:2]
    explained = (record.plan.conditions[i] for i in (contrast.baseline, contrast.candidate))
    return tested == tuple(explained)
