"""``equipoise compare``: measure whether one command is faster than another."""

from __future__ import annotations

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli import options
from equipoise.cli.command_line import typed_command
from equipoise.cli.hyperfine import HyperfineCommand, HyperfineOptions, hyperfine_options
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.streams import say
from equipoise.design.commands import CompareOptions, parameters_from
from equipoise.design.limits import ONE_COMMAND_LIMITS, WHAT_VARIES_BLOCKS
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC


class CompareRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise compare`, with options of Equipoise and of hyperfine."""

    options: CompareOptions
    hyperfine: HyperfineOptions
    """Options that only hyperfine has; `normalized` translates them."""
    parameter_list: tuple[tuple[str, str], ...]
    """Name and values of each ``--parameter-list``."""
    parameter_scan: tuple[tuple[str, str, str], ...]
    """Name, minimum and maximum of each ``--parameter-scan``."""
    parameter_step_size: str | None
    output: OutputOptions
    hosts: HostOptions

    def normalized(self) -> CompareRequest:
        """Return the request with hyperfine's options translated into options of Equipoise.

        Raise `UnusableInput` if two options exclude each other, or a parameter cannot be read.
        """
        own_options = self.hyperfine.translated_options(self.options)
        if own_options.what_varies and self.output.why:
            raise UnusableInput(
                "--what-varies examines one command, --why the gap between two commands",
                hint="remove --what-varies or --why",
            )
        parameters = parameters_from(
            self.parameter_list, self.parameter_scan, self.parameter_step_size
        )
        return replace(
            self,
            options=replace(own_options, parameters=parameters),
            hyperfine=HyperfineOptions(),
            parameter_list=(),
            parameter_scan=(),
            parameter_step_size=None,
            output=self.hyperfine.translated_output(self.output),
            hosts=replace(self.hosts, outputs=own_options.outputs),
        )


@click.command(
    "compare",
    cls=HyperfineCommand,
    epilog="Example: equipoise compare 'sort --parallel=1 words' 'sort --parallel=2 words'",
)
@click.argument("commands", nargs=-1, metavar="CMD [CMD …]")
@click.option(
    "-n", "--command-name", "names", multiple=True, metavar="NAME", help="Name a condition."
)
@click.option(
    "--env",
    "environments",
    multiple=True,
    metavar="WHICH:KEY=VALUE",
    help="Set a variable of one condition; WHICH is its name or its position, which starts at 1. "
    "Without WHICH, 'KEY=VALUE …' is for all commands, or repeat --env for each command.",
)
@click.option("-L", "--parameter-list", type=(str, str), multiple=True, metavar="NAME VALUES")
@click.option("-P", "--parameter-scan", type=(str, str, str), multiple=True, metavar="NAME MIN MAX")
@click.option("-D", "--parameter-step-size", metavar="STEP", help="Step of --parameter-scan.")
@click.option("--pair", "pairs", multiple=True, hidden=True, metavar="BASELINE:CANDIDATE")
@click.option("-s", "--setup", multiple=True, metavar="CMD", help="Run before the first trial.")
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Run before each trial.")
@click.option("-C", "--conclude", multiple=True, metavar="CMD", help="Run after each trial.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Run after the last trial.")
@click.option("--input", metavar="FILE", help="Use this file as standard input.")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="null|inherit|count|FILE",
    show_default="null",
    help="Where standard output goes: for all commands, or repeat --output for each command.",
)
@options.flag(
    "-i",
    "--ignore-failure",
    help="Count trials with an exit status other than 0; -i=1,2 counts only these statuses.",
)
@click.option("--shell", metavar="SHELL", help="Run through this shell; 'default' is /bin/sh.")
@hyperfine_options
@options.warmup_option(default=1)
@options.timeout_option
@options.flag(
    "--washout", help="Run the same condition, without measuring it, before all trials of a block."
)
@click.option(
    "--metrics",
    metavar="NAME,…",
    default=PRIMARY_METRIC,
    show_default=True,
    help="Metrics to compare; the first is the primary metric, the others get verdicts too.",
)
@options.flag(
    "--duet",
    help="Run the two trials of a block at once, each on CPUs of its own that the coin assigns; a "
    "pilot refuses programs that disturb each other.",
)
@options.flag("--control", help="Run the baseline as a second condition, to check Equipoise.")
@options.flag(
    "--what-varies",
    help="Fix each source of random variation of one command in turn, and report which sources "
    "make its times vary.",
)
@options.flag(
    "--adjust",
    help="Adjust the comparison of two conditions for load, pressure or another reading before "
    "each trial. Use it only if both leave the host in the same state: no check can prove that.",
)
@options.ranking_option
@options.layout_options
@options.stopping_options(
    blocks=f"no limit; {WHAT_VARIES_BLOCKS} with --what-varies",
    min_blocks="5; a verdict at alpha 0.05 takes 7",
    budget=f"60; {ONE_COMMAND_LIMITS.budget_s:g} for one command, and at least "
    f"{ONE_COMMAND_LIMITS.blocks_before_budget} runs",
)
@options.patient_option
@options.judging_options()
@options.campaign_files
@options.why_options
@options.fleet_options
@options.host_options
@options.output_options
@options.pass_request(CompareRequest)
def command(request: CompareRequest) -> int:
    """Compare commands with the first command, the baseline; describe a single command.

    Each block runs every command once in random order. After each block Equipoise analyses the
    times, and it stops as soon as the answer is clear. A command gets no more trials once its
    comparison is decided and it cannot be the fastest. Commands run without a shell.
    """
    from equipoise.campaign import conduct
    from equipoise.campaign.plans import compare_plan
    from equipoise.cli.conducting import analyse, measure_on_hosts, measuring, show_result

    normalized = request.normalized()
    output = normalized.output.checked()
    if not output.quiet:
        for note in request.hyperfine.notes(request.options):
            say(note)
    plan, warnings = compare_plan(normalized.options)
    plan = replace(plan, command_line=typed_command(seed=plan.seed))
    access = normalized.hosts.access()
    if access is not None:
        return measure_on_hosts(plan, access, normalized.hosts, output, warnings=warnings)
    with measuring(output) as (ledger, listener):
        run_id = conduct.start(plan, ledger, listener, warnings=warnings)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
