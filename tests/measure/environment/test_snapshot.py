"""A snapshot says what a campaign ran on, and for all that it cannot say, why."""

from __future__ import annotations

import json
from pathlib import Path

from equipoise.measure.environment import Host, snapshot
from tests.measure.planted import CPU, quiet_host


def test_a_complete_host_is_described(tmp_path: Path) -> None:
    found = snapshot(quiet_host(tmp_path), {})
    expected = {
        "kernel": "6.1.0-test",
        "boot_id": "0b0e7a52-0000-4000-8000-000000000000",
        "address_space_randomised": 2,
        "randomisation_off_by_personality": False,
        "isolated_cpus": "none",
        "mitigations": {"spectre_v1": "Mitigation: barriers"},
        "cpu_model": "Fast(R) CPU",
        "cpu_family": "6",
        "cpu_stepping": "2",
        "microcode": "0x2b",
        "cpus": 2,
        "cores": 2,
        "sockets": 1,
        "threads_share_cores": False,
        "caches": [{"level": 1, "type": "Data", "bytes": 49152, "shared_by_cpus": "0"}],
        "governor": "performance",
        "frequency_driver": "intel_pstate",
        "turbo": False,
        "memory_bytes": 16_384_000_000,
        "swap_bytes": 2_048_000_000,
        "transparent_huge_pages": "madvise",
        "clock_source": "tsc",
        "hypervisor": "none",
        "machine_product": "Box 1",
        "cpu_quota": "unlimited",
        "memory_limit_bytes": "unlimited",
        "cpuset": "0-1",
    }
    assert {name: found[name] for name in expected} == expected


def test_an_empty_host_has_a_reason_for_everything_that_is_unknown(tmp_path: Path) -> None:
    found = snapshot(Host(tmp_path), {})
    missing = {name for name, value in found.items() if value is None}
    assert missing == set(found["unknown"])
    assert {"boot_id", "cpu_model", "cpu_quota", "governor", "hypervisor"} <= missing
    assert all(found["unknown"].values())


def test_a_file_that_is_nonsense_is_unknown_and_not_a_guess(tmp_path: Path) -> None:
    changed = {
        "proc/meminfo": "MemTotal: lots\n",
        f"{CPU}/online": "both\n",
        "proc/sys/kernel/randomize_va_space": "\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "perhaps\n",
    }
    found = snapshot(quiet_host(tmp_path, changed), {})
    for name in ("memory_bytes", "cpus", "address_space_randomised", "transparent_huge_pages"):
        assert found[name] is None
        assert found["unknown"][name]


def test_this_host_is_described_in_json(tmp_path: Path) -> None:
    found = json.loads(json.dumps(snapshot()))
    assert found["boot_id"]
    assert found["cpus"] >= 1
    assert found["clock_resolution_s"] > 0
    assert found["environment_bytes"] > 0


def test_turbo_is_read_from_either_switch(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {f"{CPU}/cpufreq/boost": "1\n"})
    (tmp_path / CPU / "intel_pstate/no_turbo").unlink()
    assert snapshot(host, {})["turbo"] is True


def test_a_virtual_machine_names_its_hypervisor(tmp_path: Path) -> None:
    clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource"
    changed = {"proc/cpuinfo": "flags : fpu hypervisor\n", clocks: "tsc kvm-clock\n"}
    assert snapshot(quiet_host(tmp_path, changed), {})["hypervisor"] == "KVM"


def test_a_hypervisor_without_a_name_is_still_one(tmp_path: Path) -> None:
    changed = {"proc/cpuinfo": "flags : fpu hypervisor\n"}
    assert snapshot(quiet_host(tmp_path, changed), {})["hypervisor"] == "unnamed"
