"""``equipoise doctor``: what disturbs measurements here, and how far they can be trusted."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from equipoise.analysis.certificate import CertifyOptions, certify
from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.conducting import say_who_measures
from equipoise.cli.leftovers import clear_and_report_all
from equipoise.cli.output_files import write_file
from equipoise.ledger import open_for_writing
from equipoise.measure import disturbances
from equipoise.measure.environment import snapshot
from equipoise.model.errors import EXIT_INTERRUPTED
from equipoise.report.builders import host
from equipoise.report.renderers.terminal import print_document, print_parts


@click.command("doctor")
@click.option(
    "--certify",
    "certifying",
    is_flag=True,
    help="Measure this host's own false alarms and what it can see (a minute or two).",
)
@options.ledger_option
@options.concurrent_option
@options.output_options
def command(**given: Any) -> int:
    """Print what disturbs measurements on this host, worst first, each with its hint.

    Nothing is changed, but what a killed campaign provably has left is cleared away; what cannot
    be proven is named. 'disturbs' slows trials down now; 'weakens' adds noise; 'lacks' is what this
    host does not offer.
    """
    return _certify(given) if given["certifying"] else _examine(given)


def _examine(given: dict[str, Any]) -> int:
    color = not given["no_color"]
    clear_and_report_all()
    examination = disturbances.examine(disturbances.observe_host())
    if given["json_file"] is not None:
        _write(given["json_file"], host.examination_json(examination, snapshot()))
    if given["json_file"] != "-" and not given["quiet"]:
        print_document(host.examination_document(examination), color=color)
        print_parts(host.extent_parts(examination), color=color, stderr=True)
    return 0


def _certify(given: dict[str, Any]) -> int:
    with (
        conduct.measurement_lock(say_who_measures, allow_concurrent=given["allow_concurrent"]),
        open_for_writing(given["ledger_path"], durable=False) as ledger,
    ):
        try:
            found = certify(CertifyOptions(), ledger, _progress(given), now=time.time)
        except conduct.Interrupted:
            print("equipoise: interrupted; no certificate was made", file=sys.stderr)
            return EXIT_INTERRUPTED
        ledger.record_certificate(found)
    if given["json_file"] is not None:
        _write(given["json_file"], host.certificate_json(found))
    if given["json_file"] != "-" and not given["quiet"]:
        print_document(host.certificate_document(found), color=not given["no_color"])
    return 0


def _progress(given: dict[str, Any]) -> Any:
    if given["quiet"] or not sys.stderr.isatty():
        return lambda ended, total: None

    def say(ended: int, total: int) -> None:
        end = "\n" if ended + 1 == total else ""
        print(f"\rcampaign {ended + 1} of {total}", end=end, file=sys.stderr, flush=True)

    return say


def _write(file: str, content: bytes) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
    else:
        write_file(Path(file), content)
