"""Imported runs: trials that another tool ran, kept and compared without a verdict.

terms      the files and their tool, and the comparisons in a document
assembly   makes a run of the ledger from files that `equipoise.interop` has read
analysis   intervals without a verdict, and a warning about the order of the trials
report     the answer and the table
command    ``equipoise import``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "imported",
    terms="equipoise.kinds.imported.terms:ImportSource",
    document="equipoise.kinds.imported.terms:ImportedDocument",
    analysis="equipoise.kinds.imported.analysis:ImportedAnalysis",
    report="equipoise.kinds.imported.report:ImportedReport",
    commands={
        "import": Command(
            "equipoise.kinds.imported.command",
            "Keep and compare results of hyperfine, pyperf, Go, JMH and other tools.",
            group="Results",
            after="export",
        )
    },
)
