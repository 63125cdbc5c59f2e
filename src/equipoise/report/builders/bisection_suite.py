"""A bisection of several benchmarks: their culprits, a row for each, and each search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import metric_name
from equipoise.model.bisection import BisectResult
from equipoise.model.plan import short_name
from equipoise.model.quantities import counted, joined
from equipoise.model.result import ResultDocument
from equipoise.report.builders.bisection import (
    branch_sections,
    commit_parts,
    culprit_claims,
    every_commit,
    gap_text,
    left_over_facts,
)
from equipoise.report.builders.claims import failures_of
from equipoise.report.document import (
    MOST_CLAIMS,
    UNKNOWN,
    WRITTEN,
    Answer,
    Column,
    Command,
    Facts,
    Part,
    Row,
    Section,
    Styled,
    Table,
)
from equipoise.report.units import waiting_time

MOST_ROWS = 40
"""Number of rows of benchmarks that a terminal shows."""
_COLUMNS = (
    Column("benchmark", "name"),
    Column("metric"),
    Column("gap"),
    Column("verdict"),
    Column("commits"),
    Column("trials", "number"),
)


def suite_answer(document: ResultDocument) -> Answer:
    """Build what a reader sees first: the culprits of all benchmarks."""
    failures = failures_of(document)
    claims = [one for search in document.bisects for one in culprit_claims(document, search)]
    title, lines = suite_sentence(document.bisects), tuple[str, ...]()
    if failures:
        hints = tuple(f"hint: {one.hint}" for one in failures if one.hint)
        title, lines = f"The searches ended early: {failures[-1].summary}", (*hints, title)
    return Answer(
        title=title,
        lines=lines,
        claims=tuple(claims[:MOST_CLAIMS]),
        warnings=len(document.warnings) - len(failures),
    )


def suite_sentence(searches: Sequence[BisectResult]) -> str:
    """Return which commits made a difference to which benchmarks."""
    changed: dict[str, list[str]] = {}
    for place in range(len(searches[0].candidates)):
        for search in searches:
            culprits = {one.commit for one in search.culprits}
            if search.candidates[place].commit in culprits:
                commit = short_name(search.candidates[place].commit)
                changed.setdefault(commit, []).append(search.benchmark)
    if not changed:
        return f"No commit is named for any of {len(searches)} benchmarks."
    clauses = [f"{commit} changed {joined(names)}" for commit, names in changed.items()]
    count = sum(bool(search.culprits) for search in searches)
    return f"A culprit is named for {count} of {len(searches)} benchmarks: {'; '.join(clauses)}."


def suite_parts(document: ResultDocument) -> Iterator[Part]:
    """Build a row for each benchmark, the cost, and each search in a section of its own."""
    searches = document.bisects
    first = searches[0]
    yield Table(
        _COLUMNS,
        tuple(_row(document, one) for one in searches),
        label="Benchmarks",
        most_rows=MOST_ROWS,
        notes=(
            f"With {100.0 * (1.0 - first.alpha):g} % certainty, every commit that is named for any "
            "benchmark changed it.",
        ),
    )
    trials = sum(one.analysed for one in document.trials)
    cost = f"{counted(trials, 'trial')} of {counted(first.builds, 'commit')}"
    yield Facts((("Cost", f"{cost} in {waiting_time(first.seconds)}"),))
    if any(one.verdict in ("set", "undecided") or one.blocks_to_go for one in searches):
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")
    for search in searches:
        # Without a gap, nothing is known of any commit between.
        if search.margin is not None:
            parts: list[Part] = [*commit_parts(search, search.alpha), *branch_sections(search)]
            if facts := tuple(left_over_facts(document, search)):
                parts.append(Facts(facts))
            parts.append(every_commit(search))
            yield Section(search.benchmark, tuple(parts), folded=True, forms=WRITTEN)


def _row(document: ResultDocument, search: BisectResult) -> Row:
    if search.culprits:
        commits = joined([short_name(one.commit) for one in search.culprits])
    elif search.verdict == "set":
        left = [one for one in search.candidates if one.status == "left"]
        names = [short_name(one.commit) for one in left]
        commits = names[0] if len(names) == 1 else f"{len(names)} left: {names[0]} to {names[-1]}"
    else:
        commits = UNKNOWN
    return (
        search.benchmark,
        metric_name(search.metric),
        gap_text(document, search, search.gap),
        Styled(search.verdict, "strong" if search.culprits else ""),
        commits,
        str(search.trials),
    )
