"""Every bad input gets one or two clear lines on stderr and the right exit status."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import ENTRY, Answer, Equipoise
from packages.equipoise.tests.programs import finished

Script = Callable[[str, Sequence[str]], str]


def assert_refused(answer: Answer, words: str, status: int = 2) -> None:
    assert answer.status == status, answer
    assert words in answer.err
    assert answer.err.startswith("equipoise: ")
    assert len(answer.err.strip().splitlines()) <= 2
    assert answer.out == ""


COMPARE = ("compare", "true", "true")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "true", "frobnicate"), "no program 'frobnicate'"),
        (("compare",), "compare needs a command"),
        (("compare", "true", "echo 'a"), "no closing quotation"),
        (("compare", "true", ""), "a command is empty"),
        ((*COMPARE, "--min-blocks", "9", "--blocks", "8"), "9 blocks is above the maximum"),
        ((*COMPARE, "--frobnicate"), "--frobnicate"),
        (("frobnicate",), "frobnicate"),
        (("compare", "true", "echo", "--env", "3:A=1"), "names no condition: '3'"),
        (("compare", "cat", "cat", "--input", "nowhere"), "nowhere"),
        ((*COMPARE, "--output", "no/such/file"), "there is no folder"),
        ((*COMPARE, "--json", "no/such/file.json"), "there is no folder"),
        (("show",), "no ledger"),
        (("list", "--ledger", "other.db"), "no ledger"),
        # /dev/full stands for a disk without space where a real one cannot be mounted.
        ((*COMPARE, "--ledger", "/dev/full"), "/dev/full"),
    ],
)
def test_words_that_cannot_be_used_are_named(
    equipoise: Equipoise, words: tuple[str, ...], message: str
) -> None:
    assert_refused(equipoise(*words), message)


@pytest.mark.parametrize("first", ["true", "sleep 2000"])
def test_a_hang_that_leaves_no_verdict_is_a_failure(equipoise: Equipoise, first: str) -> None:
    options = ("--timeout", "0.2", "--blocks", "2", "--quiet")
    answer = equipoise("compare", first, "sleep 1000", *options)
    assert_refused(answer, "timed out after 0.2 s", status=3)


def test_a_program_that_cannot_be_executed(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n", encoding="ascii")
    assert_refused(equipoise("compare", "true", "./tool"), "cannot be executed")


def test_a_program_that_exists_and_still_cannot_be_started(equipoise: Equipoise) -> None:
    (equipoise.folder / "broken").write_text("#!/no/such/interpreter\n", encoding="ascii")
    (equipoise.folder / "broken").chmod(0o755)
    assert_refused(equipoise("compare", "true", "./broken"), "could not be started", status=3)


def test_a_command_without_quotes_whose_option_is_one_of_ours(equipoise: Equipoise) -> None:
    (equipoise.folder / "text").write_text("text", encoding="ascii")
    answer = equipoise("compare", "gzip", "-c", "text", "true", "--blocks", "1")
    assert_refused(answer, "put the whole command in quotes", status=3)


def test_a_command_that_fails_shows_its_status_and_its_last_words(
    equipoise: Equipoise, script: Script
) -> None:
    failing = script("failing", ["echo one >&2", "echo the disk is on fire >&2", "exit 7"])
    answer = equipoise("compare", "true", failing)
    assert_refused(answer, "exit status 7", status=3)
    assert "the disk is on fire" in answer.err
    assert "--ignore-failure" in answer.err


def test_a_command_that_dies_of_a_signal(equipoise: Equipoise, script: Script) -> None:
    dying = script("dying", ["kill -SEGV $$"])
    assert_refused(equipoise("compare", "true", dying), "signal 11 (SIGSEGV)", status=3)


def test_a_command_that_hangs_beside_one_that_does_not_is_slower(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "sleep 1000", "--timeout", "0.1", "--json", "-")
    assert answer.status == 0
    assert '"verdict":"slower"' in answer.out.replace(" ", "")


def test_a_failing_hook(equipoise: Equipoise) -> None:
    answer = equipoise(*COMPARE, "-n", "a", "--prepare", "echo lost >&2; exit 3")
    assert_refused(answer, "failed: exit status 3", status=3)
    assert "--prepare of" in answer.err
    assert "lost" in answer.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--blocks", "0"),
        ("--blocks", "-1"),
        ("--blocks", "many"),
        ("--blocks", "1.5"),
        ("--min-blocks", "0"),
        ("--seed", "lucky"),
        ("--seed", "-1"),
        ("--seed", "9223372036854775808"),
        ("--budget", "0"),
        ("--budget", "nan"),
        ("--budget", "inf"),
        ("--alpha", "0"),
        ("--alpha", "1"),
        ("--alpha", "nan"),
        ("--min-effect", "-1"),
        ("--precision", "0"),
        ("--tail", "0"),
        ("--tail", "60"),
        ("--timeout", "0"),
        ("--timeout", "soon"),
        ("--warmup", "-1"),
    ],
)
def test_a_number_out_of_range_names_its_option(
    equipoise: Equipoise, option: str, value: str
) -> None:
    assert_refused(equipoise(*COMPARE, option, value), option)


def test_an_unknown_run(equipoise: Equipoise) -> None:
    assert equipoise(*COMPARE, "--blocks", "1", "--quiet").status == 0
    for command in ("show", "resume"):
        assert_refused(equipoise(command, "19990101"), "19990101")


def test_a_ledger_that_is_none(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("shopping list\n" * 50, encoding="ascii")
    for words in (("compare", "true", "true"), ("show",), ("list",), ("resume", "last")):
        assert_refused(equipoise(*words, "--ledger", "text.db"), "text.db")
    assert (tmp_path / "text.db").read_text(encoding="ascii").startswith("shopping list")


def test_another_programs_database_is_not_written_to(equipoise: Equipoise, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE precious (x)")
    before = other.read_bytes()
    assert_refused(equipoise(*COMPARE, "--ledger", "other.db"), "other.db")
    assert other.read_bytes() == before


def test_a_ledger_from_a_newer_version(equipoise: Equipoise, tmp_path: Path) -> None:
    assert equipoise(*COMPARE, "--blocks", "1", "--ledger", "l.db").status == 0
    with sqlite3.connect(tmp_path / "l.db") as database:
        database.execute("PRAGMA user_version = 999")
    assert_refused(equipoise("show", "--ledger", "l.db"), "version 999")


def test_a_ledger_that_is_a_folder(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert_refused(equipoise(*COMPARE, "--ledger", "folder"), "folder")


def test_a_full_disk_in_mid_campaign_ends_it_with_a_clear_line(tmp_path: Path) -> None:
    # A limit on the size of files: the write-ahead log cannot grow, as on a full disk.
    done = finished(
        ["/bin/sh", "-c", 'ulimit -f 200; trap "" XFSZ; exec "$@"', "sh", *ENTRY]
        + [*COMPARE, "--min-effect", "0", "--blocks", "100000"]
        + ["--budget", "60", "--alpha", "0.0001"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 2, done
    assert "ledger" in done.stderr


def test_a_ledger_that_may_not_be_written(equipoise: Equipoise, tmp_path: Path) -> None:
    assert equipoise(*COMPARE, "--blocks", "1", "--ledger", "l.db").status == 0
    (tmp_path / "l.db").chmod(0o400)
    if os.geteuid() == 0:
        # Root may write whatever the mode; a folder in /proc refuses everybody.
        answer = equipoise(*COMPARE, "--ledger", "/proc/self/ledger.db")
    else:
        answer = equipoise(*COMPARE, "--ledger", "l.db")
    assert_refused(answer, "ledger")


def test_a_child_that_floods_its_output_harms_nothing(equipoise: Equipoise, script: Script) -> None:
    flood = script("flood", ["head -c 50000000 /dev/zero", "head -c 50000000 /dev/zero >&2"])
    for kind in ("null", "count"):
        answer = equipoise("compare", flood, flood, "--blocks", "2", "--output", kind, "--quiet")
        assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert sum(f.stat().st_size for f in equipoise.folder.rglob("*") if f.is_file()) < 10_000_000


def test_a_child_that_forks_a_background_process_leaves_none(
    equipoise: Equipoise, script: Script, tmp_path: Path
) -> None:
    forking = script(
        "forking",
        [f"setsid sleep 1000 & echo $! >> {tmp_path}/children", "sleep 1001 & exit 0"],
    )
    answer = equipoise("compare", "true", forking, "--blocks", "2")
    assert answer.status == 0
    assert "left processes behind" in answer.out
    children = [int(line) for line in (tmp_path / "children").read_text().split()]
    assert len(children) == 3
    for child in children:
        assert not Path(f"/proc/{child}").exists()


def test_a_child_that_eats_its_memory_fails_alone(equipoise: Equipoise, script: Script) -> None:
    eater = script("eater", ["ulimit -v 200000", "head -c 1000000000 /dev/zero | tail -n 1"])
    assert_refused(equipoise("compare", "true", eater), "memory exhausted", status=3)


def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(tmp_path: Path) -> None:
    campaign = subprocess.Popen(
        [*ENTRY, "compare", "sleep 0.01", "sleep 0.01", "--min-effect", "0", "--blocks", "10000"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while recorded_trials(tmp_path / ".equipoise/ledger.db") < 6:
        assert campaign.poll() is None
        time.sleep(0.02)
    campaign.send_signal(signal.SIGINT)
    out, err = campaign.communicate(timeout=600)
    assert campaign.returncode == 130
    assert out == ""
    assert "equipoise resume" in err
    assert "Traceback" not in err
    assert recorded_trials(tmp_path / ".equipoise/ledger.db") >= 6


def recorded_trials(ledger_path: Path) -> int:
    """How many trials a ledger holds; 0 while it is being made."""
    if not ledger_path.exists():
        return 0
    with closing(sqlite3.connect(ledger_path)) as database:
        try:
            found = database.execute("SELECT count(*) FROM trial").fetchone()
        except sqlite3.OperationalError:
            return 0
    return int(found[0])
