"""Revisions and commits of a git repository, for plans and results."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from equipoise.shared.safe_text import shortened

BENCHMARK = "benchmark"
"""Factor whose levels are benchmarks; each benchmark runs in its own process."""
REVISION = "revision"
"""Factor whose levels are revisions, which a campaign compares."""
BENCHMARK_SUFFIX = " time_s"
"""Suffix of metrics with the seconds of one benchmark, if a process runs several."""
_SHOWN_DIGITS = 10


class Revision(Struct, frozen=True):
    """A revision that Equipoise checked out, with its commit."""

    typed_name: str
    """Name of the revision, as the user typed it."""
    commit: str
    """Full hash of the commit."""
    uncommitted: bool = False
    """Whether the revision includes uncommitted changes of tracked files in the working tree."""

    @property
    def label(self) -> str:
        """Label for readers: ``main (1a2b3c4d5e)``."""
        changes = " with uncommitted changes" if self.uncommitted else ""
        return f"{self.typed_name} ({self.commit[:_SHOWN_DIGITS]}{changes})"


class Relinking(Struct, frozen=True):
    """How the programs of both revisions are linked again for each block."""

    linker: str
    """Version of the linker."""
    min_links: int
    """Smallest number of links of each revision that the verdict rests on."""
    files: tuple[tuple[str, ...], tuple[str, ...]]
    """Programs of the baseline and of the candidate that are linked again, in their folders."""


class SourcePlace(Struct, frozen=True):
    """Place of a definition in the sources of a revision."""

    path: str
    """Path from the root of the repository, with slashes."""
    line: int
    """Number of the line, from 1."""


CHANGED_SUFFIX = "+"
"""Suffix of a commit's name that marks the working tree with uncommitted changes."""


def short_name(name: str) -> str:
    """Shorten a commit's name: ``1a2b3c4d5e``, or ``1a2b3c4d5e+`` for the working tree."""
    return name[:_SHOWN_DIGITS] + (CHANGED_SUFFIX if name.endswith(CHANGED_SUFFIX) else "")


class ShortTexts(Struct, frozen=True):
    """Base class of commits that shortens a long subject and a long author."""

    def __post_init__(self) -> None:
        """Shorten both texts."""
        for name in ("subject", "author"):
            force_setattr(self, name, shortened(getattr(self, name)))


class Commit(ShortTexts, frozen=True):
    """A commit of git, or the working tree with uncommitted changes."""

    hash: str
    """Full hash; for the working tree, the hash of the commit that is checked out."""
    subject: str
    author: str
    date: str
    """Author date, in ISO 8601."""
    parents: tuple[str, ...]
    """Full hashes of the parents, in git's order; several for a merge, none for a root."""
    uncommitted: bool = False
    """Whether this is the working tree, which has uncommitted changes of tracked files."""

    @property
    def name(self) -> str:
        """Full hash of the commit; for the working tree it ends in ``+``."""
        return self.hash + (CHANGED_SUFFIX if self.uncommitted else "")

    @property
    def short(self) -> str:
        """Short form of the name: ``1a2b3c4d5e``."""
        return short_name(self.name)

    @property
    def is_merge(self) -> bool:
        """Whether the commit has several parents."""
        return len(self.parents) > 1


class NamedCommit(ShortTexts, frozen=True):
    """A commit as the result of a campaign shows it."""

    commit: str
    """Full hash; for the working tree it ends in ``+``."""
    subject: str
    author: str
    date: str


class CommitDiff(Struct, frozen=True):
    """Changes of a commit, as git prints them; a long patch is cut."""

    files: str
    """Changed files, with their numbers of changed lines (``git diff --stat``)."""
    patch: str
    is_cut: bool
    """Whether the patch was too long and only its beginning is kept."""
