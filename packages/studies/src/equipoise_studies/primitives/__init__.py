"""Primitives of the operating system: `equipoise os`, and how what probes measure is shown.

rows      the rows and the metrics of the probes, and how much of each is measured
probes    the program that contains the probes: its rows, and which work on this host
plan      the plan of a campaign, what holds for it, and its command line
report    its answer, tables and charts
charts    a dot for each process, the rows below each other
command   ``equipoise os``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "os",
    rules="equipoise_studies.primitives.plan:PrimitivesRules",
    analysis="equipoise_studies.primitives.plan:PrimitivesAnalysis",
    report="equipoise_studies.primitives.report:PrimitivesReport",
    figures="equipoise_studies.primitives.report:PrimitivesFigures",
    commands={
        "os": Command(
            "equipoise_studies.primitives.command",
            "What the primitives of this operating system cost, in a table.",
            group="Measure",
            after="run",
        )
    },
    lists={"probes": "equipoise_studies.primitives.probes:listed_probes"},
)
