"""``equipoise site``: write the campaigns of ledgers as a folder of pages."""

from __future__ import annotations

import functools
from importlib import metadata
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.display import records_for_display
from equipoise.campaign.blocks import complete_blocks
from equipoise.cli import options
from equipoise.cli.streams import say
from equipoise.cli.writing import report_input_of
from equipoise.ledger import Ledger, open_for_reading
from equipoise.model.errors import EXIT_DONE, EXIT_UNUSABLE_INPUT
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import counted
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.document import Document, Paragraph, without_figures
from equipoise.report.kind import kind_report
from equipoise.report.renderers.site import campaign_page
from equipoise.report.renderers.terminal import print_parts
from equipoise.shared.pictures import require_figures
from equipoise.site import PageContent, PageTask, SiteReport, SiteRequest, build_site
from equipoise.studies.catalogue import analysis_of, with_findings

_MAX_PROBLEMS = 5
"""Maximum number of campaigns without a page that are named."""
_DEFAULT_FULL_PAGES = 10
_DEFAULT_BUDGET_S = 120.0


class SiteOptions(Struct, frozen=True, kw_only=True):
    """Request of `equipoise site`."""

    site: SiteRequest
    quiet: bool
    color: bool


@click.command("site", epilog="Example: equipoise site .equipoise/ledger.db -o public")
@click.argument(
    "ledgers", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="LEDGER …"
)
@options.file_option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="FOLDER",
    help="Folder of the site: new, empty, or of an earlier run of this command.",
)
@click.option(
    "--title", default="Benchmarks", metavar="TEXT", show_default=True, help="Title of the index."
)
@click.option(
    "--full-pages",
    type=click.IntRange(min=0),
    default=_DEFAULT_FULL_PAGES,
    metavar="N",
    show_default=True,
    help="Draw figures for the latest N campaigns of each study. A page keeps its figures.",
)
@options.number_option(
    "budget_s",
    "--budget",
    default=_DEFAULT_BUDGET_S,
    metavar="SECONDS",
    help="Time for pages, the latest first; the next run makes the pages that are left.",
)
@options.flag("--quiet", help="Print no summary.")
@options.color_option
@options.pass_request(SiteOptions)
def command(request: SiteOptions) -> int:
    """Write the campaigns of ledgers as pages that need no server.

    The folder gets an index with a search, a page for each campaign, a feed of changes (feed.xml),
    and a badge for the latest gate of each benchmark. Run the command again to add what is new.
    Pages of campaigns that no ledger has any more are removed; other files stay as they are.
    """
    from equipoise.cli.work_bars import work_bar

    require_figures()
    program = f"equipoise {metadata.version('equipoise')}, altair {metadata.version('altair')}"
    with work_bar("pages", quiet=request.quiet, color=request.color) as show_progress:
        report = build_site(request.site, program, page_of_campaign, show_progress)
    for problem in report.problems[:_MAX_PROBLEMS]:
        say(problem.what, problem.hint)
    hidden_count = len(report.problems) - _MAX_PROBLEMS
    if hidden_count > 0:
        say(f"{counted(hidden_count, 'more campaign')} without a page")
    if not request.quiet:
        line = Paragraph(_summary_line(request.site.folder, report))
        print_parts([line], color=request.color)
    return EXIT_UNUSABLE_INPUT if report.problems else EXIT_DONE


def _summary_line(folder: Path, report: SiteReport) -> str:
    counts = f"{counted(report.campaigns, 'campaign')}, {counted(report.written, 'page')} written"
    removed = f", {counted(report.removed, 'page')} removed" if report.removed else ""
    line = f"{folder / 'index.html'}: {counts}{removed}"
    if report.waiting:
        left = counted(report.waiting, "page")
        return f"{line}; {left} left: run the command again, or with a larger --budget"
    return line


def page_of_campaign(task: PageTask) -> PageContent:
    """Return the page of a campaign; raise `UnusableInput` if it cannot be computed."""
    ledger = _ledger(task.ledger)
    record = ledger.read_version(task.version)
    # Other pages need everything: the figures of a study, and the causes of a gap.
    is_full = (
        task.is_full
        or bool(task.explanations)
        or bool(record.observations)
        or len(record.plan.conditions) == 1
        or _has_analysis(record.plan.study)
    )
    result, document = (_full if is_full else _brief)(record, task, ledger)
    kind = kind_report(result)
    note = "" if is_full else _note(task.version.name)
    return PageContent(
        html=campaign_page(document, note),
        title=document.title,
        noun=record.plan.rules.noun,
        is_full=is_full,
        series=kind.series(result),
        changes=tuple(kind.changes(result)),
        badges=tuple(kind.badges(result)),
    )


def _full(record: RunRecord, task: PageTask, ledger: Ledger) -> tuple[ResultDocument, Document]:
    """Return the result and the document of `equipoise report`."""
    from equipoise.why.result import result_of

    explanations = (ledger.read_version(version) for version in task.explanations)
    explaining = (other for other in explanations if complete_blocks(other.draws, other.trials))
    experiment = next(explaining, None)
    records = (record,) if experiment is None else (record, experiment)
    shown = records_for_display(records, show_env=False)
    result = with_findings(result_of(*shown))
    return result, campaign_document(report_input_of(result, shown[0], with_figures=True))


def _brief(record: RunRecord, task: PageTask, ledger: Ledger) -> tuple[ResultDocument, Document]:
    """Return the result and the document without figures, modes, drift and most metrics."""
    from equipoise.analysis.result import analyse_comparisons

    (shown,) = records_for_display((record,), show_env=False)
    result = analyse_comparisons(shown)
    document = campaign_document(ReportInput(result))
    return result, replace(document, parts=tuple(without_figures(document.parts)))


def _note(run: str) -> str:
    return (
        "This page leaves out the figures, the modes, the drift and most metrics; "
        f"equipoise report {run} -o page.html has them."
    )


@functools.cache
def _ledger(path: Path) -> Ledger:
    """Return a ledger that stays open for all pages of this process."""
    return open_for_reading(path)


@functools.cache
def _has_analysis(study: str) -> bool:
    return study != COMPARE_STUDY and analysis_of(study) is not None
