"""``equipoise resume``: continue a campaign that was stopped."""

from __future__ import annotations

import click
from msgspec import Struct

from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.completion import complete_runs
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import load
from equipoise.studies.data_sets import require_data


class ResumeRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise resume`."""

    run: str
    limits: CampaignLimits
    hosts: HostOptions
    output: OutputOptions


@click.command("resume")
@click.argument("run", shell_complete=complete_runs)
@options.stopping_options(
    **dict.fromkeys(("blocks", "min_blocks", "min_seconds", "budget"), "the campaign's")
)
@options.patient_option
@options.campaign_files
@options.cluster_option("If the campaign ran on a cluster that has a new address: use every host")
@options.host_timeout_option
@options.host_options
@options.output_options
@options.pass_request(ResumeRequest)
def command(request: ResumeRequest) -> int:
    """Resume RUN (an id, its beginning, or 'last'), which was stopped, killed or is undecided.

    The error rate of the verdict stays valid, because it counts every analysis of the times. An
    incomplete block is left out.
    """
    output = request.output.checked()
    run, limits = request.run, request.limits
    with open_for_reading(output.ledger) as ledger:
        record = ledger.read_run(run)
    membership = record.plan.membership
    if membership is not None:
        # The coordinator of the fleet has a copy of the run, which would then differ.
        raise UnusableInput(
            f"run {record.id} is one host's part of a campaign on several hosts",
            hint="on the host that started the campaign, run equipoise resume "
            f"{membership.fleet_identity}",
        )
    kind = record.plan.kind
    if kind.measure_on_hosts is None and request.hosts.access() is not None:
        raise UnusableInput(
            f"run {record.id} was measured on one host, not on a cluster", hint="remove --cluster"
        )
    if kind.resume is not None:
        status = load(kind.resume)(record, limits, request.hosts, output)
        assert isinstance(status, int)
        return status
    with measuring(output) as (ledger, listener):
        record = ledger.read_run(run)
        plan = record.plan
        plan.rules.check_resumable(run)
        require_data(plan, output.ledger)
        run_id = conduct.resume(run, limits, ledger, listener)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
