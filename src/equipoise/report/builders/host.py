"""The certificate of a host: as a document, and as JSON."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import asdict

from equipoise.model.host import Certificate
from equipoise.report.document import Document, Facts
from equipoise.report.units import duration

SCHEMA = "equipoise.certificate/1"


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


def to_json(certificate: Certificate) -> bytes:
    """Write a certificate as one line of JSON."""
    return msgspec.json.encode({"schema": SCHEMA, **asdict(certificate)})


def _effect(percent: float | None) -> str:
    return "over 100 %" if percent is None else f"{percent:.2g} % (in nine of ten campaigns)"
