"""Lists the commits between two revisions along first parents, and reads their data from git.

The index of a commit is its position in the given sequence, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import joined
from equipoise.model.revisions import Commit, CommitDiff, Revision, short_name
from equipoise.revisions.checkout import UNSHALLOW_HINT, is_changed
from equipoise.revisions.git import (
    Repository,
    first_bytes_of_git,
    line_of,
    reason_suffix,
    run_git,
    shallow_suffix,
    text_of,
)
from equipoise.shared.safe_text import shortened
from equipoise.shared.spelling import option

DOCUMENTATION_SUFFIXES = frozenset({".adoc", ".markdown", ".md", ".rst"})
"""Suffixes of documentation: files that people read, and that no build reads."""
DOCUMENTATION_NAMES = frozenset(
    {"authors", "changelog", "changes", "contributing", "copying", "license", "news", "readme"}
)
"""Lower-case names of documentation files, without a suffix."""
DOCUMENTATION_FOLDERS = frozenset({"doc", "docs"})
"""Top folders in which files with `SUFFIXES_IN_DOCUMENTATION_FOLDERS` are documentation, too."""
SUFFIXES_IN_DOCUMENTATION_FOLDERS = frozenset({".gif", ".jpg", ".png", ".svg", ".txt"})

_LOG_FIELDS = ("%H", "%P", "%an", "%aI", "%s")
_LOG_ARGUMENTS = (
    *("-c", "i18n.logOutputEncoding=UTF-8", "-c", "log.showSignature=false", "log", "-z"),
    "--format=" + "%x00".join(_LOG_FIELDS),
)
MAX_SUBJECT_LETTERS = 60
"""Maximum length of a commit's subject in a sentence."""
MAX_DIFF_BYTES = 1 << 20
"""Maximum size of a patch in a result; the rest is cut off."""
_MAX_LISTED_FILES = 20
"""Maximum number of files in the summary of a diff."""
_DIFF_OPTIONS = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_STAT_OPTIONS = (f"--stat=100,{_MAX_LISTED_FILES * 3},30", f"--stat-count={_MAX_LISTED_FILES}")
LIKELY_WEIGHT = 10.0
"""Weight of a commit that changes a path of ``--likely``; other commits have the weight 1
(docs/methods/bisect.md)."""

MAX_MERGED_COMMITS = 2000
"""Maximum number of commits on branches in a search; further branches are left out."""


class MergedBranch(Struct, frozen=True):
    """A branch of a merge. If a bisection ends at the merge, it then searches the branch."""

    merge: int
    """Index of the condition that runs the merge."""
    commits: tuple[int, ...]
    """Indices of the conditions that run the commits of the branch. The last commit is a parent of
    the merge. Each commit is the first parent of the next commit."""


class MergedCommits(Struct, frozen=True):
    """The branches of merges, and the commits on these branches."""

    commits: tuple[Commit, ...] = ()
    """Commits of all branches, without the commits of the main line."""
    branches: tuple[MergedBranch, ...] = ()


class EndNames(Struct, frozen=True):
    """Names of the earliest and the latest commit of a request, and the options for both."""

    early: str
    early_option: str
    late: str
    late_option: str
    same_commit_hint: str
    """Hint for a user who named the same commit twice."""


BISECTION_ENDS = EndNames(
    early="good",
    early_option="--good",
    late="bad",
    late_option="--bad",
    same_commit_hint="name two revisions: --good one that was fast, --bad one that is slow",
)
CURVE_ENDS = EndNames(
    early="baseline",
    early_option="--from",
    late="last revision",
    late_option="--to",
    same_commit_hint="name an earlier revision with --from",
)


def commits_between(
    repository: Repository, early: Revision, late: Revision, names: EndNames = BISECTION_ENDS
) -> tuple[Commit, ...]:
    """Return the commits from an early to a late revision along first parents, both included.

    A changed working tree counts as a commit after HEAD.

    Raise `UnusableInput` if the revisions are the same, or if the first parents of the late
    revision do not lead to the early revision.
    """
    commit_range = f"{early.commit}..{late.commit}"
    later_commits = _list_commits(repository, "--first-parent", "--reverse", commit_range)
    # The commit where the later commits begin; empty if the history has another root.
    fork = later_commits[0].parents[:1] if later_commits else (late.commit,)
    if fork != (early.commit,):
        raise _ancestry_error(repository, early, late, fork, names)
    commits = (*_list_commits(repository, "--no-walk", early.commit), *later_commits)
    if late.uncommitted:
        subject = f"{late.typed_name}, with its changes"
        commits = (*commits, Commit(late.commit, subject, "", "", (late.commit,), True))
    if len(commits) == 1:
        raise UnusableInput(
            f"{names.early} and {names.late} are the same commit {early.commit}",
            hint=names.same_commit_hint,
        )
    return commits


def _ancestry_error(
    repository: Repository, early: Revision, late: Revision, fork: tuple[str, ...], names: EndNames
) -> UnusableInput:
    """Return an error: the first parents of ``late`` do not lead to ``early``."""
    early_label, late_label = f"{names.early} {early.label}", f"{names.late} {late.label}"
    if not fork:
        return UnusableInput(
            f"{early_label} and {late_label} have no commit in common in "
            f"{repository.top}{shallow_suffix(repository)}",
            hint=f"name an older commit of {late.typed_name} as {names.early_option}, or "
            f"{UNSHALLOW_HINT}",
        )
    if fork == (late.commit,):
        return UnusableInput(
            f"{late_label} is older than {early_label}",
            hint=f"exchange the revisions of {names.early_option} and {names.late_option}: this is "
            "right even if the later revision is faster",
        )
    ancestry = run_git(repository.top, "merge-base", "--is-ancestor", early.commit, late.commit)
    reason = (
        f"came to {names.late} by a merge, not along first parents"
        if ancestry.returncode == 0
        else f"is not an ancestor of {late_label}"
    )
    return UnusableInput(
        f"{early_label} {reason}",
        hint=f"name the commit where their branches separated: {names.early_option} {fork[0]}",
    )


def merged_commits(repository: Repository, main_line: Sequence[Commit]) -> MergedCommits:
    """Return the branches of all merges on the main line, and of merges on branches.

    The main line has the first parents from the earliest to the latest commit. A commit of several
    merges belongs to a branch of the oldest merge. A branch is left out if the branch has no
    commits of its own, or does not begin at a commit of the main line or of another branch.
    """
    last_commit = next(commit for commit in reversed(main_line) if not commit.uncommitted)
    if not any(commit.is_merge for commit in main_line[1:]):
        return MergedCommits()
    commit_range = f"{main_line[0].hash}..{last_commit.hash}"
    known_commits = {commit.hash: commit for commit in _list_commits(repository, commit_range)}
    commit_lines = _CommitLines(main_line)
    for merge in [commit for commit in main_line[1:] if commit.is_merge and not commit.uncommitted]:
        commit_lines.add_branches(merge, known_commits)
    # A branch may begin before the earliest commit of the main line.
    hashes = [*commit_lines.indices][len(main_line) :]
    older_hashes = [sha for sha in hashes if sha not in known_commits]
    if older_hashes:
        older_commits = _list_commits(repository, "--no-walk", *older_hashes)
        known_commits |= {commit.hash: commit for commit in older_commits}
    return MergedCommits(tuple(known_commits[sha] for sha in hashes), tuple(commit_lines.branches))


class _CommitLines:
    """The main line of first parents, and the branches that a search covers."""

    def __init__(self, main_line: Sequence[Commit]) -> None:
        self.indices = {commit.name: index for index, commit in enumerate(main_line)}
        """Index of the condition that runs a commit, by the name of the commit."""
        self.branches: list[MergedBranch] = []
        self._max_commits = len(main_line) + MAX_MERGED_COMMITS

    def add_branches(self, merge: Commit, known: Mapping[str, Commit]) -> None:
        """Add the branches of a merge, and the branches of the merges on them."""
        merges = [merge]
        while merges:
            merge = merges.pop(0)
            for tip in merge.parents[1:]:
                # Follow first parents from the end of the branch to a commit on a line.
                chain: list[str] = []
                name = tip
                while name in known and name not in self.indices and known[name].parents:
                    chain.append(name)
                    name = known[name].parents[0]
                has_no_fork = name in known and name not in self.indices
                is_full = len(self.indices) + len(chain) >= self._max_commits
                if not chain or has_no_fork or is_full:
                    continue
                branch = (name, *reversed(chain))
                for commit in branch:
                    self.indices.setdefault(commit, len(self.indices))
                commits = tuple(self.indices[commit] for commit in branch)
                self.branches.append(MergedBranch(self.indices[merge.hash], commits))
                merges += [known[commit] for commit in branch[1:] if known[commit].is_merge]


def tree_hashes(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Return git's hash of the tree of each commit, by the hash of the commit.

    Raise `UnusableInput` if the repository lacks a commit.
    """
    query = "".join(f"{commit}\n" for commit in commits).encode()
    arguments = ("log", "--no-walk=unsorted", "--stdin", "--format=%H %T")
    result = run_git(repository.top, *arguments, stdin=query)
    if result.returncode != 0:
        raise UnusableInput(
            f"{repository.top} lacks a commit of the campaign{reason_suffix(result)}",
            hint="fetch it with `git fetch`, or start again with commits that the repository has",
        )
    lines = (line.partition(" ") for line in text_of(result).splitlines())
    return {commit: tree for commit, _, tree in lines}


def weights_by_path(
    repository: Repository, commits: Sequence[Commit], paths: Sequence[str]
) -> tuple[float, ...]:
    """Return the weights of all commits but the first: larger if a commit changes one of ``paths``.

    Raise `UnusableInput` if no commit changes a path.
    """
    likely_commits: set[tuple[str, bool]] = set()
    """Hash of each likely commit, and whether it is the working tree."""
    last_commit = next(commit for commit in reversed(commits) if not commit.uncommitted)
    folder = repository.top / repository.inside
    for path in paths:
        commit_range = f"{commits[0].hash}..{last_commit.hash}"
        arguments = ("rev-list", "--first-parent", commit_range, "--", path)
        changing_commits = {(name, False) for name in text_of(run_git(folder, *arguments)).split()}
        if commits[-1].uncommitted and is_changed(repository, path):
            changing_commits.add((commits[-1].hash, True))
        if not changing_commits:
            raise UnusableInput(
                f"{option('likely', path)}: no commit between good and bad changes this path",
                hint="check the spelling of the path, which begins in the current folder",
            )
        likely_commits |= changing_commits
    return tuple(
        LIKELY_WEIGHT if (commit.hash, commit.uncommitted) in likely_commits else 1.0
        for commit in commits[1:]
    )


def documentation_commits(repository: Repository, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Return the indices of the commits that change only documentation, or nothing.

    Each commit is compared with its first parent. The working tree, and commits without a parent,
    are left out.

    Raise `UnusableInput` if git fails.
    """
    comparisons = {
        commit.hash: (index, commit.parents[0])
        for index, commit in enumerate(commits)
        if commit.parents and not commit.uncommitted
    }
    lines = (f"{commit} {parent}\n" for commit, (_, parent) in comparisons.items())
    arguments = ("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames")
    result = run_git(repository.top, *arguments, stdin="".join(lines).encode())
    if result.returncode != 0:
        raise UnusableInput(
            f"git cannot compare the commits of {repository.top}{reason_suffix(result)}",
            hint="run `git fsck` in your repository",
        )
    documentation_indices = {index for index, _ in comparisons.values()}
    index = -1
    # Git prints the hash of each commit, and then the paths that the commit changes.
    for text in text_of(result).split("\0"):
        if text in comparisons:
            index, _ = comparisons[text]
        elif text and not is_documentation(text):
            documentation_indices.discard(index)
    return tuple(sorted(documentation_indices))


def is_documentation(path: str) -> bool:
    """Return whether a file is documentation, judging by its path."""
    file = PurePosixPath(path)
    if file.suffix.lower() in DOCUMENTATION_SUFFIXES or file.name.lower() in DOCUMENTATION_NAMES:
        return True
    is_in_documentation_folder = (
        len(file.parts) > 1 and file.parts[0].lower() in DOCUMENTATION_FOLDERS
    )
    return is_in_documentation_folder and file.suffix.lower() in SUFFIXES_IN_DOCUMENTATION_FOLDERS


def every_nth_commit(commits: Sequence[Commit], step: int) -> tuple[int, ...]:
    """Return the indices of every ``step``-th commit, and of the first and the last."""
    return _with_first_and_last(commits, range(0, len(commits), step))


def tagged_commits(repository: Repository, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Return the indices of the commits that have a tag, and of the first and the last.

    Raise `UnusableInput` if no commit after the first has a tag.
    """
    # For an annotated tag, *objectname is its commit.
    arguments = ("for-each-ref", "--format=%(objectname) %(*objectname)", "refs/tags")
    tagged_hashes = set(text_of(run_git(repository.top, *arguments)).split())
    indices = [
        index for index, commit in enumerate(commits) if index and commit.hash in tagged_hashes
    ]
    if not indices:
        raise UnusableInput(
            f"{option('tags')}: no commit after the baseline has a tag",
            hint="fetch the tags with `git fetch --tags`, or measure every tenth commit: "
            f"{option('every', 10)}",
        )
    return _with_first_and_last(commits, indices)


def commits_since(repository: Repository, commits: Sequence[Commit], date: str) -> tuple[int, ...]:
    """Return the indices of the commits since a date, and of the first and the last.

    Git reads the date, so it may also be a text such as ``3 months ago``.

    Raise `UnusableInput` if there is no such commit.
    """
    commit_range = f"{commits[0].hash}..{commits[-1].hash}"
    arguments = ("rev-list", "--first-parent", f"--since={date}", commit_range, "--")
    later_hashes = set(text_of(run_git(repository.top, *arguments)).split())
    indices = [index for index, commit in enumerate(commits) if commit.hash in later_hashes]
    if not indices:
        raise UnusableInput(
            f"{option('since', date)}: no commit after the baseline is later than this date",
            hint=f"give an earlier date, such as {option('since', '2026-01-31')} or "
            f"{option('since')} '3 months ago'",
        )
    return _with_first_and_last(commits, indices)


def last_commit_before(repository: Repository, latest: Revision, date: str) -> Revision | None:
    """Return the last commit before a date along the first parents of ``latest``, or ``None``."""
    arguments = ("rev-list", "--first-parent", "--max-count=1", f"--before={date}", latest.commit)
    commit = line_of(repository.top, *arguments, "--")
    return Revision(commit, commit) if commit else None


def _with_first_and_last(commits: Sequence[Commit], indices: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({0, *indices, len(commits) - 1}))


def diff_between(repository: Repository, parent: Commit, commit: Commit) -> CommitDiff | None:
    """Return the diff between two commits; ``None`` if ``commit`` is the working tree.

    Raise `UnusableInput` if git fails.
    """
    if commit.uncommitted:
        return None
    commit_hashes = (parent.hash, commit.hash)

    def diff(*format_options: str) -> bytes:
        arguments = ("diff-tree", "-r", *format_options, *_DIFF_OPTIONS, *commit_hashes)
        return first_bytes_of_git(repository.top, *arguments, max_bytes=MAX_DIFF_BYTES)

    files, patch = diff(*_STAT_OPTIONS), diff("--patch", "--unified=3")
    return CommitDiff(
        files=files.decode("utf-8", "replace").strip("\n"),
        patch=patch[:MAX_DIFF_BYTES].decode("utf-8", "replace"),
        is_cut=len(patch) > MAX_DIFF_BYTES,
    )


def _list_commits(repository: Repository, *arguments: str) -> tuple[Commit, ...]:
    result = run_git(repository.top, *_LOG_ARGUMENTS, *arguments, "--")
    if result.returncode != 0:
        raise UnusableInput(
            f"git cannot list the commits of {repository.top}{reason_suffix(result)}",
            hint="run `git fsck` in your repository",
        )
    return tuple(_parse_commits(result.stdout.decode("utf-8", "replace")))


def _parse_commits(log: str) -> Iterator[Commit]:
    fields = iter(log.split("\0"))
    for name, parents, author, date, subject in zip(*[fields] * len(_LOG_FIELDS), strict=False):
        yield Commit(name, subject, author, date, tuple(parents.split()))


def commit_phrase(commit: str, subject: str, not_built: Sequence[str]) -> str:
    """Return a phrase for a commit, and for the commits before it that could not be built."""
    phrase = f"{short_name(commit)} ({shortened(subject, MAX_SUBJECT_LETTERS)})"
    if not not_built:
        return phrase
    alternatives = joined([*map(short_name, not_built), phrase], "or")
    return f"Either {alternatives}" if len(not_built) == 1 else f"One of {alternatives}"
