"""Which commits of a repository a history measures."""

from __future__ import annotations

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.revisions import Commit, Revision
from equipoise.revisions.checkout import repository_at
from equipoise.revisions.commits import (
    CURVE_ENDS,
    commits_between,
    commits_since,
    every_nth_commit,
    last_commit_before,
    tagged_commits,
)
from equipoise.revisions.git import Repository
from packages.equipoise.tests.repositories import MadeRepository, repository

Line = tuple[Repository, tuple[Commit, ...]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRepository:
    """A commit on the first of each month, of which two have a tag."""
    made = repository(tmp_path_factory.mktemp("history") / "project")
    with pytest.MonkeyPatch.context() as patch:
        for month in range(1, 8):
            patch.setenv("GIT_COMMITTER_DATE", f"2026-{month:02}-01T12:00:00Z")
            made.commit(f"month {month}")
            if month == 3:
                made.git("tag", "v1.0")
            if month == 5:
                made.git("tag", "-a", "v1.1", "-m", "the next one")
    return made


@pytest.fixture
def line(made: MadeRepository) -> Line:
    first, last = (
        Revision(name, made.git("rev-parse", name).strip()) for name in ("HEAD~6", "HEAD")
    )
    here = repository_at(made.path)
    return here, commits_between(here, first, last, CURVE_ENDS)


def test_every_second_or_fourth_commit_and_both_ends(line: Line) -> None:
    assert every_nth_commit(line[1], 1) == tuple(range(7))
    assert every_nth_commit(line[1], 2) == (0, 2, 4, 6)
    assert every_nth_commit(line[1], 4) == (0, 4, 6)
    assert every_nth_commit(line[1], 100) == (0, 6)


def test_tags_of_both_kinds_are_found(line: Line) -> None:
    assert tagged_commits(*line) == (0, 2, 4, 6)
    with pytest.raises(UnusableInput, match="no commit after the baseline has a tag"):
        tagged_commits(line[0], (line[1][2], line[1][3]))


def test_a_date_is_read_as_git_reads_it(line: Line, made: MadeRepository) -> None:
    assert commits_since(*line, "2026-05-15") == (0, 5, 6)
    with pytest.raises(UnusableInput, match="no commit after the baseline is later than this date"):
        commits_since(*line, "2036-05-15")
    latest = Revision("HEAD", line[1][-1].hash)
    before = last_commit_before(line[0], latest, "2026-05-15")
    assert before is not None and before.commit == line[1][4].hash
    assert last_commit_before(line[0], latest, "2020-01-01") is None
