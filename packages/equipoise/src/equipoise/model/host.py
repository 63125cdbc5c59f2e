"""A host: disturbances of its measurements, and its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

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

    Some campaigns compare a program with itself. The *injected* campaigns compare it with a program
    that does more work. Effects and spreads are in percent.
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
    false_alarms: int
    """Number of these campaigns that reported a difference: false alarms."""
    injected_percent: float
    """Additional work in the injected campaigns, in percent."""
    injected_campaigns: int
    """Number of injected campaigns."""
    detected_campaigns: int
    """Number of injected campaigns that detected the additional work."""
    blocks_to_detection: float
    """Median number of blocks to the verdict, over the ``detected_campaigns``."""
    trial_s: float
    """Median seconds of a trial."""
    ratio_spread: float
    """Robust standard deviation (1.4826·MAD) of the log ratios of blocks."""
    smallest_effect_in_a_minute: float | None
    """Smallest effect that nine of ten campaigns of one minute detect; ``None`` if over 100 %."""
    smallest_effect_in_ten_minutes: float | None
    """Smallest effect that nine of ten campaigns of ten minutes detect; ``None`` if over 100 %."""
    runs: tuple[str, ...]
    """Ids of the campaigns in the ledger."""

    def summary(self) -> str:
        """Return the certificate in one line."""
        return (
            f"{self.false_alarms} of {self.campaigns} campaigns of a program against itself "
            f"reported a difference (alpha {self.alpha:g}); {self.detected_campaigns} of "
            f"{self.injected_campaigns} detected {self.injected_percent:g} % more work; smallest "
            f"detected effect: {_percent(self.smallest_effect_in_a_minute)} in a minute, "
            f"{_percent(self.smallest_effect_in_ten_minutes)} in ten minutes"
        )


def _percent(effect: float | None) -> str:
    return "over 100 %" if effect is None else f"{effect:.2g} %"


class HostReference(Struct, frozen=True):
    """Identity of a host in ledgers."""

    identity: str
    """32 random hexadecimal digits, drawn when the host was first used."""
    name: str
    """Name of the host: the value of ``--host`` or, by default, the name of the machine."""


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of hosts. Equal names get a number: ``ada (1)``, ``ada (2)``."""
    return tuple(
        f"{name} ({names[: index + 1].count(name)})" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    )


HOST_FACTS = (
    "kernel",
    "cpu_model",
    "hypervisor",
    "memory_bytes",
    "governor",
    "cpus",
    "machine",
    "boot_id",
    "equipoise",
)
"""Facts of a host's environment in the document and in exported trials."""


def shared_facts(environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts that are equal in all known environments; an unknown one is empty."""
    known_environments = list(filter(None, environments))
    if not known_environments:
        return {}
    first_environment, *other_environments = known_environments
    return {
        key: value
        for key, value in first_environment.items()
        if all(key in other and other[key] == value for other in other_environments)
    }
