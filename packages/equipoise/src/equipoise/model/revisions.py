"""Revisions and commits of a git repository, for plans and results."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from equipoise.shared.safe_text import shortened

BENCHMARK = "benchmark"
"""Factor whose levels are benchmarks, each with its own process."""
REVISION = "revision"
"""Factor whose levels are compared."""
BENCHMARK_SUFFIX = " time_s"
"""Suffix of the metric by which a process reports one of several benchmarks."""
_SHOWN_DIGITS = 10


class Revision(Struct, frozen=True):
    """One revision that was checked out."""

    asked: str
    """Name of the revision, as the user typed it."""
    commit: str
    """The whole name of its commit."""
    uncommitted: bool = False
    """Whether it includes the changes of tracked files in the working tree."""

    @property
    def label(self) -> str:
        """Label of the revision: ``main (1a2b3c4d5e)``."""
        changes = " with uncommitted changes" if self.uncommitted else ""
        return f"{self.asked} ({self.commit[:_SHOWN_DIGITS]}{changes})"


CHANGED_SUFFIX = "+"
"""Suffix of the name of a commit that stands for the working tree."""


def short_name(name: str) -> str:
    """Return the first letters of a commit's name: ``1a2b3c4d5e``, ``1a2b3c4d5e+``."""
    return name[:_SHOWN_DIGITS] + (CHANGED_SUFFIX if name.endswith(CHANGED_SUFFIX) else "")


class ShortTexts(Struct, frozen=True):
    """A commit whose subject and author, texts of any length, are cut to the length of a name."""

    def __post_init__(self) -> None:
        """Cut both texts."""
        for name in ("subject", "author"):
            force_setattr(self, name, shortened(getattr(self, name)))


class Commit(ShortTexts, frozen=True):
    """One commit of git."""

    hash: str
    """Whole name; for the working tree, that of the commit under its changes."""
    subject: str
    author: str
    date: str
    """Date of the author, in ISO 8601."""
    parents: tuple[str, ...]
    """Whole names of the parents, the first parent first; a merge has several, a root none."""
    uncommitted: bool = False
    """Whether it is the working tree: the commit with later changes of tracked files."""

    @property
    def name(self) -> str:
        """Whole name of the commit; that of the working tree ends in ``+``."""
        return self.hash + (CHANGED_SUFFIX if self.uncommitted else "")

    @property
    def short(self) -> str:
        """First letters of the name: ``1a2b3c4d5e``."""
        return short_name(self.name)

    @property
    def is_merge(self) -> bool:
        """Whether it has several parents."""
        return len(self.parents) > 1


class NamedCommit(ShortTexts, frozen=True):
    """A commit in results."""

    commit: str
    """Whole name; that of the working tree ends in ``+``."""
    subject: str
    author: str
    date: str


class CommitDiff(Struct, frozen=True):
    """Changes of a commit, from git; bounded in size."""

    files: str
    """Changed files with numbers of lines (``git diff --stat``)."""
    patch: str
    is_cut: bool
    """Whether the patch was too long to keep all of it."""
