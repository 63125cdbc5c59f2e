"""How each kind of campaign explains its gaps: the defaults, which a kind may override."""

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
    finding: Any = None
    """The kind's own finding about the pair, such as the commit that made it slower."""


class WhyKind:
    """Explanation of the gaps of an ordinary comparison; other kinds override its methods."""

    tests_causes = False
    """Whether a campaign of the kind tests causes itself."""
    no_gap_reason = "compares nothing, or has no complete block"
    """Reason why a campaign has no gap, as a predicate after the campaign's id."""
    nothing_to_explain = "nothing was compared"
    """Clause after "there is nothing to explain", if a finished campaign has no gap."""

    def gaps(self, record: RunRecord, blocks: Blocks) -> Sequence[NamedGap]:
        """Return the pairs of conditions whose gaps may be explained."""
        metric = record.plan.judgement.primary_metric
        return [NamedGap(contrast, metric) for contrast in record.plan.contrasts]

    def judged_comparison(self, gap: NamedGap, comparison: Comparison) -> Comparison:
        """Return the comparison of a gap's wall times with the campaign's own verdict."""
        return comparison

    def causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the causes that the campaign has tested; empty if its kind tests none."""
        return ()

    def with_explanation(
        self,
        document: Any,
        record: RunRecord,
        evidence: GapEvidence,
        causes: Sequence[Explanation],
        experiment: RunRecord | None,
    ) -> Any:
        """Return the document with the remarks of this kind of campaign about an explained gap.

        ``experiment`` is the campaign that tested the causes of that gap, if there is one.
        """
        return document


def why_kind(owner: object) -> WhyKind:
    """Return how the kind of campaign explains gaps; ``owner`` is its terms or its document."""
    return kind_of(owner).part("why", WhyKind)
