"""``equipoise resume``: continue a campaign that was stopped."""

from __future__ import annotations

from typing import Any

import click

from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.output_options import OutputOptions
from equipoise.cli.study_data import require_data
from equipoise.model.errors import UnusableInput
from equipoise.why.campaigns import judge_of


@click.command("resume")
@click.argument("run")
@options.resume_stopping_options
@options.ledger_option
@click.option("--durable", is_flag=True, help="Let each trial survive a loss of power, too.")
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.concurrent_option
@options.output_options
def command(**given: Any) -> int:
    """Resume RUN (an id, its beginning, or 'last'): after Ctrl-C, kill -9, or undecided.

    The verdict stays valid: it holds however long one looks. A block that was cut is left out.
    """
    output, limits = OutputOptions.from_options(given), options.limits_of(given)
    with measuring(output) as (ledger, listener):
        plan = ledger.read_run(given["run"]).plan
        if plan.imported is not None:
            raise UnusableInput(
                f"{given['run']} was imported: there is nothing to run",
                hint="measure it with equipoise compare",
            )
        require_data(plan, output.ledger)
        run_id = conduct.resume(given["run"], limits, ledger, listener, judge_of=judge_of)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
