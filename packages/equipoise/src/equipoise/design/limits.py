"""The limits of a campaign as numbers: their ranges, defaults and errors."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from equipoise.design.coin import MAX_SEED, fresh_seed
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Judgement, Measure, Stopping
from equipoise.shared.spelling import option

STUDY_BLOCKS = 1000
"""Default maximum number of blocks of a study that compares nothing."""
WHAT_VARIES_BLOCKS = 200
"""Default maximum number of blocks of `compare --what-varies`."""
ONE_COMMAND_LIMITS = Stopping(budget_s=10.0, blocks_before_budget=10)
"""Default limits of `compare` with one command: no verdict ends the campaign."""
MAX_BLOCKS = 1_000_000_000


class NumberRange(Struct, frozen=True):
    """Range of the numbers that an option accepts."""

    low: float
    high: float = math.inf
    is_whole: bool = False
    excludes_low: bool = False
    """Whether ``low`` itself is out of range."""

    def read(self, value: Any, user_text: str) -> Any:
        """Return a number or a text as an ``int`` or ``float`` within this range.

        ``user_text`` is for messages, such as ``--blocks 0`` or ``blocks=0``.

        Raise `UnusableInput` if the value is not a number, or out of range.
        """
        try:
            number = self._number(value)
        except (TypeError, ValueError, OverflowError):
            kind = "whole number" if self.is_whole else "number"
            raise UnusableInput(f"{user_text} is not a {kind}", hint=self._range_hint()) from None
        is_too_low = number <= self.low if self.excludes_low else number < self.low
        # `not <=` is also true for NaN.
        if is_too_low or not number <= self.high or number == math.inf:
            raise UnusableInput(f"{user_text} is out of range", hint=self._range_hint())
        return number

    def _number(self, value: Any) -> float:
        if isinstance(value, str):
            return int(value) if self.is_whole else float(value)
        return operator.index(value) if self.is_whole else float(value)

    def _range_hint(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        low, high = _number_text(self.low), _number_text(self.high)
        if self.high == math.inf:
            return f"give {kind} above {low}" if self.excludes_low else f"give {kind} from {low} up"
        if self.excludes_low:
            return f"give {kind} above {low} and at most {high}"
        return f"give {kind} from {low} to {high}"


RANGES = {
    "blocks": NumberRange(1, MAX_BLOCKS, is_whole=True),
    "min_blocks": NumberRange(1, MAX_BLOCKS, is_whole=True),
    "min_seconds": NumberRange(0),
    "budget": NumberRange(0, excludes_low=True),
    "precision": NumberRange(0, excludes_low=True),
    "tail": NumberRange(0.001, 50),
    "alpha": NumberRange(0, 0.5, excludes_low=True),
    "min_effect": NumberRange(0, 1000),
    "timeout": NumberRange(0, excludes_low=True),
    "host_timeout": NumberRange(0, excludes_low=True),
    "warmup": NumberRange(0, 1000, is_whole=True),
    "seed": NumberRange(0, MAX_SEED, is_whole=True),
    "every": NumberRange(1, MAX_BLOCKS, is_whole=True),
    "layouts": NumberRange(2, 1000, is_whole=True),
}
"""Range of each number, by the name of its option in Python."""


def check_number(name: str, value: Any) -> Any:
    """Check an option of the Python interface and return its number, or ``None`` for ``None``.

    Raise `UnusableInput` if the value is not a number, or out of range.
    """
    return None if value is None else RANGES[name].read(value, f"{name}={value}")


class CampaignLimits(Struct, frozen=True):
    """Limits of a campaign from the user; ``None`` means the default.

    Raise `UnusableInput` if a number is out of range.
    """

    blocks: int | None = None
    """Maximum number of blocks."""
    min_blocks: int | None = None
    """Minimum number of blocks before a verdict, even if they exceed the budget."""
    min_seconds: float | None = None
    """Minimum seconds of measured blocks before a verdict."""
    budget: float | None = None
    """Maximum seconds of the campaign."""
    precision: float | None = None
    """Width of the interval with which the campaign ends, in percent."""
    tail: float | None = None
    """Percentage P: the campaign has enough runs to see slow runs that are P % of all runs."""
    alpha: float | None = None
    """Maximum probability of a false difference in a campaign."""
    min_effect: float | None = None
    """Smallest effect that matters, in percent."""
    timeout: float | None = None
    """Maximum seconds of one trial."""
    warmup: int | None = None
    """Number of trials of each condition before the first block."""
    seed: int | None = None
    """Seed of every draw."""
    patient: bool | None = None
    """Whether the campaign may exceed the budget if a verdict is near."""

    def __post_init__(self) -> None:
        """Check every number."""
        for name in RANGES.keys() & {*self.__struct_fields__}:
            check_number(name, getattr(self, name))

    def filled_from(self, defaults: CampaignLimits) -> CampaignLimits:
        """Return these limits, with missing numbers from ``defaults``."""
        return _replace_known(defaults, asdict(self))

    def seed_or_random(self) -> int:
        """Return the seed, or a random seed if the user gave none."""
        return fresh_seed() if self.seed is None else self.seed

    @property
    def timeout_s(self) -> float:
        """Maximum seconds of a trial."""
        return self.measure(Measure(working_folder="")).timeout_s

    def measure(self, default: Measure) -> Measure:
        """Return the settings for running trials, with missing numbers from ``default``."""
        return _replace_known(default, {"timeout_s": self.timeout, "warmup": self.warmup})

    def stopping(self, default: Stopping | None = None) -> Stopping:
        """Return the rules by which the campaign stops, with missing numbers from ``default``.

        Raise `UnusableInput` if a minimum of the user is above the maximum.
        """
        user_values = {
            "blocks": self.blocks,
            "min_blocks": self.min_blocks,
            "min_blocks_explicit": None if self.min_blocks is None else True,
            "min_seconds": self.min_seconds,
            "budget_s": self.budget,
            "blocks_before_budget": None if self.budget is None else 0,
            "patient": self.patient,
            "precision": self.precision,
            "tail": self.tail,
        }
        stopping = _replace_known(default or Stopping(), user_values)
        maximum = stopping.blocks
        if maximum is not None and stopping.min_blocks_explicit and stopping.min_blocks > maximum:
            raise UnusableInput(
                f"the minimum of {stopping.min_blocks} blocks is above the maximum of {maximum}",
                hint=f"lower {option('min_blocks')} or raise {option('blocks')}",
            )
        if self.min_seconds is not None and self.min_seconds > stopping.budget_s:
            raise UnusableInput(
                f"the minimum of {self.min_seconds:g} s is above the budget of "
                f"{stopping.budget_s:g} s",
                hint=f"lower {option('min_seconds')} or raise {option('budget')}",
            )
        return stopping

    def judgement(
        self, metrics: Sequence[str] = (PRIMARY_METRIC,), default: Judgement | None = None
    ) -> Judgement:
        """Return the settings for verdicts; the first metric is the primary metric."""
        primary, *other_metrics = metrics
        judgement = _replace_known(
            default or Judgement(), {"alpha": self.alpha, "min_effect": self.min_effect}
        )
        return replace(judgement, primary_metric=primary, other_metrics=tuple(other_metrics))


def fields_of(struct_type: type[Struct], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function or command that are also fields of ``struct_type``."""
    return {name: arguments[name] for name in struct_type.__struct_fields__ if name in arguments}


def limits_of(arguments: Mapping[str, Any]) -> CampaignLimits:
    """Return the limits among the arguments of a function or the options of a command."""
    return CampaignLimits(**fields_of(CampaignLimits, arguments))


StructT = TypeVar("StructT", bound=Struct)


def _replace_known(defaults: StructT, values: Mapping[str, object]) -> StructT:
    """Return the defaults with the values that are not ``None``."""
    known: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    return replace(defaults, **known)


def metric_names(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Return the distinct names of metrics; a string is split at commas.

    Raise `UnusableInput` if there is no name, or a name is empty.
    """
    names = metrics.split(",") if isinstance(metrics, str) else metrics
    stripped_names = tuple(dict.fromkeys(name.strip() for name in names))
    if not stripped_names or not all(stripped_names):
        raise UnusableInput(
            "a name in the list of metrics is empty" if stripped_names else "no metric is named",
            hint=f"give names of metrics, such as {option('metrics', ['wall_s', 'max_rss_bytes'])}",
        )
    return stripped_names


def _number_text(number: float) -> str:
    return str(int(number)) if number == int(min(number, 2**63)) else f"{number:g}"
