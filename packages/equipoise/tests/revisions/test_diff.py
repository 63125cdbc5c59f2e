"""What a commit changed: bounded, and by git alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.revisions import Commit
from equipoise.revisions import commits
from equipoise.revisions.git import Repository
from packages.equipoise.tests.repositories import repository


def commit(name: str, *, uncommitted: bool = False) -> Commit:
    return Commit(name, "subject", "Ada", "2026-01-01", (), uncommitted)


def test_a_diff_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repository(tmp_path / "project")
    made.write("a file", "one\n")
    first = commit(made.commit())
    made.write("a file", "two\n" * 1000)
    second = commit(made.commit())
    opened = Repository(made.path, "")
    whole = commits.diff_between(opened, first, second)
    assert whole is not None
    assert not whole.is_cut
    assert whole.files.splitlines()[-1] == " 1 file changed, 1000 insertions(+), 1 deletion(-)"
    assert whole.patch.count("\n+two") == 1000
    monkeypatch.setattr(commits, "MOST_DIFF_BYTES", 500)
    cut = commits.diff_between(opened, first, second)
    assert cut is not None
    assert cut.is_cut
    assert cut.patch == whole.patch[:500]


def test_the_working_tree_has_no_diff_and_a_lost_commit_is_told(tmp_path: Path) -> None:
    made = repository(tmp_path / "project")
    first = commit(made.commit())
    opened = Repository(made.path, "")
    assert commits.diff_between(opened, first, commit(first.hash, uncommitted=True)) is None
    with pytest.raises(UnusableInput, match="git diff-tree fails"):
        commits.diff_between(opened, first, commit("0" * 39 + "1"))
