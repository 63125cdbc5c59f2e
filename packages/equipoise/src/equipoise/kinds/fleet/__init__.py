"""The fleet: one question for many hosts. Each host has its own campaign and its own coin.

terms        data classes: the hosts of the plan, and the answers in a document
conducting   begin or resume the campaigns of the hosts of a cluster
answers      the sentences about the estimates of `equipoise.stats.hosts`
analysis     one result from the campaigns of all hosts
report       the mean, each host, and the questions with their answers
figures      the chart with the ratio on each host
command      ``--cluster`` for commands that measure, and `equipoise resume` for a fleet
"""

from __future__ import annotations

from equipoise.model.kinds import Kind

KIND = Kind(
    "fleet",
    terms="equipoise.kinds.fleet.terms:FleetPlan",
    document="equipoise.kinds.fleet.terms:FleetDocument",
    analysis="equipoise.kinds.fleet.analysis:FleetAnalysis",
    report="equipoise.kinds.fleet.report:FleetReport",
    figures="equipoise.kinds.fleet.figures:FleetFigures",
    resume="equipoise.kinds.fleet.command:resume_fleet",
    measure_on_hosts="equipoise.kinds.fleet.command:measure_fleet",
)
