"""Two revisions are checked out, and the user's repository is left as it was."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.revisions.checkout import (
    WORKING_TREE,
    changed_submodules,
    check_out,
    find_revision,
    fork_point,
    repository_at,
    revision_of_working_tree,
    untracked_files,
)
from equipoise.revisions.git import CheckoutFailed, without_git_variables
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

HOSTILE = ["--help", "-q", "HEAD; touch x", "$(touch x)", "a..b", "", "HEAD:file", "\0", "ü\n"]


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """Two commits, of which the later one is tagged."""
    made = repository(tmp_path / "user" / "project")
    made.write("value", "old\n")
    made.write("inside/deep", "old\n")
    made.commit()
    made.write("value", "new\n")
    made.commit()
    made.git("tag", "v2")
    return made


def checked_out(made: MadeRepository, name: str | None = None) -> Path:
    """Return the tree of a revision, or of the working tree, in a new folder."""
    repo = repository_at(made.path)
    revision = revision_of_working_tree(repo)
    if name is not None:
        revision = find_revision(repo, name, "--baseline")
    return check_out(repo, revision, Path(tempfile.mkdtemp(dir=made.path.parent)))


def touch_after_commit(made: MadeRepository, name: str) -> None:
    """Make a file one that git would note as unchanged in its index, if it were let."""
    for file, seconds in ((made.path / ".git" / "index", -10), (made.path / name, -5)):
        moment = file.stat().st_mtime + seconds
        os.utime(file, (moment, moment))


def test_each_revision_has_its_own_files_at_paths_of_equal_length(made: MadeRepository) -> None:
    old = checked_out(made, "HEAD~1")
    new = checked_out(made, "main")
    assert (old / "value").read_text() == "old\n"
    assert (new / "value").read_text() == "new\n"
    assert len(str(old)) == len(str(new))
    assert old.name == new.name == "project"


def test_the_users_repository_stays_as_it_was_to_the_byte(made: MadeRepository) -> None:
    made.write("value", "changed\n")
    touch_after_commit(made, "inside/deep")
    before = everything_in(made.path)
    tree = checked_out(made)
    repo = repository_at(made.path)
    untracked_files(repo)
    changed_submodules(repo)
    assert everything_in(made.path) == before
    assert (tree / "value").read_text() == "changed\n"


@pytest.mark.parametrize(
    "name", ["new\nline", 'a "quoted" \\ one', "#one", "$(touch made)", "größer"]
)
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    made = repository(tmp_path / name)
    made.write("inside \n one/value", "kept\n")
    made.commit()
    repo = repository_at(made.path / "inside \n one")
    assert (repo.top, repo.inside) == (made.path, "inside \n one")
    tree = checked_out(made, "main")
    assert (tree / "inside \n one" / "value").read_text() == "kept\n"
    assert not list(tmp_path.rglob("made"))


def test_a_build_finds_the_version_by_its_tag(made: MadeRepository) -> None:
    tree = checked_out(made, "main")
    said = finished(["git", "describe", "--tags"], cwd=tree, check=True)
    assert said.stdout == "v2\n"


def test_no_hook_of_the_repository_runs(made: MadeRepository, tmp_path: Path) -> None:
    made.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/ran\n", executable=True)
    checked_out(made, "main")
    assert not (tmp_path / "ran").exists()


def test_changes_of_tracked_files_are_part_of_the_working_tree(made: MadeRepository) -> None:
    made.write("value", "changed\n")
    (made.path / "picture").write_bytes(bytes(range(256)))
    made.write("tool", "#!/bin/sh\n", executable=True)
    made.git("add", "picture", "tool")
    (made.path / "inside" / "deep").unlink()
    made.write("untracked", "not part of it\n")
    made.git("config", "diff.noprefix", "true")
    made.git("config", "core.autocrlf", "false")
    repo = repository_at(made.path)
    revision = revision_of_working_tree(repo)
    assert revision.uncommitted
    assert revision.typed_name == WORKING_TREE
    tree = checked_out(made)
    assert (tree / "value").read_text() == "changed\n"
    assert (tree / "picture").read_bytes() == bytes(range(256))
    assert (tree / "tool").stat().st_mode & 0o111
    assert not (tree / "inside" / "deep").exists()
    assert not (tree / "untracked").exists()
    assert untracked_files(repo) == ("untracked",)


def test_a_clean_working_tree_is_head(made: MadeRepository) -> None:
    revision = revision_of_working_tree(repository_at(made.path))
    assert (revision.typed_name, revision.uncommitted) == ("HEAD", False)
    assert revision.label == f"HEAD ({made.git('rev-parse', 'HEAD')[:10]})"


def test_a_file_that_was_only_touched_is_no_change(made: MadeRepository) -> None:
    touch_after_commit(made, "inside/deep")
    assert not revision_of_working_tree(repository_at(made.path)).uncommitted


def test_a_folder_of_the_repository_is_known_as_such(made: MadeRepository) -> None:
    repo = repository_at(made.path / "inside")
    assert (repo.top, repo.inside) == (made.path, "inside")


def test_the_fork_point_is_where_a_branch_was_left(made: MadeRepository) -> None:
    left = made.git("rev-parse", "HEAD").strip()
    made.git("checkout", "--quiet", "-b", "feature")
    made.write("value", "of the feature\n")
    made.commit()
    made.git("checkout", "--quiet", "main")
    made.write("other", "of somebody else\n")
    made.commit()
    repo = repository_at(made.path)
    main, feature = (find_revision(repo, name, "--baseline") for name in ("main", "feature"))
    forked = fork_point(repo, main, feature)
    assert forked.commit == left
    assert forked.label == f"the fork point from main ({left[:10]})"
    # A merge commit, as forges test it, left main at its tip.
    made.git("merge", "--quiet", "-m", "merged", "feature")
    assert fork_point(repo, main, revision_of_working_tree(repo)) == main


def test_without_a_commit_in_common_there_is_a_hint(made: MadeRepository) -> None:
    made.git("checkout", "--quiet", "--orphan", "apart")
    made.commit()
    repo = repository_at(made.path)
    main = find_revision(repo, "main", "--baseline")
    with pytest.raises(UnusableInput, match="have no commit in common") as caught:
        fork_point(repo, main, revision_of_working_tree(repo))
    assert "fetch-depth: 0" in str(caught.value.hint)


def test_a_detached_head_is_a_candidate_like_any_other(made: MadeRepository) -> None:
    made.git("checkout", "--quiet", "--detach", "HEAD~1")
    assert (checked_out(made) / "value").read_text() == "old\n"


def test_a_working_tree_of_a_bare_repository_has_its_revisions(
    made: MadeRepository, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    made.git("clone", "--quiet", "--bare", str(made.path), str(bare))
    with pytest.raises(UnusableInput, match="is not in a readable git working tree"):
        repository_at(bare)
    linked = MadeRepository(tmp_path / "linked")
    MadeRepository(bare).git("worktree", "add", "--quiet", str(linked.path), "main")
    linked.write("value", "changed\n")
    before = everything_in(bare)
    assert (checked_out(linked) / "value").read_text() == "changed\n"
    assert (checked_out(linked, "main~1") / "value").read_text() == "old\n"
    assert everything_in(bare) == before


def test_shallow_clone_has_its_commits_and_a_reason_for_missing_ones(
    made: MadeRepository, tmp_path: Path
) -> None:
    shallow = MadeRepository(tmp_path / "shallow")
    first = made.git("rev-parse", "HEAD~1").strip()
    made.git("clone", "--quiet", "--depth=1", f"file://{made.path}", str(shallow.path))
    assert (checked_out(shallow, "HEAD") / "value").read_text() == "new\n"
    with pytest.raises(UnusableInput, match="no such commit in .*, a shallow clone") as caught:
        checked_out(shallow, first)
    assert "fetch-depth: 0" in str(caught.value.hint)


def test_submodules_are_checked_out_from_the_users_own(
    made: MadeRepository, tmp_path: Path
) -> None:
    library = repository(tmp_path / "library")
    library.write("part", "first\n")
    first = library.commit()
    library.write("part", "second\n")
    library.commit()
    allowed = ("-c", "protocol.file.allow=always")
    made.git(*allowed, "submodule", "--quiet", "add", str(library.path), "lib/part of it")
    submodule = MadeRepository(made.path / "lib" / "part of it")
    submodule.git("checkout", "--quiet", first)
    made.commit()
    submodule.git("checkout", "--quiet", "-")
    made.commit()
    old = checked_out(made, "HEAD~1")
    new = checked_out(made, "HEAD")
    assert (old / "lib/part of it/part").read_text() == "first\n"
    assert (new / "lib/part of it/part").read_text() == "second\n"
    repo = repository_at(made.path)
    assert changed_submodules(repo) == ()
    submodule.write("part", "changed\n")
    assert changed_submodules(repo) == ("lib/part of it",)
    assert not revision_of_working_tree(repo).uncommitted
    made.git("submodule", "deinit", "--quiet", "--force", "--all")
    bare = checked_out(made, "HEAD")
    assert list((bare / "lib/part of it").iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_unknown_revision_is_refused_and_never_run(made: MadeRepository, name: str) -> None:
    before = everything_in(made.path)
    with pytest.raises(UnusableInput, match="there is no such commit"):
        find_revision(repository_at(made.path), name, "--baseline")
    assert everything_in(made.path) == before


@pytest.mark.parametrize(
    "name", ["a b", "$(touch x)", "-rf", "ünï", "'\"", "%s{tree}", "two\nlines", "\\n", "#"]
)
def test_a_repository_may_have_any_name(name: str, tmp_path: Path) -> None:
    made = repository(tmp_path / "user" / name)
    made.write(name, "kept\n")
    made.commit()
    tree = checked_out(made, "HEAD")
    assert (tree / name).read_text() == "kept\n"


def test_a_folder_without_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="is not in a readable git working tree"):
        repository_at(tmp_path)


def test_a_repository_without_commit_has_no_candidate(tmp_path: Path) -> None:
    empty = repository(tmp_path / "empty")
    with pytest.raises(UnusableInput, match="the candidate HEAD: there is no such commit"):
        revision_of_working_tree(repository_at(empty.path))


def test_without_git_the_hint_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UnusableInput, match="git is not installed, and Equipoise needs it"
    ) as caught:
        repository_at(tmp_path)
    assert "apt-get install git" in str(caught.value.hint)


def test_variables_set_by_a_git_hook_are_ignored(
    made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other")
    other.write("value", "other\n")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert repository_at(made.path).top == made.path
    assert "GIT_DIR" not in without_git_variables({"GIT_DIR": "x", "GIT_AUTHOR_NAME": "Ada"})


def test_a_broken_repository_is_reported_with_the_message_of_git(made: MadeRepository) -> None:
    tree = made.git("rev-parse", "HEAD^{tree}").strip()
    (made.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(UnusableInput, match="git cannot check out .*: .*") as caught:
        checked_out(made, "HEAD")
    assert "git fsck" in str(caught.value.hint)


def filtered(made: MadeRepository, name: str) -> None:
    made.write(".gitattributes", f"secret filter={name}\n")
    made.write("secret", "stored\n")
    made.commit()


@pytest.mark.parametrize("name", ["lfs", "git-crypt"])
def test_missing_filter_of_pointers_or_encrypted_files_is_refused(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    filtered(made, name)
    with pytest.raises(CheckoutFailed, match=f"secret of .* needs the git filter {name}"):
        checked_out(made, "HEAD")


def test_filter_of_the_repository_is_refused_with_a_hint(made: MadeRepository) -> None:
    filtered(made, "upper")
    made.git("config", "filter.upper.smudge", "tr a-z A-Z")
    with pytest.raises(CheckoutFailed, match="needs the git filter upper") as refusal:
        checked_out(made, "HEAD")
    assert "git config --global filter.upper.smudge" in str(refusal.value.hint)


def test_a_filter_of_the_user_is_applied(
    made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "gitconfig"
    configuration.write_text('[filter "upper"]\n\tsmudge = tr a-z A-Z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    filtered(made, "upper")
    assert (checked_out(made, "HEAD") / "secret").read_text() == "STORED\n"


def test_clean_filter_does_not_prevent_a_checkout(made: MadeRepository) -> None:
    filtered(made, "stripped")
    made.git("config", "filter.stripped.clean", "cat")
    assert (checked_out(made, "HEAD") / "secret").read_text() == "stored\n"


def test_the_monitor_of_files_that_a_repository_names_is_not_run(
    made: MadeRepository, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {ran}\n")
    monitor.chmod(0o755)
    made.git("config", "core.fsmonitor", str(monitor))
    made.write("value", "changed\n")
    assert revision_of_working_tree(repository_at(made.path)).uncommitted
    untracked_files(repository_at(made.path))
    checked_out(made, "HEAD")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("0" * 40, "the branch is new"), ("main..v2", "not a range"), ("mian", "check the spelling")],
)
def test_a_name_that_is_not_a_commit_has_a_hint_that_helps(
    made: MadeRepository, name: str, hint: str
) -> None:
    with pytest.raises(UnusableInput) as refusal:
        find_revision(repository_at(made.path), name, "--baseline")
    assert hint in str(refusal.value.hint)
