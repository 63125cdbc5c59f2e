"""A busy host is said: after the campaign, and in the line of a verdict that is mostly waiting."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.ledger import open_for_writing
from equipoise.model.record import Draw
from packages.equipoise.tests.cli.conftest import Equipoise, document
from packages.equipoise.tests.plans import plan_of, trial_of

WAITING = "most of the extra time is waiting for a processor (description, without an error rate)"
BLOCKS = 30


def record(path: Path, *, waited_part: float) -> None:
    """A campaign in which ``b`` takes 20 % longer; this part of the extra time is waiting."""
    with open_for_writing(path, durable=False) as ledger:
        run_id = ledger.begin_run(plan_of("a", "b"), {}, 1.7e9)
        for block in range(1, BLOCKS + 1):
            draw = Draw("measured", block, (0, 1) if block % 2 else (1, 0), 0)
            ledger.record_draw(run_id, draw)
            for place, condition in enumerate(draw.order):
                noise = 0.004 * (block * (3 + 4 * condition) % 5)
                waited_s = noise + condition * 0.2 * waited_part
                trial = trial_of(draw, place, 1.0 + noise + 0.2 * condition)
                ledger.record_trial(run_id, replace(trial, covariates={"run_delay_s": waited_s}))
        ledger.end_segment(run_id, 1, 1.7e9 + 100, "verdict")


@pytest.mark.parametrize(("waited_part", "is_told"), [(0.9, True), (0.2, False)])
def test_the_line_of_the_verdict_says_where_the_extra_time_is_waiting(
    equipoise: Equipoise, tmp_path: Path, waited_part: float, is_told: bool
) -> None:
    record(tmp_path / "ledger.db", waited_part=waited_part)
    answer = equipoise("show", "--ledger", "ledger.db")
    (line,) = [line for line in answer.out.splitlines() if line.startswith("slower: ")]
    told = f"; {WAITING}." if is_told else "."
    assert line.startswith("slower: b is slower than a: it takes ")
    assert line.endswith(f" % longer{told}")


def test_a_campaign_beside_a_busy_program_says_so(equipoise: Equipoise) -> None:
    with ExitStack() as ends:
        spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        ends.enter_context(spinning)
        ends.callback(spinning.kill)
        result = document(
            equipoise(
                *("compare", "sleep 0.05", "sleep 0.06", "--blocks", "10", "--warmup", "0"),
                *("--min-seconds", "0", "--json", "-"),
            )
        )
    (busy,) = [warning for warning in result["warnings"] if warning["code"] == "busy_host"]
    assert "during the campaign, others used " in busy["summary"]
    assert "equipoise doctor" in busy["hint"]
