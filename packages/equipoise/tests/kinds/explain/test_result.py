"""The result document of a campaign that tests causes."""

from __future__ import annotations

from equipoise.kinds.explain.result import ExplainDocument
from equipoise.report.builders.result import CampaignReport
from packages.equipoise.tests.documents import document_as, document_of
from packages.equipoise.tests.report.forms import page


def test_the_command_that_repeats_an_intervention_names_its_campaign() -> None:
    document = document_as(ExplainDocument, document_of("usual", "policy"))
    made = page([CampaignReport(document, {}, None)])
    assert f"equipoise why {document.run.id} --again --seed 7" in made
