"""Standard streams that are full, closed or narrow, and errors that nobody foresaw."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.cli import crash, main
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise
from packages.equipoise.tests.cli.test_bad_input import recorded_trials
from packages.equipoise.tests.programs import finished

ENTRY_LINE = shlex.join(ENTRY)
FULL = "cannot write to standard output: no space left on device"
CLOSED = "cannot write to standard output: it is closed"


def in_shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which ``$E`` is equipoise, in a process of its own."""
    return finished(
        ["/bin/bash", "-c", line],
        cwd=folder,
        env={**os.environ, "E": ENTRY_LINE, **environment},
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$E list studies >/dev/full", FULL),
        ("$E --version >&-", CLOSED),
        ("$E --help >&- 2>&-", ""),
        ("$E completion bash >/dev/full 2>/dev/full", ""),
    ],
)
def test_a_result_that_cannot_be_written_is_status_74_and_one_line(
    tmp_path: Path, line: str, words: str
) -> None:
    answer = in_shell(line, tmp_path)
    assert answer.returncode == 74, answer
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == (1 if words else 0)
    assert words in answer.stderr


def test_a_campaign_whose_result_cannot_be_written_is_whole_in_the_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / ".equipoise" / "ledger.db"
    answer = in_shell(
        "$E compare true true --blocks 2 --json - --report page.md >/dev/full", tmp_path
    )
    assert (answer.returncode, answer.stderr.count("\n")) == (74, 1), answer
    assert recorded_trials(ledger) == 6
    assert "undecided after 2 blocks" in (tmp_path / "page.md").read_text()


def test_progress_that_cannot_be_written_harms_no_campaign(tmp_path: Path) -> None:
    answer = in_shell("$E compare true true --blocks 2 --json - 2>/dev/full", tmp_path)
    assert answer.returncode == 0
    assert json.loads(answer.stdout)["run"]["blocks"] == 2


def test_a_command_that_writes_nothing_needs_no_output(tmp_path: Path) -> None:
    answer = in_shell("$E compare true true --blocks 2 --quiet <&- >&- 2>&-", tmp_path)
    assert answer.returncode == 0
    assert recorded_trials(tmp_path / ".equipoise" / "ledger.db") == 6


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path) -> None:
    # More than a pipe holds, so that the writer meets the end of its reader.
    (tmp_path / "many.py").write_text(
        "import sys; from equipoise.cli import main\n"
        "@main.cli.command('many')\n"
        "def many(): sys.stdout.write('line\\n' * 200_000)\n"
        "main.module_of_command = lambda name: name\n"
        "main.LazyCommands.get_command = lambda *_: many\n"
        "sys.argv = ['equipoise', 'many']; main.main()\n"
    )
    python = shlex.quote(sys.executable)
    answer = in_shell(f"{python} many.py | head -n 1; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert (answer.stdout, answer.stderr) == ("line\n0\n", "")


def test_a_stream_that_lacks_a_character_gets_a_replacement(equipoise: Equipoise) -> None:
    assert equipoise("compare", "true", "true", "-n", "ä", "--blocks", "1", "--quiet").status == 0
    answer = in_shell("$E show", equipoise.folder, PYTHONIOENCODING="ascii")
    assert answer.returncode == 0, answer
    assert "\\xe4" in answer.stdout
    assert answer.stdout.isascii()


def test_a_working_folder_that_was_deleted_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    answer = in_shell("cd gone; rmdir ../gone; $E list", tmp_path)
    assert answer.returncode == 2, answer
    assert answer.stderr.startswith("equipoise: the working folder was deleted\n")
    assert answer.stderr.count("\n") == 2


def test_too_few_open_files_are_named_with_the_limit(tmp_path: Path) -> None:
    answer = in_shell("ulimit -n 12; $E compare true true --blocks 1", tmp_path)
    assert answer.returncode == 2, answer
    assert answer.stderr == (
        "equipoise: too many open files\n"
        "  hint: raise `ulimit -n`, which is 12 here: 256 is enough\n"
    )


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """`equipoise list` has a defect; gives the state folder of the user."""

    def fails(*_: object) -> None:
        raise TypeError("no such thing as s3cr3t-canary")

    monkeypatch.setattr(main.LazyCommands, "get_command", fails)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def crash_file_in(folder: Path) -> Path:
    (found,) = folder.glob("equipoise-crash-*.txt")
    return found


def test_a_defect_is_status_70_one_line_and_a_crash_file(
    equipoise: Equipoise, defect: Path
) -> None:
    answer = equipoise("compare", "--seed", "7", "--env", "1:TOKEN=s3cr3t-canary")
    file = crash_file_in(defect / "equipoise" / "crashes")
    assert (answer.status, answer.out) == (70, "")
    assert answer.err == (
        f"equipoise: internal error: TypeError: no such thing as {crash.SECRET_MARK}; "
        f"please report it with {file}\n"
    )
    trace = file.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in trace
    assert "'--seed', '7', '--env', '1:TOKEN=[left out]'" in trace
    assert "s3cr3t-canary" not in trace
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_crash_file_goes_to_the_temporary_folder_where_there_is_no_other(
    equipoise: Equipoise, defect: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    defect.write_text("in the way of the folder")
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        assert f"report it with {tmp_path}/equipoise-crash-" in equipoise("list").err
        crash_file_in(tmp_path)
        patch.setattr("tempfile.tempdir", "/proc/nowhere")
        answer = equipoise("list")
    assert (answer.status, answer.err.endswith("; please report it\n")) == (70, True)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--env=A=secret"], ["--env=A=[left out]"]),
        (["--env", "x", "--seed"], ["--env", "[left out]", "--seed"]),
        (["--prepare", "T=secret ./login", "sort x"], ["--prepare", "[left out]", "sort x"]),
        (["--build=T=secret make"], ["--build=[left out]"]),
        (["--env", "--env", "A=secret"], ["--env", "[left out]", "A=secret"]),
    ],
)
def test_a_crash_file_has_the_arguments_without_values(
    arguments: list[str], shown: list[str]
) -> None:
    assert crash.without_secrets(arguments)[0] == shown


def test_an_interrupt_inside_generated_code_ends_with_status_130(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        """
import sys
from equipoise.cli import main


def interrupted(*_, **__):
    exec("raise KeyboardInterrupt")


main.cli.main = interrupted
sys.exit(main.run(["list"]))
"""
    )
    # Only `python -m` ends by SIGINT where CPython still has the mark of the interrupt.
    answer = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, check=False)
    assert answer.returncode == 130
