"""``equipoise merge``: merge the runs of several ledgers into one ledger."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.streams import say
from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.ledger.merging import MergeReport, merge
from equipoise.model.errors import EXIT_DONE, EXIT_UNUSABLE_INPUT, UnusableInput
from equipoise.model.garbage_collection import paused_garbage_collector
from equipoise.report.document import Paragraph
from equipoise.report.renderers.terminal import print_parts

_FILE = click.Path(path_type=Path)


class MergeRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise merge`."""

    into: Path
    """Ledger that has all runs in the end."""
    sources: tuple[Path, ...]
    """Ledgers to read."""
    quiet: bool
    durable: bool
    color: bool


@click.command("merge", epilog="Example: equipoise merge all.db host1.db host2.db")
@click.argument("into", type=_FILE)
@click.argument("sources", nargs=-1, required=True, type=_FILE, metavar="FROM …")
@options.flag("--quiet", help="Print no summary of each ledger.")
@options.durable_option
@options.color_option
@options.pass_request(MergeRequest)
def command(request: MergeRequest) -> int:
    """Merge the runs of the ledgers FROM into the ledger INTO, which is created if it is missing.

    INTO then has each run once, in whatever order you merge, and also if you merge again. The
    longer copy of a run is kept. If a run was resumed in two ledgers, it is left out with a
    message, all other runs are merged, and the exit status is 2.
    """
    status = EXIT_DONE
    with ExitStack() as stack, paused_garbage_collector():
        target: Ledger | None = None
        for path in request.sources:
            try:
                source = open_for_reading(path)
            except UnusableInput as error:
                say(error.what, error.hint)
                status = EXIT_UNUSABLE_INPUT
                continue
            with source:
                # INTO is created after a ledger FROM was opened: a misspelt FROM creates no file.
                if target is None:
                    target = stack.enter_context(
                        open_for_writing(request.into, durable=request.durable)
                    )
                report = merge(target, source, identities=None)  # None means all runs.
            for refusal in report.refused:
                say(f"{path}: {refusal.what}", refusal.hint)
                status = EXIT_UNUSABLE_INPUT
            if not request.quiet:
                print_parts([Paragraph(_summary_line(path, report))], color=request.color)
    return status


def _summary_line(path: Path, report: MergeReport) -> str:
    run_counts = [
        f"{count} {state}"
        for count, state in (
            (report.new, "new"),
            (report.extended, "extended"),
            (report.unchanged, "unchanged"),
            (len(report.refused), "left out"),
        )
        if count
    ]
    return f"{path}: {', '.join(run_counts) or 'no run'}; {report.trials:,} new trials"
