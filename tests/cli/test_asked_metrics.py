"""The metrics that were asked for are what the tables show, in their units, direction and words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Equipoise

LOAD = r"""
jitter=00$(( $$ % 7 ))
{
  echo "{\"metric\": \"throughput_per_s\", \"value\": $1.$jitter, \"better\": \"higher\"}"
  echo "{\"metric\": \"latency_p99_s\", \"value\": $2$jitter}"
  echo "{\"metric\": \"iteration_s\", \"value\": $3$jitter}"
} >> "$EQUIPOISE_METRICS"
"""
"""Reports what a load generator and a harness report, of these sizes."""
QUICKLY = ("--blocks", "12", "--warmup", "0", "--min-seconds", "0", "--seed", "1")


@pytest.fixture
def compared(equipoise: Equipoise, tmp_path: Path) -> Answer:
    """Two servers of which the second serves less, later, in shorter iterations."""
    (tmp_path / "load.sh").write_text(LOAD)
    metrics = "throughput_per_s,latency_p99_s,iteration_s"
    return equipoise(
        "compare",
        *("sh load.sh 1000 0.0100 0.200", "sh load.sh 780 0.0130 0.120", "-n", "old", "-n", "new"),
        *("--metrics", metrics, *QUICKLY, "--report", "page.md"),
    )


def test_the_table_has_the_metrics_of_a_server_first_and_the_wall_time_last(
    compared: Answer,
) -> None:
    assert compared.status == 0, compared.err
    heading, old, new, note, *_ = compared.out.splitlines()
    assert heading.startswith("condition  median throughput  95 % interval")
    assert heading.split()[-4:] == ["latency", "p99", "iteration", "time"]
    assert "1000/s" in old
    assert "780/s" in new
    assert "13.0 ms" in new
    assert "120 ms" in new
    assert note == "Of throughput more is better."


def test_the_words_of_a_verdict_are_those_of_its_metric(
    compared: Answer, equipoise: Equipoise, tmp_path: Path
) -> None:
    assert "less: new serves 22.0 % less than old" in compared.out, compared.out
    line = r"throughput of new against old: -22\.0 %, 95 % interval -[\d.]+ % to -[\d.]+ %\n"
    assert re.search(line, compared.out), compared.out
    others = {
        words[0]: words
        for words in map(str.split, compared.out.splitlines())
        if words[:2] in (["latency_p99_s", "new"], ["iteration_s", "new"])
    }
    assert others["latency_p99_s"][-1] == "slower"
    assert others["iteration_s"][-1] == "faster"
    document = json.loads(equipoise("show", "last", "--json", "-").out)
    served, latency, iteration = document["comparisons"]
    assert served["verdict"] == "slower"
    assert served["ratio"] == pytest.approx(1.28, abs=0.01)
    assert latency["summary"].startswith("latency_p99_s of new is 30.0 % higher than that of old")
    assert iteration["summary"].startswith("An iteration of new takes 40.0 % less time than one of")
    page = (tmp_path / "page.md").read_text()
    assert "| Median throughput |" in page
    assert "| Verdict | Latency p99 | Iteration | Time |" in page
    assert "| -22.0 % |" in page
    assert "| less |" in page


def test_memory_that_was_asked_for_is_the_table(equipoise: Equipoise) -> None:
    # A buffer of this size: all of it is written.
    def holds(megabytes: int) -> str:
        return f"dd if=/dev/zero of=/dev/null bs={megabytes}M count=1"

    answer = equipoise(
        "compare",
        *(holds(4), holds(32), "-n", "small", "-n", "large"),
        *("--metrics", "max_rss_bytes", *QUICKLY),
    )
    assert answer.status == 0, answer.err
    heading, small, large, *_ = answer.out.splitlines()
    assert heading.split()[:4] == ["condition", "median", "peak", "memory"]
    assert heading.split()[-1] == "time"
    assert " peak  " not in heading
    assert "MB" in small
    assert "MB" in large
    assert "more: large uses " in answer.out
    assert " times the memory of small (" in answer.out
    verdict = answer.out.partition("stopped by")[0]
    assert "faster" not in verdict
    assert "slower" not in verdict
