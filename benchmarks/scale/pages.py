"""Size of a fleet's page and of its document by hosts, and the time that both take."""

from __future__ import annotations

import msgspec

from benchmarks.scale.growth import Growth, seconds_of
from equipoise.analysis.result import analyse_campaign
from equipoise.report.builders.result import ReportInput, campaign_documents
from equipoise.report.renderers.html import page
from packages.equipoise.tests.fleets import ScriptedHost, fleet_record

HOSTS = (4, 16, 64, 256)
BLOCKS = 40


def growths() -> list[Growth]:
    """Return bytes and seconds of the result of a fleet, two commands and 40 blocks a host."""
    pages, documents, analysing, drawing = [], [], [], []
    for hosts in HOSTS:
        record = fleet_record([ScriptedHost(f"host{at}", 0.02, BLOCKS) for at in range(hosts)])
        result = analyse_campaign(record)
        documents.append(float(len(msgspec.json.encode(result))))
        analysing.append(seconds_of(lambda record=record: analyse_campaign(record)))
        drawn = campaign_documents([ReportInput(result)])
        pages.append(float(len(page(drawn).encode())))
        drawing.append(
            seconds_of(lambda result=result: page(campaign_documents([ReportInput(result)])))
        )
    title = f"of a fleet, {BLOCKS} blocks a host"
    return [
        Growth(f"page {title}, bytes", "hosts", HOSTS, tuple(pages)),
        Growth(f"document (--json) {title}, bytes", "hosts", HOSTS, tuple(documents)),
        Growth(f"analysis {title}, CPU s", "hosts", HOSTS, tuple(analysing)),
        Growth(f"drawing the page {title}, CPU s", "hosts", HOSTS, tuple(drawing)),
    ]
