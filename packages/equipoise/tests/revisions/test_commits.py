"""The commits between two revisions, as a bisection takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.revisions import Commit, Revision
from equipoise.revisions import commits
from equipoise.revisions import commits as commits_module
from equipoise.revisions.checkout import WORKING_TREE, repository_at, revision_of_working_tree
from equipoise.revisions.commits import (
    LIKELY_WEIGHT,
    MergedCommits,
    commits_between,
    documentation_commits,
    is_documentation,
    merged_commits,
    tree_hashes,
    weights_by_path,
)
from equipoise.revisions.git import Repository
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """Three commits on main; the second is a merge of a branch with two commits of its own."""
    made = repository(tmp_path / "project")
    made.write("source", "one\n")
    made.commit("the first")
    made.git("tag", "first")
    made.git("checkout", "--quiet", "-b", "side")
    for number in (1, 2):
        made.write(f"side/{number}", "")
        made.commit(f"side {number}")
    made.git("checkout", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "-m", "a merge", "side")
    made.write("source", "two\n")
    made.commit("größer, with 'quotes'")
    return made


def named(made: MadeRepository, name: str) -> Revision:
    return Revision(name, made.git("rev-parse", f"{name}^{{commit}}").strip())


def between(made: MadeRepository, good: str, bad: str) -> tuple[Commit, ...]:
    return commits_between(repository_at(made.path), named(made, good), named(made, bad))


def test_a_range_follows_first_parents_and_knows_its_merges(made: MadeRepository) -> None:
    before = everything_in(made.path)
    commits = between(made, "first", "main")
    assert [commit.subject for commit in commits] == [
        "the first",
        "a merge",
        "größer, with 'quotes'",
    ]
    assert [commit.is_merge for commit in commits] == [False, True, False]
    assert commits[1].parents == (named(made, "first").commit, named(made, "side").commit)
    assert {commit.author for commit in commits} == {"Ada"}
    assert commits[2].date.startswith("20")
    trees = tree_hashes(repository_at(made.path), [commit.hash for commit in commits])
    assert [trees[commit.hash] for commit in commits] == [
        made.git("rev-parse", f"{commit.hash}^{{tree}}").strip() for commit in commits
    ]
    assert everything_in(made.path) == before


def test_branch_of_a_merge_is_a_separate_range(made: MadeRepository) -> None:
    commits = between(made, "first", "side")
    assert [commit.subject for commit in commits] == ["the first", "side 1", "side 2"]


def test_commits_that_change_only_prose_are_recognised_by_file_names(
    made: MadeRepository,
) -> None:
    made.write("README.md", "Read me.\n")
    made.write("docs/größe.txt", "Ä\n")
    made.commit("prose")
    made.write("README.md", "Read it.\n")
    made.write("source", "three\n")
    made.commit("prose and a source")
    made.commit("nothing at all")
    made.git("checkout", "--quiet", "-b", "words", "first")
    made.write("LICENSE", "Free.\n")
    made.commit("a license")
    made.git("checkout", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "-m", "a merge of prose", "words")
    made.write("README.md", "Changed since.\n")
    repo = repository_at(made.path)
    commits = commits_between(repo, named(made, "first"), revision_of_working_tree(repo))
    subjects = [commit.subject for commit in commits]
    prose = documentation_commits(repo, commits)
    assert [subjects[place] for place in prose] == ["prose", "nothing at all", "a merge of prose"]
    assert documentation_commits(repo, commits[:1]) == ()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("README.md", True),
        ("src/notes.RST", True),
        ("LICENSE", True),
        ("docs/picture.png", True),
        ("docs/conf.py", False),
        ("CMakeLists.txt", False),
        ("requirements.txt", False),
        ("src/docs/page.txt", False),
        ("main.c", False),
        ("md", False),
    ],
)
def test_a_file_is_prose_by_its_name(path: str, expected: bool) -> None:
    assert is_documentation(path) is expected


def test_the_working_tree_is_the_last_commit(made: MadeRepository) -> None:
    made.write("source", "three\n")
    repo = repository_at(made.path)
    bad = revision_of_working_tree(repo)
    commits = commits_between(repo, named(made, "main"), bad)
    assert [commit.uncommitted for commit in commits] == [False, True]
    assert commits[0].hash == commits[1].hash
    assert commits[1].short == commits[0].short + "+"
    assert commits[1].subject.startswith(WORKING_TREE)


@pytest.mark.parametrize(
    ("good", "bad", "what", "hint"),
    [
        ("main", "main", "the same commit", "name two revisions"),
        ("main", "first", "is older than good", "exchange the revisions of --good and --bad"),
        ("side", "main", "came to bad by a merge", "--good {first}"),
        ("apart", "main", "no commit in common", "name an older commit"),
        ("other", "main", "is not an ancestor of bad", "--good {first}"),
    ],
)
def test_good_revision_off_the_line_is_refused_with_one_on_the_line(
    made: MadeRepository, good: str, bad: str, what: str, hint: str
) -> None:
    made.git("checkout", "--quiet", "-b", "other", "first")
    made.commit("another")
    made.git("checkout", "--quiet", "--orphan", "apart")
    made.commit("a root of its own")
    with pytest.raises(UnusableInput, match=what) as caught:
        between(made, good, bad)
    assert hint.format(first=named(made, "first").commit) in str(caught.value.hint)


def test_likely_commits_weigh_more_and_others_never_less_than_a_tenth(
    made: MadeRepository,
) -> None:
    commits = between(made, "first", "main")
    repo = repository_at(made.path)
    # The files of a branch came with its merge.
    assert weights_by_path(repo, commits, ("side",)) == (LIKELY_WEIGHT, 1.0)
    assert weights_by_path(repo, commits, ("source",)) == (1.0, LIKELY_WEIGHT)
    weights = weights_by_path(repo, commits, ("side/1", "source"))
    assert weights == (LIKELY_WEIGHT, LIKELY_WEIGHT)
    for several in (weights, (LIKELY_WEIGHT, 1.0)):
        assert min(several) / sum(several) >= 0.1 / len(several)
    inside = Repository(repo.top, "side")
    assert weights_by_path(inside, commits, ("1",)) == (LIKELY_WEIGHT, 1.0)
    with pytest.raises(UnusableInput, match="--likely sauce: no commit"):
        weights_by_path(repo, commits, ("source", "sauce"))


def test_changes_of_the_working_tree_weigh_by_path(
    made: MadeRepository,
) -> None:
    made.write("source", "three\n")
    repo = repository_at(made.path)
    commits = commits_between(repo, named(made, "first"), revision_of_working_tree(repo))
    assert weights_by_path(repo, commits, ("source",)) == (1.0, LIKELY_WEIGHT, LIKELY_WEIGHT)
    assert weights_by_path(repo, commits, ("side",)) == (LIKELY_WEIGHT, 1.0, 1.0)


def merged(made: MadeRepository, good: str, bad: str) -> tuple[list[str], MergedCommits]:
    """Return the subject of each commit of a search, and the branches of its merges."""
    line = between(made, good, bad)
    found = merged_commits(repository_at(made.path), line)
    return [commit.subject for commit in (*line, *found.commits)], found


def branches_of(made: MadeRepository, good: str, bad: str) -> list[tuple[str, list[str]]]:
    """Return the subject of each merge, and those of the commits of its branch."""
    subjects, found = merged(made, good, bad)
    return [
        (subjects[branch.merge], [subjects[at] for at in branch.commits])
        for branch in found.branches
    ]


def test_the_branch_of_a_merge_runs_from_its_fork_to_the_other_parent(made: MadeRepository) -> None:
    before = everything_in(made.path)
    assert branches_of(made, "first", "main") == [("a merge", ["the first", "side 1", "side 2"])]
    assert branches_of(made, "first", "side") == []
    assert everything_in(made.path) == before


def test_nested_branches_and_commits_on_another_line(made: MadeRepository) -> None:
    # It begins before the good commit, takes main in, and merges a branch of its own.
    made.git("checkout", "--quiet", "-b", "long", "first")
    made.write("long/1", "")
    made.commit("long 1")
    made.git("checkout", "--quiet", "-b", "short")
    made.write("short/1", "")
    made.commit("short 1")
    made.git("checkout", "--quiet", "long")
    made.git("merge", "--quiet", "--no-ff", "-m", "takes main in", "main")
    made.git("merge", "--quiet", "--no-ff", "-m", "takes short in", "short")
    made.git("checkout", "--quiet", "main")
    made.git("tag", "good")
    made.git("merge", "--quiet", "--no-ff", "-m", "merges long", "long")
    long = ["the first", "long 1", "takes main in", "takes short in"]
    assert branches_of(made, "good", "main") == [
        ("merges long", long),
        ("takes short in", ["long 1", "short 1"]),
    ]


def test_merges_without_room_stay_one_commit(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits_module, "MAX_MERGED_COMMITS", 1)
    assert merged(made, "first", "main")[1] == MergedCommits()


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
    monkeypatch.setattr(commits, "MAX_DIFF_BYTES", 500)
    cut = commits.diff_between(opened, first, second)
    assert cut is not None
    assert cut.is_cut
    assert cut.patch == whole.patch[:500]


def test_working_tree_has_no_diff_and_a_missing_commit_is_an_error(tmp_path: Path) -> None:
    made = repository(tmp_path / "project")
    first = commit(made.commit())
    opened = Repository(made.path, "")
    assert commits.diff_between(opened, first, commit(first.hash, uncommitted=True)) is None
    with pytest.raises(UnusableInput, match="git diff-tree fails"):
        commits.diff_between(opened, first, commit("0" * 39 + "1"))
