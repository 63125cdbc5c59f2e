"""The report of a bisection: the culprits, the remaining commits, the gap and the cost.

For several benchmarks it has a row for each benchmark, and a section for each search.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import metric_name
from equipoise.kinds.bisect.terms import (
    BisectCommit,
    BisectDocument,
    BisectGap,
    BisectResult,
    Culprit,
    ExplainedCulprit,
    SearchedLine,
    UnconfirmedCommit,
)
from equipoise.model.metrics import inverse_interval
from equipoise.model.quantities import Interval, counted, joined
from equipoise.model.revisions import short_name
from equipoise.report.builders.claims import failures_of, strip_of, with_failures
from equipoise.report.builders.result import (
    CampaignReport,
    brief_and_verbose,
    campaign_figures,
    how_it_ran,
    whole_document,
)
from equipoise.report.builders.why import why_parts
from equipoise.report.document import (
    BRIEF,
    EVERYWHERE,
    MAX_CLAIMS,
    PAGE,
    SCREEN,
    UNKNOWN,
    WRITTEN,
    Answer,
    Cell,
    Claim,
    Command,
    Document,
    Facts,
    Listing,
    NumberRow,
    Paragraph,
    Part,
    Section,
    Styled,
    Table,
    columns_and_rows,
    fields_of,
    ratio_numbers,
    whole_and_brief,
)
from equipoise.report.json_document import MAX_MIN_EFFECT, is_possible_ratio
from equipoise.report.kind import ReportKind
from equipoise.report.units import (
    estimate_and_interval,
    percentage,
    significant,
    waiting_time,
)

_MAX_COMMITS = 20
"""Number of rows of commits that a terminal shows."""
_MAX_BRIEF_COMMITS = 8
"""Number of rows of commits that a terminal shows without ``--verbose``."""
_BRIEF_COLUMNS = ("commit", "subject:name", "author", "date", "trials:number", "status")
MAX_BENCHMARKS = 40
"""Number of rows of benchmarks that a terminal shows."""
_MAX_STAGES = 6
"""Number of steps by which a sentence describes how the search narrowed."""
_TAB = 4
"""Columns of a tab in shown lines of a diff."""
_MAX_FUNCTIONS = 6
"""Number of functions that a sentence names."""
_ENDS = re.compile(r" --(?:good|bad) [0-9a-f]{40,}\b")
"""Options with the two ends, in a line that runs a bisection again."""


class BisectReport(ReportKind):
    """The report of a bisection."""

    first_figures = frozenset({"bisection"})

    def question(self, document: BisectDocument) -> str | None:
        """Return the question of a bisection; ``None`` before its first block."""
        if not document.searches:
            return None
        good, bad = document.searches[0].good.asked, document.searches[0].bad.asked
        if document.bisects:
            return f"Which commits from {good} to {bad} changed which benchmarks?"
        metric = metric_name(document.primary_metric)
        return f"Which commit from {good} to {bad} changed the {metric}?"

    def document(self, report: CampaignReport) -> Document | None:
        """Build the document of a bisection, of one benchmark or of several."""
        document = report.document
        assert isinstance(document, BisectDocument)
        searches = document.searches
        if not searches:
            return None
        first, others = campaign_figures(report)
        search_answer = answer(document)
        is_single = len(searches) == 1 and not searches[0].branches
        all_parts: tuple[Part, ...] = (
            *brief_and_verbose(search_answer),
            first,
            *([] if is_single else [others]),
            *self.gap_parts(document),
            *why_parts(document, report.flame_graph),
            *parts(document),
            *how_it_ran(report),
        )
        rows = (row for search in searches for row in numbers(document, search))
        return whole_document(report, search_answer, all_parts, rows)

    def gap_parts(self, document: BisectDocument) -> Iterator[Part]:
        """Build the parts about the explained culprits: their diffs."""
        for search in document.searches:
            yield from explained_parts(search)

    def contradictions(self, document: BisectDocument) -> Iterator[str]:
        """Yield the values of a document that no bisection can have computed."""
        for search in document.searches:
            yield from _impossible(search)


def answer(document: BisectDocument) -> Answer:
    """Build the answer: the culprits, or the remaining commits."""
    claims = [claim for search in document.searches for claim in culprit_claims(document, search)]
    if document.bisect is None:
        title = suite_sentence(document.bisects)
        answer = Answer(title=title, claims=tuple(claims[:MAX_CLAIMS]))
        return with_failures(document, answer, "The searches")
    bisect = document.bisect
    gap = gap_text(document, bisect, bisect.gap)
    lines: tuple[str, ...] = (
        f"The gap between {bisect.good.label} and {bisect.bad.label}: {gap}.",
    )
    title = bisect.summary
    if bisect.verdict == "culprit" and not failures_of(document):
        # The claim is the answer itself.
        claims[0] = replace(claims[0], text=title, remarks=(*lines, *claims[0].remarks))
        title, lines = "", ()
    answer = Answer(title=title, lines=lines, claims=tuple(claims[:MAX_CLAIMS]))
    return with_failures(document, answer, "The search")


def parts(document: BisectDocument) -> Iterator[Part]:
    """Build the parts below the answer: commits, gaps, course and cost of the search."""
    bisect = document.bisect
    if bisect is None:
        yield from _suite_parts(document)
        return
    # Without a confirmed gap, no commit was searched.
    if bisect.margin is not None:
        yield Section("Commits", tuple(_commit_parts(bisect, bisect.alpha)))
    yield from _branch_sections(bisect)
    facts = [*_left_over_facts(document, bisect), ("Cost", _cost(bisect))]
    if bisect.blocks_to_go is not None:
        facts.append(("Expected rest", f"about {2 * bisect.blocks_to_go} more trials"))
    yield Facts(tuple(facts), forms=SCREEN)
    yield Section("Cost, and what is left over", (Facts(tuple(facts)),), forms=WRITTEN)
    yield from _resumption(document)
    yield _every_commit(bisect)


def _suite_parts(document: BisectDocument) -> Iterator[Part]:
    """Build a row for each benchmark, the cost, and a section for each search."""
    searches = document.bisects
    first = searches[0]
    yield Table(
        *columns_and_rows(_benchmark_row(document, search) for search in searches),
        label="Benchmarks",
        max_rows=MAX_BENCHMARKS,
        notes=(
            f"With {100.0 * (1.0 - first.alpha):g} % certainty, every commit that is named for any "
            "benchmark changed it.",
        ),
    )
    trials = sum(condition.analysed for condition in document.trials)
    cost = f"{counted(trials, 'trial')} of {counted(first.builds, 'commit')}"
    yield Facts((("Cost", f"{cost} in {waiting_time(first.seconds)}"),))
    yield from _resumption(document)
    for search in searches:
        # Without a confirmed gap, no commit was searched.
        if search.margin is not None:
            parts: list[Part] = [*_commit_parts(search, search.alpha), *_branch_sections(search)]
            if facts := tuple(_left_over_facts(document, search)):
                parts.append(Facts(facts))
            parts.append(_every_commit(search))
            yield Section(search.benchmark, tuple(parts), folded=True, forms=WRITTEN)


def _resumption(document: BisectDocument) -> Iterator[Command]:
    """Yield the line that resumes an open search: it gets its budget again."""
    is_open = (
        search.verdict == "undecided"
        # A set with an unconfirmed commit is final: the search cannot name this commit.
        or (search.verdict == "set" and not search.unconfirmed)
        or search.blocks_to_go
        for search in document.searches
    )
    if any(is_open):
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")


def suite_sentence(searches: Sequence[BisectResult]) -> str:
    """Return the sentence that names the changed benchmarks of each culprit."""
    changed: dict[str, list[str]] = {}
    for place in range(len(searches[0].candidates)):
        for search in searches:
            culprits = {culprit.commit for culprit in search.culprits}
            if search.candidates[place].commit in culprits:
                commit = short_name(search.candidates[place].commit)
                changed.setdefault(commit, []).append(search.benchmark)
    if not changed:
        return f"No commit is named for any of {len(searches)} benchmarks."
    clauses = [f"{commit} changed {joined(names)}" for commit, names in changed.items()]
    count = sum(bool(search.culprits) for search in searches)
    return f"A culprit is named for {count} of {len(searches)} benchmarks: {'; '.join(clauses)}."


def _benchmark_row(document: BisectDocument, search: BisectResult) -> Mapping[str, Cell]:
    commits = UNKNOWN
    if search.culprits:
        commits = joined([short_name(culprit.commit) for culprit in search.culprits])
    elif search.verdict == "set":
        names = [
            short_name(candidate.commit)
            for candidate in search.candidates
            if candidate.status == "left"
        ]
        commits = names[0] if len(names) == 1 else f"{len(names)} left: {names[0]} to {names[-1]}"
    return {
        "benchmark:name": search.benchmark,
        "metric": metric_name(search.metric),
        "gap": gap_text(document, search, search.gap),
        "verdict": Styled(search.verdict, "strong" if search.culprits else ""),
        "commits": commits,
        "trials:number": str(search.trials),
    }


def _branch_sections(bisect: BisectResult) -> Iterator[Section]:
    """Build a section with the commits of each searched branch."""
    for branch in bisect.branches:
        if branch.margin is not None:
            title = f"The branch of {short_name(branch.merge)}"
            yield Section(title, tuple(_commit_parts(branch, bisect.alpha)))


def _every_commit(bisect: BisectResult) -> Section:
    """Build the folded table of every commit of a search."""
    candidates = _candidates(bisect)
    table = Table(*columns_and_rows(map(_row, candidates)), label="Every commit")
    return Section(f"Every commit ({len(candidates)})", (table,), folded=True, forms=PAGE)


def explained_parts(bisect: BisectResult) -> Iterator[Part]:
    """Build the diff of the explained culprit, and the campaign that tested the causes."""
    explained = bisect.explained
    if explained is None:
        return
    commit, parent = short_name(explained.commit), short_name(explained.parent)
    parts: list[Part] = [_listing(explained.files)] if explained.files else []
    if explained.functions:
        names = ", ".join(f"`{name}`" for name in explained.functions[:_MAX_FUNCTIONS])
        parts.append(Paragraph(f"The evidence names {names}.{_diff_sentence(explained)}"))
        for hunk in explained.hunks:
            parts += (Paragraph(f"{hunk.file}, for `{hunk.function}`:"), _listing(hunk.lines))
    else:
        parts.append(Paragraph("The evidence names no function, so no part of the diff is chosen."))
    if explained.run is not None:
        parts.append(
            Command(f"equipoise show {explained.run}", "The causes were tested by campaign:")
        )
    if not explained.commit.endswith("+"):
        line = shell_line(["git", "diff", explained.parent, explained.commit])
        parts.append(Command(line, "The whole diff:"))
    yield Section(f"What {commit} changed against {parent}", tuple(parts))


def _listing(lines: tuple[str, ...]) -> Listing:
    return Listing(tuple(line.expandtabs(_TAB) for line in lines))


def _diff_sentence(explained: ExplainedCulprit) -> str:
    if explained.omitted:
        count = explained.omitted
        return f" {count} further place{' names' if count == 1 else 's name'} them, too."
    if explained.hunks:
        return ""
    if not explained.files:
        return " There is no diff to look them up in."
    cut = ", as far as it was searched" if explained.diff_is_cut else ""
    return f" The diff changes none of them by name{cut}: its changes elsewhere affect them."


def numbers(document: BisectDocument, bisect: BisectResult) -> Iterator[NumberRow]:
    """Yield a row for each commit after the good one, then for each commit of branches."""
    culprits = {culprit.commit: culprit for culprit in bisect.every_culprit}
    for candidate in _candidates(bisect):
        culprit = culprits.get(candidate.commit)
        yield {
            "run": document.run.id,
            "study": document.run.study,
            "benchmark": bisect.benchmark,
            **fields_of(candidate, "commit", "subject", "author", "date", "status"),
            "not_built": str(candidate.not_built).lower(),
            **fields_of(candidate, "e_value", "excluded_at", "trials"),
            "metric": bisect.metric,
            **ratio_numbers(culprit),
            "step_e_value": None if culprit is None else culprit.e_value,
        }


def culprit_claims(document: BisectDocument, bisect: BisectResult) -> tuple[Claim, ...]:
    """Build a claim for each culprit; those of branches come last."""
    return tuple(
        _claim(document, bisect, culprit, "the gap" if line is bisect else "the gap of its branch")
        for line in bisect.lines
        for culprit in line.culprits
    )


def _candidates(bisect: BisectResult) -> tuple[BisectCommit, ...]:
    """Return the commits of the first line, then those of the searched branches."""
    return tuple(candidate for line in bisect.lines for candidate in line.candidates)


def _claim(document: BisectDocument, bisect: BisectResult, culprit: Culprit, gap: str) -> Claim:
    ratio, interval = _as_values(document, bisect, culprit.ratio, culprit.ratio_ci)
    estimate, ends = estimate_and_interval(ratio, interval)
    evidence = f"e-value {significant(culprit.e_value)} that it makes a difference"
    fraction = _fraction_of_gap(culprit, gap)
    author_and_date = ", ".join(filter(None, (culprit.author, culprit.date[:10])))
    facts = [
        ("Subject", culprit.subject),
        ("Author and date", author_and_date),
        ("Evidence", evidence),
    ]
    if fraction:
        facts.append(("Gap", fraction))
    benchmark = f"{bisect.benchmark}: " if bisect.benchmark else ""
    return Claim(
        badge="culprit",
        tone="slower" if culprit.ratio is None or culprit.ratio > 1.0 else "faster",
        text=f"{benchmark}{culprit.summary}",
        subject=(
            f"{benchmark}{metric_name(bisect.metric)} of {short_name(culprit.commit)} against "
            f"{short_name(culprit.parent)}"
        ),
        estimate=estimate,
        interval=f"{percentage(1.0 - culprit.level)} interval {ends}",
        strip=strip_of(ratio, interval, bisect.metric, bisect.min_effect),
        remarks=tuple(_remarks(culprit, bisect, document.run.command_line)),
        certainty=tuple(
            filter(None, (f"{culprit.subject} ({author_and_date})", evidence, fraction))
        ),
        facts=tuple(facts),
    )


def _fraction_of_gap(culprit: Culprit, gap: str) -> str:
    """Return the clause with the fraction of the gap that a culprit explains; empty if unknown."""
    share = culprit.share_of_gap
    if share is None:
        return ""
    ends = ("unlimited" if end is None else f"{100.0 * end:.0f} %" for end in culprit.share_ci)
    has_interval = culprit.share_ci != (None, None)
    interval = " to ".join(ends) if has_interval else "its interval is still unlimited"
    return f"explains {100.0 * share:.0f} % of {gap} ({interval})"


def _remarks(culprit: Culprit, bisect: BisectResult, command_line: str | None) -> Iterator[str]:
    if culprit.not_built:
        names = ", ".join(map(short_name, culprit.not_built))
        yield f"Not built: {names}. Any of them may be the culprit instead."
    searched = {branch.merge for branch in bisect.branches}
    if culprit.is_merge and culprit.commit not in searched and command_line is not None:
        line = _line_of_branch(culprit, command_line)
        yield f"It is a merge. This line searches its branch: {line}"


def _line_of_branch(merge: Culprit, command_line: str) -> str:
    """Return the shell line that bisects from a merge's base to its second parent.

    ``command_line`` is that of the search that named the merge.
    """
    name = merge.commit
    ends = f'--good "$(git merge-base {name}^1 {name}^2)" --bad {name}^2'
    command = "equipoise bisect"
    return f"{command} {ends}{_ENDS.sub('', command_line.removeprefix(command), count=2)}"


def _as_values(
    document: BisectDocument, bisect: BisectResult, ratio: float | None, interval: Interval
) -> tuple[float | None, Interval]:
    """Return the ratio of costs, or of values if more of the metric is better."""
    if bisect.metric not in document.more_is_better:
        return ratio, interval
    return 1.0 / ratio if ratio else None, inverse_interval(interval)


def gap_text(document: BisectDocument, bisect: BisectResult, gap: BisectGap) -> str:
    """Return a gap with its interval: ``+5.10 % (98 % interval +4.60 % to +5.60 %)``."""
    ratio, interval = _as_values(document, bisect, gap.ratio, gap.ratio_ci)
    estimate, ends = estimate_and_interval(ratio, interval)
    blocks = counted(gap.blocks, "block")
    status = "" if gap.status in ("slower", "faster") else f", {gap.status}"
    return f"{estimate} ({percentage(1.0 - gap.level)} interval {ends}; {blocks}){status}"


def _commit_parts(bisect: SearchedLine, alpha: float) -> Iterator[Part]:
    """Build the remaining commits and the culprits, oldest first, with the notes on them."""
    rows: list[Mapping[str, Cell]] = []
    for is_excluded, group in itertools.groupby(
        bisect.candidates, key=lambda candidate: candidate.status == "excluded"
    ):
        members = list(group)
        if not is_excluded:
            rows += map(_row, members)
            continue
        first, last = short_name(members[0].commit), short_name(members[-1].commit)
        which = first if len(members) == 1 else f"{first} to {last}"
        rows.append(
            {
                **dict.fromkeys(_row(members[0]), ""),
                "commit": Styled(counted(len(members), "commit"), "dim"),
                "subject:name": Styled(f"excluded: {which}", "dim"),
            }
        )
    table = Table(
        *columns_and_rows(rows),
        label="Commits, the oldest first",
        max_rows=_MAX_COMMITS,
        notes=tuple(_notes(bisect, alpha)),
    )
    brief = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows]
    yield from whole_and_brief(table, Table(*columns_and_rows(brief), max_rows=_MAX_BRIEF_COMMITS))
    if course := _course_sentence(bisect):
        yield Paragraph(course, forms=EVERYWHERE - BRIEF)


def _row(commit: BisectCommit) -> Mapping[str, Cell]:
    status: str = commit.status
    if commit.not_built:
        status = "not built" if status == "left" else f"{status}, not built"
    return {
        "commit": short_name(commit.commit),
        "subject:name": commit.subject,
        "author": commit.author,
        "date": commit.date[:10],
        "e-value against:number": UNKNOWN
        if commit.e_value is None
        else significant(commit.e_value),
        "trials:number": str(commit.trials),
        "status": Styled(status, "strong" if commit.status == "culprit" else ""),
    }


def _notes(bisect: SearchedLine, alpha: float) -> Iterator[str]:
    yield (
        "e-value against: evidence that the commit did not make the whole difference; it is "
        f"excluded from {1.0 / alpha:g} on."
    )
    if bisect.margin is not None:
        yield (
            "Commits on one side of a step are assumed to differ by less than "
            f"{significant(bisect.margin, 2)} %."
        )


def _course_sentence(bisect: SearchedLine) -> str:
    """Return how the search narrowed: ``Commits left: 64; 23 after block 20; 1 after block 31``."""
    blocks = sorted(
        candidate.excluded_at
        for candidate in bisect.candidates
        if candidate.excluded_at is not None
    )
    if not blocks:
        return ""
    count = len(bisect.candidates)
    stages = [
        (count - place, block)
        for place, block in enumerate(blocks, start=1)
        if place == len(blocks) or blocks[place] != block
    ]
    shown = [stages[0]]
    for left, block in stages[1:]:
        if 2 * left <= shown[-1][0] or (left, block) == stages[-1]:
            shown.append((left, block))
    shown = [*shown[: _MAX_STAGES - 1], shown[-1]] if len(shown) > _MAX_STAGES else shown
    after = (f"{left} after block {block}" for left, block in shown)
    return f"Commits left: {'; '.join((str(count), *after))}."


def _left_over_facts(document: BisectDocument, bisect: BisectResult) -> Iterator[tuple[str, str]]:
    """Yield the gap of each branch, the gaps around the culprits, and unconfirmed commits."""
    for branch in bisect.branches:
        title = f"Gap of the branch of {short_name(branch.merge)}"
        yield title, _gap_with_ends(document, bisect, branch.gap)
    left_over = [
        _gap_with_ends(document, bisect, stretch)
        for line in bisect.lines
        for stretch in line.left_over
    ]
    if left_over:
        yield "Left over", "; ".join(left_over)
    unconfirmed = [commit.summary for line in bisect.lines for commit in line.unconfirmed]
    if unconfirmed:
        yield "Not named", " ".join(unconfirmed)


def _gap_with_ends(document: BisectDocument, bisect: BisectResult, gap: BisectGap) -> str:
    ends = f"{short_name(gap.after)} to {short_name(gap.until)}"
    return f"{ends} {gap_text(document, bisect, gap)}"


def _cost(bisect: BisectResult) -> str:
    """Return the cost of a search: ``72 trials of 9 commits in 34 s; 1 commit does not build``."""
    not_built = sum(candidate.not_built for candidate in _candidates(bisect))
    ran = bisect.builds - not_built
    failed = ""
    if not_built:
        them = "1 commit does" if not_built == 1 else f"{not_built} commits do"
        failed = f"; {them} not build or run"
    cost = f"{bisect.trials} trials of {counted(ran, 'commit')}"
    return f"{cost} in {waiting_time(bisect.seconds)}{failed}"


def _impossible(bisect: BisectResult) -> Iterator[str]:
    if not (0.0 < bisect.alpha < 1.0 and 0.0 <= bisect.min_effect <= MAX_MIN_EFFECT):
        yield "a bisection has no alpha between 0 and 1, or no smallest effect"
    for line in bisect.lines:
        if (line.verdict == "culprit") > len(line.culprits):
            yield "a bisection with a culprit names none"
        if any(
            not 0 <= block.earlier < block.later <= len(line.candidates) for block in line.course
        ):
            yield "a block of a bisection has a commit that it does not search"
        if min(bisect.trials, bisect.builds, *(commit.trials for commit in line.candidates)) < 0:
            yield "a bisection has a negative number of trials"
    parts: list[BisectGap | Culprit | UnconfirmedCommit] = []
    for line in bisect.lines:
        parts += (line.gap, *line.left_over, *line.culprits, *line.unconfirmed)
    if not all(map(is_possible_ratio, parts)):
        yield "a step of a bisection has no ratio with an interval"
