"""The commits between two revisions along first parents, and what git knows of them.

No program but git runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import joined
from equipoise.model.revisions import Commit, CommitDiff, Revision, short_name
from equipoise.revisions.checkout import UNSHALLOW, is_changed
from equipoise.revisions.git import (
    Repository,
    depth_of,
    first_bytes_of_git,
    line_of,
    reason_of,
    run_git,
    text_of,
)
from equipoise.shared.safe_text import shortened
from equipoise.shared.spelling import option

PROSE_SUFFIXES = frozenset({".adoc", ".markdown", ".md", ".rst"})
"""Ends of the names of files that people read, and builds do not."""
PROSE_NAMES = frozenset(
    {"authors", "changelog", "changes", "contributing", "copying", "license", "news", "readme"}
)
"""Names of such files without an end, in small letters."""
PROSE_FOLDERS = frozenset({"doc", "docs"})
"""Folders, at the top of a repository, of which further files count as prose."""
SUFFIXES_IN_PROSE_FOLDERS = frozenset({".gif", ".jpg", ".png", ".svg", ".txt"})

_FIELDS = ("%H", "%P", "%an", "%aI", "%s")
_LOG = (
    *("-c", "i18n.logOutputEncoding=UTF-8", "-c", "log.showSignature=false", "log", "-z"),
    "--format=" + "%x00".join(_FIELDS),
)
MAX_SUBJECT_LETTERS = 60
"""Letters of a subject that a sentence shows."""
MAX_DIFF_BYTES = 1 << 20
"""Size of the patch that is kept."""
_MAX_FILES = 20
_DIFF_OPTIONS = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_STAT = (f"--stat=100,{_MAX_FILES * 3},30", f"--stat-count={_MAX_FILES}")
LIKELY_WEIGHT = 10.0
"""Weight of a commit that touches a likely path, where others have 1. So no commit starts with less
than a tenth of an equal weight (the floor of docs/methods/bisect.md), however many are
likely."""

MAX_MERGED_COMMITS = 2000
"""Number of commits of branches that a search has room for; merges past them stay one commit."""


class MergedBranch(Struct, frozen=True):
    """The branch that a merge brought in: it is searched once the merge is named."""

    merge: int
    """Condition of the merge."""
    commits: tuple[int, ...]
    """Conditions: from the commit where the branch left its first parents, to the merge's other
    parent. Each but the first is the first parent's next commit."""


class MergedCommits(Struct, frozen=True):
    """The commits that merges brought in, by the conditions of a bisection."""

    commits: tuple[Commit, ...] = ()
    """Those that are not on the line of first parents, in any order."""
    branches: tuple[MergedBranch, ...] = ()


class EndNames(Struct, frozen=True):
    """What the two ends of a stretch of commits are called."""

    early: str
    early_option: str
    late: str
    late_option: str
    two_revisions: str
    """Hint for one who named a single commit twice."""


BISECTED = EndNames(
    *("good", "--good", "bad", "--bad"),
    "name two revisions: --good one that was fast, --bad one that is slow",
)
MEASURED = EndNames(
    *("baseline", "--from", "last revision", "--to"),
    "name an earlier revision with --from",
)


def commits_between(
    repository: Repository, good: Revision, bad: Revision, names: EndNames = BISECTED
) -> tuple[Commit, ...]:
    """Return the commits from one revision to a later one along first parents, both included.

    The working tree is a commit of its own after the one that it was changed from.

    Raise `UnusableInput` if there is nothing between them, or the early one is not on the line of
    the late one; the hint then names the latest commit that is.
    """
    range_ = f"{good.commit}..{bad.commit}"
    later = _commits(repository, "--first-parent", "--reverse", range_)
    first = later[0].parents[:1] if later else (bad.commit,)
    if first != (good.commit,):
        raise _not_on_its_line(repository, good, bad, first, names)
    commits = (*_commits(repository, "--no-walk", good.commit), *later)
    if bad.uncommitted:
        changed = Commit(bad.commit, f"{bad.asked}, with its changes", "", "", (bad.commit,), True)
        commits = (*commits, changed)
    if len(commits) == 1:
        raise UnusableInput(
            f"{names.early} and {names.late} are the same commit {good.commit}",
            hint=names.two_revisions,
        )
    return commits


def _not_on_its_line(
    repository: Repository,
    good: Revision,
    bad: Revision,
    fork: tuple[str, ...],
    names: EndNames,
) -> UnusableInput:
    """Return the error that the early revision does not lead to the late one on first parents."""
    early, late = names.early, names.late
    if not fork:
        return UnusableInput(
            f"{early} {good.label} and {late} {bad.label} have no commit in common in "
            f"{repository.top}{depth_of(repository)}",
            hint=f"name an older commit of {bad.asked} as {names.early_option}; {UNSHALLOW}",
        )
    if fork == (bad.commit,):
        return UnusableInput(
            f"{late} {bad.label} is older than {early} {good.label}",
            hint=f"exchange {names.early_option} and {names.late_option}; that the later revision "
            "is faster makes no difference",
        )
    leads = run_git(repository.top, "merge-base", "--is-ancestor", good.commit, bad.commit)
    reason = (
        f"came to {late} by a merge, not along first parents"
        if leads.returncode == 0
        else f"is no ancestor of {late} {bad.label}"
    )
    return UnusableInput(
        f"{early} {good.label} {reason}",
        hint=f"take the commit where the two parted: {names.early_option} {fork[0]}",
    )


def merged_commits(repository: Repository, line: Sequence[Commit]) -> MergedCommits:
    """Return the branches of the merges among the commits of a line, and of those on branches.

    Each commit is on one line: on that of the oldest merge that brought it in. A parent of a merge
    that is on another line already, or that has no ancestor in common, begins no branch.
    """
    last = next(one for one in reversed(line) if not one.uncommitted)
    if not any(one.is_merge for one in line[1:]):
        return MergedCommits()
    known = {one.hash: one for one in _commits(repository, f"{line[0].hash}..{last.hash}")}
    lines = _Lines(line)
    for merge in [one for one in line[1:] if one.is_merge and not one.uncommitted]:
        lines.add_branches(merge, known)
    # A branch may have begun before the good commit.
    further = [*lines.places][len(line) :]
    older = [one for one in further if one not in known]
    if older:
        known |= {one.hash: one for one in _commits(repository, "--no-walk", *older)}
    return MergedCommits(tuple(known[name] for name in further), tuple(lines.branches))


class _Lines:
    """The lines of commits of a search."""

    def __init__(self, line: Sequence[Commit]) -> None:
        self.places = {one.name: place for place, one in enumerate(line)}
        """Condition of each commit by its name, in the order of conditions."""
        self.branches: list[MergedBranch] = []
        self._room = len(line) + MAX_MERGED_COMMITS

    def add_branches(self, merge: Commit, known: Mapping[str, Commit]) -> None:
        """Add the branches of a merge, and those of the merges on them."""
        waiting = [merge]
        while waiting:
            merge = waiting.pop(0)
            for tip in merge.parents[1:]:
                chain: list[str] = []
                name = tip
                while name in known and name not in self.places and known[name].parents:
                    chain.append(name)
                    name = known[name].parents[0]
                has_no_fork = name in known and name not in self.places
                if not chain or has_no_fork or len(self.places) + len(chain) >= self._room:
                    continue
                branch = (name, *reversed(chain))
                for one in branch:
                    self.places.setdefault(one, len(self.places))
                commits = tuple(self.places[one] for one in branch)
                self.branches.append(MergedBranch(self.places[merge.hash], commits))
                waiting += [known[one] for one in branch[1:] if known[one].is_merge]


def trees_of(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Return the names of the trees of commits, by the names of the commits.

    Raise `UnusableInput` if the repository has one of them no more.
    """
    question = "".join(f"{commit}\n" for commit in commits).encode()
    words = ("log", "--no-walk=unsorted", "--stdin", "--format=%H %T")
    done = run_git(repository.top, *words, stdin=question)
    if done.returncode != 0:
        raise UnusableInput(
            f"{repository.top} lacks a commit of the campaign{reason_of(done)}",
            hint="fetch it again, or begin anew with commits that the repository has",
        )
    lines = (line.partition(" ") for line in text_of(done).splitlines())
    return {commit: tree for commit, _, tree in lines}


def weights_by_path(
    repository: Repository, commits: Sequence[Commit], paths: Sequence[str]
) -> tuple[float, ...]:
    """Return the weight of each commit after the first: more where it touches one of the paths.

    Raise `UnusableInput` if no commit touches one of the paths.
    """
    touching: set[tuple[str, bool]] = set()
    last = next(one for one in reversed(commits) if not one.uncommitted)
    folder = repository.top / repository.inside
    for path in paths:
        range_ = f"{commits[0].hash}..{last.hash}"
        words = ("rev-list", "--first-parent", range_, "--", path)
        listed = {(name, False) for name in text_of(run_git(folder, *words)).split()}
        if commits[-1].uncommitted and is_changed(repository, path):
            listed.add((commits[-1].hash, True))
        if not listed:
            raise UnusableInput(
                f"{option('likely', path)}: no commit between good and bad touches it",
                hint="check its spelling: a file or a folder, from the current folder",
            )
        touching |= listed
    return tuple(
        LIKELY_WEIGHT if (commit.hash, commit.uncommitted) in touching else 1.0
        for commit in commits[1:]
    )


def prose_commits(repository: Repository, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Return the places of the commits that change only files of prose, against the first parent.

    A commit that changes nothing is among them, the working tree and a root are not. Which files a
    build reads cannot be known, so the names decide: a build that reads its README is not seen.

    Raise `UnusableInput` if git cannot tell.
    """
    asked = {
        commit.hash: (place, commit.parents[0])
        for place, commit in enumerate(commits)
        if commit.parents and not commit.uncommitted
    }
    question = "".join(f"{commit} {parent}\n" for commit, (_, parent) in asked.items()).encode()
    words = ("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames")
    done = run_git(repository.top, *words, stdin=question)
    if done.returncode != 0:
        raise UnusableInput(
            f"git cannot compare the commits of {repository.top}{reason_of(done)}",
            hint="run `git fsck` in your repository",
        )
    prose = {place for place, _ in asked.values()}
    place = -1
    for name in text_of(done).split("\0"):
        if name in asked:
            place = asked[name][0]
        elif name and not is_prose(name):
            prose.discard(place)
    return tuple(sorted(prose))


def is_prose(path: str) -> bool:
    """Return whether a file is one that people read and builds do not, by its name."""
    file = PurePosixPath(path)
    if file.suffix.lower() in PROSE_SUFFIXES or file.name.lower() in PROSE_NAMES:
        return True
    in_folder = len(file.parts) > 1 and file.parts[0].lower() in PROSE_FOLDERS
    return in_folder and file.suffix.lower() in SUFFIXES_IN_PROSE_FOLDERS


def every_nth(commits: Sequence[Commit], step: int) -> tuple[int, ...]:
    """Return the place of every so many-th commit, the first and the last among them."""
    return _with_ends(commits, range(0, len(commits), step))


def tagged(repository: Repository, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Return the places of the commits that have a tag, and of the first and the last.

    Raise `UnusableInput` if no commit after the first has a tag.
    """
    # An annotated tag is an object of its own, and *objectname is its commit.
    form = "--format=%(objectname) %(*objectname)"
    names = set(text_of(run_git(repository.top, "for-each-ref", form, "refs/tags")).split())
    places = [place for place, commit in enumerate(commits) if place and commit.hash in names]
    if not places:
        raise UnusableInput(
            f"{option('tags')}: no commit after the baseline has a tag",
            hint="fetch them: git fetch --tags, or measure every tenth commit: "
            f"{option('every', 10)}",
        )
    return _with_ends(commits, places)


def later_than(repository: Repository, commits: Sequence[Commit], date: str) -> tuple[int, ...]:
    """Return the places of the commits since a date, as git reads it, and of the two ends.

    Raise `UnusableInput` if there is none.
    """
    range_ = f"{commits[0].hash}..{commits[-1].hash}"
    words = ("rev-list", "--first-parent", f"--since={date}", range_, "--")
    names = set(text_of(run_git(repository.top, *words)).split())
    places = [place for place, commit in enumerate(commits) if commit.hash in names]
    if not places:
        raise UnusableInput(
            f"{option('since', date)}: no commit after the baseline is that late",
            hint=f"give an earlier date, such as {option('since', '2026-01-31')} or "
            f"{option('since')} '3 months ago'",
        )
    return _with_ends(commits, places)


def last_before(repository: Repository, latest: Revision, date: str) -> Revision | None:
    """Return the last commit before a date along first parents; ``None`` if there is none."""
    words = ("rev-list", "--first-parent", "--max-count=1", f"--before={date}", latest.commit)
    commit = line_of(repository.top, *words, "--")
    return Revision(commit, commit) if commit else None


def _with_ends(commits: Sequence[Commit], places: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({0, *places, len(commits) - 1}))


def diff_between(repository: Repository, parent: Commit, commit: Commit) -> CommitDiff | None:
    """Return what changed from one commit to a later one; ``None`` of the working tree.

    Raise `UnusableInput` if git cannot tell.
    """
    if commit.uncommitted:
        return None
    ends = (parent.hash, commit.hash)

    def diff(*form: str) -> bytes:
        arguments = ("diff-tree", "-r", *form, *_DIFF_OPTIONS, *ends)
        return first_bytes_of_git(repository.top, *arguments, max_bytes=MAX_DIFF_BYTES)

    files, patch = diff(*_STAT), diff("--patch", "--unified=3")
    return CommitDiff(
        files=files.decode("utf-8", "replace").strip("\n"),
        patch=patch[:MAX_DIFF_BYTES].decode("utf-8", "replace"),
        is_cut=len(patch) > MAX_DIFF_BYTES,
    )


def _commits(repository: Repository, *which: str) -> tuple[Commit, ...]:
    done = run_git(repository.top, *_LOG, *which, "--")
    if done.returncode != 0:
        raise UnusableInput(
            f"git cannot list the commits of {repository.top}{reason_of(done)}",
            hint="run `git fsck` in your repository",
        )
    return tuple(_parsed(done.stdout.decode("utf-8", "replace")))


def _parsed(listed: str) -> Iterator[Commit]:
    fields = iter(listed.split("\0"))
    for name, parents, author, date, subject in zip(*[fields] * len(_FIELDS), strict=False):
        yield Commit(name, subject, author, date, tuple(parents.split()))


def commit_phrase(commit: str, subject: str, not_built: Sequence[str]) -> str:
    """Return a commit with its subject, and those right before it that do not build."""
    named = f"{short_name(commit)} ({shortened(subject, MAX_SUBJECT_LETTERS)})"
    if not not_built:
        return named
    others = joined([*map(short_name, not_built), named], "or")
    return f"Either {others}" if len(not_built) == 1 else f"One of {others}"
