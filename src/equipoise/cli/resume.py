"""``equipoise resume``: continue a campaign that was stopped."""

from __future__ import annotations

import click
from msgspec import Struct

from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.completing import complete_runs
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.studies.data_sets import require_data
from equipoise.why.campaigns import judge_of


class ResumeRequest(Struct, frozen=True, kw_only=True):
    """What `equipoise resume` is asked for."""

    run: str
    limits: CampaignLimits
    hosts: HostOptions
    output: OutputOptions


@click.command("resume")
@click.argument("run", shell_complete=complete_runs)
@options.stopping_options(*["the campaign's"] * 4)
@options.patient_option
@options.campaign_files
@options.cluster_option("Of a fleet, if its cluster moved: measure on every host")
@options.host_timeout_option
@options.host_options
@options.verbose_option
@options.output_options
@options.request_of(ResumeRequest)
def command(request: ResumeRequest) -> int:
    """Resume RUN (an id, its beginning, or 'last'): after Ctrl-C, kill -9, or undecided.

    Going on does not raise the error rate of the verdict: that counts every look. A block that was
    cut is left out.
    """
    output = request.output.checked()
    run, limits = request.run, request.limits
    with open_for_reading(output.ledger) as ledger:
        record = ledger.read_run(run)
    membership = record.plan.membership
    if membership is not None:
        # Two who go on with one host's campaign make a fork.
        raise UnusableInput(
            f"run {record.id} is the part of one host in the campaign of a fleet",
            hint=f"where the fleet was asked: equipoise resume {membership.fleet}",
        )
    if record.plan.fleet is not None:
        from equipoise.cli.fleet import resume_fleet

        return resume_fleet(record, limits, request.hosts, output)
    if request.hosts.access() is not None:
        raise UnusableInput(f"run {record.id} was measured on one host", hint="leave out --cluster")
    with measuring(output) as (ledger, listener):
        record = ledger.read_run(run)
        plan = record.plan
        if plan.imported is not None:
            raise UnusableInput(
                f"{run} was imported: there is nothing to run",
                hint="measure it with equipoise compare",
            )
        if plan.functions is not None:
            raise UnusableInput(
                f"{run} compares Python functions, which the ledger does not hold",
                hint=f"compare them again: {plan.functions.again or 'eq.compare(f, g)'}",
            )
        require_data(plan, output.ledger)
        if plan.bisected is not None:
            from equipoise.cli.bisect import resume_bisection

            run_id = resume_bisection(record, limits, ledger, listener, output)
        elif plan.history is not None:
            from equipoise.cli.history import resume_history

            run_id = resume_history(record, limits, ledger, listener)
        else:
            run_id = conduct.resume(run, limits, ledger, listener, judge_of=judge_of)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
