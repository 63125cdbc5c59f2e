"""``equipoise resume``: go on with a campaign that was stopped."""

from __future__ import annotations

from typing import Any

import click

from equipoise.campaign import conduct
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options
from equipoise.cli.finish import show_after
from equipoise.cli.study_data import require_data
from equipoise.cli.wanted import Wanted
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
@options.turn_option
@options.output_options
def command(**given: Any) -> int:
    """Go on with RUN (an id, its beginning, or 'last'): after Ctrl-C, kill -9, or undecided.

    The verdict stays valid: it holds however long one looks. A block that was cut is left out.
    """
    more = conduct.ExtendedLimits(
        blocks=given["blocks"],
        min_blocks=given["min_blocks"],
        budget_s=given["budget"],
        precision=given["precision"],
    )

    wanted = Wanted.from_options(given)

    def campaign(ledger: conduct.CampaignStore, watcher: ProgressListener) -> str:
        plan = ledger.read_run(given["run"]).plan
        if plan.imported is not None:
            raise UnusableInput(
                f"{given['run']} was imported: there is nothing to run",
                hint="measure it with equipoise compare",
            )
        require_data(plan, wanted.ledger)
        return conduct.resume(given["run"], more, ledger, watcher, judge_of=judge_of)

    return show_after(campaign, wanted)
