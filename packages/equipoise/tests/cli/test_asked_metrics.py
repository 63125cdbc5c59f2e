"""The metrics that were asked for are what the tables show, in their units, direction and words."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pexpect
import pytest

from packages.equipoise.tests.cli.conftest import ENTRY, Answer, Equipoise
from packages.equipoise.tests.report.forms import breakable

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
        *("--metrics", metrics, *QUICKLY, "--report", "page.md", "--verbose"),
    )


def test_the_table_has_the_metrics_of_a_server_first_and_the_wall_time_last(
    compared: Answer,
) -> None:
    assert compared.status == 0, compared.err
    lines = compared.out.splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.startswith("condition")]
    heading, old, new, note, *_ = lines[first:]
    assert heading.startswith("condition  median throughput  95 % interval")
    assert heading.split()[-4:] == ["latency", "p99", "iteration", "time"]
    assert "1000/s" in old
    assert "780/s" in new
    assert "13.0 ms" in new
    assert "120 ms" in new
    assert note == "For throughput, more is better."


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
    page = breakable((tmp_path / "page.md").read_text())
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
    lines = answer.out.splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.startswith("condition")]
    heading, small, large, *_ = lines[first:]
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


MANY = r"""
jitter=00$(( $$ % 7 ))
{
  echo "{\"metric\": \"throughput_per_s\", \"value\": $1.$jitter, \"better\": \"higher\"}"
  for metric in latency_p50_s latency_p90_s latency_p99_s latency_max_s retries; do
    echo "{\"metric\": \"$metric\", \"value\": $2$jitter}"
  done
  echo "{\"metric\": \"hits\", \"value\": $1.$jitter, \"better\": \"higher\"}"
} >> "$EQUIPOISE_METRICS"
"""
ALL = "throughput_per_s,latency_p50_s,latency_p90_s,latency_p99_s,latency_max_s,retries,hits"
HEADING = "condition  median latency max  median retries  median hits"


@pytest.mark.parametrize(
    "commands",
    [
        ("sh many.sh 1000 0.0100", "sh many.sh 780 0.0130", "-n", "old", "-n", "new"),
        ("sh many.sh 1000 0.0100", "-n", "old"),
    ],
    ids=["two commands", "one command"],
)
def test_every_metric_that_was_asked_for_has_a_column(
    commands: tuple[str, ...], equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "many.sh").write_text(MANY)
    answer = equipoise("compare", *commands, "--metrics", ALL, *QUICKLY, "--report", "page.md")
    assert answer.status == 0, answer.err
    assert equipoise("report", "last", "-o", "page.html").status == 0
    _, first, further = answer.out.split("\n\n", 2)
    heading = " ".join(first.splitlines()[0].split())
    assert heading.endswith("latency p50 latency p90 latency p99 time")
    lines = further.splitlines()
    assert lines[0] == HEADING
    name, latency, unit, _, hits = lines[1].split()
    assert (name, latency, unit, hits[:4]) == ("old", "10.0", "ms", "1000")
    assert "For hits, more is better." in lines[2:4]
    written = breakable((tmp_path / "page.md").read_text())
    assert "| condition | median latency max | median retries | median hits |" in written
    html = breakable((tmp_path / "page.html").read_text())
    for name in ("latency p50", "latency p90", "latency p99", "latency max", "retries", "hits"):
        assert re.search(rf"<th[^>]*>(Median )?{name}", html, re.IGNORECASE), name


def test_the_live_line_shows_what_the_result_will_show(tmp_path: Path) -> None:
    (tmp_path / "load.sh").write_text(LOAD + "sleep 0.03\n")
    terminal = pexpect.spawn(
        ENTRY[0],
        [
            *(*ENTRY[1:], "compare", "sh load.sh 1000 0.01 0.2", "sh load.sh 780 0.01 0.2"),
            *("-n", "old", "-n", "new", "--metrics", "throughput_per_s", "--warmup", "0"),
            *("--min-blocks", "14", "--blocks", "14", "--allow-concurrent"),
        ],
        cwd=str(tmp_path),
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
        dimensions=(40, 120),
        timeout=600,
        encoding="utf-8",
    )
    terminal.expect(r"new: -[\d.]+ % to -[\d.]+ %")
    terminal.expect(r"new serves 22\.0 % less than old")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


GROWS = r"""
echo >> log
echo "{\"metric\": \"pages\", \"value\": $(( 100 + $(wc -l < log) ))}" >> "$EQUIPOISE_METRICS"
"""


def test_a_drift_is_that_of_the_metric_that_was_asked_for(equipoise: Equipoise) -> None:
    (equipoise.folder / "grows.sh").write_text(GROWS)
    answer = equipoise(
        *("compare", "sh grows.sh", "sh grows.sh", "-n", "one", "-n", "other"),
        *("--metrics", "pages", "--blocks", "30", "--min-blocks", "30", "--warmup", "0"),
        *("--min-seconds", "0", "--seed", "1", "--verbose"),
    )
    assert answer.status == 0, answer.err
    drifts = [line for line in answer.out.splitlines() if "drift: " in line]
    assert len(drifts) == 1, answer.out
    assert "drift: pages of one and other rose by " in drifts[0]
    assert "from the first to the last third of the campaign" in drifts[0]
