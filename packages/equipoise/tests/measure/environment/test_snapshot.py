"""The facts about a host that a campaign records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from equipoise.design.chance import ENVIRONMENT_SIZE, HASH_SEEDS
from equipoise.design.libraries import BLAS_LIBRARIES
from equipoise.measure.environment import Host, snapshot
from equipoise.measure.environment.system import (
    addresses_are_random,
    addresses_can_be_held,
    environment_bytes,
)
from equipoise.model.redaction import TUNING_VARIABLES
from equipoise.why.interventions.runtime import THREAD_VARIABLES
from packages.equipoise.tests.measure.planted import CPU, quiet_host


def test_a_complete_host_is_described(tmp_path: Path) -> None:
    facts = snapshot(quiet_host(tmp_path), {})
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
    assert {name: facts[name] for name in expected} == expected


def test_an_empty_host_has_a_reason_for_everything_that_is_unknown(tmp_path: Path) -> None:
    facts = snapshot(Host(tmp_path), {})
    missing = {name for name, value in facts.items() if value is None}
    assert missing == set(facts["unknown"])
    assert {"boot_id", "cpu_model", "cpu_quota", "governor", "hypervisor"} <= missing
    assert all(facts["unknown"].values())


def test_a_file_that_is_nonsense_is_unknown_and_not_a_guess(tmp_path: Path) -> None:
    changed = {
        "proc/meminfo": "MemTotal: lots\n",
        f"{CPU}/online": "both\n",
        "proc/sys/kernel/randomize_va_space": "\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "perhaps\n",
    }
    facts = snapshot(quiet_host(tmp_path, changed), {})
    for name in ("memory_bytes", "cpus", "address_space_randomised", "transparent_huge_pages"):
        assert facts[name] is None
        assert facts["unknown"][name]


def test_this_host_is_described_in_json() -> None:
    facts = json.loads(json.dumps(snapshot()))
    assert facts["boot_id"]
    assert facts["cpus"] >= 1
    assert facts["clock_resolution_s"] > 0
    assert facts["environment_bytes"] > 0


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


MAPS = "print(next(line for line in open('/proc/self/maps') if '[stack]' in line).split()[0])"


def places() -> set[bytes]:
    """Addresses of the stacks of eight processes."""
    return {
        subprocess.run([sys.executable, "-S", "-c", MAPS], capture_output=True, check=True).stdout
        for _ in range(8)
    }


def test_the_check_of_random_addresses_changes_nothing_in_this_process() -> None:
    before = Path("/proc/self/personality").read_text()
    addresses_can_be_held()
    assert Path("/proc/self/personality").read_text() == before


def test_the_snapshot_of_this_host_agrees_with_its_processes() -> None:
    assert addresses_are_random(Host()) == (len(places()) > 1)


def test_a_host_that_cannot_be_read_counts_as_random(tmp_path: Path) -> None:
    assert addresses_are_random(Host(tmp_path / "nowhere"))


def test_variables_that_change_a_program_are_recorded_and_secrets_are_not(tmp_path: Path) -> None:
    facts = snapshot(
        Host(tmp_path),
        {
            "LD_PRELOAD": "libjemalloc.so.2",
            "MALLOC_ARENA_MAX": "1",
            "LC_ALL": "C",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "DATABASE_URL": "postgres://me:hunter2@host",
        },
    )
    assert facts["variables"] == {
        "LC_ALL": "C",
        "LD_PRELOAD": "libjemalloc.so.2",
        "MALLOC_ARENA_MAX": "1",
    }
    assert "hunter2" not in json.dumps(facts)


def test_a_name_that_only_begins_like_one_of_the_list_is_not_recorded(tmp_path: Path) -> None:
    names = ("LC_API_TOKEN", "OMP_KEY", "MALLOC_PASSWORD", "OPENBLAS_X", "BLIS_Y")
    facts = snapshot(Host(tmp_path), dict.fromkeys(names, "hunter2"))
    assert facts["variables"] == {}
    assert "hunter2" not in json.dumps(facts)


def test_every_variable_that_equipoise_sets_itself_is_known() -> None:
    held = {name for source in (*HASH_SEEDS, ENVIRONMENT_SIZE) for name in source.environment}
    of_libraries = {
        library.core_variable for library in BLAS_LIBRARIES if library.core_variable is not None
    }
    assert held | of_libraries | set(THREAD_VARIABLES) <= TUNING_VARIABLES


def test_a_relevant_variable_that_may_be_secret_is_named_without_its_value(tmp_path: Path) -> None:
    environment = {"PATH": "/home/alice/bin", "JAVA_TOOL_OPTIONS": "-Dpassword=hunter2"}
    facts = snapshot(Host(tmp_path), environment)
    assert facts["variables_set_but_withheld"] == ["JAVA_TOOL_OPTIONS", "PATH"]
    assert "alice" not in json.dumps(facts)
    assert "hunter2" not in json.dumps(facts)


def test_bytes_that_are_not_text_can_be_written_as_json(tmp_path: Path) -> None:
    facts = snapshot(Host(tmp_path), {"LD_PRELOAD": "/lib/\udcff.so"})
    assert facts["variables"]["LD_PRELOAD"] == "/lib/\\xff.so"
    assert json.dumps(facts).encode("utf-8")


def test_the_size_of_the_environment_counts_names_signs_and_ends() -> None:
    assert environment_bytes({}) == 0
    assert environment_bytes({"A": "xyz", "BC": ""}) == len("A=xyz0") + len("BC=0")
    assert environment_bytes({"A": "\udcff"}) == len("A=?0")
