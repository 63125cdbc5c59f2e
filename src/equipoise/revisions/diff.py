"""What a commit changed against another one, bounded in size; no program but git runs for it."""

from __future__ import annotations

from equipoise.model.bisection import CommitDiff
from equipoise.model.plan import Commit
from equipoise.revisions.git import Repository, first_bytes_of_git

MOST_BYTES = 1 << 20
"""Size of the patch that is kept."""
_MOST_FILES = 20
_HOW = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_STAT = (f"--stat=100,{_MOST_FILES * 3},30", f"--stat-count={_MOST_FILES}")


def diff_between(repository: Repository, parent: Commit, commit: Commit) -> CommitDiff | None:
    """Return what changed from one commit to a later one; ``None`` of the working tree.

    Raises
    ------
    UnusableInput
        git cannot tell.
    """
    if commit.uncommitted:
        return None
    ends = (parent.hash, commit.hash)

    def diff(*form: str) -> bytes:
        arguments = ("diff-tree", "-r", *form, *_HOW, *ends)
        return first_bytes_of_git(repository.top, *arguments, most_bytes=MOST_BYTES)

    files, patch = diff(*_STAT), diff("--patch", "--unified=3")
    return CommitDiff(
        files=files.decode("utf-8", "replace").strip("\n"),
        patch=patch[:MOST_BYTES].decode("utf-8", "replace"),
        is_cut=len(patch) > MOST_BYTES,
    )
