"""Two campaigns on one host would measure each other: the second waits for its turn."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise

TAKES_TURNS = {"EQUIPOISE_ALLOW_CONCURRENT": "0"}
CAMPAIGN = ("compare", "true", "true", "--blocks", "1", "--quiet")


@contextmanager
def campaign_that_runs(folder: Path) -> Iterator[int]:
    """Another process that has the turn until this ends; gives its number."""
    waits = "sh -c 'until [ -e go ]; do sleep 0.05; done'"
    first = subprocess.Popen(
        [*ENTRY, "compare", waits, waits, "--blocks", "1", "--warmup", "0", "--quiet"]
        + ["--ledger", "first.db"],
        cwd=folder,
        env={**os.environ, **TAKES_TURNS},
        stdin=subprocess.DEVNULL,
    )
    try:
        while not (folder / "first.db").exists():
            assert first.poll() is None
            time.sleep(0.01)
        yield first.pid
    finally:
        (folder / "go").touch()
        assert first.wait(600) == 0


def test_a_second_campaign_says_whom_it_waits_for_and_then_runs(tmp_path: Path) -> None:
    messages = tmp_path / "said"
    with campaign_that_runs(tmp_path) as first, messages.open("w") as stderr:
        second = subprocess.Popen(
            [*ENTRY, *CAMPAIGN],
            cwd=tmp_path,
            env={**os.environ, **TAKES_TURNS},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
        patience = time.monotonic() + 300
        while "--allow-concurrent" not in messages.read_text():
            assert second.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.01)
    assert second.wait(600) == 0
    assert f"process {first} of user {os.getuid()}" in messages.read_text()


def test_it_need_not_wait_where_that_is_asked_for(equipoise: Equipoise, tmp_path: Path) -> None:
    with campaign_that_runs(tmp_path):
        answer = equipoise(*CAMPAIGN, "--allow-concurrent", environment=TAKES_TURNS)
    assert (answer.status, answer.err) == (0, "")
