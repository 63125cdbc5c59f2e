"""A host: what disturbs its measurements, and its certificate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Severity = Literal["disturbs", "weakens", "lacks"]
"""``disturbs``: trials are slowed by something else now. ``weakens``: a setting that adds noise
or narrows what is measured. ``lacks``: something that the host does not offer at all."""
SEVERITIES: tuple[Severity, ...] = ("disturbs", "weakens", "lacks")
"""Worst first."""


class Disturbance(Struct, frozen=True):
    """One thing that disturbs measurements: what, and the command that ends it (rule 8)."""

    code: str
    severity: Severity
    summary: str
    hint: str


class Examination(Struct, frozen=True):
    """Result of an examination of a host."""

    disturbances: tuple[Disturbance, ...]
    """Worst first."""
    checked: tuple[str, ...]
    """The checks that gave an answer."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """The checks that could not, each with the reason (rule 7)."""


CERTIFICATE_STUDY = "certificate"
"""The study of the campaigns that a certificate rests on."""


class Certificate(Struct, frozen=True):
    """How often equal programs were called different here, and what can be seen.

    Times in seconds, effects and spreads in percent.
    """

    made_at: float
    """Seconds since the epoch."""
    boot_id: str | None
    kernel: str | None
    cpu_model: str | None
    equipoise: str | None
    alpha: float
    campaigns: int
    """Campaigns of a program against itself, judged after every block at any effect."""
    blocks: int
    """Largest number of blocks of each such campaign."""
    called_different: int
    injected: float
    """Percent by which a second program did more work than the first."""
    injected_campaigns: int
    injected_found: int
    injected_blocks: float
    """The median number of blocks to the verdict, over the campaigns that found it."""
    trial_s: float
    """The median trial of the certifying program."""
    spread: float
    """1.4826 times the median absolute deviation of a block's log ratio."""
    smallest_in_a_minute: float | None
    """Found in nine of ten campaigns of one minute; ``None`` if over 100 %."""
    smallest_in_ten_minutes: float | None
    runs: tuple[str, ...]
    """The campaigns, as the ledger names them."""

    def summary(self) -> str:
        """Return the certificate in one line."""
        return (
            f"{self.called_different} of {self.campaigns} campaigns of a program against itself "
            f"called different (alpha {self.alpha:g}); {self.injected:g} % more work found in "
            f"{self.injected_found} of {self.injected_campaigns}; smallest effect seen in a "
            f"minute {_percent(self.smallest_in_a_minute)}, in ten "
            f"{_percent(self.smallest_in_ten_minutes)}"
        )


def _percent(effect: float | None) -> str:
    return "over 100 %" if effect is None else f"{effect:.2g} %"


class HostReference(Struct, frozen=True):
    """One host, as ledgers know it."""

    identity: str
    """32 hexadecimal digits that the host drew by chance when it was first used."""
    name: str
    """What its user calls it: ``--host``, else the name of the machine."""
