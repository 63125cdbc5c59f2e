"""Revisions and commits of a git repository, as plans and results name them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from equipoise.shared.safe_text import shortened

BENCHMARK = "benchmark"
"""The factor whose levels are benchmarks, each a process of its own."""
REVISION = "revision"
"""The factor whose levels are compared."""
BENCHMARK_SUFFIX = " time_s"
"""Ending of the metric by which a process reports one of several benchmarks."""
_SHOWN_DIGITS = 10


class Revision(Struct, frozen=True):
    """One revision as it was checked out."""

    asked: str
    """Name of the revision, as the user typed it."""
    commit: str
    """The whole name of its commit."""
    uncommitted: bool = False
    """Whether the changes of tracked files in the working tree were put on top of it."""

    @property
    def label(self) -> str:
        """``main (1a2b3c4d5e)``."""
        changes = " with uncommitted changes" if self.uncommitted else ""
        return f"{self.asked} ({self.commit[:_SHOWN_DIGITS]}{changes})"


CHANGED = "+"
"""Ends the name of a commit that stands for the working tree."""


def short_name(name: str) -> str:
    """Return the first letters of a commit's name: ``1a2b3c4d5e``, ``1a2b3c4d5e+``."""
    return name[:_SHOWN_DIGITS] + (CHANGED if name.endswith(CHANGED) else "")


class ShortTexts(Struct, frozen=True):
    """A commit whose subject and author, texts of any length, are cut to a name's length."""

    def __post_init__(self) -> None:
        """Cut both texts."""
        for name in ("subject", "author"):
            force_setattr(self, name, shortened(getattr(self, name)))


class Commit(ShortTexts, frozen=True):
    """One commit, as git has it."""

    hash: str
    """The whole name; of the working tree, that of the commit that it was changed from."""
    subject: str
    author: str
    date: str
    """When the author wrote it, in ISO 8601."""
    parents: tuple[str, ...]
    """Whole names, the first parent first; a merge has several, a root none."""
    uncommitted: bool = False
    """Whether it is the working tree: the commit with later changes of tracked files."""

    @property
    def name(self) -> str:
        """The whole name of the commit; that of the working tree ends in ``+``."""
        return self.hash + (CHANGED if self.uncommitted else "")

    @property
    def short(self) -> str:
        """The first letters of the name: ``1a2b3c4d5e``."""
        return short_name(self.name)

    @property
    def is_merge(self) -> bool:
        """Whether it has several parents."""
        return len(self.parents) > 1


class NamedCommit(ShortTexts, frozen=True):
    """A commit, as results name it."""

    commit: str
    """Whole name; that of the working tree ends in ``+``."""
    subject: str
    author: str
    date: str


class CommitDiff(Struct, frozen=True):
    """What a commit changed, as git says it; bounded in size."""

    files: str
    """Changed files with numbers of lines (``git diff --stat``)."""
    patch: str
    is_cut: bool
    """Whether the patch was too long to keep all of it."""
