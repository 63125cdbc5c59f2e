"""A site is built in steps: only what changed is written, and foreign files stay."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.site import PageContent, PageTask, SiteReport, SiteRequest, build_site
from equipoise.site.manifest import MANIFEST
from packages.equipoise.tests.cli.test_show import record
from packages.equipoise.tests.plans import plan_of


def page(task: PageTask) -> PageContent:
    """A page that says which rows it is made of."""
    return PageContent(
        html=f"{task.version.name} {task.version.row_counts} {task.is_full}",
        title=f"Answer of {task.version.name}",
        noun="comparison",
        is_full=False,
        series=None,
        changes=(),
        badges=(),
    )


def build(folder: Path, *ledgers: Path, make_page=page, budget_s: float = 60.0) -> SiteReport:  # type: ignore[no-untyped-def]
    """Build the site of the ledgers in the folder ``site``."""
    request = SiteRequest(
        ledgers=ledgers,
        folder=folder / "site",
        title="Team",
        full_pages=0,
        budget_s=budget_s,
    )
    return build_site(request, "1", make_page, None)


def moments(folder: Path) -> dict[str, tuple[int, int]]:
    """The inode and the time of the last write of each file of the site."""
    site = folder / "site"
    return {
        str(file.relative_to(site)): (file.stat().st_ino, file.stat().st_mtime_ns)
        for file in site.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with three campaigns."""
    path = tmp_path / "ledger.db"
    for _ in range(3):
        record(path, plan_of("a", "b"), "6.1")
    return path


def test_a_second_build_writes_no_file(tmp_path: Path, ledger: Path) -> None:
    assert build(tmp_path, ledger).written == 3
    before = moments(tmp_path)
    assert build(tmp_path, ledger) == SiteReport(3, 0, 0, 0, ())
    assert moments(tmp_path) == before


def test_a_new_campaign_writes_its_page_the_index_and_the_feed(
    tmp_path: Path, ledger: Path
) -> None:
    build(tmp_path, ledger)
    before = moments(tmp_path)
    run = record(ledger, plan_of("a", "b"), "6.1")
    build(tmp_path, ledger)
    after = moments(tmp_path)
    written = {name for name in after if after[name] != before.get(name)}
    (new_page,) = (name for name in written if run in name)
    assert written == {new_page, "index.html", "feed.xml", MANIFEST}


def test_a_campaign_with_another_row_gets_a_new_page(tmp_path: Path, ledger: Path) -> None:
    build(tmp_path, ledger)
    before = moments(tmp_path)
    with open_for_writing(ledger, durable=False) as target:
        run = target.runs()[1].id
        target.record_warning(run, CampaignWarning("busy", "it was busy", "run again"))
    assert build(tmp_path, ledger).written == 1
    after = moments(tmp_path)
    pages = [
        name for name in after if name.startswith("campaigns/") and after[name] != before[name]
    ]
    assert [run in name for name in pages] == [True]


def test_a_run_in_two_ledgers_has_one_page_of_its_longer_copy(tmp_path: Path, ledger: Path) -> None:
    copy = tmp_path / "copy.db"
    with open_for_reading(ledger) as source:
        shutil.copy(source.path, copy)
        run = source.runs()[0].id
    with open_for_writing(copy, durable=False) as target:
        target.record_warning(run, CampaignWarning("busy", "it was busy", "run again"))
    assert build(tmp_path, ledger, copy, ledger).campaigns == 3
    (longer,) = (tmp_path / "site/campaigns").glob(f"{run}-*")
    # The fifth number counts warnings.
    assert "60, 1, 0)" in longer.read_text()


def test_a_page_without_a_campaign_is_removed_and_other_files_stay(
    tmp_path: Path, ledger: Path
) -> None:
    other = tmp_path / "other.db"
    run = record(other, plan_of("a", "b"), "6.1")
    build(tmp_path, ledger, other)
    site = tmp_path / "site"
    for name in ("CNAME", "campaigns/notes.html", "badges/logo.svg"):
        (site / name).write_text("mine")
    report = build(tmp_path, ledger)
    assert (report.campaigns, report.removed) == (3, 1)
    assert not list((site / "campaigns").glob(f"{run}-*"))
    for name in ("CNAME", "campaigns/notes.html", "badges/logo.svg"):
        assert (site / name).read_text() == "mine"


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, ledger: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("mine")
    with pytest.raises(UnusableInput, match="no site of Equipoise") as refusal:
        build(tmp_path, ledger)
    assert refusal.value.hint == "name a new or an empty folder with -o"
    assert (tmp_path / "site/index.html").read_text() == "mine"


def test_a_foreign_file_in_the_place_of_a_page_is_not_replaced(
    tmp_path: Path, ledger: Path
) -> None:
    build(tmp_path, ledger)
    run = record(ledger, plan_of("a", "b"), "6.1")
    with open_for_reading(ledger) as source:
        identity = source.identity_of(run)
    foreign = tmp_path / f"site/campaigns/{run}-{identity[:8]}.html"
    foreign.write_text("mine")
    with pytest.raises(UnusableInput, match="is not a file of this site"):
        build(tmp_path, ledger)
    assert foreign.read_text() == "mine"


@pytest.mark.parametrize("path", ["../outside.html", "campaigns/../../outside.html", "/etc/motd"])
def test_a_manifest_names_no_file_outside_of_the_site(
    tmp_path: Path, ledger: Path, path: str
) -> None:
    build(tmp_path, ledger)
    manifest = tmp_path / "site" / MANIFEST
    content = manifest.read_text().replace("feed.xml", path)
    manifest.write_text(content)
    with pytest.raises(UnusableInput, match="cannot read"):
        build(tmp_path, ledger)


KILLED_BUILD = """
import os, signal, sys
from pathlib import Path
from packages.equipoise.tests.site.test_building import build, page

made = []

def dying_page(task):
    made.append(task)
    if len(made) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return page(task)

build(Path(sys.argv[1]), Path(sys.argv[2]), make_page=dying_page)
"""


def test_a_killed_build_is_mended_by_the_next(tmp_path: Path, ledger: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BUILD, str(tmp_path), str(ledger)],
        check=False,
        cwd=Path(__file__).parents[4],
    )
    assert killed.returncode == -signal.SIGKILL
    site = tmp_path / "site"
    assert len(list((site / "campaigns").iterdir())) == 2
    (site / "campaigns/.equipoise-unfinished-12ab").write_text("half a page")
    build(tmp_path, ledger)
    whole = tmp_path / "whole"
    whole.mkdir()
    build(whole, ledger)
    assert contents(site) == contents(whole / "site")


def contents(site: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(site)): file.read_bytes() for file in site.rglob("*") if file.is_file()
    }


def test_an_interrupted_build_keeps_its_finished_pages(tmp_path: Path, ledger: Path) -> None:
    made: list[PageTask] = []

    def interrupted(task: PageTask) -> PageContent:
        made.append(task)
        if len(made) == 3:
            raise KeyboardInterrupt
        return page(task)

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, ledger, make_page=interrupted)
    assert build(tmp_path, ledger).written == 1


def test_pages_beyond_the_budget_wait_for_the_next_build(tmp_path: Path, ledger: Path) -> None:
    report = build(tmp_path, ledger, budget_s=0.0)
    assert (report.written, report.waiting) == (0, 3)
    index = tmp_path / "site/index.html"
    assert index.read_text().count("no page yet") == 3
    report = build(tmp_path, ledger)
    assert (report.written, report.waiting) == (3, 0)
    assert "no page yet" not in index.read_text()


def test_a_campaign_that_cannot_be_computed_is_named_and_the_others_have_pages(
    tmp_path: Path, ledger: Path
) -> None:
    with open_for_reading(ledger) as source:
        broken = source.runs()[1].id

    def failing(task: PageTask) -> PageContent:
        if task.version.name == broken:
            raise UnusableInput("it lacks an earlier campaign", hint="merge the ledgers")
        return page(task)

    report = build(tmp_path, ledger, make_page=failing)
    (problem,) = report.problems
    assert problem.what == f"campaign {broken} has no page: it lacks an earlier campaign"
    assert problem.hint == "merge the ledgers"
    assert report.written == 2
    assert (tmp_path / "site/index.html").read_text().count("no page could be made") == 1
    assert len(os.listdir(tmp_path / "site/campaigns")) == 2
    # The next build tries again.
    assert build(tmp_path, ledger) == SiteReport(3, 1, 0, 0, ())
