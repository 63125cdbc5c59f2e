"""How gaps of each kind of campaign are explained: what a kind may do instead of the usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from equipoise.analysis.comparisons import Blocks
from equipoise.model.kinds import kind_of
from equipoise.model.plan import Contrast
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison
from equipoise.model.why import Explanation

if TYPE_CHECKING:
    from equipoise.why.explanation import GapEvidence


class NamedGap(Struct, frozen=True):
    """A pair of conditions whose gap may be explained."""

    contrast: Contrast
    metric: str
    """Metric by which the pair was judged."""
    found: Any = None
    """What the kind found of the pair."""


class WhyKind:
    """How gaps of an ordinary comparison are explained; a kind overrides what it does instead."""

    tests_causes = False
    """Whether a campaign of the kind tests causes itself."""
    no_gap_reason = "compares nothing, or has no complete block"
    """Reason why a campaign has no gap, behind its name."""
    nothing_to_explain = "nothing was compared"
    """Reason why the explanation that was to follow the campaign does not."""

    def gaps(self, record: RunRecord, blocks: Blocks) -> Sequence[NamedGap]:
        """Return the pairs of conditions whose gaps may be explained."""
        metric = record.plan.judgement.primary_metric
        return [NamedGap(contrast, metric) for contrast in record.plan.contrasts]

    def as_judged(self, gap: NamedGap, comparison: Comparison) -> Comparison:
        """Return the comparison of a gap's wall times as the campaign judged them."""
        return comparison

    def causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the causes that a campaign which tests causes has tested."""
        return ()

    def with_explained(
        self,
        document: Any,
        record: RunRecord,
        evidence: GapEvidence,
        causes: Sequence[Explanation],
        experiment: RunRecord | None,
    ) -> Any:
        """Return the document with what the kind says of a gap beyond its causes.

        ``experiment`` tested the causes of that gap, if it is given.
        """
        return document


def why_kind(part: object) -> WhyKind:
    """Return how the kind of terms or of a document is explained."""
    return kind_of(part).part("why", WhyKind)
