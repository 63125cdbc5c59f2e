"""``equipoise doctor``: what disturbs measurements here, and how far they can be trusted."""

from __future__ import annotations

import sys
import time

import click
from msgspec import Struct

from equipoise.analysis.certificate import CertifyOptions, certify
from equipoise.campaign import conduct
from equipoise.cli import options
from equipoise.cli.conducting import say_who_measures
from equipoise.cli.options import OutputOptions
from equipoise.cli.streams import say
from equipoise.cli.writing import write_json
from equipoise.ledger import open_for_writing
from equipoise.measure import disturbances
from equipoise.measure.environment import snapshot
from equipoise.measure.leftovers import abandoned_probes, clear_leftovers
from equipoise.model.errors import EXIT_INTERRUPTED
from equipoise.report.builders import host
from equipoise.report.renderers.terminal import print_document, print_parts


class DoctorRequest(Struct, frozen=True, kw_only=True):
    """What `equipoise doctor` is asked for."""

    certifying: bool
    output: OutputOptions


@click.command("doctor")
@options.flag(
    "--certify",
    "certifying",
    help="Measure this host's own false alarms and what it can see (a minute or two).",
)
@options.ledger_option
@options.host_options
@options.output_options
@options.request_of(DoctorRequest)
def command(request: DoctorRequest) -> int:
    """Print what disturbs measurements on this host, worst first, each with its hint.

    Nothing is changed, but what a killed campaign provably has left is cleared away; what cannot
    be proven is named. 'disturbs' slows trials down now; 'weakens' adds noise; 'lacks' is what this
    host does not offer.
    """
    output = request.output
    return _certify(output) if request.certifying else _examine(output)


def _examine(output: OutputOptions) -> int:
    clearance = clear_leftovers()
    for removed in clearance.cleared:
        say(removed.describe())
    for leftover in (*clearance.leftovers, *abandoned_probes()):
        say(leftover.describe(), leftover.hint)
    examination = disturbances.examine(disturbances.observe_host())
    write_json(output.json_file, lambda: host.examination_json(examination, snapshot()))
    if output.has_screen:
        print_document(host.examination_document(examination), color=output.color)
        parts = host.extent_parts(examination)
        print_parts(parts, color=output.color, stderr=True)
    return 0


def _certify(output: OutputOptions) -> int:
    with (
        conduct.measurement_lock(say_who_measures, allow_concurrent=output.allow_concurrent),
        open_for_writing(output.ledger, durable=False, host=output.host) as ledger,
    ):
        show_progress = not output.quiet and sys.stderr.isatty()
        on_campaign = _print_campaign if show_progress else lambda ended, total: None
        try:
            certificate = certify(CertifyOptions(), ledger, on_campaign, now=time.time)
        except conduct.Interrupted:
            say("interrupted; no certificate was made")
            return EXIT_INTERRUPTED
        ledger.record_certificate(certificate)
    write_json(output.json_file, lambda: host.certificate_json(certificate))
    if output.has_screen:
        print_document(host.certificate_document(certificate), color=output.color)
    return 0


def _print_campaign(ended: int, total: int) -> None:
    end = "\n" if ended + 1 == total else ""
    print(f"\rcampaign {ended + 1} of {total}", end=end, file=sys.stderr, flush=True)
