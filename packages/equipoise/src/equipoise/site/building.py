"""Builds a site: writes the pages that are new or changed, and removes pages without a campaign."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.files.writing import write_unflushed
from equipoise.ledger import RunVersion, open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.report.news import Badge, Change
from equipoise.report.renderers.site import CHART_LIBRARY, chart_library, shared_files
from equipoise.site.campaigns import Campaign, campaigns_of
from equipoise.site.feed import identifier_of
from equipoise.site.index import index_files
from equipoise.site.manifest import (
    ASSETS,
    BADGES,
    CAMPAIGNS,
    LISTS,
    WRITE_HINT,
    Manifest,
    PageRecord,
    open_site,
    remove_unfinished,
    save_manifest,
    write_if_changed,
)

_FOLDERS = (CAMPAIGNS, LISTS, BADGES, ASSETS)
_MIN_TASKS_FOR_POOL = 12
"""Number of pages from which on processes are started; a process takes a second to start."""
_CHUNK = 8
"""Number of pages that a process takes at a time."""
_PAGES_BETWEEN_SAVES = 1000
"""Number of pages after which the manifest is saved, so that a killed build can go on there."""


class SiteRequest(Struct, frozen=True, kw_only=True):
    """Request for a site."""

    ledgers: tuple[Path, ...]
    folder: Path
    title: str
    full_pages: int
    """Number of latest campaigns of each study whose pages have distributions and figures."""
    budget_s: float
    """Seconds for making pages; the next build makes the pages that are left."""


class PageTask(Struct, frozen=True, kw_only=True):
    """One page to make."""

    ledger: Path
    version: RunVersion
    explanations: tuple[RunVersion, ...]
    """Campaigns that may explain the gap of this one, the latest first."""
    is_full: bool
    """Whether the page has distributions and figures."""


class PageContent(Struct, frozen=True, kw_only=True):
    """A page, and what the index shows of its campaign."""

    html: str
    title: str
    noun: str
    is_full: bool
    series: str | None
    changes: tuple[Change, ...]
    badges: tuple[Badge, ...]


class SiteReport(Struct, frozen=True):
    """Outcome of a build."""

    campaigns: int
    written: int
    """Number of pages that were written."""
    removed: int
    """Number of pages that were removed."""
    waiting: int
    """Number of pages that the next build makes."""
    problems: tuple[UnusableInput, ...]
    """Errors about campaigns that have no page."""


class _Outcome(Struct, frozen=True):
    """A page that is written; its text stays in the process that made it."""

    content: PageContent | None
    """``None`` if the page could not be made."""
    problem: str = ""
    hint: str | None = None


_WAITING = _Outcome(None)
"""Stands for a page that is not made yet."""


MakePage = Callable[[PageTask], PageContent]
"""Makes the page of a campaign, perhaps in another process; raises `UnusableInput`."""
ShowProgress = Callable[[int, int], None]
"""Takes the number of pages that are done, and the number of pages to make."""


def build_site(
    request: SiteRequest, program: str, make_page: MakePage, show_progress: ShowProgress | None
) -> SiteReport:
    """Build a site, or bring it up to date.

    ``program`` is the version of Equipoise; another version writes every file again.

    Raise `UnusableInput` if a ledger cannot be read, the folder is not that of a site, or a file
    cannot be written.
    """
    deadline = time.monotonic() + request.budget_s
    with ExitStack() as stack:
        paths = dict.fromkeys(ledger.absolute() for ledger in request.ledgers)
        ledgers = [stack.enter_context(open_for_reading(path)) for path in paths]
        old = open_site(request.folder)
        known = {record.identity: record for record in old.pages}
        campaigns, problems = campaigns_of(ledgers, known)
    present = _prepare_folders(request.folder)
    # Another version makes all files again.
    is_same_program = old.program == program
    current = _current_records(old, campaigns, present) if is_same_program else {}
    tasks = _tasks(campaigns, current, request.full_pages)
    _refuse_foreign_files(request.folder, old, [_page_of(task.version) for task in tasks])
    first_identity = campaigns[0].version.identity if campaigns else ""
    manifest = replace(
        old,
        program=program,
        feed_id=old.feed_id or identifier_of(f"feed {first_identity}"),
        pending=tuple(sorted(old.own_files | {_page_of(task.version) for task in tasks})),
    )

    def with_records() -> Manifest:
        records = (current.get(campaign.version.identity) for campaign in campaigns)
        return replace(manifest, pages=tuple(record for record in records if record is not None))

    def save_records() -> None:
        # The manifest names a page only when the page is on the disk.
        os.sync()
        save_manifest(request.folder, with_records())

    if tasks:
        save_manifest(request.folder, with_records())
    campaign_by_identity = {campaign.version.identity: campaign for campaign in campaigns}
    for task in tasks:
        # Until its page is made, a campaign keeps its page of an earlier build.
        identity = task.version.identity
        record = known.get(identity)
        if record is None or record.page not in present:
            record = _record_of(campaign_by_identity[identity], _WAITING)
        current[identity] = replace(record, digest="")
    written = 0
    try:
        outcomes = _outcomes(make_page, request.folder, tasks, deadline)
        for count, (task, outcome) in enumerate(zip(tasks, outcomes, strict=True), 1):
            if outcome == _WAITING:
                continue
            campaign = campaign_by_identity[task.version.identity]
            current[task.version.identity] = _record_of(campaign, outcome)
            if outcome.content is not None:
                written += 1
            else:
                problem = f"campaign {task.version.name} has no page: {outcome.problem}"
                problems.append(UnusableInput(problem, hint=outcome.hint))
            if count % _PAGES_BETWEEN_SAVES == 0:
                save_records()
            if show_progress is not None:
                show_progress(count, len(tasks))
    finally:
        # A build that is interrupted keeps its finished pages.
        if tasks:
            save_records()
    removed = _write_index(
        request, old, with_records(), _present_files(request.folder, old) if is_same_program else ()
    )
    waiting_count = sum(not record.digest for record in current.values())
    return SiteReport(len(campaigns), written, removed, waiting_count, tuple(problems))


def _prepare_folders(site: Path) -> Collection[str]:
    """Create the folders of a site; return the paths of the pages that exist.

    Raise `UnusableInput` if a folder cannot be created.
    """
    try:
        for name in _FOLDERS:
            (site / name).mkdir(exist_ok=True)
    except OSError as error:
        problem = f"cannot create a folder in {site}: {error.strerror}"
        raise UnusableInput(problem, hint=WRITE_HINT) from error
    for folder in (site, *(site / name for name in _FOLDERS)):
        remove_unfinished(folder)
    return frozenset(f"{CAMPAIGNS}/{name}" for name in os.listdir(site / CAMPAIGNS))


def _current_records(
    old: Manifest, campaigns: Sequence[Campaign], present: Collection[str]
) -> dict[str, PageRecord]:
    """Return the records of the pages that are up to date, by identity.

    A campaign without a page has none, so the next build tries again.
    """
    digests = {campaign.version.identity: campaign.digest for campaign in campaigns}
    return {
        record.identity: record
        for record in old.pages
        if digests.get(record.identity) == record.digest and record.page in present
    }


def _tasks(
    campaigns: Sequence[Campaign], current: Mapping[str, PageRecord], full_pages: int
) -> list[PageTask]:
    """Return the pages to make, the latest first.

    The latest campaigns of each study have full pages. A full page stays full.
    """
    counts: Counter[str] = Counter()
    tasks = []
    for campaign in reversed(campaigns):
        version = campaign.version
        counts[version.study] += 1
        is_full = counts[version.study] <= full_pages
        record = current.get(version.identity)
        if record is None or (is_full and not record.is_full):
            tasks.append(
                PageTask(
                    ledger=campaign.ledger,
                    version=version,
                    explanations=campaign.explanations,
                    is_full=is_full,
                )
            )
    return tasks


def _page_of(version: RunVersion) -> str:
    return f"{CAMPAIGNS}/{version.id}-{version.identity[:8]}.html"


def _refuse_foreign_files(site: Path, old: Manifest, paths: Sequence[str]) -> None:
    """Raise `UnusableInput` if a file exists that this site did not write."""
    own_files = old.own_files
    for path in paths:
        if path not in own_files and os.path.lexists(site / path):
            raise UnusableInput(
                f"{site / path} is not a file of this site, and would be replaced",
                hint="move the file elsewhere, or name another folder with -o",
            )


def _record_of(campaign: Campaign, outcome: _Outcome) -> PageRecord:
    version, content = campaign.version, outcome.content
    return PageRecord(
        identity=version.identity,
        digest=campaign.digest,
        page=None if content is None else _page_of(version),
        is_full=content is not None and content.is_full,
        # The names of the conditions may have secret values, which only a page hides.
        title=f"Campaign {version.name}" if content is None else content.title,
        noun=version.study if content is None else content.noun,
        name=version.name,
        study=version.study,
        started_at=version.started_at,
        host=version.host,
        trials=version.trials,
        earlier=campaign.earlier,
        mentioned=campaign.mentioned,
        series=None if content is None else content.series,
        changes=() if content is None else content.changes,
        badges=() if content is None else content.badges,
    )


def _present_files(site: Path, old: Manifest) -> Collection[str]:
    """Return the files that take long to make, and that an earlier build made."""
    paths = (*old.list_digests, CHART_LIBRARY)
    return frozenset(path for path in paths if (site / path).is_file())


def _write_index(
    request: SiteRequest, old: Manifest, manifest: Manifest, present: Collection[str]
) -> int:
    """Write the index and the shared files; remove files without a campaign.

    Files of an earlier build that are ``present`` are written again only if they change. Return the
    number of removed pages.
    """
    site = request.folder
    current = {path: digest for path, digest in old.list_digests.items() if path in present}
    index = index_files(request.title, manifest, current)
    contents = {**shared_files(), **index.contents}
    if any(record.is_full for record in manifest.pages):
        contents[CHART_LIBRARY] = (
            (site / CHART_LIBRARY).read_bytes() if CHART_LIBRARY in present else chart_library()
        )
    final = replace(
        manifest,
        files=tuple(sorted(contents.keys() | index.list_digests.keys())),
        list_digests=dict(index.list_digests),
        pending=(),
    )
    obsolete = manifest.own_files - final.own_files
    _refuse_foreign_files(site, manifest, final.files)
    if final != old:
        save_manifest(site, replace(final, pending=tuple(sorted(manifest.own_files))))
    for path, content in contents.items():
        write_if_changed(site / path, content)
    existing = [path for path in obsolete if os.path.lexists(site / path)]
    for path in existing:
        (site / path).unlink()
    if final != old:
        save_manifest(site, final)
    return sum(path.startswith(f"{CAMPAIGNS}/") for path in existing)


def _outcomes(
    make_page: MakePage, site: Path, tasks: Sequence[PageTask], deadline: float
) -> Iterator[_Outcome]:
    """Make and write pages, in the order of the tasks; many pages are made in processes."""
    make_and_write = partial(_make_and_write, make_page, site, deadline)
    if len(tasks) < _MIN_TASKS_FOR_POOL:
        yield from map(make_and_write, tasks)
        return
    executor = ProcessPoolExecutor(
        len(os.sched_getaffinity(0)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare_process,
    )
    try:
        yield from executor.map(make_and_write, tasks, chunksize=_CHUNK)
    finally:
        executor.shutdown(cancel_futures=True)


def _prepare_process() -> None:
    """Leave interrupts to the process of the command, and end with that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _make_and_write(make_page: MakePage, site: Path, deadline: float, task: PageTask) -> _Outcome:
    """Make and write a page, unless the moment ``deadline`` of the monotonic clock has passed."""
    if time.monotonic() >= deadline:
        return _WAITING
    try:
        content = make_page(task)
    except UnusableInput as error:
        return _Outcome(None, error.what, error.hint)
    write_unflushed(site / _page_of(task.version), content.html.encode(), WRITE_HINT)
    return _Outcome(replace(content, html=""))
