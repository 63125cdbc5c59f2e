"""A host: disturbances of its measurements, and its certificate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Severity = Literal["disturbs", "weakens", "lacks"]
"""Severity of a disturbance. ``disturbs``: another process slows trials now. ``weakens``: a setting
adds noise, or restricts the measurements. ``lacks``: the host lacks a program or a feature."""
SEVERITIES: tuple[Severity, ...] = ("disturbs", "weakens", "lacks")
"""All severities, the worst first."""


class Disturbance(Struct, frozen=True):
    """One disturbance of measurements, with a hint that says how to end it (rule 8)."""

    code: str
    severity: Severity
    summary: str
    hint: str


class Examination(Struct, frozen=True):
    """Result of an examination of a host."""

    disturbances: tuple[Disturbance, ...]
    """Disturbances, the worst first."""
    checked: tuple[str, ...]
    """Names of the checks that gave an answer."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """Reason for each check that could not give an answer, by name of the check (rule 7)."""


CERTIFICATE_STUDY = "certificate"
"""Name of the study whose campaigns give a certificate."""


class Certificate(Struct, frozen=True):
    """How often a host reports a difference of equal programs, and which effects it can detect.

    Effects and spreads are in percent.
    """

    made_at: float
    """Time of the certificate, in seconds since the epoch."""
    boot_id: str | None
    kernel: str | None
    cpu_model: str | None
    equipoise: str | None
    """Version of Equipoise."""
    alpha: float
    campaigns: int
    """Number of campaigns of a program against itself, judged after every block."""
    blocks: int
    """Maximum number of blocks of each of these campaigns."""
    called_different: int
    """Number of these campaigns that reported a difference: false alarms."""
    injected: float
    """Percentage of work that was added to a second program, in the injected campaigns."""
    injected_campaigns: int
    """Number of campaigns of the program against the second program."""
    injected_found: int
    """Number of injected campaigns that detected the added work."""
    injected_blocks: float
    """Median number of blocks to the verdict, over the campaigns that detected the added work."""
    trial_s: float
    """Median seconds of a trial."""
    spread: float
    """Robust standard deviation (1.4826·MAD) of the log ratios of blocks."""
    smallest_in_a_minute: float | None
    """Smallest effect that nine of ten campaigns of one minute detect; ``None`` if over 100 %."""
    smallest_in_ten_minutes: float | None
    """Smallest effect that nine of ten campaigns of ten minutes detect; ``None`` if over 100 %."""
    runs: tuple[str, ...]
    """Ids of the campaigns in the ledger."""

    def summary(self) -> str:
        """Return the certificate in one line."""
        return (
            f"{self.called_different} of {self.campaigns} campaigns of a program against itself "
            f"reported a difference (alpha {self.alpha:g}); {self.injected_found} of "
            f"{self.injected_campaigns} detected {self.injected:g} % more work; smallest detected "
            f"effect: {_percent(self.smallest_in_a_minute)} in a minute, "
            f"{_percent(self.smallest_in_ten_minutes)} in ten minutes"
        )


def _percent(effect: float | None) -> str:
    return "over 100 %" if effect is None else f"{effect:.2g} %"


class HostReference(Struct, frozen=True):
    """Identity of a host in ledgers."""

    identity: str
    """32 random hexadecimal digits, drawn when the host was first used."""
    name: str
    """Name of the host: the value of ``--host`` or, by default, the name of the machine."""
