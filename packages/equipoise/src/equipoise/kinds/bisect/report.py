"""Build the report of a bisection: the culprits, the suspects, the gap and the cost.

The report of several benchmarks (a suite) has a row for each benchmark, and a section for each
search. In a heading such as ``trials:number``, ``number`` is the kind of the column.
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
from equipoise.model.inverse_ratios import inverse_interval
from equipoise.model.quantities import Interval, counted, joined
from equipoise.model.revisions import CHANGED_SUFFIX, short_name
from equipoise.report.builders.result import (
    ReportInput,
    campaign_figures,
    full_and_brief_answer,
    how_it_ran,
    whole_document,
)
from equipoise.report.builders.statements import failures_of, strip_of, with_failures
from equipoise.report.builders.why import why_parts
from equipoise.report.document import (
    MAX_STATEMENTS,
    NOT_BRIEF,
    NOT_TERMINAL,
    PAGE,
    TERMINAL,
    UNKNOWN,
    Answer,
    Cell,
    Command,
    CsvRow,
    Document,
    Facts,
    Listing,
    Paragraph,
    Part,
    Section,
    Statement,
    StyledText,
    Table,
    columns_and_rows,
    field_cells,
    full_and_brief,
    ratio_cells,
)
from equipoise.report.json_document import MAX_MIN_EFFECT, is_possible_ratio
from equipoise.report.kind import KindReport
from equipoise.report.news import Change
from equipoise.report.units import estimate_and_interval, percentage, significant, waiting_time

_MAX_COMMIT_ROWS = 20
"""Maximum number of rows of commits in a terminal with ``--verbose``."""
_MAX_BRIEF_COMMIT_ROWS = 8
"""Maximum number of rows of commits in a terminal without ``--verbose``."""
_BRIEF_COLUMNS = ("commit", "subject:name", "author", "date", "trials:number", "status")
MAX_BENCHMARK_ROWS = 40
"""Maximum number of rows of benchmarks in a terminal."""
_MAX_STAGES = 6
"""Maximum number of stages in the sentence about the number of suspects after a block."""
_TAB_WIDTH = 4
"""Number of letters between tab stops in a shown diff."""
_MAX_FUNCTIONS = 6
"""Maximum number of functions that a sentence names."""
_GOOD_OR_BAD_OPTION = re.compile(r" --(?:good|bad) [0-9a-f]{40,}\b")
"""Options for the good and the bad commit in a command line."""


class BisectReport(KindReport):
    """The report of a bisection."""

    top_figures = frozenset({"bisection"})

    def question(self, document: BisectDocument) -> str | None:
        """Return the question of a bisection; ``None`` before its first block."""
        if not document.results:
            return None
        good, bad = document.results[0].good.typed_name, document.results[0].bad.typed_name
        if document.bisects:
            return f"Which commits from {good} to {bad} changed which benchmarks?"
        metric = metric_name(document.primary_metric)
        return f"Which commit from {good} to {bad} changed the {metric}?"

    def changes(self, document: BisectDocument) -> Iterator[Change]:
        """Yield the culprits."""
        for result in document.results:
            for culprit in result.every_culprit:
                name = f"{result.benchmark}: " if result.benchmark else ""
                is_worse = (culprit.ratio or 0.0) > 1.0 or culprit.ratio is None
                yield Change(
                    f"{document.run.id} {result.benchmark} {culprit.commit}",
                    f"{name}{culprit.summary}",
                    "slower" if is_worse else "faster",
                )

    def document(self, report: ReportInput) -> Document | None:
        """Build the document of a bisection, of one benchmark or of several."""
        document = report.result
        assert isinstance(document, BisectDocument)
        searches = document.results
        if not searches:
            return None
        first_figure, other_figures = campaign_figures(report)
        search_answer = build_answer(document)
        has_one_figure = len(searches) == 1 and not searches[0].branches
        all_parts: tuple[Part, ...] = (
            *full_and_brief_answer(search_answer),
            first_figure,
            *([] if has_one_figure else [other_figures]),
            *self.gap_parts(document),
            *why_parts(document, report.flame_graph),
            *parts_below_answer(document),
            *how_it_ran(report),
        )
        rows = (row for search in searches for row in number_rows(document, search))
        return whole_document(report, search_answer, all_parts, rows)

    def gap_parts(self, document: BisectDocument) -> Iterator[Part]:
        """Build the diffs of the explained culprits."""
        for search in document.results:
            yield from explained_parts(search)

    def contradictions(self, document: BisectDocument) -> Iterator[str]:
        """Yield sentences about impossible values in a document from a file."""
        for search in document.results:
            yield from _contradictions(search)


def build_answer(document: BisectDocument) -> Answer:
    """Build the answer: the culprits, or the remaining commits."""
    statements = [
        statement
        for search in document.results
        for statement in culprit_statements(document, search)
    ]
    if document.bisect is None:
        suite_answer = Answer(
            suite_sentence(document.bisects), statements=tuple(statements[:MAX_STATEMENTS])
        )
        return with_failures(document, suite_answer, "The searches")
    result = document.bisect
    gap = gap_text(document, result, result.gap)
    gap_lines: tuple[str, ...] = (
        f"The gap between {result.good.label} and {result.bad.label}: {gap}.",
    )
    title = result.summary
    if result.verdict == "culprit" and not failures_of(document):
        # The statement is the answer itself.
        statements[0] = replace(
            statements[0], text=title, remarks=(*gap_lines, *statements[0].remarks)
        )
        title, gap_lines = "", ()
    search_answer = Answer(
        title=title, lines=gap_lines, statements=tuple(statements[:MAX_STATEMENTS])
    )
    return with_failures(document, search_answer, "The search")


def parts_below_answer(document: BisectDocument) -> Iterator[Part]:
    """Build the parts below the answer: commits, gaps, and cost of the search."""
    result = document.bisect
    if result is None:
        yield from _suite_parts(document)
        return
    # The search of commits begins after the gap is confirmed.
    if result.margin is not None:
        yield Section("Commits", tuple(_commit_parts(result, result.alpha)))
    yield from _branch_sections(result)
    facts = [*_remaining_facts(document, result), ("Cost", _cost_text(result))]
    if result.blocks_to_go is not None:
        facts.append(("Expected rest", f"about {2 * result.blocks_to_go} more trials"))
    yield Facts(tuple(facts), forms=TERMINAL)
    yield Section("Cost, and what is left over", (Facts(tuple(facts)),), forms=NOT_TERMINAL)
    yield from _resume_command(document)
    yield _all_commits_section(result)


def _suite_parts(document: BisectDocument) -> Iterator[Part]:
    searches = document.bisects
    first_search = searches[0]
    yield Table(
        *columns_and_rows(_benchmark_row(document, search) for search in searches),
        label="Benchmarks",
        max_rows=MAX_BENCHMARK_ROWS,
        notes=(
            f"With {100.0 * (1.0 - first_search.alpha):g} % certainty, every commit that is named "
            "for any benchmark changed it.",
        ),
    )
    trial_count = sum(trial.analysed for trial in document.trials)
    cost = f"{counted(trial_count, 'trial')} of {counted(first_search.tried_commits, 'commit')}"
    yield Facts((("Cost", f"{cost} in {waiting_time(first_search.seconds)}"),))
    yield from _resume_command(document)
    for search in searches:
        if search.margin is not None:
            parts: list[Part] = [*_commit_parts(search, search.alpha), *_branch_sections(search)]
            if facts := tuple(_remaining_facts(document, search)):
                parts.append(Facts(facts))
            parts.append(_all_commits_section(search))
            yield Section(search.benchmark, tuple(parts), folded=True, forms=NOT_TERMINAL)


def _resume_command(document: BisectDocument) -> Iterator[Command]:
    """Yield the command that resumes an unfinished search."""
    if any(
        search.verdict == "undecided"
        # With an unconfirmed commit, the result ``set`` is final, because no commit can be named.
        or (search.verdict == "set" and not search.unconfirmed)
        or search.blocks_to_go
        for search in document.results
    ):
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")


def suite_sentence(searches: Sequence[BisectResult]) -> str:
    """Return the sentence with the culprits, and the benchmarks that each culprit changed."""
    benchmarks_by_culprit: dict[str, list[str]] = {}
    for commit in searches[0].searched_commits:
        for search in searches:
            if commit.commit in {culprit.commit for culprit in search.culprits}:
                name = short_name(commit.commit)
                benchmarks_by_culprit.setdefault(name, []).append(search.benchmark)
    if not benchmarks_by_culprit:
        return f"No commit is named for any of {len(searches)} benchmarks."
    clauses = [
        f"{name} changed {joined(benchmarks)}" for name, benchmarks in benchmarks_by_culprit.items()
    ]
    named_count = sum(bool(search.culprits) for search in searches)
    return (
        f"A culprit is named for {named_count} of {len(searches)} benchmarks: {'; '.join(clauses)}."
    )


def _benchmark_row(document: BisectDocument, search: BisectResult) -> Mapping[str, Cell]:
    commits = UNKNOWN
    if search.culprits:
        commits = joined([short_name(culprit.commit) for culprit in search.culprits])
    elif search.verdict == "set":
        names = [short_name(suspect.commit) for suspect in search.suspects]
        commits = names[0] if len(names) == 1 else f"{len(names)} left: {names[0]} to {names[-1]}"
    return {
        "benchmark:name": search.benchmark,
        "metric": metric_name(search.metric),
        "gap": gap_text(document, search, search.gap),
        "verdict": StyledText(search.verdict, "strong" if search.culprits else ""),
        "commits": commits,
        "trials:number": str(search.trials),
    }


def _branch_sections(result: BisectResult) -> Iterator[Section]:
    for branch in result.branches:
        if branch.margin is not None:
            title = f"The branch of {short_name(branch.merge)}"
            yield Section(title, tuple(_commit_parts(branch, result.alpha)))


def _all_commits_section(result: BisectResult) -> Section:
    commits = _all_commits(result)
    table = Table(*columns_and_rows(map(_commit_row, commits)), label="Every commit")
    return Section(f"Every commit ({len(commits)})", (table,), folded=True, forms=PAGE)


def explained_parts(result: BisectResult) -> Iterator[Part]:
    """Build the diff of the explained culprit, and the campaign that tested the causes."""
    explained = result.explained_culprit
    if explained is None:
        return
    commit, parent = short_name(explained.commit), short_name(explained.parent)
    parts: list[Part] = [_diff_listing(explained.files)] if explained.files else []
    if explained.functions:
        names = ", ".join(f"`{name}`" for name in explained.functions[:_MAX_FUNCTIONS])
        parts.append(Paragraph(f"The evidence names {names}.{_diff_sentence(explained)}"))
        for hunk in explained.hunks:
            parts += (Paragraph(f"{hunk.file}, for `{hunk.function}`:"), _diff_listing(hunk.lines))
    else:
        parts.append(Paragraph("The evidence names no function, so no part of the diff is chosen."))
    if explained.run is not None:
        parts.append(
            Command(f"equipoise show {explained.run}", "The causes were tested by campaign:")
        )
    if not explained.commit.endswith(CHANGED_SUFFIX):
        line = shell_line(["git", "diff", explained.parent, explained.commit])
        parts.append(Command(line, "The whole diff:"))
    yield Section(f"What {commit} changed against {parent}", tuple(parts))


def _diff_listing(lines: tuple[str, ...]) -> Listing:
    return Listing(tuple(line.expandtabs(_TAB_WIDTH) for line in lines))


def _diff_sentence(explained: ExplainedCulprit) -> str:
    if explained.omitted:
        count = explained.omitted
        return f" {count} further place{' names' if count == 1 else 's name'} them, too."
    if explained.hunks:
        return ""
    if not explained.files:
        return " There is no diff to look them up in."
    limit_clause = ", as far as it was searched" if explained.diff_is_cut else ""
    return (
        f" The diff changes none of them by name{limit_clause}: its changes elsewhere affect them."
    )


def number_rows(document: BisectDocument, result: BisectResult) -> Iterator[CsvRow]:
    """Yield the row of numbers of each commit after the good commit, then of branches."""
    culprits = {culprit.commit: culprit for culprit in result.every_culprit}
    for commit in _all_commits(result):
        culprit = culprits.get(commit.commit)
        yield {
            "run": document.run.id,
            "study": document.run.study,
            "benchmark": result.benchmark,
            **field_cells(commit, "commit", "subject", "author", "date", "status"),
            "not_built": str(commit.not_built).lower(),
            **field_cells(commit, "e_value", "excluded_at", "trials"),
            "metric": result.metric,
            **ratio_cells(culprit),
            "step_e_value": None if culprit is None else culprit.e_value,
        }


def culprit_statements(document: BisectDocument, result: BisectResult) -> tuple[Statement, ...]:
    """Build a statement for each culprit; the culprits of branches come last."""
    return tuple(
        _culprit_statement(
            document, result, culprit, "the gap" if line is result else "the gap of its branch"
        )
        for line in result.lines
        for culprit in line.culprits
    )


def _all_commits(result: BisectResult) -> tuple[BisectCommit, ...]:
    """Return the commits from good to bad, then the commits of the searched branches."""
    return tuple(commit for line in result.lines for commit in line.searched_commits)


def _culprit_statement(
    document: BisectDocument, result: BisectResult, culprit: Culprit, gap_name: str
) -> Statement:
    ratio, interval = _ratio_of_values(document, result, culprit.ratio, culprit.ratio_ci)
    estimate, ends = estimate_and_interval(ratio, interval)
    evidence = f"e-value {significant(culprit.e_value)} that it makes a difference"
    explained_share = _share_clause(culprit, gap_name)
    author_and_date = ", ".join(filter(None, (culprit.author, culprit.date[:10])))
    facts = [
        ("Subject", culprit.subject),
        ("Author and date", author_and_date),
        ("Evidence", evidence),
    ]
    if explained_share:
        facts.append(("Gap", explained_share))
    prefix = f"{result.benchmark}: " if result.benchmark else ""
    return Statement(
        badge="culprit",
        color_verdict="slower" if culprit.ratio is None or culprit.ratio > 1.0 else "faster",
        text=f"{prefix}{culprit.summary}",
        subject=(
            f"{prefix}{metric_name(result.metric)} of {short_name(culprit.commit)} against "
            f"{short_name(culprit.parent)}"
        ),
        estimate=estimate,
        interval=f"{percentage(1.0 - culprit.significance_level)} interval {ends}",
        strip=strip_of(ratio, interval, result.metric, result.min_effect),
        remarks=tuple(_remarks(culprit, result, document.run.command_line)),
        certainty_lines=tuple(
            filter(None, (f"{culprit.subject} ({author_and_date})", evidence, explained_share))
        ),
        certainty_facts=tuple(facts),
    )


def _share_clause(culprit: Culprit, gap_name: str) -> str:
    """Return the clause with the fraction of the gap that a culprit explains; empty if unknown."""
    share = culprit.share_of_gap
    if share is None:
        return ""
    bounds = ("unlimited" if end is None else f"{100.0 * end:.0f} %" for end in culprit.share_ci)
    has_interval = culprit.share_ci != (None, None)
    interval = " to ".join(bounds) if has_interval else "its interval is still unlimited"
    return f"explains {100.0 * share:.0f} % of {gap_name} ({interval})"


def _remarks(culprit: Culprit, result: BisectResult, command_line: str | None) -> Iterator[str]:
    if culprit.not_built:
        names = ", ".join(map(short_name, culprit.not_built))
        yield f"Not built: {names}. Any of them may be the culprit instead."
    searched_merges = {branch.merge for branch in result.branches}
    if culprit.is_merge and culprit.commit not in searched_merges and command_line is not None:
        line = _bisect_line_of_branch(culprit, command_line)
        yield f"It is a merge. This line searches its branch: {line}"


def _bisect_line_of_branch(merge: Culprit, command_line: str) -> str:
    """Return the shell line that bisects a merge's branch, with the options of ``command_line``."""
    merge_name = merge.commit
    good_and_bad = f'--good "$(git merge-base {merge_name}^1 {merge_name}^2)" --bad {merge_name}^2'
    command = "equipoise bisect"
    other_options = _GOOD_OR_BAD_OPTION.sub("", command_line.removeprefix(command), count=2)
    return f"{command} {good_and_bad}{other_options}"


def _ratio_of_values(
    document: BisectDocument, result: BisectResult, ratio: float | None, interval: Interval
) -> tuple[float | None, Interval]:
    """Return a ratio of costs as a ratio of values: inverted if more is better."""
    if result.metric not in document.more_is_better:
        return ratio, interval
    return 1.0 / ratio if ratio else None, inverse_interval(interval)


def gap_text(document: BisectDocument, result: BisectResult, gap: BisectGap) -> str:
    """Return a gap with its interval: ``+5.10 % (98 % interval +4.60 % to +5.60 %)``."""
    ratio, interval = _ratio_of_values(document, result, gap.ratio, gap.ratio_ci)
    estimate, ends = estimate_and_interval(ratio, interval)
    blocks = counted(gap.blocks, "block")
    status = "" if gap.status in ("slower", "faster") else f", {gap.status}"
    return (
        f"{estimate} ({percentage(1.0 - gap.significance_level)} interval {ends}; {blocks}){status}"
    )


def _commit_parts(result: SearchedLine, alpha: float) -> Iterator[Part]:
    """Build the table of suspects and culprits, the oldest first, with notes."""
    rows: list[Mapping[str, Cell]] = []
    for is_excluded, group in itertools.groupby(
        result.searched_commits, key=lambda commit: commit.status == "excluded"
    ):
        members = list(group)
        if not is_excluded:
            rows += map(_commit_row, members)
            continue
        first_name, last_name = short_name(members[0].commit), short_name(members[-1].commit)
        commit_range = first_name if len(members) == 1 else f"{first_name} to {last_name}"
        rows.append(
            {
                **dict.fromkeys(_commit_row(members[0]), ""),
                "commit": StyledText(counted(len(members), "commit"), "dim"),
                "subject:name": StyledText(f"excluded: {commit_range}", "dim"),
            }
        )
    table = Table(
        *columns_and_rows(rows),
        label="Commits, the oldest first",
        max_rows=_MAX_COMMIT_ROWS,
        notes=tuple(_commit_notes(result, alpha)),
    )
    brief_rows = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows]
    yield from full_and_brief(
        table, Table(*columns_and_rows(brief_rows), max_rows=_MAX_BRIEF_COMMIT_ROWS)
    )
    if sentence := _course_sentence(result):
        yield Paragraph(sentence, forms=NOT_BRIEF)


def _commit_row(commit: BisectCommit) -> Mapping[str, Cell]:
    status: str = commit.status
    if commit.not_built:
        status = "not built" if status == "suspect" else f"{status}, not built"
    return {
        "commit": short_name(commit.commit),
        "subject:name": commit.subject,
        "author": commit.author,
        "date": commit.date[:10],
        "e-value against:number": UNKNOWN
        if commit.e_value is None
        else significant(commit.e_value),
        "trials:number": str(commit.trials),
        "status": StyledText(status, "strong" if commit.status == "culprit" else ""),
    }


def _commit_notes(result: SearchedLine, alpha: float) -> Iterator[str]:
    yield (
        "e-value against: evidence that the commit did not make the whole difference; it is "
        f"excluded from {1.0 / alpha:g} on."
    )
    if result.margin is not None:
        yield (
            "Commits on one side of a step are assumed to differ by less than "
            f"{significant(result.margin, 2)} %."
        )


def _course_sentence(result: SearchedLine) -> str:
    """Return a sentence such as ``Commits left: 64; 23 after block 20; 1 after block 31``."""
    exclusion_blocks = sorted(
        commit.excluded_at for commit in result.searched_commits if commit.excluded_at is not None
    )
    if not exclusion_blocks:
        return ""
    commit_count = len(result.searched_commits)
    all_stages = [
        (commit_count - excluded_count, block)
        for excluded_count, block in enumerate(exclusion_blocks, start=1)
        if excluded_count == len(exclusion_blocks) or exclusion_blocks[excluded_count] != block
    ]
    stages = [all_stages[0]]
    for suspect_count, block in all_stages[1:]:
        previous_count, _ = stages[-1]
        if 2 * suspect_count <= previous_count or (suspect_count, block) == all_stages[-1]:
            stages.append((suspect_count, block))
    if len(stages) > _MAX_STAGES:
        stages = [*stages[: _MAX_STAGES - 1], stages[-1]]
    clauses = (f"{suspect_count} after block {block}" for suspect_count, block in stages)
    return f"Commits left: {'; '.join((str(commit_count), *clauses))}."


def _remaining_facts(document: BisectDocument, result: BisectResult) -> Iterator[tuple[str, str]]:
    """Yield the gap of each branch, the gaps around the culprits, and unconfirmed commits."""
    for branch in result.branches:
        title = f"Gap of the branch of {short_name(branch.merge)}"
        yield title, _gap_with_ends(document, result, branch.gap)
    remaining_gaps = [
        _gap_with_ends(document, result, gap)
        for line in result.lines
        for gap in line.remaining_gaps
    ]
    if remaining_gaps:
        yield "Left over", "; ".join(remaining_gaps)
    unconfirmed = [commit.summary for line in result.lines for commit in line.unconfirmed]
    if unconfirmed:
        yield "Not named", " ".join(unconfirmed)


def _gap_with_ends(document: BisectDocument, result: BisectResult, gap: BisectGap) -> str:
    commit_range = f"{short_name(gap.earlier_hash)} to {short_name(gap.later_hash)}"
    return f"{commit_range} {gap_text(document, result, gap)}"


def _cost_text(result: BisectResult) -> str:
    """Return the cost of a search: ``72 trials of 9 commits in 34 s; 1 commit does not build``."""
    failed_count = sum(commit.not_built for commit in _all_commits(result))
    failure_clause = ""
    if failed_count:
        subject = "1 commit does" if failed_count == 1 else f"{failed_count} commits do"
        failure_clause = f"; {subject} not build or run"
    cost = f"{result.trials} trials of {counted(result.tried_commits - failed_count, 'commit')}"
    return f"{cost} in {waiting_time(result.seconds)}{failure_clause}"


def _contradictions(result: BisectResult) -> Iterator[str]:
    if not (0.0 < result.alpha < 1.0 and 0.0 <= result.min_effect <= MAX_MIN_EFFECT):
        yield "a bisection has an impossible alpha or smallest effect"
    for line in result.lines:
        if line.verdict == "culprit" and not line.culprits:
            yield "a bisection has the verdict culprit, but names no culprit"
        if any(
            not 0 <= block.earlier < block.later <= len(line.searched_commits)
            for block in line.course
        ):
            yield "a block of a bisection has a commit outside the searched commits"
        if (
            min(
                result.trials,
                result.tried_commits,
                *(commit.trials for commit in line.searched_commits),
            )
            < 0
        ):
            yield "a bisection has a negative number of trials"
    estimates: list[BisectGap | Culprit | UnconfirmedCommit] = []
    for line in result.lines:
        estimates += (line.gap, *line.remaining_gaps, *line.culprits, *line.unconfirmed)
    if not all(map(is_possible_ratio, estimates)):
        yield "a step of a bisection has an impossible ratio or interval"
