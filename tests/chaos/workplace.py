"""The private folders of one case, with files and a process of the user that nobody may touch."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENTRY = (sys.executable, "-m", "equipoise.cli")
KEPT_VARIABLES = ("LANG", "VIRTUAL_ENV")
CANARY_FILES = {
    "equipoise-notes/owner": "a file of the user\n",
    "equipoise-notes/diary/monday": "what happened\n",
    "equipoise-probe-mine/data": "three columns\n",
    "unrelated/file": "nothing to do with Equipoise\n",
}
"""Files below the temporary folder, in folders whose names look like those of Equipoise."""
CANARY_FOLDER = "equipoise-probe-mine"
"""Folder below the temporary folder in which a process of the user works."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of one worker, which runs one case after the other."""

    folder: Path

    @property
    def template(self) -> Path:
        """Folder that every case begins with a copy of."""
        return self.folder / "template"

    @property
    def work(self) -> Path:
        """Working folder of every command."""
        return self.folder / "work"

    @property
    def temporary(self) -> Path:
        """Value of TMPDIR."""
        return self.folder / "tmp"

    @property
    def home(self) -> Path:
        """Value of HOME."""
        return self.folder / "home"

    @property
    def ledger(self) -> Path:
        """Ledger of every command."""
        return self.work / ".equipoise" / "ledger.db"

    def environment(self) -> dict[str, str]:
        """Return the environment of every command."""
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "TMPDIR": str(self.temporary),
            "EQUIPOISE_ALLOW_CONCURRENT": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **_session(os.environ),
        }

    def report(self) -> Path:
        """Return the page that commands with ``--report`` write."""
        return self.work / "page.html"


def _session(environment: Mapping[str, str]) -> dict[str, str]:
    # The tests look for processes that outlive them by this variable.
    return {
        name: value
        for name, value in environment.items()
        if name in ("EQUIPOISE_TEST_SESSION", "PYTHONPATH")
    }


@dataclass(frozen=True, slots=True)
class Canaries:
    """Files and a process of the user that must survive the case."""

    workplace: Workplace
    process: subprocess.Popen[bytes]

    def harmed(self) -> list[str]:
        """Return one sentence for each canary that is no longer as it was."""
        sentences = []
        for name, text in CANARY_FILES.items():
            file = self.workplace.temporary / name
            if not file.is_file():
                sentences.append(f"the user's file {name} was deleted")
            elif file.read_text() != text:
                sentences.append(f"the user's file {name} was changed")
        if self.process.poll() is not None:
            sentences.append(f"the user's process in {CANARY_FOLDER} was killed")
        return sentences


@contextmanager
def restored(place: Workplace) -> Iterator[Canaries]:
    """Give a case its folders as the template has them, with canaries; remove them at the end.

    Every case of a worker has the same path, since a ledger names the folder of its campaign.
    """
    shutil.copytree(place.template, place.work, symlinks=True)
    for made in (place.temporary, place.home):
        made.mkdir()
    with canaries(place) as watched:
        try:
            yield watched
        finally:
            for made in (place.work, place.temporary, place.home):
                remove(made)


def remove(folder: Path) -> None:
    """Remove a folder, also where a case left it unwritable."""
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False, capture_output=True)
    shutil.rmtree(folder)


@contextmanager
def canaries(place: Workplace) -> Iterator[Canaries]:
    """Write the user's files and start the user's process."""
    for name, text in CANARY_FILES.items():
        file = place.temporary / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # A shell elsewhere is its parent: a process that was killed would stay as a zombie otherwise.
    script = '(cd "$1" && echo && exec sleep 3600 >/dev/null) & wait'
    process = subprocess.Popen(
        ["sh", "-c", script, "sh", place.temporary / CANARY_FOLDER],
        process_group=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    # A disk that is mounted over the folder before the process is in it would end the process.
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    try:
        yield Canaries(place, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
