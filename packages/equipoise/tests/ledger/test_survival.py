"""Recorded trials survive kill -9, full disks and other processes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.ledger.conftest import make_plan, record_blocks, run_script

RECORD = """
import os, sys
from equipoise.ledger import open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Sample, Trial

def record(path, blocks):
    plan = Plan("compare", (Condition("a", ("a",)), Condition("b", ("b",))), Measure("/"),
                Stopping(), Judgement(), 7)
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(plan, {"host": "here"}, 1.0)
        os.write(1, f"run {run}\\n".encode())
        for block in range(1, blocks + 1):
            ledger.record_draw(run, Draw("measured", block, (0, 1), block))
            for position in (0, 1):
                samples = tuple(Sample("latency_s", block + i / 10, i) for i in range(10))
                ledger.record_trial(run, Trial("measured", block, position, position, 1.0 + block,
                    Accounting(wall_s=block + position / 10), 0, samples=samples))
                os.write(1, f"trial {block} {position}\\n".encode())
"""
RECORD_UNTIL_KILLED = RECORD + "record(sys.argv[1], 10**9)\n"
RECORD_A_FEW = RECORD + "record(sys.argv[1], int(sys.argv[2]))\n"
RECORD_UNTIL_FULL = (
    RECORD
    + """
import resource, subprocess
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
else:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", os.path.dirname(sys.argv[1])],
        check=True)
try:
    record(sys.argv[1], 10**9)
except UnusableInput as refusal:
    print("refused:", refusal.what)
from equipoise.ledger import open_for_reading
with open_for_reading(sys.argv[1]) as ledger:
    trials = ledger.read_run("last").trials
print("kept", len(trials), {len(trial.samples) for trial in trials})
"""
)


@pytest.mark.parametrize("seed", range(5))
def test_no_acknowledged_trial_is_lost_to_kill_9(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "ledger.db"
    generator = random.Random(seed)
    for _ in range(3):
        run, acknowledged = _record_and_kill(path, generator.randrange(1, 300))
        with open_for_reading(path) as ledger:
            record = ledger.read_run(run)
        recorded = [(trial.block, trial.position) for trial in record.trials]
        assert recorded[: len(acknowledged)] == acknowledged
        # At most the trial that was being acknowledged.
        assert len(recorded) <= len(acknowledged) + 1
        assert [draw.block for draw in record.draws[: len(acknowledged) // 2]] == [
            block for block, position in acknowledged if position == 1
        ]
        assert all(len(trial.samples) == 10 for trial in record.trials)
        assert all(
            trial.accounting.wall_s == trial.block + trial.position / 10 for trial in record.trials
        )
        assert record.segments[0].stopped_because is None


def test_a_killed_campaign_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    run, _ = _record_and_kill(path, 25)
    with open_for_writing(path, durable=False) as ledger:
        before = ledger.read_run(run)
        segment = ledger.begin_segment(run, {"host": "here"}, 99.0)
        last = before.draws[-1].block
        record_blocks(ledger, run, range(last + 1, last + 3))
        ledger.end_segment(run, segment, 100.0, "verdict")
        after = ledger.read_run(run)
    assert after.trials[: len(before.trials)] == before.trials
    assert len(after.trials) == len(before.trials) + 4
    assert [segment.stopped_because for segment in after.segments] == [None, "verdict"]


def test_one_process_reads_consistent_states_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", RECORD_A_FEW, str(path), "400"], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    run = writer.stdout.readline().split()[1].decode()
    # A thread empties the pipe, since the writer would otherwise wait for this test.
    drain = threading.Thread(target=writer.stdout.read)
    drain.start()
    count = 0
    while True:
        ended = writer.poll() is not None
        with open_for_reading(path) as ledger:
            record = ledger.read_run(run)
        assert len(record.trials) >= count
        count = len(record.trials)
        assert [(trial.block, trial.position) for trial in record.trials] == [
            (1 + index // 2, index % 2) for index in range(count)
        ]
        assert all(len(trial.samples) == 10 for trial in record.trials)
        assert 0 <= 2 * len(record.draws) - count <= 2
        if ended:
            break
    drain.join()
    writer.stdout.close()
    assert writer.returncode == 0
    assert count == 800


def test_several_processes_may_make_and_write_one_ledger_at_once(tmp_path: Path) -> None:
    path = tmp_path / ".equipoise" / "ledger.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", RECORD_A_FEW, str(path), "30"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    complaints = [writer.communicate(timeout=600)[1] for writer in writers]
    assert complaints == [""] * 4
    with open_for_reading(path) as ledger:
        runs = ledger.runs()
        records = [ledger.read_run(summary.id) for summary in runs]
    assert [summary.trials for summary in runs] == [60] * 4
    for record in records:
        assert [trial.block for trial in record.trials] == [1 + i // 2 for i in range(60)]


def test_a_limit_on_the_size_of_files_stops_a_campaign_and_loses_nothing(tmp_path: Path) -> None:
    process = run_script(RECORD_UNTIL_FULL, str(tmp_path / "ledger.db"), "limit")
    _assert_stopped_with_all_kept(process)
    assert "limit" in process.stdout.splitlines()[-2]


def test_a_full_disk_stops_a_campaign_and_loses_nothing(tmp_path: Path) -> None:
    # In its own name space, the disk vanishes with the process.
    name_space: tuple[str, ...] = ("unshare", "--mount")
    if os.geteuid() != 0:
        name_space = (*name_space, "--user", "--map-root-user")
    folder = tmp_path / "disk"
    folder.mkdir()
    probe = [*name_space, "mount", "-t", "tmpfs", "none", str(folder)]
    if (
        shutil.which("unshare") is None
        or subprocess.run(probe, capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets us mount no small disk (unshare, mount -t tmpfs)")
    process = run_script(RECORD_UNTIL_FULL, str(folder / "ledger.db"), "disk", before=name_space)
    _assert_stopped_with_all_kept(process)
    assert "no space is left on its disk" in process.stdout.splitlines()[-2]


def test_a_ledger_that_cannot_grow_is_reported_and_keeps_its_content(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    record_blocks(ledger, run, range(1, 4))
    ledger.connection.execute("PRAGMA max_page_count = 1")  # SQLite sets it to the current count.
    with pytest.raises(UnusableInput, match="no space is left") as refusal:
        record_blocks(ledger, run, range(4, 10_000))
    assert "ledger=" in str(refusal.value.hint)
    trials = ledger.read_run(run).trials
    assert [trial.block for trial in trials[:6]] == [1, 1, 2, 2, 3, 3]


def _record_and_kill(path: Path, trials: int) -> tuple[str, list[tuple[int, int]]]:
    """Kill a recording process after about this many trials; return the run and the output."""
    child = subprocess.Popen(
        [sys.executable, "-c", RECORD_UNTIL_KILLED, str(path)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(trials + 1)]
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.readlines()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    fields = [line.split() for line in lines]
    assert fields[0][0] == b"run"
    return fields[0][1].decode(), [(int(block), int(place)) for _, block, place in fields[1:]]


def _assert_stopped_with_all_kept(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    acknowledged = sum(line.startswith("trial") for line in lines)
    assert acknowledged > 0
    assert lines[-2].startswith("refused: the ledger")
    assert lines[-1] == f"kept {acknowledged} {{10}}"
