"""The causes of a gap as a campaign that tests them showed them."""

from __future__ import annotations

from equipoise.kinds.explain.outcome import tested_causes
from equipoise.model.record import RunRecord
from equipoise.model.why import Explanation
from equipoise.why.kind import WhyKind


class ExplainWhy(WhyKind):
    """How a test of causes is explained: it has tested them."""

    tests_causes = True

    def causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the causes with what each intervention closed of the gap."""
        return tested_causes(record)
