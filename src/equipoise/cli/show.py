"""``equipoise show``: compute a result again from the ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli import options
from equipoise.cli.load_result import load_result, reported, reported_records
from equipoise.cli.output_files import write_file
from equipoise.cli.output_options import OutputOptions, show
from equipoise.ledger import open_for_reading
from equipoise.model.bulk import paused_garbage_collector
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord, RunSummary
from equipoise.why.campaigns import latest_experiment, result_of


@click.command("show", epilog="Example: equipoise show 20260301-10 last --allow kernel")
@click.argument("run", default="last")
@click.argument("other", required=False)
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
@options.show_env_option
@options.output_options
def command(**given: Any) -> int:
    """Compute the result of RUN (an id, its beginning, or 'last') again from the ledger.

    With OTHER, what ran there is held against RUN, once nothing differs between the environments of
    the two but what `--allow` names.

    Earlier campaigns of the same commands are listed with it; `--pool` shows what holds over all.
    """
    output = OutputOptions.from_options(given)
    if given["other"] is not None:
        return _show_two(given, output)
    if given["pooled"]:
        return _show_pooled(given["run"], output)
    # To the end: the collector would walk over a large campaign once for each part of the work.
    with paused_garbage_collector():
        found = _read(given["run"], output)
        record, experiment = reported(found.record, found.experiment, show_env=output.show_env)
        show(load_result(record, output, experiment), record, found.others, output)
    return 0


class _Read(Struct, frozen=True):
    """A campaign as the ledger has it."""

    record: RunRecord
    experiment: RunRecord | None
    others: list[RunSummary]
    """Campaigns of the same commands."""


def _read(run: str, output: OutputOptions) -> _Read:
    with open_for_reading(output.ledger) as ledger:
        record = ledger.read_run(run)
        experiment = latest_experiment(record, ledger)
        others = [one for one in ledger.same_commands(record.plan) if one.id != record.id]
    return _Read(record, experiment, others)


def _show_two(given: dict[str, Any], output: OutputOptions) -> int:
    if given["pooled"] or output.against is not None:
        raise UnusableInput(
            f"show {given['run']} {given['other']} holds two runs against each other already",
            hint="leave --pool and --against out, or name one run",
        )
    with paused_garbage_collector():
        with open_for_reading(output.ledger) as ledger:
            earlier = ledger.read_run(given["run"])
        later = _read(given["other"], output)
        tested = () if later.experiment is None else (later.experiment,)
        there, record, *experiments = reported_records(
            (earlier, later.record, *tested), show_env=output.show_env
        )
        held = replace(output, against=result_of(there), allowed=output.allowed or ())
        document = load_result(record, held, experiments[0] if experiments else None)
        show(document, record, later.others, held)
    return 0


def _show_pooled(run: str, output: OutputOptions) -> int:
    from equipoise.analysis.pooling import pooled_campaigns
    from equipoise.report.builders.pooled import pooled_document
    from equipoise.report.json_document import encode
    from equipoise.report.renderers.terminal import print_document

    if output.exports():
        raise UnusableInput(
            f"--pool has no form for {output.exports()[0]}",
            hint="leave it out; --json has what holds over all campaigns",
        )
    with open_for_reading(output.ledger) as ledger:
        runs = ledger.same_commands(ledger.read_run(run).plan)
        records = [ledger.read_run(one.id) for one in runs]
        found = pooled_campaigns(reported_records(records, show_env=output.show_env))
    if output.json_file == "-":
        sys.stdout.buffer.write(encode(found))
        return 0
    if output.json_file is not None:
        write_file(Path(output.json_file), encode(found))
    if not output.quiet:
        print_document(pooled_document(found), color=output.color)
    return 0
