"""What ``python -m benchmarks.fleet`` prints, and the claims that it checks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from benchmarks.bisect.tables import Table
from benchmarks.fleet.alarms import evidence, forms
from benchmarks.fleet.coverage import Covered, covered, predicted, widths_alone
from benchmarks.fleet.fleets import ALPHA, KINDS, SD, Scenario
from benchmarks.fleet.leaving import Left, by_chance, joined, on_bad_news, slow_ones, withdrawn
from benchmarks.fleet.shares import rounds_to_difference
from equipoise.stats.hosts import SHARE_OF_HOSTS, share_of_roster
from packages.equipoise.tests.stats.simulated import at_least, at_most

Result = TypeVar("Result")
SIZES = (3, 8, 50)
MANY = 50
SPREADS = (0.0, 0.02, 0.05)
MIN_SAVED = 0.15
"""Share of the rounds that the shipped shares of alpha are claimed to save."""


class RunAll(Protocol):
    """Runs a simulation for the seeds of a table, a fraction of them where it costs much."""

    def __call__(self, simulate: Callable[[int], Result], /, part: float = 1.0) -> list[Result]:
        """Return the results, in the order of the seeds."""


def percent(hits: Sequence[bool]) -> str:
    """Return a share in per cent with its Monte Carlo standard error."""
    share = sum(hits) / len(hits)
    error = math.sqrt(max(share * (1.0 - share), 0.25 / len(hits)) / len(hits))
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def _part(hosts: int) -> float:
    return 0.2 if hosts == MANY else 1.0


def coverage_table(run_all: RunAll) -> Table:
    """Return coverage and widths by hosts, spread, law and numbers of blocks."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for hosts in SIZES:
        for spread in SPREADS:
            for effects in ("normal", "t3") if spread else ("normal",):
                for unequal in (False, True):
                    scenario = Scenario(hosts, spread, effects, unequal)
                    fleets = run_all(partial(covered, scenario), part=_part(hosts))
                    name = f"{hosts} hosts, spread {100 * spread:g} %, {effects}"
                    blocks = "20 to 140" if unequal else "80"
                    law = effects if spread else "all equal"
                    rows.append(
                        (
                            *(str(hosts), f"{100 * spread:g} %", law, blocks),
                            *_of_means(fleets),
                            percent([one.covers_new for one in fleets]),
                            percent([one.covers_median for one in fleets]),
                        )
                    )
                    broken += broken_claims(f"{name}, {blocks} blocks", hosts, fleets)
    return Table(
        "Intervals by hosts, spread between hosts and blocks of each (trials: sd 2 %)",
        (
            *("hosts", "spread", "hosts' law", "blocks"),
            *("(a) ever misses, %", "(b) ever misses, %", "both, %", "wrong verdict, %"),
            *("width (a), %", "(b)", "both"),
            *("new host covered, %", "median covered, %"),
        ),
        rows,
        broken,
    )


def _of_means(fleets: Sequence[Covered]) -> tuple[str, ...]:
    def median(name: str) -> str:
        return f"{statistics.median(getattr(one, name) for one in fleets):.2f}"

    return (
        percent([one.misses_by_hosts for one in fleets]),
        percent([one.misses_by_rounds for one in fleets]),
        percent([one.misses for one in fleets]),
        percent([one.wrong_verdict for one in fleets]),
        median("width_by_hosts"),
        median("width_by_rounds"),
        median("width"),
    )


def broken_claims(name: str, hosts: int, fleets: Sequence[Covered]) -> list[str]:
    """Return the claims about the fleets of a cell that fail by more than chance."""
    count = len(fleets)
    checks = {
        "(a) misses": sum(one.misses_by_hosts for one in fleets)
        > at_most(count, ALPHA * SHARE_OF_HOSTS),
        "(b) misses": sum(one.misses_by_rounds for one in fleets)
        > at_most(count, ALPHA * share_of_roster(1)),
        "the mean misses": sum(one.misses for one in fleets) > at_most(count, ALPHA),
        "a new host is missed": sum(one.covers_new for one in fleets)
        < at_least(count, (hosts - 1) / (hosts + 1) - ALPHA),
        "the median is missed": sum(one.covers_median for one in fleets)
        < at_least(count, 1.0 - 2.0 ** (1 - hosts) - ALPHA),
    }
    return [f"{name}: {claim} too often" for claim, is_broken in checks.items() if is_broken]


def prediction_table(run_all: RunAll) -> Table:
    """Return the coverage of the prediction that rests on normal hosts."""
    rows, broken = [], []
    for hosts in SIZES:
        for spread in SPREADS:
            for effects in ("normal", "t3") if spread else ("normal",):
                scenario = Scenario(hosts, spread, effects)
                fleets = run_all(partial(predicted, scenario), part=_part(hosts))
                covers = [one.covers for one in fleets]
                anew = [one.covers_at_looks for one in fleets]
                reach = statistics.median(one.reach for one in fleets)
                law = effects if spread else "all equal"
                rows.append(
                    (
                        *(str(hosts), f"{100 * spread:g} %", law),
                        *(percent(covers), f"± {reach:.2f}", percent(anew)),
                    )
                )
                if effects == "normal" and sum(covers) < at_least(len(fleets), 1.0 - ALPHA):
                    broken.append(f"{hosts} hosts, spread {spread:g}: a normal host is missed")
    return Table(
        "Student's prediction of a new host, from the first 7 blocks of each (trials: sd 2 %)",
        (
            *("hosts", "spread", "hosts' law", "covers, %", "median reach, %"),
            "made anew at each of 4 looks: always covers, %",
        ),
        rows,
        broken,
    )


def noise_table(run_all: RunAll) -> Table:
    """Return the misses of the mean's interval under each kind of noise."""
    rows, broken = [], []
    for noise in KINDS:
        if noise != "normal":
            fleets = run_all(partial(covered, Scenario(8, 0.02, noise=noise)), part=0.5)
            rows.append((noise, *_of_means(fleets)))
            if sum(one.misses for one in fleets) > at_most(len(fleets), ALPHA):
                broken.append(f"8 hosts, {noise}: the mean misses too often")
    return Table(
        "Eight hosts with a spread of 2 %, 80 blocks each, by the noise of their trials",
        (
            *("noise", "(a) ever misses, %", "(b) ever misses, %", "both, %", "wrong verdict, %"),
            *("width (a), %", "(b)", "both"),
        ),
        rows,
        broken,
    )


def leaving_table(run_all: RunAll) -> Table:
    """Return what holds where hosts leave."""
    scenarios: dict[str, Callable[[int], Left]] = {
        "by chance, 1 in 80 at each block; spread 2 %": by_chance,
        "those slower by 1.5 %, after 40 blocks; spread 3 %": partial(slow_ones, 40),
        "those slower by 1.5 %, after 15 blocks; spread 3 %": partial(slow_ones, 15),
        "those slower by 1.5 %, after 5 blocks; spread 3 %": partial(slow_ones, 5),
        "those that look slow to themselves; no effect": on_bad_news,
    }
    rows, broken = [], []
    for name, simulate in scenarios.items():
        fleets = run_all(simulate)
        rows.append(
            (
                name,
                f"{statistics.fmean(one.left for one in fleets):.1f}",
                f"{statistics.fmean(one.shift for one in fleets):+.2f}",
                percent([one.asked_is_bounded for one in fleets]),
                percent([one.asked_misses for one in fleets]),
                percent([one.stayed_misses for one in fleets]),
                percent([one.stayed_misses_asked for one in fleets]),
                percent([one.student_misses_asked for one in fleets]),
            )
        )
        for who in ("asked_misses", "stayed_misses"):
            if sum(getattr(one, who) for one in fleets) > at_most(len(fleets), ALPHA):
                broken.append(f"{name}: {who} too often")
    return Table(
        "Eight hosts of which some leave; the others run 80 blocks",
        (
            *("who leaves", "hosts that left", "mean of stayed less asked, %"),
            *("asked: has an interval, %", "asked: ever misses, %", "stayed: ever misses, %"),
            *("stayed, read as asked: misses, %", "Student over the stayed, read as asked, %"),
        ),
        rows,
        broken,
    )


def roster_table(run_all: RunAll) -> Table:
    """Return what holds where hosts join as they come, and where one is withdrawn on purpose."""
    fleets, gone = run_all(joined), run_all(withdrawn)
    bounded = [one.width for one in fleets if one.is_bounded]
    ever = [one.ever_misses for one in fleets]
    broken = []
    if sum(ever) > at_most(len(fleets), ALPHA):
        broken.append("hosts that join: the mean misses too often")
    if sum(one.after_known for one in gone) > at_most(len(gone), ALPHA * share_of_roster(2)):
        broken.append("a host withdrawn on purpose: the next roster misses too often")
    rows = [
        ("hosts join, at none of 2, 3, … 8 fixed: the mean ever misses, %", percent(ever)),
        ("the same: all eight have an interval, %", percent([one.is_bounded for one in fleets])),
        ("the same: its width, %", f"{statistics.median(bounded):.2f}"),
        (
            "a straggler is withdrawn where it suits: next roster from the round that broke, %",
            percent([one.aligned for one in gone]),
        ),
        (
            f"the same, from after the known blocks (at most {100 * ALPHA / 12:.1f} is claimed), %",
            percent([one.after_known for one in gone]),
        ),
    ]
    return Table("Hosts that come, and hosts that are withdrawn", ("", ""), rows, broken)


def alarms_table(run_all: RunAll) -> Table:
    """Return false alarms and power of "no asked host differs" and of "this host is otherwise"."""
    fleets: dict[str, tuple[int, tuple[float, ...], str]] = {
        "3 hosts, no effect": (3, (), "normal"),
        "8 hosts, no effect": (8, (), "normal"),
        "50 hosts, no effect": (50, (), "normal"),
        "8 hosts, no effect, drift of 1 % per run": (8, (), "drift of 1 % per run"),
        "8 hosts, no effect, t2": (8, (), "t2"),
        "4 hosts, +3, −3, +3, −3 %": (4, (0.03, -0.03, 0.03, -0.03), "normal"),
        "3 hosts, one +2 %": (3, (0.02,), "normal"),
        "3 hosts, one +3 %": (3, (0.03,), "normal"),
        "3 hosts, one +5 %": (3, (0.05,), "normal"),
        "8 hosts, one +2 %": (8, (0.02,), "normal"),
        "8 hosts, one +3 %": (8, (0.03,), "normal"),
        "50 hosts, one +3 %": (50, (0.03,), "normal"),
    }
    rows, broken = [], []
    for name, (hosts, shares, noise) in fleets.items():
        result = run_all(partial(evidence, hosts, shares, noise), part=0.5 * _part(hosts))
        wrong = [one.wrongly_otherwise for one in result]
        power = [one.rightly_otherwise / max(1, len(shares)) for one in result]
        rows.append(
            (
                name,
                percent([one.differs for one in result]),
                percent([one.mean_excludes_0 for one in result]),
                percent(wrong),
                f"{100 * statistics.fmean(power):.0f}" if shares else "",
            )
        )
        limit = at_most(len(result), ALPHA)
        if sum(wrong) > limit:
            broken.append(f"{name}: a host is wrongly otherwise too often")
        if not any(shares):
            if sum(one.differs for one in result) > limit:
                broken.append(f"{name}: a host is wrongly said to differ too often")
            if sum(one.mean_excludes_0 for one in result) > limit:
                broken.append(f"{name}: the mean wrongly excludes 0 too often")
    return Table(
        "Alarms at every look, 80 blocks on each host",
        (
            *(
                "fleet",
                "“no asked host differs” rejected, %",
                "the mean's interval leaves out 0, %",
            ),
            *("a host wrongly otherwise, %", "those that differ called so, %"),
        ),
        rows,
        broken,
    )


def forms_table(run_all: RunAll) -> Table:
    """Return the power of the two forms of the e-value against "no asked host differs"."""
    fleets: dict[str, tuple[int, tuple[float, ...]]] = {
        "8 hosts, no effect": (8, ()),
        "4 hosts, +3, −3, +3, −3 %": (4, (0.03, -0.03, 0.03, -0.03)),
        "8 hosts, +1, −1, … %": (8, (0.01, -0.01) * 4),
        "3 hosts, all +0.5 %": (3, (0.005,) * 3),
        "8 hosts, all +0.5 %": (8, (0.005,) * 8),
        "50 hosts, all +0.5 %": (50, (0.005,) * 50),
        "3 hosts, one +2 %": (3, (0.02,)),
        "8 hosts, one +2 %": (8, (0.02,)),
        "50 hosts, one +2 %": (50, (0.02,)),
    }
    rows = []
    for name, (hosts, shares) in fleets.items():
        result = run_all(partial(forms, hosts, shares))
        by_mean, by_product = [one.by_mean for one in result], [one.by_product for one in result]
        rows.append((name, percent(by_mean), percent(by_product)))
    return Table(
        "The two forms of the evidence, rejected at any block, 80 blocks on each host",
        ("fleet", "mean of the e-values, %", "½∏E⁺ + ½∏E⁻, %"),
        rows,
        (),
    )


def widths_table(run_all: RunAll) -> Table:
    """Return the widths of (a) and (b), each at alpha by itself, as the reference has them."""
    rows = []
    for hosts, reference in ((3, "2.1 and 1.1"), (8, "2.4 and 0.6")):
        result = run_all(partial(widths_alone, hosts, 80, SD), part=0.2)
        by_hosts = statistics.fmean(one.by_hosts for one in result)
        by_rounds = statistics.fmean(one.by_rounds for one in result)
        rows.append((str(hosts), f"{by_hosts:.2f} and {by_rounds:.2f}", reference))
    return Table(
        "Widths of (a) and (b) after 80 blocks, each with all of alpha, %",
        ("hosts", "here", "alone"),
        rows,
        (),
    )


def shares_table(run_all: RunAll) -> Table:
    """Return the rounds that the shipped shares of alpha save."""
    rows, broken = [], []
    for hosts, effect in ((3, 0.01), (8, 0.01), (8, 0.02)):
        fleets = run_all(partial(rounds_to_difference, hosts, effect), part=0.25)
        saved = np.array([1.0 - one.shipped / one.even for one in fleets])
        error = float(saved.std(ddof=1)) / math.sqrt(len(saved))
        rows.append(
            (
                f"{hosts} hosts, all {100.0 * effect:+.0f} %",
                f"{statistics.median(one.even for one in fleets):.0f}",
                f"{statistics.median(one.shipped for one in fleets):.0f}",
                f"{100.0 * saved.mean():.1f} ± {100.0 * error:.1f}",
            )
        )
        if saved.mean() + 2.0 * error < MIN_SAVED:
            broken.append(f"rounds saved by the shares of alpha, {rows[-1][0]}")
    return Table(
        "Rounds until the interval of the mean leaves out 0, by the shares of alpha",
        ("fleet", "½ and ¼, median", "shipped, median", "saved, %"),
        rows,
        broken,
    )


TABLES: dict[str, Callable[[RunAll], Table]] = {
    "widths": widths_table,
    "shares": shares_table,
    "coverage": coverage_table,
    "prediction": prediction_table,
    "noise": noise_table,
    "leaving": leaving_table,
    "rosters": roster_table,
    "alarms": alarms_table,
    "forms": forms_table,
}
