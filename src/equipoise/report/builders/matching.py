"""A match, the balance of its covariates, and a search for weights as documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.matching.match import MANY_WITHOUT_NEIGHBORS, MatchResult
from equipoise.matching.stratified import MatchByResult
from equipoise.matching.units import power_of_two
from equipoise.matching.univariate import Moments, welch_interval
from equipoise.model.quantities import amount, listed
from equipoise.model.record import CampaignWarning
from equipoise.model.spelling import option
from equipoise.report.document import (
    SCREEN,
    UNKNOWN,
    WRITTEN,
    Answer,
    Claim,
    Column,
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Part,
    Section,
    Table,
    Warnings,
    computation_parts,
    headed,
)
from equipoise.report.units import signed_amount

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.matching.balance import Balance, SmallestP
    from equipoise.matching.gen_match import GenMatchResult
    from equipoise.matching.univariate import UnivariateBalance

MOST_STRATA = 50
"""Number of strata that a reader is shown; a page of all may be too large to send."""
MATTERS_PERCENT = 10.0
"""Percent of a standard deviation: a common threshold for what matters (Austin 2009)."""
MOST_FIGURES = 3
"""Number of covariates with figures of their own: those least alike in distribution."""
_WORDING = {
    "ATT": ("treated", "the treated units", "treated unit"),
    "ATC": ("untreated", "the untreated units", "control"),
    "ATE": ("units", "all units", "unit"),
}
"""For each estimand: the units that seek a match, what the effect averages over, and one unit."""
_METRICS = {
    "inverse_variance": "each scaled by its standard deviation",
    "mahalanobis": "by their Mahalanobis distance",
}
MOST_WORSENED = 4
"""Covariates with a worse balance that a warning names at most."""
MOST_NAMED = 12
"""Covariates that the sentence on the method names at most."""
_COMPARABLE = "comparable units"
_ALL_ROWS = "all rows as they are"
_LIMITS = (
    "Matching makes units comparable in what was measured. It cannot balance what nobody measured. "
    "docs/matching.md and docs/genmatch.md have each formula and its source."
)
_SEARCH_WEIGHTS = (
    "The search itself counts each row in its Kolmogorov-Smirnov tests as often as it is in a "
    "pair, whatever the pair's weight (docs/genmatch.md). The balance weighs the pairs, so its "
    "smallest p-value may be another than that of the search."
)
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


class MatchQuestion(Struct, frozen=True):
    """What was asked of a table."""

    source: str
    treatment: str
    outcome: str | None
    method: tuple[str, ...]
    """How units were matched, a sentence each."""
    command: str
    """Command that asks it again; empty without one."""
    notes: tuple[str, ...] = ()
    """What became of rows before matching, a sentence each."""


class Difference(Struct, frozen=True):
    """A difference in the unit of the outcome, with its 95 % interval where there is one."""

    value: float
    interval: tuple[float, float] | None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves "no difference" out."""
        return self.interval is not None and not self.interval[0] <= 0.0 <= self.interval[1]


def match_document(
    result: MatchResult, balance: Balance, naive: Difference | None, question: MatchQuestion
) -> Document:
    """Build the document of a match: its effect, or without an outcome how alike its pairs are."""
    smallest = smallest_p_sentence(balance)
    return _document(
        "matched",
        question,
        balance,
        result,
        naive,
        sentences=(balance_sentence(balance), smallest),
        facts=result.facts(),
        tables=(*_strata_table(result), replace(balance_table(balance), notes=(smallest,))),
    )


def balance_document(
    balance: Balance, result: MatchResult | None, question: MatchQuestion
) -> Document:
    """Build the document of the balance of covariates."""
    return _document(
        "balance",
        question,
        balance,
        result,
        sentences=(balance_sentence(balance), smallest_p_sentence(balance)),
        facts=() if result is None else result.facts(),
        tables=(balance_table(balance),),
    )


def search_document(
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
) -> Document:
    """Build the document of a search for weights, with the effect by them if there is an outcome.

    ``result`` is the match by the weights; ``None`` without an outcome.
    """
    facts = [] if result is None else result.facts()
    weights = zip(search.names, search.weights.tolist(), strict=True)
    rows = ({"covariate:name": name, "weight:number": f"{weight:.6g}"} for name, weight in weights)
    weights_table = Table(*headed(rows), title="Weights of the standardised covariates")
    return _document(
        "genetic search",
        question,
        balance,
        search.matches if result is None else result,
        naive,
        sentences=(smallest_p_sentence(balance), balance_sentence(balance)),
        facts=(*facts, *(fact for fact in search.facts() if fact not in facts)),
        tables=(weights_table, balance_table(balance)),
        search=search,
    )


def _document(
    badge: str,
    question: MatchQuestion,
    balance: Balance,
    matches: MatchResult | None,
    naive: Difference | None = None,
    *,
    sentences: tuple[str, str],
    facts: Sequence[tuple[str, str]],
    tables: Sequence[Table],
    search: GenMatchResult | None = None,
) -> Document:
    """Put the parts of every document on matching in their order.

    ``sentences`` are on the balance; without an effect the first of them is the answer.
    """
    effect = None if matches is None else matched_difference(matches)
    text, *remarks = sentences
    estimate, interval = "", ""
    if effect is not None and matches is not None:
        estimate = signed_amount(effect.value)
        interval = f"95 % interval {_signed_interval(effect.interval)}"
        text = effect_sentence(effect, question.outcome, question.treatment, matches.estimand)
        remarks = list(sentences)
    if naive is not None:
        remarks.insert(0, naive_sentence(naive))
    if matches is not None:
        remarks += [dropped_sentence(matches), effective_sentence(matches)]
    remarks += question.notes
    claim = Claim(
        badge=badge,
        tone=_tone(balance, effect),
        text=text,
        estimate=estimate,
        interval=interval,
        remarks=tuple(remarks),
    )

    def figures() -> Iterator[Figure]:
        yield from _effect_figures(effect, naive, question)
        yield from _balance_figures(balance, search)

    method = (
        *question.method,
        *_error_sentences(matches),
        _tests_sentence(balance),
        *([] if search is None else [_SEARCH_WEIGHTS]),
        _LIMITS,
    )
    warnings = tuple(match_warnings(matches, balance))
    rests_on = Facts((("Table", question.source), *facts))
    parts: tuple[Part, ...] = (
        Answer("", claims=(claim,), warnings=len(warnings)),
        Figures(figures),
        replace(rests_on, forms=SCREEN),
        *tables,
        *([Warnings(warnings)] if warnings else []),
        Section("What it rests on", (rests_on,), forms=WRITTEN),
        *computation_parts(method, question.command),
    )
    return Document(
        name=badge,
        title=f"{question.treatment} in {question.source}",
        parts=parts,
        numbers=(
            *_effect_numbers(effect, naive, question),
            *_balance_numbers(balance),
            *_weight_numbers(search),
        ),
        origin=Origin(f"{_asked(question, search)} From {question.source}", question.command),
    )


def _asked(question: MatchQuestion, search: GenMatchResult | None) -> str:
    if question.outcome is not None:
        return f"What is the effect of {question.treatment} on {question.outcome}?"
    if search is not None:
        return f"Which weights match the groups of {question.treatment} best?"
    return f"How alike are the groups of {question.treatment}?"


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


def naive_difference(
    outcome: NDArray[np.float64], treated: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> Difference:
    """Return the difference of the means of all rows, treated less untreated, by Welch."""
    unit = power_of_two(outcome)
    first, second = (
        Moments.of(outcome[arm] / unit, None if weights is None else weights[arm])
        for arm in (treated, ~treated)
    )
    ends = welch_interval(first, second)
    return Difference(
        unit * (first.mean - second.mean),
        None if ends is None else (unit * ends[0], unit * ends[1]),
    )


def matched_difference(result: MatchResult) -> Difference | None:
    """Return the effect with a normal interval; ``None`` where no outcome was given."""
    if result.estimate is None:
        return None
    return Difference(result.estimate, result.interval)


def effect_sentence(
    effect: Difference, outcome: str | None, treatment: str, estimand: str = "ATT"
) -> str:
    """Say whether there is an effect, and how large."""
    average = f"on average over {_WORDING[estimand][1]}"
    verb = "raises" if effect.value >= 0 else "lowers"
    changes = f"{treatment} {verb} {outcome} by {amount(abs(effect.value))}"
    if effect.interval is None:
        return f"{changes}, {average}; its interval is unknown."
    if not effect.excludes_zero:
        return (
            f"No effect of {treatment} on {outcome} can be shown (95 % interval "
            f"{_signed_interval(effect.interval)}), {average}."
        )
    near, far = sorted(abs(end) for end in effect.interval)
    return f"{changes} (95 % interval {amount(near)} to {amount(far)}), {average}."


def naive_sentence(naive: Difference) -> str:
    """Say what all rows, unmatched, would have said."""
    size = f"{amount(abs(naive.value))} {'higher' if naive.value >= 0 else 'lower'}"
    interval = "" if naive.interval is None else f" [{_signed_interval(naive.interval)}]"
    return f"Without matching, the treated rows are {size}{interval}."


def balance_sentence(balance: Balance) -> str:
    """Say which covariate differs most between the groups, before and after matching."""
    before = _worst(balance.variables, balance.before)
    if balance.after is None:
        return f"Without matching, {_worst_phrase(before)}."
    after = _worst(balance.variables, balance.after)
    earlier = "this is unknown" if before is None else f"{before[0]} did, {_by(before[1])}"
    return f"After matching {_worst_phrase(after)}; before, {earlier}."


def dropped_sentence(result: MatchResult) -> str:
    """Say how many units found no match."""
    units = _WORDING[result.estimand][0]
    untreated = result.n - result.n_treated
    counts = {"ATT": result.n_treated, "ATC": untreated, "ATE": result.n}
    total = counts[result.estimand]
    outside = result.rows - result.n
    support = f" {outside:,} rows lie outside the common support." if outside else ""
    if not result.n_dropped:
        return f"All {total:,} {units} found a match.{support}"
    return f"{result.n_dropped:,} of {total:,} {units} found no match and are left out.{support}"


def effective_sentence(result: MatchResult) -> str:
    """Say how many units the weights of the pairs leave in effect."""
    treated, controls = (f"{size:,.4g}" for size in result.effective_sizes)
    used = len(np.unique(result.treated_index)), len(np.unique(result.control_index))
    return (
        f"The pairs use {used[0]:,} treated units and {used[1]:,} controls; by their weights they "
        f"are worth {treated} and {controls} (effective sample size)."
    )


def smallest_p_sentence(balance: Balance) -> str:
    """Say the smallest p-value before and after matching."""
    before = _smallest_p(balance.smallest_before)
    if balance.smallest_after is None:
        return f"The smallest p-value of balance is {before}."
    after = _smallest_p(balance.smallest_after)
    return f"The smallest p-value of balance was {before} before matching and is {after} after it."


def method_sentences(options: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Say how units were matched on the covariates of these names, by the options of a match."""
    if options.get("unmatched"):
        yield "Nothing was matched: all rows are compared as they are."
        return
    nearest = "its nearest" if options["m"] == 1 else f"its {options['m']} nearest"
    covariates = ", ".join(names)
    if len(names) > MOST_NAMED:
        covariates = f"{len(names)} covariates ({', '.join(names[:MOST_NAMED])}, …)"
    yield (
        f"Each {_WORDING[options['estimand']][2]} is matched with {nearest} of the other arm in "
        f"{covariates}, {_distance(options)}. The search is exact, {_ties(options)}."
    )
    limits = list(_limits(options))
    if limits:
        yield f"Pairs are limited: {'; '.join(limits)}."
    if "population" in options:
        yield (
            "The weights of the covariates are those that a genetic search found with "
            f"{options['population']:,} candidates a generation, judged by "
            f"{options['fitness']} (Diamond and Sekhon 2013)."
        )
    if options["weights"]:
        yield f"Rows count as {options['weights']} says."
    if options.get("bias_adjust"):
        yield (
            "A regression within each arm takes out the imbalance that matching left (Abadie and "
            "Imbens 2011)."
        )
    if options["r_compatible"]:
        yield "The quirks of R's package Matching are reproduced (docs/matching.md)."


def _distance(options: Mapping[str, Any]) -> str:
    if "population" in options:
        return "weighted by what the search found"
    if options["propensity"]:
        return "all of them through a propensity score (a logistic regression)"
    metric = options["metric"]
    return _METRICS[metric] if isinstance(metric, str) else "weighted as the given metric says"


_ORDERS = {
    "data": "in the order of the rows",
    "largest": "from the largest score on",
    "smallest": "from the smallest score on",
}


def _ties(options: Mapping[str, Any]) -> str:
    if not options["replace"]:
        return f"each match is used once, {_ORDERS[options['order']]}"
    if not options["ties"]:
        return "with replacement, ties are broken by lot"
    return "with replacement and all ties"


def _limits(options: Mapping[str, Any]) -> Iterator[str]:
    if options["exact"]:
        yield f"equal in {', '.join(options['exact'])}"
    if options["caliper"]:
        widths = ", ".join(f"{width:g}" for width in options["caliper"])
        yield f"within {widths} standard deviations in each covariate"
    if options.get("by"):
        yield f"only among rows that agree in {', '.join(options['by'])}"
    if options["common_support"]:
        yield "rows outside the overlap of both groups are left out"


def _signed_interval(interval: tuple[float, float] | None) -> str:
    return "unknown" if interval is None else " to ".join(map(signed_amount, interval))


def _tone(balance: Balance, effect: Difference | None) -> str:
    """Return whether the effect is shown, or without one whether the covariates are balanced."""
    if effect is not None:
        return "equivalent" if effect.excludes_zero else "undecided"
    worst = _worst(balance.variables, balance.before if balance.after is None else balance.after)
    return "equivalent" if worst is not None and worst[1] <= MATTERS_PERCENT else "undecided"


def _worst(
    variables: tuple[str, ...], side: tuple[UnivariateBalance, ...]
) -> tuple[str, float] | None:
    """Return the covariate that differs most, and by how much in percent; ``None`` if unknown."""
    known = [
        (name, abs(variable.sdiff))
        for name, variable in zip(variables, side, strict=True)
        if not math.isnan(variable.sdiff)
    ]
    return max(known, key=lambda pair: pair[1]) if known else None


def _worst_phrase(worst: tuple[str, float] | None) -> str:
    if worst is None:
        return "it is unknown how much the covariates differ"
    unit = "" if math.isinf(worst[1]) else " of a standard deviation"
    return f"{worst[0]} differs most, {_by(worst[1])}{unit}"


def _by(percent: float) -> str:
    """Return a difference in percent; two different constants differ without limit."""
    if math.isinf(percent):
        return "without limit"
    return f"by {percent:.1f} %" if percent < 1000.0 else f"by {percent:.3g} %"


def _percent(sdiff: float) -> str:
    return "unlimited" if math.isinf(sdiff) else f"{sdiff:+.1f} %"


def _smallest_p(smallest: SmallestP) -> str:
    if not smallest.where:
        return "unknown"
    (name, test), *others = smallest.where
    more = f" and {len(others)} more" if others else ""
    return f"{smallest.value:.3g} ({name}, {test}{more})"


def match_warnings(result: MatchResult | None, balance: Balance) -> Iterator[CampaignWarning]:
    """Yield what speaks against the answer of a match."""
    if balance.after is not None:
        worsened = balance.worsened()
        if worsened:
            changes = [
                f"{one.variable} from {_percent(one.before)} to {_percent(one.after)}"
                for one in worsened
            ]
            named = listed(changes, MOST_WORSENED, "; ")
            yield CampaignWarning(
                "worse-balance",
                f"Matching made the groups less alike in {len(worsened)} of "
                f"{len(balance.variables)} covariates, in standard deviations: {named}.",
                "search for better weights with equipoise genmatch, or match on fewer covariates",
            )
        worst = _worst(balance.variables, balance.after)
        if worst is None or worst[1] > MATTERS_PERCENT:
            yield CampaignWarning(
                "unbalanced",
                f"After matching {_worst_phrase(worst)}: that difference, not the treatment, may "
                "be what is seen.",
                f"search for better weights with equipoise genmatch, or give {option('caliper')} "
                f"or {option('exact')}",
            )
    if result is not None and result.n_dropped:
        yield CampaignWarning(
            "dropped",
            f"{dropped_sentence(result)} The answer is about the others.",
            f"widen {option('caliper')} or give fewer {option('exact')}, or say whom the answer "
            "is about",
        )
    if isinstance(result, MatchByResult) and result.skipped:
        yield CampaignWarning(
            "skipped",
            f"{len(result.skipped):,} of {len(result.strata):,} strata lack treated units or "
            "controls and take no part.",
            f"give {option('by')} fewer columns or wider classes",
        )
    if result is not None and result.n_without_neighbors:
        units = _units_in_pairs(result)
        if result.n_without_neighbors > MANY_WITHOUT_NEIGHBORS * units:
            yield CampaignWarning(
                "few-neighbours",
                f"{result.n_without_neighbors:,} of {units:,} matched units have no comparable "
                "unit in their own arm. They share one variance, and the interval is too narrow "
                "where the controls are noisier.",
                f"widen {option('caliper')}, or give fewer {option('exact')} or {option('by')} "
                "columns",
            )


def _error_sentences(result: MatchResult | None) -> Iterator[str]:
    """Say where the effect, its error and its interval come from."""
    if result is None or result.estimate is None:
        return
    mean = "The effect is the weighted mean of the differences in pairs."
    if result.se is not None:
        yield f"{mean} Its error is that of Abadie and Imbens (2006), its interval ±1.96 errors."
        yield _variance_sentence(result)
    elif result.se_standard is not None:
        yield f"{mean} Its error takes the pairs as independent, its interval is ±1.96 errors."


def _variance_sentence(result: MatchResult) -> str:
    """Say which outcomes give each unit's variance."""
    neighbors, without = result.variance_neighbors, result.n_without_neighbors
    if not neighbors:
        return (
            "All units share one variance: the interval is too narrow where the controls are "
            "noisier than the treated units."
        )
    nearest = "nearest unit" if neighbors == 1 else f"{neighbors} nearest units"
    sentence = f"The variance of each unit comes from its {nearest} in its own arm."
    if not without:
        return sentence
    return (
        f"{sentence} {without:,} of {_units_in_pairs(result):,} matched units have none within "
        "reach and share one variance."
    )


def _units_in_pairs(result: MatchResult) -> int:
    return len(np.unique(result.treated_index)) + len(np.unique(result.control_index))


def _tests_sentence(balance: Balance) -> str:
    """Say what the numbers of the balance are."""
    side = balance.before if balance.after is None else balance.after
    tests = [variable.ks for variable in side if variable.ks is not None]
    distributions = "no distribution is tested"
    if tests:
        boot = any(test.boot_p_value is not None for test in tests)
        method = "bootstrapped (Abadie 2002)" if boot else "exact or asymptotic"
        distributions = f"Kolmogorov-Smirnov tests of distributions, {method}"
    paired = ", paired after matching" if balance.after is not None else ""
    return (
        "Balance: differences of means in percent of one group's standard deviation; t-tests of "
        f"means{paired}; {distributions}. A p-value falls with the number of rows: none is a "
        "measure of balance on its own."
    )


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
        notes=(f"The largest of them; {option('json')} has the {more:,} others too.",)
        if more
        else (),
        forms=WRITTEN,
    )


def _effect_figures(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[Figure]:
    """Draw the difference of all rows and that among comparable units."""
    from equipoise.figures.estimates import Estimate, estimates
    from equipoise.figures.gallery import Figure

    rows = [
        Estimate(kind, kind, difference.value, difference.interval)
        for kind, difference in ((_ALL_ROWS, naive), (_COMPARABLE, effect))
        if difference is not None
    ]
    if rows:
        title = f"Effect of {question.treatment} on {question.outcome}"
        yield Figure(
            "effect",
            "Each row is one estimate with its 95 % interval; the line stands at no difference. "
            "The answer is the estimate among comparable units.",
            estimates(
                rows,
                (_COMPARABLE, _ALL_ROWS),
                unit=f"difference in {question.outcome}",
                title=title,
                notes=[],
                description=f"{title}: " + "; ".join(f"{row.label} {row.at:.4g}" for row in rows),
            ),
        )


def _balance_figures(balance: Balance, search: GenMatchResult | None) -> Iterator[Figure]:
    """Draw the course of a search, all covariates, the shares, and what differs most."""
    from equipoise.figures import balance as charts
    from equipoise.figures.gallery import Figure

    if search is not None:
        yield Figure("course", charts.HOW_TO_READ_COURSE, search.plot())
        yield Figure("search", charts.HOW_TO_READ_VALUES, search.search_plot())
    yield Figure("balance", charts.HOW_TO_READ_LOVE_PLOT, balance.love_plot())
    of_two_values = balance.shares_plot()
    if of_two_values is not None:
        yield Figure("shares", charts.HOW_TO_READ_SHARES, of_two_values)
    for name in balance.most_different(MOST_FIGURES):
        densities = balance.density_plot(name)
        if densities is not None:
            yield Figure("distribution", charts.HOW_TO_READ_DENSITY, densities)
        yield Figure("quantiles", charts.HOW_TO_READ_QQ_PLOT, balance.qq_plot(name))


def _effect_numbers(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[NumberRow]:
    for when, difference in (("before", naive), ("after", effect)):
        if difference is not None:
            low, high = difference.interval or (None, None)
            row: NumberRow = {"kind": "effect", "name": question.outcome, "when": when}
            yield {**row, "estimate": difference.value, "low": low, "high": high}


def _balance_numbers(balance: Balance) -> Iterator[NumberRow]:
    for row in balance.rows():
        name, when, *values = row.items()
        yield {"kind": "covariate", "name": name[1], "when": when[1], **dict(values)}


def _weight_numbers(search: GenMatchResult | None) -> Iterator[NumberRow]:
    if search is not None:
        for name, weight in zip(search.names, search.weights.tolist(), strict=True):
            yield {"kind": "weight", "name": name, "weight": weight}


def _number_text(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
