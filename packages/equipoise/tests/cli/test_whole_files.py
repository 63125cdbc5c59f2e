"""Files that commands read and write: no half page on a full disk, no wait for a silent FIFO."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from equipoise.files import writing
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise
from packages.equipoise.tests.programs import finished


def on_a_full_disk(folder: Path, lines: str) -> subprocess.CompletedProcess[str]:
    """Run lines of shell in which ``full`` is a full disk that holds page.md."""
    alone = shutil.which("unshare")
    assert alone is not None, "unshare is on every Linux"
    if subprocess.run([alone, "--mount", "true"], check=False).returncode != 0:
        pytest.skip("this container may not make a mount name space")
    (folder / "full").mkdir()
    fill = (
        "mount -t tmpfs -o size=64k none full && printf 'the old page' >full/page.md && "
        "{ head -c 100000 /dev/zero >full/filler; } 2>/dev/null\n"
    )
    return finished(
        [alone, "--mount", "sh", "-c", fill + lines, *ENTRY], cwd=folder, stdin=subprocess.DEVNULL
    )


def test_a_full_disk_keeps_the_old_report(equipoise: Equipoise, tmp_path: Path) -> None:
    assert equipoise("compare", "true", "true", "--blocks", "1", "--quiet").status == 0
    answer = on_a_full_disk(
        tmp_path, '"$0" "$@" report last -o full/page.md; echo $?; cat full/page.md; ls -A full'
    )
    assert answer.stdout == "2\nthe old pagefiller\npage.md\n"
    assert answer.stderr.startswith(
        "equipoise: cannot write full/page.md: No space left on device\n"
    )
    assert answer.stderr.count("\n") == 2


def test_output_that_finds_no_room_in_the_temporary_folder_says_so(tmp_path: Path) -> None:
    answer = on_a_full_disk(
        tmp_path,
        'TMPDIR=$PWD/full "$0" "$@" compare "echo words" true --output count --blocks 1; echo $?',
    )
    assert answer.stdout == "3\n", answer
    assert answer.stderr == (
        f"equipoise: echo words failed: exit status 1: no space was left in {tmp_path}/full\n"
        "  hint: free disk space, or set TMPDIR to a folder on another disk\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("report", "fifo.json", "-o", "page.md"),
        ("show", "--against", "fifo.json"),
    ],
)
def test_a_fifo_that_nobody_writes_to_is_named(
    equipoise: Equipoise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(writing, "WRITER_TIMEOUT_S", 0.05)
    os.mkfifo(tmp_path / "fifo.json")
    answer = equipoise(*words)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("equipoise: cannot read fifo.json: it is a FIFO, and nothing")


def test_a_fifo_that_nobody_reads_is_named(
    equipoise: Equipoise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert equipoise("compare", "true", "true", "--blocks", "1", "--quiet").status == 0
    monkeypatch.setattr(writing, "READER_TIMEOUT_S", 0.05)
    os.mkfifo(tmp_path / "fifo.md")
    answer = equipoise("report", "-o", "fifo.md")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(
        "equipoise: cannot write fifo.md: it is a FIFO that nobody reads\n"
    )
    assert equipoise("report", "-o", "/dev/null").status == 2  # its ending is of no form
    assert equipoise("show", "--json", "/dev/null", "--quiet").status == 0
