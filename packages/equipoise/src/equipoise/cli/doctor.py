"""``equipoise doctor``: find disturbances of measurements on this host, and certify the host.

An examination lists the disturbances. A certificate says how often campaigns on this host report a
false difference, and which effects they can detect.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

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
from equipoise.model.host import SEVERITIES, Certificate, Disturbance, Examination
from equipoise.report.document import (
    BRIEF_TERMINAL,
    NOT_BRIEF,
    VERBOSE_TERMINAL,
    Bullets,
    Document,
    Facts,
    Paragraph,
    Part,
    Warnings,
    full_and_brief,
)
from equipoise.report.renderers.terminal import print_document
from equipoise.report.units import duration
from equipoise.shared.spelling import option


class DoctorRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise doctor`."""

    certify: bool
    output: OutputOptions


@click.command("doctor")
@options.flag(
    "--certify",
    help="Measure the rate of false alarms on this host, and which effects it can detect (a minute "
    "or two).",
)
@options.ledger_option
@options.host_options
@options.output_options
@options.pass_request(DoctorRequest)
def command(request: DoctorRequest) -> int:
    """Print what disturbs measurements on this host, the worst first, each with a hint.

    A setting that 'disturbs' slows trials down now, one that 'weakens' adds noise, and 'lacks'
    marks a feature that this host does not offer. No setting is changed. Processes and files of a
    killed campaign are removed if their origin is certain, and otherwise listed.
    """
    output = request.output
    return _run_certification(output) if request.certify else _run_examination(output)


def _run_examination(output: OutputOptions) -> int:
    clearance = clear_leftovers()
    for removed in clearance.removed_folders:
        say(removed.describe())
    for leftover in (*clearance.leftovers, *abandoned_probes()):
        say(leftover.describe(), leftover.hint)
    examination = disturbances.examine(disturbances.observe_host())
    write_json(output.json_file, lambda: examination_json(examination, snapshot()))
    if output.prints_result:
        document = examination_document(examination)
        print_document(document, color=output.color, form=output.terminal_form)
    return 0


def _run_certification(output: OutputOptions) -> int:
    with (
        conduct.measurement_lock(say_who_measures, allow_concurrent=output.allow_concurrent),
        open_for_writing(output.ledger, durable=False, host=output.host) as ledger,
    ):
        has_progress = not output.quiet and sys.stderr.isatty()
        on_campaign_end = _print_campaign_number if has_progress else lambda ended, total: None
        try:
            certificate = certify(CertifyOptions(), ledger, on_campaign_end, now=time.time)
        except conduct.Interrupted:
            say("interrupted; no certificate was stored")
            return EXIT_INTERRUPTED
        ledger.record_certificate(certificate)
    write_json(output.json_file, lambda: certificate_json(certificate))
    if output.prints_result:
        print_document(certificate_document(certificate), color=output.color)
    return 0


def _print_campaign_number(ended_count: int, campaign_count: int) -> None:
    line_end = "\n" if ended_count + 1 == campaign_count else ""
    line = f"\rcampaign {ended_count + 1} of {campaign_count}"
    print(line, end=line_end, file=sys.stderr, flush=True)


EXAMINATION_SCHEMA = "equipoise.doctor/1"
CERTIFICATE_SCHEMA = "equipoise.certificate/1"


def examination_document(examination: Examination) -> Document:
    """Build the document of an examination: the disturbances with their hints, the worst first."""
    title = _disturbance_sentence(examination)
    parts: list[Part] = [Paragraph(title, "strong")]
    for severity in SEVERITIES:
        disturbances = tuple(
            disturbance
            for disturbance in examination.disturbances
            if disturbance.severity == severity
        )
        if not disturbances:
            continue
        warnings = Warnings(disturbances, badge=severity, max_per_code=len(disturbances))
        if severity == "lacks":
            parts += [
                replace(warnings, forms=NOT_BRIEF),
                Paragraph(f"lacks: {_missing_features_phrase(disturbances)}", forms=BRIEF_TERMINAL),
            ]
        else:
            brief_warnings = replace(warnings, warnings=disturbances[:_MAX_BRIEF_DISTURBANCES])
            parts += full_and_brief(warnings, brief_warnings)
            if (hidden_count := len(disturbances) - _MAX_BRIEF_DISTURBANCES) > 0:
                hidden_line = f"  {hidden_count} more: {option('verbose')}"
                parts.append(Paragraph(hidden_line, "dim", forms=BRIEF_TERMINAL))
    unchecked = (f"not checked: {name}: {reason}" for name, reason in examination.unchecked.items())
    parts.append(Bullets(tuple(unchecked), "dim", forms=VERBOSE_TERMINAL))
    if examination.disturbances:
        parts.append(Paragraph(_SEVERITY_LEGEND, "dim"))
    return Document("doctor", title, tuple(parts))


_MAX_BRIEF_DISTURBANCES = 3
_SEVERITY_LEGEND = "disturbs: slows trials now. weakens: adds noise. lacks: not offered here."
"""Explanation of the words for the severity of a disturbance."""


def _disturbance_sentence(examination: Examination) -> str:
    check_count = len(examination.checked) + len(examination.unchecked)
    count = sum(disturbance.severity != "lacks" for disturbance in examination.disturbances)
    phrase = {0: "Nothing disturbs", 1: "1 thing disturbs"}.get(count, f"{count} things disturb")
    coverage = f"{len(examination.checked)} of {check_count} checks were possible"
    return f"{phrase} measurements here ({coverage})."


def _missing_features_phrase(missing: Sequence[Disturbance]) -> str:
    count = "1 thing" if len(missing) == 1 else f"{len(missing)} things"
    return f"{count} that Equipoise could use ({option('verbose')} names each with its hint)"


def examination_json(examination: Examination, environment: Mapping[str, Any]) -> bytes:
    """Return an examination and the host's environment as one line of JSON."""
    return msgspec.json.encode(
        {"schema": EXAMINATION_SCHEMA, **asdict(examination), "environment": environment}
    )


def certificate_document(certificate: Certificate) -> Document:
    """Build the document of a certificate."""
    facts = Facts(_certificate_facts(certificate))
    return Document("certificate", "Certificate of this host", (facts,))


def _certificate_facts(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    made_at = datetime.fromtimestamp(certificate.made_at).astimezone()
    host = f"{certificate.cpu_model or 'unknown CPU'}, Linux {certificate.kernel or 'unknown'}"
    trial_time, spread = duration(certificate.trial_s), f"{certificate.ratio_spread:.2g} %"
    return (
        ("certificate of", host),
        ("made", f"{made_at:%Y-%m-%d %H:%M}, {len(certificate.runs)} campaigns in the ledger"),
        (
            "false alarms",
            f"{certificate.false_alarms} of {certificate.campaigns} campaigns of a program "
            f"against itself (at most {certificate.blocks} blocks, "
            f"alpha {certificate.alpha:g}) called it different",
        ),
        (
            f"{certificate.injected_percent:g} % more work",
            f"found in {certificate.detected_campaigns} of {certificate.injected_campaigns} "
            f"campaigns, after {certificate.blocks_to_detection:g} blocks at the median",
        ),
        ("a trial", f"{trial_time}; a block's log ratio spreads by {spread}"),
        ("smallest effect seen in a minute", _effect_text(certificate.smallest_effect_in_a_minute)),
        (
            "smallest effect seen in ten minutes",
            _effect_text(certificate.smallest_effect_in_ten_minutes),
        ),
    )


def certificate_json(certificate: Certificate) -> bytes:
    """Return a certificate as one line of JSON."""
    return msgspec.json.encode({"schema": CERTIFICATE_SCHEMA, **asdict(certificate)})


def _effect_text(percent: float | None) -> str:
    return "over 100 %" if percent is None else f"{percent:.2g} % (in nine of ten campaigns)"
