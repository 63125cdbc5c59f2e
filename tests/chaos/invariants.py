"""What must hold after every fault. Each check returns a sentence for each violation."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.commands import OLD_PAGE, VERDICTS
from tests.chaos.processes import Ended, Family
from tests.chaos.workplace import CANARY_FILES, Workplace

NOTE = re.compile(r"(removed the folder of a killed campaign|left alone|note:|warning:)")
"""Lines on standard error that are no complaint."""
MAX_LINES = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """Every committed row of the ledger that belongs to a measurement."""

    rows: frozenset[tuple[str, str]]
    """Table and content."""

    def trials(self) -> int:
        """Return how many trials are in the ledger."""
        return sum(table == "trial" for table, _ in self.rows)


def read_ledger(file: Path) -> Kept:
    """Read every row that a fault must not take away."""
    if not file.exists():
        return Kept(frozenset())
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=300)) as ledger:
        tables = [
            name
            for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = {
            (table, repr(row))
            for table in tables
            if table in ("draw", "trial", "sample")
            for row in ledger.execute(f'SELECT * FROM "{table}"')
        }
    return Kept(frozenset(rows))


def ledger_is_intact(file: Path) -> list[str]:
    """Check the file of the ledger by SQLite's own means."""
    if not file.exists():
        return []
    with closing(sqlite3.connect(file, timeout=300)) as ledger:
        said = [row[0] for row in ledger.execute("PRAGMA integrity_check")]
    return [] if said == ["ok"] else [f"the ledger is damaged: {said[:2]}"]


def nothing_is_lost(before: Kept, after: Kept, moment: str) -> list[str]:
    """Check that every row that was committed is still there, unchanged."""
    lost = before.rows - after.rows
    return [f"{len(lost)} rows of the ledger were lost {moment}"] if lost else []


def every_finished_trial_is_kept(started: int, kept: int) -> list[str]:
    """Check the ledger against the log of the trials: only the last one may be missing."""
    if kept >= started - 1:
        return []
    return [f"{started} trials had started, and the ledger has only {kept}"]


def answer_is_fit(ended: Ended, allowed: frozenset[int], what: str) -> list[str]:
    """Check exit status and standard error of a command."""
    if ended.status is None:
        return [f"{what} hangs"]
    complaints = [line for line in ended.err.splitlines() if line and not NOTE.search(line)]
    said = " / ".join(complaints[-3:])
    sentences = []
    if ended.status not in allowed:
        sentences.append(f"{what} ended with status {ended.status}: {said}")
    if "Traceback" in ended.err or "Traceback" in ended.out:
        sentences.append(f"{what} printed a traceback: {said}")
    elif ended.status > 0 and ended.status != 130 and not complaints:
        sentences.append(f"{what} ended with status {ended.status} and does not say why")
    elif ended.status > 0 and len(complaints) > MAX_LINES:
        sentences.append(f"{what} complains in {len(complaints)} lines: {said}")
    return sentences


def verdict_is_given(ended: Ended) -> list[str]:
    """Check that a result document holds comparisons with verdicts, or what was measured."""
    if ended.status != 0:
        return []
    try:
        document = json.loads(ended.out)
    except ValueError:
        return ["resume printed no result document"]
    verdicts = {comparison["verdict"] for comparison in document["comparisons"]}
    if verdicts - VERDICTS:
        return [f"resume gave an unknown verdict: {verdicts - VERDICTS}"]
    if not document["trials"]:
        return ["resume measured nothing"]
    return []


def page_is_whole(page: Path) -> list[str]:
    """Check that the page is the old one or a complete new one."""
    if not page.exists():
        return ["the old page was deleted, and there is no new one"]
    text = page.read_text(errors="replace")
    if text == OLD_PAGE or text.rstrip().endswith("</html>"):
        return []
    return [f"the page was cut after {len(text)} characters"]


def everything_below(folder: Path) -> list[str]:
    """Return the paths of all files and folders below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def nothing_is_left(place: Workplace, family: Family) -> list[str]:
    """Check that the next start has cleared away what was killed."""
    sentences = [f"a process is left: {' '.join(found.words)[:80]}" for found in family.living()]
    sentences += [f"a cgroup is left: {folder}" for folder in family.cgroups()]
    canaries = {name.partition("/")[0] for name in CANARY_FILES}
    sentences += [
        f"{entry} is left in the temporary folder"
        for entry in everything_below(place.temporary)
        if entry.partition("/")[0] not in canaries
    ]
    repository = place.work / "project" / ".git"
    if (repository / "worktrees").exists():
        sentences.append("a worktree is left in the user's repository")
    return sentences
