"""`equipoise why`: where the extra time of the slower condition is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from equipoise.ledger import open_for_reading
from equipoise.why.evidence.sources import DEFAULT_SOURCES
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.schema import valid_result
from packages.equipoise.tests.why.evidence.programs import compiled
from packages.equipoise.tests.why.evidence.test_system_calls import FORBIDS

CHURN = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    for (int i = 0; i < 5000; i++) {
        void *block = malloc(35600);
        memset(block, 1, 35600);
        free(block);
    }
    return 0;
}
"""
"""Each free returns the block to the kernel if the threshold is below its size. It does so often
enough that the gap is longer than the delays of a busy host."""
POLICY = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
BLOCKS = ("--blocks", "14", "--warmup", "0", "--seed", "5")


def churned(folder: Path, equipoise: Equipoise, *options: str) -> None:
    """A campaign whose candidate returns each block to the kernel."""
    program = str(compiled(folder, CHURN, name="churn"))
    env = ("--env", f"policy:GLIBC_TUNABLES={POLICY}")
    names = ("-n", "usual", "-n", "policy")
    answer = equipoise("compare", program, program, *names, *env, *BLOCKS, "--quiet", *options)
    assert answer.status == 0, answer.err


@pytest.mark.live("cc", package="gcc")
def test_the_extra_time_of_a_real_pair_is_found_and_kept(equipoise: Equipoise) -> None:
    churned(equipoise.folder, equipoise)
    first = equipoise("why", "last", "--no-test", "--report", "page.html")
    assert first.status == 0, first.err
    assert "policy is slower than usual" in first.out
    # On a busy host waiting may be longer.
    lines = first.out.splitlines()
    (title,) = (line for line in lines if line.startswith("Where the extra "))
    sentence = lines[lines.index(title) + 1]
    assert "system time" in sentence
    page = breakable((equipoise.folder / "page.html").read_text())
    assert "Where the extra " in page
    # The screen may break the sentence where the page does not.
    assert sentence in page
    # The evidence is in the ledger: nothing is observed again, and the answer is the same.
    repeated = equipoise("why", "last", "--no-test")
    assert (repeated.status, repeated.out, repeated.err) == (0, first.out, "")
    shown = equipoise("show", "last", "--json", "-").out
    assert shown == equipoise("why", "last", "--no-test", "--json", "-").out
    extra = valid_result(shown)["extra_time"]
    assert (extra["baseline"], extra["candidate"], extra["slower"]) == ("usual", "policy", "policy")
    shares = {part["part"]: part["share_of_gap"] for part in extra["parts"]}
    assert shares["system"] > shares["user"]
    assert extra["run_counts"]["system_calls"] == extra["run_counts"]["allocations"] == [3, 3]
    with open_for_reading(equipoise.folder / ".equipoise" / "ledger.db") as ledger:
        observations = ledger.read_run("last").observations
    assert [observation.position for observation in observations] == list(range(30))
    assert {observation.source for observation in observations} == {*DEFAULT_SOURCES}


def test_where_nothing_differs_there_is_nothing_to_explain(equipoise: Equipoise) -> None:
    compared = ("compare", "true", "true", "--blocks", "2", "--warmup", "0")
    first = equipoise(*compared, "--why")
    assert first.status == 0
    assert "there is nothing to explain: true (2) against true is undecided" in first.err
    answer = equipoise("why", "last", "--no-test")
    assert answer.status == 0
    assert answer.out.startswith("there is nothing to explain: true (2) against true is undecided")
    assert (
        valid_result(equipoise("why", "last", "--no-test", "--json", "-").out)["extra_time"] is None
    )


def test_impossible_requests_are_refused(equipoise: Equipoise) -> None:
    equipoise("compare", "true", "true", "--blocks", "1", "--warmup", "0", "--quiet")
    for arguments, named in (
        (
            ("why", "last", "--sources", "crystal_ball"),
            "no source of evidence 'crystal_ball'",
        ),
        (("why", "last", "--no-test", "--candidate", "nobody"), "no condition 'nobody'"),
        (("why", "last", "--no-test", "--repetitions", "1"), "repetitions"),
        (("compare", "true", "--what-varies", "--why"), "--what-varies examines one command"),
    ):
        answer = equipoise(*arguments)
        assert (answer.status, answer.out) == (2, "")
        assert named in answer.err


def test_an_imported_run_is_refused(equipoise: Equipoise, tmp_path: Path) -> None:
    results = [
        {"command": name, "times": [seconds, 1.01 * seconds], "exit_codes": [0, 0]}
        for name, seconds in (("a", 1.0), ("b", 2.0))
    ]
    (tmp_path / "results.json").write_text(json.dumps({"results": results}))
    imported = equipoise("import", "results.json")
    assert imported.status == 0, imported.err
    answer = equipoise("why", "last", "--no-test")
    assert answer.status == 2
    assert "was imported" in answer.err


SLOW = ("--sources", "system_calls,allocations", "--repetitions", "2")


@pytest.fixture
def sleepers(equipoise: Equipoise, tmp_path: Path) -> Path:
    """A ledger in which one sleeper is slower than another."""
    answer = equipoise("compare", "sleep 0.02", "sleep 0.4", *BLOCKS, "--quiet", "--budget", "60")
    assert answer.status == 0, answer.err
    return tmp_path / ".equipoise" / "ledger.db"


def observation_count(ledger: Path) -> int:
    with open_for_reading(ledger) as opened:
        return len(opened.read_run("last").observations)


def stopped_halfway(ledger: Path, stop: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str]:
    """Let it observe one run, and stop it; return its status and its output."""
    why = subprocess.Popen(
        [*ENTRY, "why", "last", "--no-test", *SLOW],
        cwd=ledger.parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while observation_count(ledger) == 0:
        assert why.poll() is None
        time.sleep(0.02)
    beneath = psutil.Process(why.pid).children(recursive=True)
    stop(why)
    _, answer = why.communicate(timeout=600)
    _, alive = psutil.wait_procs(beneath, timeout=600)
    assert alive == []
    return why.returncode, answer


def test_after_kill_9_nothing_keeps_running_and_it_resumes(
    equipoise: Equipoise, sleepers: Path
) -> None:
    status, _ = stopped_halfway(sleepers, lambda why: why.kill())
    assert status == -signal.SIGKILL
    kept = observation_count(sleepers)
    assert 0 < kept < 8
    answer = equipoise("why", "last", "--no-test", *SLOW)
    assert answer.status == 0, answer.err
    assert observation_count(sleepers) == 8
    assert "it sleeps in clock_nanosleep" in answer.out


def test_an_interruption_keeps_the_evidence_and_names_the_next_command(sleepers: Path) -> None:
    status, answer = stopped_halfway(sleepers, lambda why: why.send_signal(signal.SIGINT))
    assert status == 130
    assert "the evidence so far is kept" in answer
    assert "equipoise why " in answer
    assert 0 < observation_count(sleepers) < 8


WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Options that remove all capabilities of root; only root can use them."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of ptrace is x86-64's")
@pytest.mark.live("setpriv", package="util-linux")
def test_without_rights_it_collects_what_is_possible_and_reports_the_rest(tmp_path: Path) -> None:
    def run(*command: str) -> Any:
        done = finished(
            [*WITHOUT_RIGHTS, *command, "--json", "-"], cwd=tmp_path, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stderr
        return valid_result(done.stdout)["extra_time"]

    extra = run(*ENTRY, "compare", "sleep 0.001", "sleep 0.03", *BLOCKS, "--why", "--no-test")
    assert extra["run_counts"]["system_calls"] == extra["run_counts"]["allocations"] == [3, 3]
    assert any("stopped twice by ptrace" in words for words in extra["unseen"]["system_calls"])
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 1:
        assert "waits" not in extra["run_counts"]
        assert any("perf_event_paranoid" in words for words in extra["unseen"]["waits"])
    # As in a container that forbids ptrace, too.
    forbidden = (sys.executable, "-c", FORBIDS, "101", *ENTRY)
    repeated = run(*forbidden, "why", "last", "--no-test", "--again", "--sources", "system_calls")
    assert "system_calls" not in repeated["run_counts"]
    assert "allow it in the container" in repeated["unseen"]["system_calls"][0]
    assert repeated["run_counts"]["allocations"] == [3, 3]
