"""A probe that is killed, at whatever moment, leaves no process, no connection and no file."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from equipoise.measure.leftovers import abandoned_probes, clear_leftovers

from .conftest import Run
from .running import running, until

SEED = 8
KILLS = 5
MAX_S = 0.04
CLEANER = "equipoise-clean"
PROBES = [
    ("fork",),
    ("fork", "--size", str(10 << 20)),
    ("exec",),
    ("sh",),
    ("threads_many",),
    ("futex", "--placement", "same_cpu"),
    ("null_call_int80",),
    ("select_tcp",),
    ("file_create", "--size", "10240"),
    ("file_delete",),
    ("file_reread",),
    ("pipe",),
    ("fifo",),
    ("unix_bandwidth",),
    ("udp",),
    ("tcp",),
    ("unix_connect",),
    ("context_switch", "--count", "16"),
]


@pytest.mark.parametrize("words", PROBES, ids=" ".join)
def test_a_killed_probe_leaves_nothing(
    program: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    moments = random.Random(SEED)
    for _ in range(KILLS):
        delay_s = moments.uniform(0, MAX_S)
        with running(program, *words, "--folder", str(tmp_path)) as killed:
            time.sleep(delay_s)
            killed.process.kill()
            assert until(killed.has_ended), f"killed after {delay_s} s"
        assert until(partial(is_empty, tmp_path)), f"killed after {delay_s} s"


@pytest.mark.parametrize("words", [("fork",), ("sh",), ("file_create",)], ids=" ".join)
def test_probe_leaves_nothing_after_a_signal_to_its_process_group(
    program: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    with running(program, *words, "--folder", str(tmp_path), process_group=0) as told:
        assert until(psutil.Process(told.process.pid).children)
        os.killpg(told.process.pid, signal.SIGTERM)
        assert until(told.has_ended)
    assert until(partial(is_empty, tmp_path))


def test_probe_with_all_its_processes_killed_leaves_no_file(program: Path, tmp_path: Path) -> None:
    with running(program, "file_create", "--folder", str(tmp_path)) as killed:
        assert until(lambda: list(tmp_path.iterdir()))
        for number in killed.alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(number)
                if process.name() == program.name:
                    process.kill()
        assert until(killed.has_ended)
    assert is_empty(tmp_path)


def test_folder_is_reported_only_after_its_cleaner_is_killed(program: Path, tmp_path: Path) -> None:
    with running(program, "file_create", "--folder", str(tmp_path)) as killed:
        assert until(lambda: list(tmp_path.glob("equipoise-probe-*")))
        assert abandoned_probes(tmp_path) == ()
        # The cleaner first, before it can do its work.
        family = sorted(map(psutil.Process, killed.alive()), key=lambda one: one.name() != CLEANER)
        assert family[0].name() == CLEANER
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert until(killed.has_ended)
    (folder,) = tmp_path.iterdir()
    assert clear_leftovers().removed_folders == ()
    # No lock file proves that it is a probe's: the user decides.
    assert [leftover.path for leftover in abandoned_probes(tmp_path)] == [str(folder)]


@pytest.mark.parametrize("probe", ["fork", "exec", "sh"])
def test_probe_whose_helper_is_killed_fails_without_a_number(program: Path, probe: str) -> None:
    with running(program, probe) as broken:
        small = until(partial(small_process, broken.process.pid, probe))
        assert small is not None
        small.kill()
        out, err = broken.process.communicate(timeout=600)
        assert (broken.process.returncode, out) == (1, "")
        assert "the fork server" in err
        assert until(broken.has_ended)


def test_killed_probe_leaves_no_waiting_socket(program: Path) -> None:
    with running(program, "select_tcp") as killed:
        watching = psutil.Process(killed.process.pid)
        assert until(lambda: len(watching.net_connections()) >= 100)
        held = ports(watching.net_connections())
        killed.process.kill()
        assert until(killed.has_ended)
    assert until(lambda: not held & ports(psutil.net_connections("tcp4")))


def test_a_probe_that_ends_leaves_no_connection_and_no_file(run: Run, tmp_path: Path) -> None:
    for words in PROBES:
        done = run(*words, "--folder", str(tmp_path), "--check")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words
    assert is_empty(tmp_path)


def small_process(running_probe: int, mode: str) -> psutil.Process | None:
    """The process that makes the children, once it is there."""
    for child in psutil.Process(running_probe).children():
        with contextlib.suppress(psutil.Error):  # others come and go
            words = child.cmdline()
            if words and words[0].startswith("/proc/self/fd/") and words[1:2] == [mode]:
                return child
    return None


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


def ports(connections: list[Any]) -> set[int]:
    """The ports of this machine that they take."""
    return {connection.laddr.port for connection in connections if connection.laddr}
