"""The fleet: one question asked of many hosts, each with a campaign and a coin of its own.

terms        the asked hosts and what each gets; the answers over them, in a document
conducting   begin the campaigns of the hosts of a cluster, or go on with them
statistics   what may be claimed over hosts
answers      these claims in words
analysis     the campaigns of hosts as one result
report       the mean, each host, and the questions
figures      the ratio on each host
command      ``--cluster`` of commands that measure, and `equipoise resume`
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
    on_hosts="equipoise.kinds.fleet.command:measure_fleet",
)
