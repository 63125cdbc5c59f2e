"""The manifest of a site: its pages, with everything that the index shows of each campaign.

With the manifest, a build reads no trial of a campaign that did not change. A build also names in
the manifest the files that it is about to write. So if it is killed, the next build knows which
files belong to the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct

from equipoise.files.writing import UNFINISHED_PREFIX, read_whole, write_or_refuse
from equipoise.model.errors import UnusableInput
from equipoise.report.news import Badge, Change

MANIFEST = "equipoise-site.json"
"""Name of the manifest in the folder of a site."""
CAMPAIGNS, LISTS, BADGES, ASSETS = "campaigns", "lists", "badges", "assets"
"""Folders of a site."""
INDEX, FEED = "index.html", "feed.xml"
_SCHEMA = "equipoise.site/1"
_OWN_PATH = re.compile(
    rf"{re.escape(INDEX)}|{re.escape(FEED)}|{ASSETS}/[a-z]+\.(css|js)|{BADGES}/[0-9a-f]{{16}}\.svg"
    rf"|{LISTS}/[a-z]+-[0-9]{{1,9}}\.html"
    rf"|{CAMPAIGNS}/[0-9]{{8}}-[0-9]{{6}}-[0-9a-f]{{4}}-[0-9a-f]{{8}}\.html"
)
"""Paths that a site may have. No other path in a manifest is followed."""
SitePath = Annotated[str, msgspec.Meta(pattern=f"^(?:{_OWN_PATH.pattern})$")]
"""Path of a file, relative to the folder of the site."""
WRITE_HINT = "choose a folder in which you may write"


class PageRecord(Struct, frozen=True, kw_only=True):
    """One campaign of the site, as its page and the index show it."""

    identity: str
    """Identity of the run in every ledger."""
    digest: str
    """Digest of the number of rows of this run and of each run that its page shows; empty if the
    page is not up to date."""
    page: SitePath | None
    """Page of the campaign; null if it could not be made, or is not made yet."""
    is_full: bool
    """Whether the page has the distributions and the figures."""
    title: str
    """The answer; if there is no page, the name of the run."""
    noun: str
    """Noun for a campaign of this kind, such as ``gate``."""
    name: str
    """Name of the run in its ledger."""
    study: str
    started_at: float
    host: str | None
    trials: int
    earlier: tuple[str, ...]
    """Identities of the earlier campaigns of the same series."""
    mentioned: tuple[str, ...]
    """Identities of other runs in the plan, such as the run that this campaign explains."""
    series: str | None = None
    """Key of the series of which this campaign is a part."""
    changes: tuple[Change, ...] = ()
    badges: tuple[Badge, ...] = ()


class Manifest(Struct, frozen=True, kw_only=True):
    """Memory of a site between two builds."""

    schema: str = _SCHEMA
    program: str = ""
    """Version of Equipoise that wrote the pages; another version writes all pages again."""
    feed_id: str = ""
    """Identifier of the feed, which never changes."""
    files: tuple[SitePath, ...] = ()
    """Files of the site besides the pages, in order."""
    list_digests: dict[SitePath, str] = {}
    """Digest of each list of the index, and of the script with the lines of all lists."""
    pending: tuple[SitePath, ...] = ()
    """Files that a build was about to write when it was stopped."""
    pages: tuple[PageRecord, ...] = ()
    """Campaigns in the order of their start."""

    @property
    def own_files(self) -> frozenset[str]:
        """Paths of the files that belong to the site."""
        pages = (record.page for record in self.pages if record.page is not None)
        return frozenset((*self.files, *self.pending, *pages))


def open_site(folder: Path) -> Manifest:
    """Return the manifest of a site; create the folder if it is missing.

    Raise `UnusableInput` if the folder has files but no manifest, or if the manifest cannot be
    read.
    """
    file = folder / MANIFEST
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        problem = f"cannot use the folder {folder}: {error.strerror}"
        raise UnusableInput(problem, hint=WRITE_HINT) from error
    # A build that was killed at its start leaves only an unfinished manifest.
    if all(name.startswith(UNFINISHED_PREFIX) for name in names):
        return Manifest()
    if MANIFEST not in names:
        raise UnusableInput(
            f"the folder {folder} has files, but no site of Equipoise",
            hint="name a new or an empty folder with -o",
        )
    hint = f"delete {file} and the files of the site, then build it again"
    try:
        manifest = msgspec.json.decode(read_whole(file, hint=hint), type=Manifest)
    except msgspec.DecodeError as error:
        raise UnusableInput(f"cannot read {file}: {error}", hint=hint) from error
    if manifest.schema != _SCHEMA:
        problem = f"{file} has the form {manifest.schema!r}, which this Equipoise cannot read"
        raise UnusableInput(problem, hint=hint)
    return manifest


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, unless the file already has this content."""
    write_if_changed(folder / MANIFEST, msgspec.json.encode(manifest) + b"\n")


def write_if_changed(file: Path, content: bytes) -> bool:
    """Replace a file completely if its content differs; return whether it was written.

    Raise `UnusableInput` if the file cannot be written.
    """
    try:
        if file.read_bytes() == content:
            return False
    except OSError:
        # A missing file is written; another fault is reported when it is written.
        pass
    write_or_refuse(file, content, WRITE_HINT)
    return True


def remove_unfinished(folder: Path) -> None:
    """Remove incomplete files that a killed build left in a folder of the site."""
    for file in folder.glob(f"{UNFINISHED_PREFIX}*"):
        file.unlink(missing_ok=True)
