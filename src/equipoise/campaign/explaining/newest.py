"""Which campaign says what a gap comes from: the newest that tested it."""

from __future__ import annotations

from typing import Protocol

from equipoise.campaign.blocks import complete_blocks
from equipoise.model.record import RunRecord


class Reader(Protocol):
    """The part of the ledger that this needs."""

    def explaining(self, run_id: str) -> tuple[str, ...]:
        """The campaigns that explain this one, the newest first."""

    def read_run(self, reference: str) -> RunRecord:
        """All that is known of one campaign."""


def newest_explanation(record: RunRecord, ledger: Reader) -> RunRecord | None:
    """The newest campaign that explains this one and has a complete block; ``None`` without."""
    for run_id in ledger.explaining(record.id):
        found = ledger.read_run(run_id)
        if complete_blocks(found.draws, found.trials):
            return found
    return None
