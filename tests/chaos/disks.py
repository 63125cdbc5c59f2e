"""A full disk under one command, in a mount namespace that ends with the case.

Run as a program it is the inside of that namespace: ``python -m tests.chaos.disks FOLDER NAME``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tests.chaos import invariants
from tests.chaos.commands import COMMANDS, OLD_PAGE, OPEN, PAIR
from tests.chaos.kills import Outcome
from tests.chaos.processes import Ended, Family, children, start, subreaper
from tests.chaos.workplace import ENTRY, Workplace, restored

Place = Literal["ledger", "temporary folder", "report", "home"]
ALLOWED = frozenset({0, 2, 3, 74})
"""A command may do without the room, refuse, lose a trial, or fail to write; it may not crash."""
_ROOM = "1g"


@dataclass(frozen=True, slots=True)
class FullDisk:
    """One command on a small file system."""

    place: Place
    size_kib: int
    arguments: tuple[str, ...]
    filled: bool = False
    """Whether the file system is full before the command starts."""
    inodes: int = 0
    """Most files of the file system; 0 for any number."""
    ledger: str | None = None
    folder: str = "."
    resume: tuple[str, ...] | None = None
    """Options of ``equipoise resume last`` once there is room; else the command is run again."""
    allowed: frozenset[int] = ALLOWED


_COMPARE = ("compare", *PAIR, "--quiet", "--blocks", "12", *OPEN)
_GATE = COMMANDS["gate"].arguments
CASES: dict[str, FullDisk] = {
    "the ledger's disk is full": FullDisk("ledger", 64, _COMPARE, filled=True),
    "the ledger's disk fills during a campaign": FullDisk(
        "ledger",
        300,
        ("compare", *PAIR, "--quiet", "--blocks", "60", *OPEN),
        resume=("--blocks", "61"),
    ),
    "the ledger's disk has no room for another file": FullDisk("ledger", 4096, _COMPARE, inodes=2),
    "the ledger's disk is full at an import": FullDisk(
        "ledger", 64, ("import", "hyperfine.json", "--quiet"), filled=True
    ),
    "the temporary folder is full": FullDisk("temporary folder", 64, _COMPARE, filled=True),
    "the temporary folder has no room for another file": FullDisk(
        "temporary folder", 4096, _COMPARE, inodes=12
    ),
    "the temporary folder is full and output is counted": FullDisk(
        "temporary folder", 64, (*_COMPARE, "--output", "count"), filled=True
    ),
    "the temporary folder is full at a server study": FullDisk(
        "temporary folder", 64, ("run", "served.toml", "--quiet"), filled=True
    ),
    "the temporary folder is full at a gate": FullDisk(
        "temporary folder", 64, _GATE, filled=True, folder="project"
    ),
    "the temporary folder fills during a gate": FullDisk(
        "temporary folder", 80, _GATE, folder="project"
    ),
    "the temporary folder is full at why": FullDisk(
        "temporary folder", 64, COMMANDS["why"].arguments, filled=True, ledger="decided.db"
    ),
    "the report's disk is full": FullDisk(
        "report", 64, ("report", "last", "-o", "page.html"), filled=True, ledger="decided.db"
    ),
    "the report's disk fills": FullDisk(
        "report", 300, ("report", "last", "-o", "page.html"), ledger="decided.db"
    ),
    "the report's disk fills at the end of a campaign": FullDisk(
        "report", 300, (*_COMPARE, "--report", "page.html")
    ),
    "the home is full": FullDisk("home", 16, _COMPARE, filled=True, allowed=frozenset({0})),
}  # fmt: skip


def why_not() -> str | None:
    """Return why no small file system can be mounted here; None if one can."""
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"cannot mount a file system: {done.stderr.strip()}"


def attack(place: Workplace, name: str) -> Outcome:
    """Run one case in a mount namespace of its own."""
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private"]
        + [sys.executable, "-m", "tests.chaos.disks", str(place.folder), name],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return Outcome(**{**found, "problems": tuple(found["problems"]), "seen": ()})


def _inside(place: Workplace, name: str) -> Outcome:
    case = CASES[name]
    began = time.monotonic()
    with subreaper(), restored(place) as canaries, _small(place, case) as mounted:
        family = Family(children())
        try:
            problems = _problems(place, case, mounted, family)
            problems += canaries.harmed()
        finally:
            family.end()
        trials = invariants.read_ledger(place.ledger).trials()
    return Outcome(name, name, True, tuple(problems), trials, trials, time.monotonic() - began)


def _problems(place: Workplace, case: FullDisk, mounted: Path, family: Family) -> list[str]:
    page = place.report()
    if case.place == "report":
        page = mounted / "page.html"
        page.write_text(OLD_PAGE)
    if case.filled:
        _fill(mounted / "filler")
    arguments = tuple(
        word.replace("{work}", str(place.work)).replace("page.html", str(page))
        for word in case.arguments
    )
    ended = _run(place, case, family, (*ENTRY, *arguments), "full")
    problems = invariants.answer_is_fit(ended, case.allowed, "the command on the full disk")
    problems += invariants.ledger_is_intact(place.ledger)
    kept = invariants.read_ledger(place.ledger)
    if case.place == "report":
        problems += invariants.page_is_whole(page)
    _make_room(mounted)
    again = (*ENTRY, *arguments)
    if case.resume is not None:
        again = (*ENTRY, "resume", "last", "--json", "-", *case.resume)
    after = _run(place, case, family, again, "again")
    problems += invariants.answer_is_fit(after, frozenset({0}), "the same with room")
    problems += invariants.nothing_is_lost(
        kept, invariants.read_ledger(place.ledger), "by the next start"
    )
    (mounted / "filler").unlink(missing_ok=True)
    left = invariants.nothing_is_left(place, family)
    if left:
        _run(place, case, family, (*ENTRY, "doctor", "--quiet"), "doctor")
        left = invariants.nothing_is_left(place, family)
    return problems + left


def _run(
    place: Workplace, case: FullDisk, family: Family, line: tuple[str, ...], name: str
) -> Ended:
    # What it says goes to a disk with room.
    said = place.folder / name
    running = start(line, place.work / case.folder, place.environment(), family, said)
    return running.wait(family, 180.0)


@contextmanager
def _small(place: Workplace, case: FullDisk) -> Iterator[Path]:
    """Mount a small file system at the place of the case; the ledger of the template is in it."""
    folders = {
        "ledger": place.ledger.parent,
        "temporary folder": place.temporary,
        "report": place.work / "pages",
        "home": place.home,
    }
    folder = folders[case.place]
    folder.mkdir(exist_ok=True)
    inside = {file.relative_to(folder): file.read_bytes() for file in _files(folder)}
    options = f"size={case.size_kib}k" + (f",nr_inodes={case.inodes}" if case.inodes else "")
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        for name, content in inside.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        if case.ledger is not None:
            place.ledger.parent.mkdir(exist_ok=True)
            place.ledger.write_bytes((place.work / case.ledger).read_bytes())
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _fill(file: Path) -> None:
    """Write zeros until there is no room."""
    with file.open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError as error:
            if error.errno != 28:
                raise


def _make_room(folder: Path) -> None:
    options = f"remount,size={_ROOM},nr_inodes=100000"
    subprocess.run(["mount", "-o", options, folder], check=True)


if __name__ == "__main__":
    os.setpgid(0, 0)
    print(json.dumps(asdict(_inside(Workplace(Path(sys.argv[1])), sys.argv[2]))))
