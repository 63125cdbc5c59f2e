"""``equipoise os``: the primitives of this operating system, in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.analysis.reference import differences_to_host
from equipoise.cli import options
from equipoise.cli.finish import conduct_and_show
from equipoise.cli.unlike import allowed_only
from equipoise.cli.wanted import Wanted
from equipoise.design.coin import fresh_seed
from equipoise.design.probe_rows import (
    ALPHA,
    FULL,
    LEAST_BLOCKS,
    MIN_EFFECT,
    QUICK,
    TIMEOUT_S,
    Form,
    chosen_rows,
    conditions_of_rows,
)
from equipoise.measure.environment.snapshot import snapshot
from equipoise.measure.probes import probe_program, probe_rows
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.primitives import OS_STUDY


@click.command("os", epilog="Example: equipoise os --quick --against before-the-upgrade.json")
@click.option(
    "--only",
    metavar="NAME,…",
    help="These rows, probes or tables of `equipoise list probes` only.",
)
@click.option("--quick", is_flag=True, help="Fewer and shorter batches: within a minute.")
@options.against_option
@click.option(
    "--blocks",
    type=click.IntRange(min=1, max=options.MOST_BLOCKS),
    metavar="N",
    show_default=f"{FULL.blocks}, or {QUICK.blocks} with --quick",
    help="At most so many processes of each row.",
)
@click.option(
    "--min-blocks",
    type=click.IntRange(min=1, max=options.MOST_BLOCKS),
    metavar="N",
    show_default=str(LEAST_BLOCKS),
    help="At least so many; it beats the budget.",
)
@click.option(
    "--budget",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    show_default=f"{FULL.budget_s:g}, or {QUICK.budget_s:g} with --quick",
    help="Stop after about so many seconds.",
)
@click.option(
    "-w",
    "--warmup",
    type=click.IntRange(min=0, max=1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes of each row before the first that counts.",
)
@click.option(
    "--timeout",
    type=options.FiniteRange(min=0, min_open=True),
    default=TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="End a process after so long; it has no number then.",
)
@click.option(
    "--alpha",
    type=options.FiniteRange(min=0, max=0.5, min_open=True),
    default=ALPHA,
    show_default=True,
    help="With --against: the false-discovery rate among the rows that are called changed.",
)
@click.option(
    "--min-effect",
    type=options.FiniteRange(min=0, max=1000),
    default=MIN_EFFECT,
    show_default=True,
    metavar="PERCENT",
    help="With --against: a smaller change is none.",
)
@options.seed_option
@options.ledger_option
@click.option("--durable", is_flag=True, help="Let each trial survive a loss of power, too.")
@options.report_option
@options.show_env_option
@options.turn_option
@options.output_options
def command(**given: Any) -> int:
    """What system calls, processes, signals, IPC and memory cost on this machine.

    Each row runs in several fresh processes, in blocks of random order; in a process every batch
    of operations is kept. What this machine forbids has no number, and the reason.
    """
    wanted = Wanted.from_options(given)
    if wanted.against is not None and wanted.allowed is not None:
        # Rather now than when all is measured.
        host = snapshot(environment=own_environment())
        allowed_only(differences_to_host(wanted.against, host), wanted.allowed)
    return conduct_and_show(plan_of(given), wanted)


def plan_of(given: dict[str, Any]) -> Plan:
    """The plan that the options ask for.

    Raises
    ------
    UnusableInput
        The options make no plan, or there are no probes.
    """
    program = probe_program()
    rows = chosen_rows(probe_rows(program), _names(given["only"]))
    form = QUICK if given["quick"] else FULL
    return Plan(
        study=OS_STUDY,
        conditions=conditions_of_rows(rows, program, form.batching),
        measure=Measure(
            # The probes make their files in a folder of their own.
            working_folder=str(Path.cwd()),
            timeout_s=given["timeout"],
            warmup=given["warmup"],
            # A row that cannot be measured here costs the others nothing: it is shown as such.
            ignore_failure=True,
        ),
        stopping=_stopping(given, form),
        judgement=Judgement(alpha=given["alpha"], min_effect=given["min_effect"]),
        seed=fresh_seed() if given["seed"] is None else given["seed"],
        chosen_contrasts=(),
    )


def _names(text: str | None) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UnusableInput(
            f"--only {text!r} holds an empty name", hint="as in --only null_call,pipe"
        )
    return list(dict.fromkeys(names))


def _stopping(given: dict[str, Any], form: Form) -> Stopping:
    blocks = given["blocks"] or form.blocks
    least = given["min_blocks"] or min(LEAST_BLOCKS, blocks)
    if least > blocks:
        raise UnusableInput(
            f"--min-blocks {least} is more than the {blocks} blocks there are at most",
            hint="lower it, or raise --blocks",
        )
    return Stopping(
        blocks=blocks,
        min_blocks=least,
        min_blocks_explicit=True,
        budget_s=given["budget"] or form.budget_s,
    )
