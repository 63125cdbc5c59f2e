"""Real servers as workloads, through the command line: nothing of them remains."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from equipoise.measure.scratch import FOLDER_PREFIX
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise

ROOT = Path(__file__).resolve().parents[4]
REDIS = ROOT / "docs" / "examples" / "redis" / "study.toml"
ONE_BLOCK = ("--blocks", "1", "--min-blocks", "1", "--budget", "1", "--json", "-")
PATIENCE_S = 300.0
MARIADB = pytest.mark.live("mariadbd", package="mariadb-server-core mariadb-client-core")
SYSBENCH = pytest.mark.live("sysbench")


@pytest.fixture
def home() -> Iterator[Path]:
    """Where servers have their folders: short enough for a socket, and everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="servers-", dir="/tmp") as made:
        os.chmod(made, 0o711)
        yield Path(made)


def run_in(home: Path, equipoise_process: Equipoise, *words: str) -> dict[str, Any]:
    answer = equipoise_process("run", *words, *ONE_BLOCK, environment={"TMPDIR": str(home)})
    assert answer.status == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def files_and_processes(home: Path) -> list[str]:
    """The files in a folder, and the processes that work in it or below it."""
    found = [str(path) for path in home.iterdir()]
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(home)):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found


@MARIADB
@SYSBENCH
def test_mariadb_lives_for_a_trial_and_is_gone(equipoise_process: Equipoise, home: Path) -> None:
    chosen = ("server=mariadb", "threads=4", "setting=glibc,tcp")
    factors = [word for choice in chosen for word in ("--factor", choice)]
    document = run_in(home, equipoise_process, "database", "--quick", *factors)
    assert [condition["levels"]["setting"] for condition in document["conditions"]] == [
        "glibc",
        "tcp",
    ]
    for trial in document["trials"]:
        assert trial["metrics"]["throughput_per_s"] > 0
        assert trial["metrics"]["server_user_s"] > 0
        assert trial["metrics"]["server_minor_faults"] > 0
    assert files_and_processes(home) == []


@pytest.mark.live("pg_lsclusters", package="postgresql")
def test_postgresql_lives_for_a_trial_and_is_gone(equipoise_process: Equipoise, home: Path) -> None:
    chosen = ("server=postgresql", "threads=4", "setting=glibc,glibc_15k")
    factors = [word for choice in chosen for word in ("--factor", choice)]
    document = run_in(home, equipoise_process, "database", "--quick", *factors)
    usual, often = (trial["metrics"] for trial in sorted_by_condition(document))
    assert usual["errors"] == often["errors"] == 0

    def faults(metrics: dict[str, float]) -> float:
        return metrics["server_minor_faults"] / metrics["transactions"]

    assert faults(often) > 1.5 * faults(usual)
    assert files_and_processes(home) == []


def sorted_by_condition(document: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(document["trials"], key=lambda trial: str(trial["condition"]))


@pytest.mark.live("redis-server")
@pytest.mark.live("redis-benchmark", package="redis-tools")
def test_documented_own_server_runs(equipoise_process: Equipoise, home: Path) -> None:
    document = run_in(home, equipoise_process, str(REDIS), "--factor", "requests=2000")
    assert [condition["levels"]["appends"] for condition in document["conditions"]] == [
        "no",
        "every_second",
    ]
    assert all(trial["metrics"]["throughput_per_s"] > 0 for trial in document["trials"])
    assert files_and_processes(home) == []


@MARIADB
@SYSBENCH
@pytest.mark.parametrize("moment", range(2))
def test_kill_9_of_the_tool_leaves_no_server(
    moment: int, equipoise_process: Equipoise, home: Path, tmp_path: Path
) -> None:
    words = ("--factor", "server=mariadb", "--factor", "threads=1", "--allow-concurrent")
    campaign = subprocess.Popen(
        [*ENTRY, "run", "database", "--quick", *words, "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE_S
    while not list(home.glob(f"{FOLDER_PREFIX}*/*/server-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    # From the making of the data to the first trials; benchmarks/database tries more moments.
    time.sleep(random.Random(moment).uniform(0.0, 4.0))
    campaign.send_signal(signal.SIGKILL)
    assert campaign.wait() == -signal.SIGKILL
    assert equipoise_process("doctor", "--quiet", environment={"TMPDIR": str(home)}).status == 0
    while files_and_processes(home) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files_and_processes(home) == []
