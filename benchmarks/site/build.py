"""A site of 10,000 campaigns: the first build, again with one new campaign, and in a browser.

It prints the times, the load of the machine, the sizes, and what Chromium's console and axe say
about each kind of page: the index, a list, and the pages of three campaigns. The exit status is 1
if a bar is missed: 60 s for the first build, 5 s for each later one, no message, no violation.

A few campaigns are measured: gates of two revisions in a small repository, and comparisons. The
ledger has copies of them under new identities and ids. Run it with ``python -m
benchmarks.site.build``; ``--campaigns 500`` is a quick look, and ``--keep FOLDER`` keeps the site
and, for the next run, the measured campaigns.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.ledger.parts import MAX_TRIALS, Cursor, RunPart, add_part, read_part
from equipoise.ledger.run_reference import new_run_id
from packages.equipoise.tests.report.accessibility import assert_accessible
from packages.equipoise.tests.report.chromium import DRAWN, Browser, chromium

FIRST_BAR_S, NEXT_BAR_S = 60.0, 5.0
EQUIPOISE = (sys.executable, "-m", "equipoise.cli")
REPOSITORY = r"""
git init -q . && git config user.email ada@example.org && git config user.name Ada
printf '#!/bin/sh\nsleep 0.010\n' > bench && chmod +x bench && git add bench
git commit -qm First && git tag v1.0
printf '#!/bin/sh\nsleep 0.010\n: no change\n' > bench && git commit -qam Second && git tag v1.1
printf '#!/bin/sh\nsleep 0.013\n' > bench && git commit -qam Third
"""
GATE = ("gate", "--baseline", "v1.0", "--blocks", "40")
MEASURED = (
    (*GATE, "--", "./bench"),
    (*GATE, "--candidate", "v1.1", "--", "./bench"),
    (*GATE, "--candidate", "v1.1", "--min-effect", "20", "--", "./bench"),
    (*GATE, "--candidate", "v1.1", "--min-effect", "10", "--", "./bench"),
    ("compare", "sleep 0.02", "sleep 0.025"),
    ("compare", "sleep 0.02", "sleep 0.0202", "--blocks", "30"),
    ("compare", "sleep 0.010", "sleep 0.011", "sleep 0.012", "--blocks", "30"),
)
"""Campaigns of a few dozen blocks; more than half of them are gates, most without a change."""
SECONDS_BETWEEN_CAMPAIGNS = 1800.0


def main() -> int:
    """Make the ledger, build the site three times, print the figures; exit 1 beyond a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="new folder for the ledger and the site")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="equipoise-site-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        parts = measured_parts(folder)
        for part in parts:
            print(f"{part.head.study}: {part.end.draws} blocks, {part.end.trials} trials")
        ledger, site = folder / "ledger.db", folder / "site"
        for earlier in (ledger, site):
            shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink(missing_ok=True)
        with open_for_writing(ledger, durable=False) as target:
            copy(target, parts, range(options.campaigns))
        print(f"{options.campaigns:,} campaigns, {ledger.stat().st_size / 2**20:,.0f} MiB")
        first = build("first build", ledger, site, "--budget", "36000")
        with open_for_writing(ledger, durable=False) as target:
            copy(target, parts, range(options.campaigns, options.campaigns + 1))
        added = build("again, one new", ledger, site)
        unchanged = build("again, nothing new", ledger, site)
        report_sizes(site)
        is_sound = check_pages(site)
    is_fast = first <= FIRST_BAR_S and max(unchanged, added) <= NEXT_BAR_S
    return 0 if is_fast and is_sound else 1


def measured_parts(folder: Path) -> list[RunPart]:
    """Measure the campaigns to copy; return their rows."""
    source, repository = folder / "source.db", folder / "repository"
    if not source.exists():
        repository.mkdir()
        subprocess.run(REPOSITORY, shell=True, check=True, cwd=repository)
        for arguments in MEASURED:
            command = [*EQUIPOISE, arguments[0], "--ledger", str(source), *arguments[1:]]
            # A gate that finds the planted change has the exit status 1.
            subprocess.run(command, check=False, cwd=repository, stdout=subprocess.DEVNULL)
    with open_for_reading(source) as ledger:
        versions = ledger.run_versions()
        with ledger.reading():
            return [
                read_part(ledger.connection, version.number, Cursor(), MAX_TRIALS)[0]
                for version in versions
            ]


def copy(target: Ledger, parts: list[RunPart], numbers: range) -> None:
    """Copy measured campaigns under new identities and ids, one after the other in time."""
    with target.writing():
        for number in numbers:
            part = parts[number % len(parts)]
            started_at = part.head.started_at + number * SECONDS_BETWEEN_CAMPAIGNS
            head = replace(
                part.head,
                identity=random.Random(number).randbytes(16),
                id=new_run_id(started_at),
                started_at=started_at,
            )
            add_part(target.connection, target.path, replace(part, head=head))


def build(title: str, ledger: Path, site: Path, *options: str) -> float:
    """Build the site; print and return its seconds."""
    command = [*EQUIPOISE, "site", str(ledger), "-o", str(site), *options]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    load = os.getloadavg()[0]
    print(
        f"{title}: {seconds:.1f} s, {cpu:.1f} s on {len(os.sched_getaffinity(0))} CPUs, "
        f"at most {after.ru_maxrss / 2**10:,.0f} MiB a process; load {load:.1f}",
        flush=True,
    )
    return seconds


def check_pages(site: Path) -> bool:
    """Open each kind of page from disk; return whether neither console nor axe complains."""
    if shutil.which("chromium") is None:
        print("chromium is not installed: no page was opened")
        return False
    lists, pages = (sorted((site / name).iterdir()) for name in ("lists", "campaigns"))
    # The latest page has figures.
    paths = [site / "index.html", *lists[:1], pages[0], pages[len(pages) // 2], pages[-1]]
    with chromium() as browser:
        # Every page is opened, also after one with a fault.
        are_sound = [is_sound_page(browser, site, path) for path in paths]
    return all(are_sound)


def is_sound_page(browser: Browser, site: Path, path: Path) -> bool:
    """Open a page with 390 pixels, let axe check it, and print what both find."""
    browser.events.clear()
    started = time.monotonic()
    browser.open(path, 390, 844, ready=DRAWN)
    opened_s = time.monotonic() - started
    faults = [*browser.complaints(), *browser.dialogs()]
    outside = [address for address in browser.requests() if not address.startswith(site.as_uri())]
    faults += [f"request to {address}" for address in outside]
    if browser.evaluate("document.documentElement.scrollWidth") > 390:
        faults.append("wider than 390 pixels")
    started = time.monotonic()
    try:
        assert_accessible(browser)
    except AssertionError as error:
        faults.append(f"axe: {error}")
    checked_s = time.monotonic() - started
    print(
        f"{path.relative_to(site)}: drawn in {opened_s:.1f} s, axe took {checked_s:.1f} s: "
        f"{'; '.join(faults) or 'no complaint'}"
    )
    return not faults


def report_sizes(site: Path) -> None:
    """Print the number and the size of the files in each folder of the site."""
    for folder in (site, *(path for path in sorted(site.iterdir()) if path.is_dir())):
        sizes = [file.stat().st_size for file in folder.iterdir() if file.is_file()]
        print(f"{folder.name}: {len(sizes):,} files, {sum(sizes) / 2**20:,.1f} MiB")
    pages = sorted(file.stat().st_size for file in (site / "campaigns").iterdir())
    print(
        f"median page: {pages[len(pages) // 2] / 2**10:,.1f} KiB; {pages[-1] / 2**10:,.0f} at most"
    )


if __name__ == "__main__":
    raise SystemExit(main())
