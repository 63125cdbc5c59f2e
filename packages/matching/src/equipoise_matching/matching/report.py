"""What a match, a balance and a search for weights have to say: answer, tables, facts, method."""

from __future__ import annotations

MOST_STRATA = 50
"""Number of strata that a reader is shown; a page of all may be too large to send."""


_BALANCE_COLUMNS = (
    ("treated", "mean_treated"),
    ("control", "mean_control"),
    ("sdiff %", "sdiff"),
    ("var ratio", "variance_ratio"),
    ("t p", "t_p_value"),
    ("KS p", "ks_p"),
    ("eCDF max", "ecdf_max"),
    ("QQ mean", "qq_mean"),
)


def balance_table(balance: Balance) -> Table:
    """Build the table of balance: a row for each variable before matching, and one after it."""
    rows = []
    for row in balance.rows():
        boot = row["ks_boot_p_value"]
        row["ks_p"] = row["ks_p_value"] if boot is None else boot
        values = (_number_text(row[key]) for _, key in _BALANCE_COLUMNS)
        rows.append((str(row["variable"]), str(row["when"]), *values))
    columns = (
        Column("covariate", "name"),
        Column("matching"),
        *(Column(heading, "number") for heading, _ in _BALANCE_COLUMNS),
    )
    return Table(columns, tuple(rows), title="Balance")


def _strata_table(result: MatchResult) -> Iterator[Table]:
    if not isinstance(result, MatchByResult):
        return
    largest = sorted(result.strata, key=lambda stratum: -stratum.n)[:MOST_STRATA]
    more = len(result.strata) - len(largest)
    rows = (
        {
            f"{', '.join(result.by)}:name": "/".join(str(value) for value in stratum.values),
            "rows:number": f"{stratum.n:,}",
            "treated:number": f"{stratum.n_treated:,}",
            "matched:number": "skipped" if stratum.skipped else f"{stratum.n_weighted:.6g}",
            "dropped:number": f"{stratum.n_dropped:,}",
            "estimate:number": UNKNOWN if stratum.estimate is None else amount(stratum.estimate),
        }
        for stratum in largest
    )
    yield Table(
        *headed(rows),
        title="Strata",
        notes=(f"The largest of them; --json has the {more:,} others too.",) if more else (),
        forms=WRITTEN,
    )


def _number_text(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
