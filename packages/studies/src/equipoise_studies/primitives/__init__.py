"""Primitives of the operating system: `equipoise os`, and the report of probes.

rows      the rows and the metrics of the probes, and the amount of measurement
probes    the program that contains the probes: its rows, and their availability on this host
plan      the plan of a campaign, and its rules
report    the answer, the tables and the charts
charts    a dot for each process, by row
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
            "Measure the primitives of this operating system, in a table.",
            group="Measure",
            after="run",
        )
    },
    lists={"probes": "equipoise_studies.primitives.probes:listed_probes"},
)
