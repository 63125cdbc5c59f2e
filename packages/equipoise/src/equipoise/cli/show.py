"""``equipoise show``: compute a result again from the ledger."""

from __future__ import annotations

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.display import records_for_display
from equipoise.cli import options, results
from equipoise.cli.completion import complete_runs
from equipoise.cli.options import OutputOptions
from equipoise.cli.writing import write_output
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.garbage_collection import paused_garbage_collector
from equipoise.why.result import result_of, with_experiment


class ShowRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise show`."""

    run: str
    other: str | None
    """Second run, which is compared with ``run``."""
    pooled: bool
    output: OutputOptions


@click.command("show", epilog="Example: equipoise show 20260301-10 last --allow kernel")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.argument("other", required=False, shell_complete=complete_runs)
@options.flag(
    "--pool",
    "pooled",
    help="Show all campaigns of the same commands: each alone, and pooled over boots and kernels.",
)
@options.against_options
@options.ledger_option
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.output_options
@options.pass_request(ShowRequest)
def command(request: ShowRequest) -> int:
    """Compute the result of RUN (an id, its beginning, or 'last') again from the ledger.

    With OTHER, compare the run OTHER with RUN. Their environments may differ only in what
    `--allow` names.

    The result lists earlier campaigns of the same commands; `--pool` shows a result over all.
    """
    run, other = request.run, request.other
    output = request.output.checked(has_two_runs=other is not None)
    if other is not None and (request.pooled or output.reference_result is not None):
        raise UnusableInput(
            f"show {run} {other} already compares two runs",
            hint="remove --pool and --against, or name one run only",
        )
    if request.pooled:
        _show_pooled(run, output)
        return 0
    # Without this, the garbage collector would examine a large campaign again and again.
    with paused_garbage_collector():
        if other is not None:
            _show_two(run, other, output)
        else:
            with open_for_reading(output.ledger) as ledger:
                result = results.read_result(run, ledger, output)
            results.write_and_print(result, output)
    return 0


def _show_two(run: str, other: str, output: OutputOptions) -> None:
    with open_for_reading(output.ledger) as ledger:
        reference, record = ledger.read_run(run), ledger.read_run(other)
        other_campaigns = results.other_campaigns_of(record, ledger)
        records = (reference, *with_experiment(record, ledger))
    reference, *displayed = records_for_display(records, show_env=output.show_env)
    output = replace(output, reference_result=result_of(reference), allowed=output.allowed or ())
    document = results.result_of_records(displayed, output)
    results.write_and_print(results.CampaignResult(document, displayed[0], other_campaigns), output)


def _show_pooled(run: str, output: OutputOptions) -> None:
    from equipoise.analysis.reference import pooled_campaigns
    from equipoise.report.builders.reference import pooled_document
    from equipoise.report.json_document import encode

    if output.exported_files():
        raise UnusableInput(
            f"--pool cannot write {output.exported_files()[0]}: a pooled result has no report and "
            "no table in hyperfine's formats",
            hint="remove --report and --export-…, or write the pooled result with --json FILE",
        )
    with open_for_reading(output.ledger) as ledger:
        campaigns = ledger.runs_with_same_commands(ledger.read_run(run).plan)
        # A fleet's campaign has no trials itself, so pool the campaigns of its hosts.
        records = [ledger.read_run(campaign.id) for campaign in campaigns if campaign.hosts is None]
        records = [record for record in records if not record.plan.rules.has_members]
    pooled = pooled_campaigns(records_for_display(records, show_env=output.show_env))
    write_output(pooled_document(pooled), lambda: encode(pooled), output)
