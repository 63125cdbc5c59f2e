"""``equipoise show``: compute a result again from the ledger."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.finish import Wanted, show, shown_document
from equipoise.ledger import open_for_reading


@click.command("show")
@click.argument("run", default="last")
@click.option(
    "--pool",
    "pooled",
    is_flag=True,
    help="All campaigns of the same commands: each by itself, and pooled by boot and kernel.",
)
@options.against_option
@options.ledger_option
@options.hyperfine_exports
@options.report_option
@options.output_options
def command(**given: Any) -> int:
    """Compute the result of RUN (an id, its beginning, or 'last') again from the ledger.

    Earlier campaigns of the same commands are listed with it; `--pool` shows what holds over all.
    """
    wanted = Wanted.from_options(given)
    with open_for_reading(wanted.ledger) as ledger:
        record = ledger.read_run(given["run"])
        if given["pooled"]:
            from equipoise.campaign.pooling import pooled_campaigns
            from equipoise.report.pooled import print_pooled

            runs = ledger.same_commands(record.plan)
            print_pooled(
                pooled_campaigns([ledger.read_run(one.id) for one in runs]), color=wanted.color
            )
            return 0
        others = [one for one in ledger.same_commands(record.plan) if one.id != record.id]
    show(shown_document(record, wanted), record, others, wanted)
    return 0
