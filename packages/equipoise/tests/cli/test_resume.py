"""A campaign that was killed loses no finished trial and goes on to its verdict."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise

Script = Callable[[str, Sequence[str]], str]
PATIENCE_S = 300.0


@pytest.mark.parametrize("moment", range(5))
def test_kill_9_at_a_random_moment(
    moment: int, equipoise: Equipoise, script: Script, tmp_path: Path
) -> None:
    quick = script("quick", [f"echo s >> {tmp_path}/quick.log", "sleep 0.010"])
    slow = script("slow", [f"echo s >> {tmp_path}/slow.log", "sleep 0.040"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    campaign = subprocess.Popen(
        [*ENTRY, "compare", quick, slow, "--quiet", "--seed", str(moment)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
    )
    wait_for_trials(tmp_path / "quick.log")
    time.sleep(random.Random(moment).uniform(0.0, 0.4))
    campaign.send_signal(signal.SIGKILL)
    campaign.wait()
    wait_until_tidy(temporary)
    started = sum(len((tmp_path / f"{name}.log").read_text()) // 2 for name in ("quick", "slow"))
    with open_for_reading(tmp_path / ".equipoise/ledger.db") as ledger:
        kept = len(ledger.read_run("last").trials)
    # The launcher starts a trial only after the one before is in the ledger, so all that had
    # started but the last must be there.
    assert kept >= started - 1

    resumed = equipoise("resume", "last", "--json", "-")
    assert resumed.status == 0, resumed.err
    document = json.loads(resumed.out)
    assert document["comparisons"][0]["verdict"] == "slower"
    assert len(document["trials"]) >= kept
    assert equipoise("show", "--json", "-").out == resumed.out


def test_a_resumed_campaign_has_the_orders_that_it_would_have_had(equipoise: Equipoise) -> None:
    whole = ("compare", "true", "true", "--seed", "11", "--alpha", "1e-9", "--quiet")
    assert equipoise(*whole, "--blocks", "12", "--ledger", "whole.db").status == 0
    assert equipoise(*whole, "--blocks", "5", "--ledger", "parts.db").status == 0
    resume = ("resume", "last", "--blocks", "12", "--quiet", "--ledger", "parts.db")
    assert equipoise(*resume).status == 0
    orders = []
    for name in ("whole.db", "parts.db"):
        with open_for_reading(equipoise.folder / name) as ledger:
            draws = ledger.read_run("last").draws
        orders.append([draw for draw in draws if draw.phase == "measured"])
    assert len(orders[0]) == 12
    assert orders[0] == orders[1]


def test_a_campaign_that_has_its_verdict_is_left_as_it_is(equipoise: Equipoise) -> None:
    assert equipoise("compare", "true", "sleep 0.05", "--quiet").status == 0
    before = equipoise("show", "--json", "-").out
    assert json.loads(before)["comparisons"][0]["verdict"] == "slower"
    assert equipoise("resume", "last", "--json", "-").out == before


def test_a_campaign_at_its_block_limit_says_how_to_ask_for_more(equipoise: Equipoise) -> None:
    options = ("--blocks", "2", "--quiet")
    assert equipoise("compare", "true", "true", *options).status == 0
    answer = equipoise("resume", "last")
    assert answer.status == 2
    assert "--blocks 4" in answer.err


def test_a_campaign_in_which_a_condition_failed_is_not_resumed(equipoise: Equipoise) -> None:
    assert equipoise("compare", "true", "false").status == 3
    answer = equipoise("resume", "last")
    assert answer.status == 3
    assert "false failed: exit status 1" in answer.err


def wait_until_tidy(folder: Path) -> None:
    """The launcher outlives its tool for as long as it takes to tidy up.

    The lock file of the campaign stays: the next campaign finds by it that this one is gone.
    """
    deadline = time.monotonic() + PATIENCE_S
    while left := [path for path in folder.glob("*/*") if path.suffix != ".lock"]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.01)


def wait_for_trials(log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not log.exists() or log.stat().st_size <= 4:
        assert time.monotonic() < deadline, "the campaign did not begin"
        time.sleep(0.01)


def test_a_run_that_is_being_measured_is_not_resumed_beside_it(equipoise: Equipoise) -> None:
    waits = "sh -c 'until [ -e go ]; do sleep 0.05; done'"
    environment = {**os.environ, "EQUIPOISE_ALLOW_CONCURRENT": "1"}
    first = subprocess.Popen(
        [*ENTRY, "compare", waits, waits, "--blocks", "1", "--warmup", "0", "--quiet"],
        cwd=equipoise.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    try:
        wait_for_a_draw(equipoise.folder / ".equipoise/ledger.db")
        second = equipoise("resume", "last", environment={"EQUIPOISE_ALLOW_CONCURRENT": "1"})
    finally:
        (equipoise.folder / "go").touch()
        assert first.wait(600) == 0
    assert second.status == 2
    assert f"process {first.pid} of user {os.getuid()} is measuring run" in second.err
    assert "defect" not in second.err
    with open_for_reading(equipoise.folder / ".equipoise/ledger.db") as ledger:
        assert len(ledger.read_run("last").segments) == 1


def wait_for_a_draw(ledger: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if ledger.exists():
            with contextlib.suppress(UnusableInput), open_for_reading(ledger) as opened:
                if opened.read_run("last").draws:
                    return
        time.sleep(0.01)
    raise AssertionError("the campaign did not begin")
