"""The warning about a busy host names the processes that caused it, except our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from equipoise.measure.disturbances.contention import begin_watch, busy_host
from equipoise.measure.environment import Host
from packages.equipoise.tests.measure.planted import plant, quiet_host

SPINNING = "4711 (spin) R 1 1 1 0 -1 4194304 0 0 0 0 {ticks} 0 0 0 20 0 1 0 777 0 0\n"
BUSY = "cpu  {busy} 0 500 90000 10 0 5 0 0 0\n"


def warned_of(
    host: Host, happens: Mapping[str, str], *, children_s: float = 0.0, seconds: float = 10.0
) -> str:
    """Return the warning about a campaign of ten seconds in which these files change."""
    watch = begin_watch(host, clock=lambda: 100.0, children_s=lambda: 3.0)
    assert watch is not None
    plant(host.root, happens)
    warning = busy_host(watch, clock=lambda: 100.0 + seconds, children_s=lambda: 3.0 + children_s)
    return "" if warning is None else f"{warning.code}: {warning.summary}"


def test_a_quiet_host_is_not_mentioned(tmp_path: Path) -> None:
    assert warned_of(quiet_host(tmp_path), {}) == ""


def test_a_process_that_takes_a_cpu_meanwhile_is_named(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {"proc/4711/stat": SPINNING.format(ticks=100)})
    happens = {"proc/4711/stat": SPINNING.format(ticks=900), "proc/stat": BUSY.format(busy=1800)}
    assert warned_of(host, happens) == (
        "busy_host: this host was busy: during the campaign, others used 80 % of a CPU: "
        "process 4711 (spin) 80 %"
    )


def test_processes_that_ended_meanwhile_count_except_our_own_trials(tmp_path: Path) -> None:
    happens = {"proc/stat": BUSY.format(busy=2000)}
    assert warned_of(quiet_host(tmp_path / "a"), happens).endswith(
        "others used 100 % of a CPU: other processes 100 %"
    )
    assert warned_of(quiet_host(tmp_path / "b"), happens, children_s=9.5) == ""


def test_a_moment_is_too_short_to_tell(tmp_path: Path) -> None:
    happens = {"proc/stat": BUSY.format(busy=2000)}
    assert warned_of(quiet_host(tmp_path), happens, seconds=0.1) == ""


def test_disturbances_from_before_the_campaign_are_reported(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {"proc/loadavg": "7.50 0 0 1/1 1\n"})
    assert warned_of(host, {}) == (
        "busy_host: this host was busy: before the campaign over the last minute 7.5 processes on "
        "average needed one of 2 CPUs"
    )


def test_stolen_time_and_swapping_are_reported(tmp_path: Path) -> None:
    happens = {
        "proc/stat": "cpu  1000 0 500 90500 10 0 5 500 0 0\n",
        "proc/vmstat": "nr_free_pages 100\npswpin 110\npswpout 20\n",
    }
    warning = warned_of(quiet_host(tmp_path), happens)
    assert "during the campaign, the hypervisor takes away 50 % of the CPU time" in warning
    assert "during the campaign, the host is swapping: 100 pages in 10.0 s" in warning


def test_a_host_without_processes_to_see_is_not_watched(tmp_path: Path) -> None:
    assert begin_watch(Host(tmp_path)) is None
