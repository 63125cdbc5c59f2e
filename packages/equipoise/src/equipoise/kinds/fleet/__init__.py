"""The fleet: one question for many hosts, each of which has its own campaign and its own coin.

terms        the asked hosts; the answers over them in a document
conducting   begin or resume the campaigns of the hosts of a cluster
statistics   the claims over hosts
answers      the sentences of these claims
analysis     from the campaigns of hosts to one result
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
