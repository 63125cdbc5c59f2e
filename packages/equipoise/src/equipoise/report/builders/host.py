"""What disturbs measurements on a host, and its certificate: as documents, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import asdict

from equipoise.model.host import SEVERITIES, Certificate, Examination
from equipoise.report.document import Bullets, Document, Facts, Paragraph, Part, Warnings
from equipoise.report.units import duration

EXAMINATION_SCHEMA = "equipoise.doctor/1"
CERTIFICATE_SCHEMA = "equipoise.certificate/1"


def examination_document(examination: Examination) -> Document:
    """Build the document of an examination: the disturbances, worst first, each with its hint."""
    by_severity = (
        (severity, tuple(one for one in examination.disturbances if one.severity == severity))
        for severity in SEVERITIES
    )
    parts = (
        Warnings(disturbances, badge=severity, most_alike=len(disturbances))
        for severity, disturbances in by_severity
        if disturbances
    )
    return Document("doctor", _extent(examination), tuple(parts))


def extent_parts(examination: Examination) -> tuple[Part, ...]:
    """Build what an examination looked for, and what it could not look for."""
    unchecked = (
        f"  not checked: {name}: {reason}" for name, reason in examination.unchecked.items()
    )
    return (Paragraph(_extent(examination), "dim"), Bullets(tuple(unchecked), "dim"))


def _extent(examination: Examination) -> str:
    """Return how many checks were made, and how many things they found."""
    checks = len(examination.checked) + len(examination.unchecked)
    count = sum(one.severity != "lacks" for one in examination.disturbances)
    disturb = {0: "nothing disturbs", 1: "1 thing disturbs"}.get(count, f"{count} things disturb")
    return f"{disturb} measurements here ({len(examination.checked)} of {checks} checks could look)"


def examination_json(examination: Examination, environment: Mapping[str, Any]) -> bytes:
    """Write an examination and the host's environment as one line of JSON."""
    return msgspec.json.encode(
        {"schema": EXAMINATION_SCHEMA, **asdict(examination), "environment": environment}
    )


def certificate_document(certificate: Certificate) -> Document:
    """Build the document of a certificate."""
    return Document("certificate", "Certificate of this host", (Facts(_lines(certificate)),))


def _lines(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    made = datetime.fromtimestamp(certificate.made_at).astimezone()
    one = certificate
    return (
        ("certificate of", f"{one.cpu_model or 'unknown CPU'}, Linux {one.kernel or 'unknown'}"),
        ("made", f"{made:%Y-%m-%d %H:%M}, {len(one.runs)} campaigns in the ledger"),
        (
            "false alarms",
            f"{one.called_different} of {one.campaigns} campaigns of a program against itself "
            f"(at most {one.blocks} blocks, alpha {one.alpha:g}) called it different",
        ),
        (
            f"{one.injected:g} % more work",
            f"found in {one.injected_found} of {one.injected_campaigns} campaigns, "
            f"after {one.injected_blocks:g} blocks at the median",
        ),
        (
            "a trial",
            f"{duration(one.trial_s)}; a block's log ratio spreads by {one.spread:.2g} %",
        ),
        ("smallest effect seen in a minute", _effect(one.smallest_in_a_minute)),
        ("smallest effect seen in ten minutes", _effect(one.smallest_in_ten_minutes)),
    )


def certificate_json(certificate: Certificate) -> bytes:
    """Write a certificate as one line of JSON."""
    return msgspec.json.encode({"schema": CERTIFICATE_SCHEMA, **asdict(certificate)})


def _effect(percent: float | None) -> str:
    return "over 100 %" if percent is None else f"{percent:.2g} % (in nine of ten campaigns)"
