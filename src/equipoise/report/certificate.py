"""The certificate of a host: on the terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.host import Certificate
from equipoise.report.safe_text import visible
from equipoise.report.units import duration

SCHEMA = "equipoise.certificate/1"


def print_certificate(certificate: Certificate, *, color: bool) -> None:
    """Print the certificate to stdout."""
    console = Console(no_color=not color, highlight=False, markup=False, emoji=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in lines_of(certificate):
        table.add_row(Text(name), Text(visible(value)))
    console.print(table)


def lines_of(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Each figure with what it is."""
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
        ("smallest effect seen", f"in a minute {_effect(one.smallest_in_a_minute)}"),
        ("", f"in ten minutes {_effect(one.smallest_in_ten_minutes)}"),
    )


def to_json(certificate: Certificate) -> bytes:
    """The certificate as one line of JSON."""
    return msgspec.json.encode({"schema": SCHEMA, **asdict(certificate)})


def _effect(percent: float | None) -> str:
    return "over 100 %" if percent is None else f"{percent:.2g} % (in nine of ten campaigns)"
