"""What the page says of the control: the baseline against itself, and the noise floor."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.result import ControlResult
from equipoise.report.units import percent_change
from equipoise.report.verdict_view import ratio_interval


@dataclass(frozen=True, slots=True)
class ControlView:
    """The second run of the baseline."""

    words: str
    facts: tuple[tuple[str, str], ...]


def control_view(control: ControlResult) -> ControlView:
    """Put the control into words, with the noise floor that it shows."""
    one = control.comparison
    change = "not known yet" if one.ratio is None else percent_change(one.ratio)
    return ControlView(
        words=control.summary[:1].upper() + control.summary[1:],
        facts=(
            (f"{one.candidate} against {one.baseline}", change),
            (f"{100 * (1 - one.level):g} % interval", ratio_interval(one.ratio_ci)),
            ("Noise floor", _noise_floor(control)),
            ("Trials", str(control.condition.trials)),
        ),
    )


def _noise_floor(control: ControlResult) -> str:
    floor = control.noise_floor
    if floor is None:
        return "unknown: the interval is still unlimited"
    return f"{percent_change(floor).removeprefix('+')}: less than that may be noise here"
