"""Faults come while hosts measure; what does not hold afterwards is found."""

from __future__ import annotations

import json
import math
import random
import subprocess
from typing import Any

import pytest

from benchmarks.cluster import __main__ as repetitions
from benchmarks.cluster.__main__ import FULL, Repetition, conclude
from benchmarks.cluster.checks import Findings, count_trials
from benchmarks.cluster.faults import LONG_CUT_S, SHORT_CUT_S, Fault, Injected, drawn_faults
from benchmarks.cluster.network import Network, namespaces, processes_in, why_no_namespaces, within

TRUTH = math.exp(math.fsum(map(math.log, repetitions.RATIOS)) / len(repetitions.RATIOS))


def trial(block: int, position: int, phase: str = "measured") -> dict[str, Any]:
    return {"phase": phase, "block": block, "position": position}


@pytest.mark.parametrize("seed", range(20))
def test_every_fault_comes_once_and_is_over_while_hosts_measure(seed: int) -> None:
    faults = drawn_faults(FULL.window_s, 1.0, True, random.Random(seed))
    kinds = sorted(fault.kind for fault in faults)
    assert kinds == [
        *("coordinator killed", "cut off", "cut off", "laboratory killed"),
        *("scheduler restarted", "worker killed"),
    ]
    assert all(fault.at_s + fault.lasts_s <= FULL.window_s for fault in faults)
    cuts = {fault.lasts_s: fault.host for fault in faults if fault.kind == "cut off"}
    assert cuts.keys() == {SHORT_CUT_S, LONG_CUT_S}
    (killed,) = {fault.host for fault in faults if fault.kind.startswith(("worker", "laboratory"))}
    assert {killed, *cuts.values()} == {0, 1, 2}
    at = {fault.kind: fault.at_s for fault in faults}
    assert at["worker killed"] <= at["laboratory killed"]


def test_without_cables_no_host_is_cut_off() -> None:
    faults = drawn_faults(FULL.window_s, 1.0, False, random.Random(1))
    assert len(faults) == 4 and not any(fault.kind == "cut off" for fault in faults)


def test_trials_that_are_twice_and_missing_blocks_are_found() -> None:
    whole = [trial(block, position) for block in (1, 2) for position in (1, 2)]
    warm_up = trial(1, 1, "warmup")
    problems: list[str] = []
    assert count_trials("host0", [warm_up, *whole], 2, problems) == 5
    assert problems == []
    count_trials("host1", [*whole, whole[0]], 2, problems)
    count_trials("host2", whole[:-1], 2, problems)
    assert problems == [
        *("host1: 1 trials are there twice", "host1: 1 whole blocks of 2"),
        "host2: 1 whole blocks of 2",
    ]
    of_a_killed_laboratory = trial(3, 1)
    problems.clear()
    assert count_trials("host0", [*whole, of_a_killed_laboratory], 2, problems) == 5
    assert problems == []


def repetition(low: float | None, high: float | None, *problems: str) -> Repetition:
    fault = Injected(Fault("worker killed", 1.0, 0), True, ())
    findings = Findings(960, problems, (low, high), TRUTH)
    return Repetition((fault,), 2, findings, None, 100.0)


def test_a_lost_trial_and_missed_means_fail_the_benchmark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, missed = repetition(1.04, 1.06), repetition(1.01, 1.04)
    assert conclude([good] * 20, "") == 0
    assert "union equal, nothing lost or twice: 20" in capsys.readouterr().out
    assert conclude([good] * 19 + [missed], "") == 0
    assert conclude([good] * 10 + [missed] * 10, "") == 1
    assert conclude([good] * 19 + [repetition(1.04, 1.06, "host1 lost 1 trials")], "") == 1
    assert conclude([repetition(None, 1.06)] * 20, "") == 1


def test_a_host_that_is_cut_off_is_not_reached_and_then_is_again() -> None:
    reason = why_no_namespaces()
    if reason is not None:
        pytest.skip(reason)
    with namespaces(1) as network:
        assert "UP" in flags_of_cable(network)
        network.cut(0)
        assert "UP" not in flags_of_cable(network)
        network.mend(0)
        assert "UP" in flags_of_cable(network)
        host = str(network.hosts[0])
        assert "10.77.0.10/24" in output(*within(host), "ip", "-4", "address", "show", "eth0")
        assert processes_in(host) == []
    assert str(network.hub) not in output("ip", "netns", "list")


def flags_of_cable(network: Network) -> list[str]:
    (link,) = json.loads(output("ip", "-j", "-n", str(network.hub), "link", "show", "port0"))
    flags: list[str] = link["flags"]
    return flags


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
