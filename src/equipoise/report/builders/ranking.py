"""Rankings as a table and sentences: which condition is the fastest, and what is certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.model.result import RankedCondition, Ranking, ResultDocument
from equipoise.report.document import (
    ALIKE_SHOWN,
    SCREEN,
    UNKNOWN,
    WRITTEN,
    Bullets,
    Column,
    Paragraph,
    Part,
    Row,
    Section,
    Styled,
    Table,
)
from equipoise.report.units import change_text

_NAMES_SHOWN = 4
_COLUMNS = (
    Column("Place", "number"),
    Column("Condition", "name"),
    Column("Against baseline", "number"),
    Column("Certainly slower than", "words"),
    Column("Tied with", "words"),
    Column("Order open to", "words"),
)


def ranking_of_all(document: ResultDocument) -> Ranking | None:
    """Return the ranking that is the answer, since it has every condition; or ``None``."""
    rankings, findings = document.ranking, document.findings
    if len(rankings) != 1 or (findings is not None and findings.answer):
        return None
    is_of_all = len(rankings[0].conditions) == len(document.conditions)
    return rankings[0] if is_of_all else None


def ranking_parts(document: ResultDocument) -> Iterator[Part]:
    """Build a sentence for each ranking, and the table of all; nothing where none was asked.

    The sentence of a ranking of all conditions is the answer, and stands there.
    """
    rankings = document.ranking
    if not rankings:
        return
    summaries: tuple[str, ...] = ()
    if ranking_of_all(document) is None:
        summaries = tuple(one.summary for one in rankings)
        yield Bullets(summaries, most_items=ALIKE_SHOWN, forms=SCREEN)
    alpha = f"{100 * rankings[0].alpha:g} %"
    note = (
        "Claims among candidates are a family of their own beside the comparisons with the "
        f"baseline: of each family at most {alpha} are expected to be false. The fastest condition "
        f"is missing among the first places in at most {alpha} of campaigns."
    )
    sentences = map(Paragraph, summaries[:ALIKE_SHOWN])
    table = Table(_COLUMNS, tuple(_rows(document)), label="Ranking", notes=(note,))
    yield Section("Ranking", (*sentences, table), forms=WRITTEN)


def _rows(document: ResultDocument) -> Iterator[Row]:
    for ranking in document.ranking:
        if ranking.stratum:
            levels = (f"{factor} {level}" for factor, level in ranking.stratum.items())
            yield (Styled(", ".join(levels), "strong"),)
        for one in ranking.conditions:
            is_baseline = one.name == ranking.baseline
            yield (
                _place(one, len(ranking.conditions)),
                one.name,
                "baseline" if is_baseline else _change(document, one),
                _names(one.slower_than),
                _names(one.tied_with),
                _names(one.undecided),
            )


def _change(document: ResultDocument, one: RankedCondition) -> str:
    ratio = one.ratio
    if ratio and document.primary_metric in document.more_is_better:
        ratio = 1.0 / ratio
    return change_text(ratio, UNKNOWN)


def _place(one: RankedCondition, members: int) -> str:
    """Return the places that a condition may have: ``1`` or ``2 to 4``."""
    first = 1 + len(one.slower_than)
    if first == 1 and not one.may_be_fastest:
        first = 2
    last = max(first, members - len(one.faster_than))
    return str(first) if first == last else f"{first} to {last}"


def _names(names: Sequence[str]) -> str:
    if len(names) > _NAMES_SHOWN:
        return f"{', '.join(names[:_NAMES_SHOWN])} and {len(names) - _NAMES_SHOWN} more"
    return ", ".join(names) or UNKNOWN
