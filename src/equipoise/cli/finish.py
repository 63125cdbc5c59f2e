"""Conducting a campaign for the command line, and showing what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.campaign import conduct
from equipoise.campaign.against import against
from equipoise.campaign.result import document_of
from equipoise.cli.output_file import check_folder, write_file
from equipoise.cli.progress import watcher_for
from equipoise.cli.report import write_report
from equipoise.cli.study_findings import FOLDER, show_findings, write_figures
from equipoise.figures.library import require_figures
from equipoise.interop import hyperfine
from equipoise.interop.result_document import read_result
from equipoise.ledger import open_for_writing
from equipoise.model.errors import (
    EXIT_CONDITION_FAILED,
    EXIT_DONE,
    EXIT_INTERRUPTED,
)
from equipoise.model.plan import Plan
from equipoise.model.record import Notice, RunRecord, RunSummary
from equipoise.model.result import ResultDocument
from equipoise.model.stored import StoredResult
from equipoise.report import json_document, terminal


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to have of a result, and where."""

    ledger: Path
    json_file: str | None = None
    report_file: Path | None = None
    quiet: bool = False
    color: bool = True
    durable: bool = False
    allow_concurrent: bool = False
    export_json: Path | None = None
    export_csv: Path | None = None
    export_markdown: Path | None = None
    against: StoredResult | None = None
    """What every row is held against."""
    figures: Path | None = None
    """The folder for a study's own figures; by default one for each run beside the ledger."""

    @classmethod
    def from_options(cls, given: dict[str, Any]) -> Wanted:
        """Take them from a command's options."""
        wanted = cls(
            ledger=given["ledger_path"],
            json_file=given["json_file"],
            report_file=given["report_file"],
            quiet=given["quiet"],
            color=not given["no_color"],
            durable=given.get("durable", False),
            allow_concurrent=given.get("allow_concurrent", False),
            export_json=given.get("export_json"),
            export_csv=given.get("export_csv"),
            export_markdown=given.get("export_markdown"),
            against=_read(given.get("against_file")),
            figures=given.get("figures"),
        )
        # Found out before the campaign, not after an hour of it.
        for path in wanted.files():
            check_folder(path)
        if wanted.report_file is not None or wanted.figures is not None:
            require_figures()
        return wanted

    def files(self) -> list[Path]:
        """The files that will be written."""
        named = [self.export_json, self.export_csv, self.export_markdown, self.report_file]
        if self.json_file not in (None, "-"):
            named.append(Path(str(self.json_file)))
        return [path for path in named if path is not None]


def conduct_and_show(plan: Plan, wanted: Wanted, notices: Sequence[Notice] = ()) -> int:
    """Run a new campaign to its stop and show its result; return the exit status."""

    def campaign(ledger: conduct.Keeper, watcher: conduct.Watcher) -> str:
        return conduct.begin(plan, ledger, watcher, notices=notices)

    return show_after(campaign, wanted)


def show_after(campaign: Callable[[conduct.Keeper, conduct.Watcher], str], wanted: Wanted) -> int:
    """Let a campaign go to its stop and show its result; return the exit status."""
    watcher = watcher_for(quiet=wanted.quiet, color=wanted.color)
    with (
        conduct.turn_to_measure(say_whom_it_waits_for, allow_concurrent=wanted.allow_concurrent),
        open_for_writing(wanted.ledger, durable=wanted.durable) as ledger,
    ):
        try:
            run_id = campaign(ledger, watcher)
        except conduct.Interrupted as interruption:
            print(
                f"equipoise: interrupted; nothing that was measured is lost\n"
                f"  mend: equipoise resume {interruption.run_id}",
                file=sys.stderr,
            )
            return EXIT_INTERRUPTED
        record = ledger.read_run(run_id)
        earlier = [one for one in ledger.same_commands(record.plan) if one.id != run_id]
    document = shown_document(record, wanted)
    show(document, record, earlier, wanted)
    folder = wanted.figures or wanted.ledger.parent / FOLDER / run_id
    silent = wanted.quiet or wanted.json_file == "-"
    write_figures(document, folder, quiet=silent, color=wanted.color)
    return exit_status(record, document)


def shown_document(record: RunRecord, wanted: Wanted) -> ResultDocument:
    """The result of a campaign, held against another one if that is wanted.

    Raises
    ------
    UnusableInput
        The two have nothing in common.
    """
    document = document_of(record)
    if wanted.against is None:
        return document
    judgement = record.plan.judgement
    held = against(wanted.against, document, min_effect=judgement.min_effect, alpha=judgement.alpha)
    return replace(document, against=held)


def say_whom_it_waits_for(holder: conduct.Holder) -> None:
    """Say on stderr which campaign this one waits for."""
    print(
        f"equipoise: another campaign runs on this host ({holder.words()}): waiting for its end\n"
        "  mend: Ctrl-C, or --allow-concurrent to measure all the same",
        file=sys.stderr,
        flush=True,
    )


def show(
    document: ResultDocument,
    record: RunRecord,
    earlier: list[RunSummary],
    wanted: Wanted,
) -> None:
    """Write the files that were asked for, and the screen unless stdout is taken."""
    if wanted.export_json is not None:
        write_file(wanted.export_json, hyperfine.to_json(document))
    if wanted.export_csv is not None:
        write_file(wanted.export_csv, hyperfine.to_csv(document).encode())
    if wanted.export_markdown is not None:
        write_file(wanted.export_markdown, hyperfine.to_markdown(document).encode())
    if wanted.report_file is not None:
        write_report(wanted.report_file, [record])
    if wanted.json_file == "-":
        sys.stdout.buffer.write(json_document.encode(document))
        return
    if wanted.json_file is not None:
        write_file(Path(wanted.json_file), json_document.encode(document))
    if not wanted.quiet:
        terminal.print_result(document, earlier, wanted.ledger, color=wanted.color)
        show_findings(document, color=wanted.color)


def _read(path: Path | None) -> StoredResult | None:
    return None if path is None else read_result(path)


def exit_status(record: RunRecord, document: ResultDocument) -> int:
    """3 if a trial timed out and a verdict is missing, else 0."""
    undecided = any(one.verdict == "undecided" for one in document.comparisons)
    timed_out = [trial for trial in record.trials if trial.timed_out]
    if not (undecided and timed_out):
        return EXIT_DONE
    name = record.plan.conditions[timed_out[0].condition].name
    print(
        f"equipoise: no verdict: {name} {timed_out[0].failure}\n"
        "  mend: raise --timeout, or --blocks and --budget so that a timeout can tell",
        file=sys.stderr,
    )
    return EXIT_CONDITION_FAILED
