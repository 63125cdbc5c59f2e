"""``equipoise os``: the primitives of this operating system, in a table."""

from __future__ import annotations

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.reference import differences_to_host
from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.conducting import analyse, measure_on_hosts, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.results import warnings_if_allowed
from equipoise.design.limits import CampaignLimits
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise_studies.primitives.plan import primitives_plan
from equipoise_studies.primitives.rows import ALPHA, FULL, MIN_BLOCKS, MIN_EFFECT, QUICK, TIMEOUT_S


class OsRequest(Struct, frozen=True, kw_only=True):
    """The request of `equipoise os`."""

    only: str | None
    quick: bool
    limits: CampaignLimits
    hosts: HostOptions
    output: OutputOptions


@click.command(
    "os",
    cls=CommandRecorder,
    epilog="Example: equipoise os --quick --against before-the-upgrade.json",
)
@click.option(
    "--only",
    metavar="NAME,…",
    help="Measure only these rows, probes or tables of `equipoise list probes`.",
)
@options.flag("--quick", help="Fewer and shorter batches: within a minute.")
@options.against_options
@options.number_option(
    "--blocks",
    metavar="N",
    show_default=f"{FULL.blocks}, or {QUICK.blocks} with --quick",
    help="Largest number of processes of each row.",
)
@options.number_option(
    "--min-blocks",
    metavar="N",
    show_default=str(MIN_BLOCKS),
    help="Smallest number of processes of each row, whatever the budget.",
)
@options.number_option(
    "--budget",
    metavar="SECONDS",
    show_default=f"{FULL.budget_s:g}, or {QUICK.budget_s:g} with --quick",
    help="Stop after about this many seconds.",
)
@options.warmup_option("Processes of each row before the first that counts.", default=1)
@options.number_option(
    "--timeout",
    default=TIMEOUT_S,
    metavar="SECONDS",
    help="Time limit; a slower process has no number.",
)
@options.number_option(
    "--alpha",
    default=ALPHA,
    help="With --against: the false-discovery rate among the rows reported as changed.",
)
@options.number_option(
    "--min-effect",
    default=MIN_EFFECT,
    metavar="PERCENT",
    help="With --against: ignore smaller changes.",
)
@options.seed_option
@options.ledger_option
@options.durable_option
@options.report_option
@options.show_env_option
@options.fleet_options
@options.host_options
@options.output_options
@options.pass_request(OsRequest)
def command(request: OsRequest) -> int:
    """Measure the costs of system calls, processes, signals, IPC and memory on this machine.

    Each row runs in several fresh processes, in blocks of random order. The result keeps every
    batch of operations of a process. If this machine forbids a row, the table has the reason
    instead of a number.
    """
    output, host_access = request.output.checked(), request.hosts.access()
    if output.reference_result is not None and output.allowed is not None:
        # A comparison that is not allowed is refused now, not after the measurement.
        host = snapshot(environment=own_environment())
        warnings_if_allowed(differences_to_host(output.reference_result, host), output.allowed)
    names = probe_names(request.only)
    plan = primitives_plan(names, request.limits, quick=request.quick)
    plan = replace(plan, command_line=typed_command(seed=plan.seed))
    if host_access is not None:
        return measure_on_hosts(plan, host_access, request.hosts, output)
    with measuring(output) as (ledger, listener):
        run_id = conduct.start(plan, ledger, listener)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)


def probe_names(text: str | None) -> tuple[str, ...]:
    """Return the names in the value of ``--only``, without repetitions."""
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise UnusableInput(
            f"--only {text!r} contains an empty name",
            hint="separate names by one comma: --only null_call,pipe",
        )
    return names
