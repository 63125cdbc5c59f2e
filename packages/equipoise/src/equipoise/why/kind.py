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


class JudgedContrast(Struct, frozen=True):
    """A contrast of a campaign whose gap may be explained."""

    contrast: Contrast
    metric: str
    """Metric by which the campaign judged the contrast."""
    finding: Any = None
    """The kind's own finding about the contrast, such as the commit that made it slower."""


class WhyKind:
    """Explanation of the gaps of an ordinary comparison; other kinds override its methods."""

    is_experiment = False
    """Whether a campaign of the kind is an experiment, which tests causes."""
    no_gap_reason = "compares nothing, or has no complete block"
    """End of the message "run ID …" about a campaign without a gap."""
    nothing_to_explain_reason = "nothing was compared"
    """Reason after "there is nothing to explain", for a finished campaign without a gap."""

    def judged_contrasts(self, record: RunRecord, blocks: Blocks) -> Sequence[JudgedContrast]:
        """Return the contrasts whose gaps may be explained."""
        metric = record.plan.judgement.primary_metric
        return [JudgedContrast(contrast, metric) for contrast in record.plan.contrasts]

    def with_campaign_verdict(self, judged: JudgedContrast, comparison: Comparison) -> Comparison:
        """Return the comparison of wall times, with the campaign's own verdict if it has one."""
        return comparison

    def tested_causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the tested causes; empty if the campaign is not an experiment."""
        return ()

    def with_explanation(
        self,
        document: Any,
        record: RunRecord,
        gap_evidence: GapEvidence,
        causes: Sequence[Explanation],
        experiment: RunRecord | None,
    ) -> Any:
        """Return the result document with this kind's remarks about the gap and its experiment."""
        return document


def why_kind(owner: object) -> WhyKind:
    """Return the `WhyKind` of a campaign; ``owner`` is its terms or its result document."""
    return kind_of(owner).part("why", WhyKind)
