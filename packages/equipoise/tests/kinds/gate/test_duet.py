"""`equipoise gate --duet`: both revisions run at once, each on CPUs of its own."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.repositories import MadeRepository, repository

BENCHMARK = """\
#!/bin/sh
cpus=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status)
echo "{\\"metric\\": \\"first_cpu\\", \\"value\\": $cpus}" >> "$EQUIPOISE_METRICS"
"""
CPUS = sorted(os.sched_getaffinity(0))
needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="only one CPU may be used")
LIMITS = ("--blocks", "6", "--seed", "3", "--json", "-")


@pytest.fixture
def project(tmp_path: Path, scratch: Path) -> MadeRepository:
    """Two revisions of two benchmarks, which report their first CPU."""
    project = repository(tmp_path / "project")
    for revision in ("old", "new"):
        for name in ("one", "other"):
            project.write(name, f"{BENCHMARK}# {revision}\n", executable=True)
        project.commit()
        project.git("tag", revision)
    return project


@pytest.fixture
def gate(project: MadeRepository, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Run one gate in the repository, with a pilot that accepts any slowdown."""
    monkeypatch.setattr("equipoise.campaign.pilot.MAX_SLOWDOWN", 1000.0)
    return partial(gate, project, "--baseline", "old")


@needs_two_cpus
def test_both_revisions_of_each_benchmark_run_at_once(gate: Gate) -> None:
    answer = gate("--duet", *LIMITS, "--bench", "one=./one", "--bench", "other=./other")
    assert answer.status in (0, 1), answer
    result = json.loads(answer.out)
    cpus = [cpus[0] for cpus in result["duet"]["cpus"]]
    trials = [trial for trial in result["trials"] if trial["phase"] == "measured"]
    assert len(trials) == 6 * 4
    for trial in trials:
        assert trial["metrics"]["first_cpu"] == cpus[trial["position"] % 2]
    pairs: dict[tuple[int, int], set[str]] = {}
    for trial in trials:
        pair = (trial["block"], trial["position"] // 2)
        pairs.setdefault(pair, set()).add(trial["condition"])
    assert sorted(map(len, pairs.values())) == [2] * 12
    assert len({frozenset(pair) for pair in pairs.values()}) == 2
    assert len(result["gate"]["rows"]) == 2
    assert {(pilot["pairs"] >= 5) for pilot in result["duet"]["pilots"]} == {True}
    assert len(result["duet"]["pilots"]) == 2


@needs_two_cpus
def test_the_summary_names_the_cpus(gate: Gate) -> None:
    answer = gate("--duet", "--blocks", "6", "--", "./one")
    assert answer.status in (0, 1), answer
    assert "The trials of a block ran at once on CPU" in answer.out


def test_what_trials_at_once_cannot_do_is_refused(gate: Gate) -> None:
    build = ("--relink", "2", "--build", "true")
    assert "cannot be combined with --relink" in gate("--duet", *build, "--", "./one").err
    answer = gate("--duet", "--metrics", "instructions", "--", "./one")
    assert "--duet is for times" in answer.err
    assert answer.status == 2
