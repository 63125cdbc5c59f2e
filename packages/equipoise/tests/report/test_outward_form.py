"""The names in a result document on which programs of others depend."""

from __future__ import annotations

import pytest

from equipoise.model.result import ResultDocument
from equipoise.report.json_document import schema

NAMES = {
    "ResultDocument": "schema run environment conditions comparisons control why warnings trials",
    "RunInfo": "id study started ended seed blocks stopped_because",
    "ConditionResult": "name levels command trials failures metrics",
    "MetricSummary": "median median_ci mean sd min p05 p25 p75 p95 max modes",
    "Mode": "at share",
    "Comparison": "baseline candidate metric estimand ratio ratio_ci equivalence_ci e_value "
    "verdict min_effect alpha blocks mean_ratio mean_ratio_ci probability_slower "
    "probability_slower_ci minimum_misleads scope summary",
    "CampaignWarning": "code summary hint",
    "TrialRow": "block position condition phase analysed left_out_because wall_s user_s sys_s "
    "max_rss_bytes minor_faults major_faults voluntary_switches involuntary_switches exit failure "
    "covariates metrics iterations",
    "BisectResult": "good bad verdict culprits candidates gap trials builds",
    "Culprit": "commit subject ratio ratio_ci e_value",
    "HistoryResult": "baseline revisions changes",
    "HistoryRevision": "commit subject ratio ratio_ci blocks",
    "HistoryChange": "commit after until ratio ratio_ci e_value confirmed",
    "HostEffect": "host ratio ratio_ci blocks environment",
}
"""Names of the fields of each part, without those that only Equipoise reads."""


@pytest.mark.parametrize("part", NAMES)
def test_a_part_has_the_names_that_others_read(part: str) -> None:
    written = schema(ResultDocument)["$defs"][part]["properties"]
    assert {*NAMES[part].split()} <= written.keys()
