"""Primitives of the operating system: `equipoise os`, and the report of probes.

A probe is a small benchmark of one operation. A row is a probe with its options. In reading order:

- ``rows.py``: a row, the metrics of the probes, and the numbers of batches and blocks
- ``probes.py``: the program that contains the probes; its rows; which rows work on this host
- ``plan.py``: the plan of a campaign, and its rules
- ``report.py``: the answer, the tables and the charts
- ``charts.py``: a dot for each process, by row
- ``command.py``: ``equipoise os``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "os",
    study_rules="equipoise_studies.primitives.plan:PrimitivesRules",
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
