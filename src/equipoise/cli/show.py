"""``equipoise show``: compute a result again from the ledger."""

from __future__ import annotations

from typing import Any

import click

from equipoise.campaign.result import document_of
from equipoise.cli import options
from equipoise.cli.finish import Wanted, show
from equipoise.ledger import open_for_reading


@click.command("show")
@click.argument("run", default="last")
@options.ledger_option
@options.hyperfine_exports
@options.report_option
@options.output_options
def command(**given: Any) -> int:
    """Compute the result of RUN (an id, its beginning, or 'last') again from the ledger.

    Earlier campaigns of the same commands are listed with it.
    """
    wanted = Wanted.from_options(given)
    with open_for_reading(wanted.ledger) as ledger:
        record = ledger.read_run(given["run"])
        others = [one for one in ledger.same_commands(record.plan) if one.id != record.id]
    show(document_of(record), record, others, wanted)
    return 0
