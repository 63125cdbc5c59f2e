"""How often something happened, and what chance alone allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scipy.stats import beta, binom

LEVEL = 0.05
CERTAIN = 0.999


@dataclass(frozen=True, slots=True)
class Share:
    """It happened in ``count`` of ``total`` campaigns."""

    count: int
    total: int

    @classmethod
    def of(cls, happened: Iterable[bool]) -> Share:
        """Counts."""
        seen = list(happened)
        return cls(sum(seen), len(seen))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Clopper and Pearson (1934), as shares."""
        missing = self.total - self.count
        low = beta.ppf(LEVEL / 2.0, self.count, missing + 1) if self.count else 0.0
        high = beta.ppf(1.0 - LEVEL / 2.0, self.count + 1, missing) if missing else 1.0
        return (float(low), float(high))

    def exceeds(self, rate: float) -> bool:
        """Whether so many would come in under 1 of 1000 benchmarks if the rate were ``rate``."""
        return self.count > most_by_chance(self.total, rate)

    def beyond(self, rate: float, what: str) -> str:
        """Return the sentence on a claim that ``exceeds`` shows to be broken."""
        return (
            f"{what} in {self.count} of {self.total} campaigns, more than {rate:.0%} and chance "
            "allow"
        )


def most_by_chance(total: int, rate: float) -> int:
    """The one-sided 99.9 % binomial bound."""
    return int(binom.ppf(CERTAIN, total, rate))
