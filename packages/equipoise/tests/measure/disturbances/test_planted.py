"""Each check finds its planted disturbance, and nothing on a quiet host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.measure.disturbances import CHECKS, HostState, examine
from equipoise.measure.environment import Host
from equipoise.model.host import SEVERITIES, Disturbance
from packages.equipoise.tests.measure.planted import (
    CPU,
    activity_over,
    plant,
    quiet_host,
    quiet_state,
    space,
)

ME = "sys/fs/cgroup/user.slice/me"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
GOVERNOR, NO_TURBO = f"{CPU}/cpu1/cpufreq/scaling_governor", f"{CPU}/intel_pstate/no_turbo"
LIMIT, QUOTA, SMT = f"{ME}/memory.max", f"{ME}/cpu.max", f"{CPU}/smt/active"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
PARANOID, RANDOM = "proc/sys/kernel/perf_event_paranoid", "sys/kernel/randomize_va_space"
SUPPLY = "sys/class/power_supply/BAT0"
BATTERY = {f"{SUPPLY}/type": "Battery\n", f"{SUPPLY}/status": "Discharging\n"}
FULL = "MemTotal: 1000000 kB\nMemAvailable: 50000 kB\n"
STOLEN = "cpu  1000 0 500 90000 10 0 5 9000 0 0\n"
SWAPS = "Filename Type Size Used Priority\n/s partition 2000000 51200 -2\n"
SPINNING = "4711 (a) ) spin) R 1 1 1 0 -1 4194304 0 0 0 0 {ticks} 0 0 0 20 0 1 0 777 0 0\n"


def disturbances_of(state: HostState) -> list[Disturbance]:
    examination = examine(state)
    assert examination.unchecked == {}
    return list(examination.disturbances)


def codes(state: HostState) -> list[str]:
    return [disturbance.code for disturbance in disturbances_of(state)]


def only(state: HostState) -> Disturbance:
    (disturbance,) = disturbances_of(state)
    return disturbance


def test_a_quiet_host_has_no_disturbances(tmp_path: Path) -> None:
    assert disturbances_of(quiet_state(tmp_path)) == []


@pytest.mark.parametrize(
    ("changed", "code", "severity", "hint"),
    [
        ({QUOTA: "50000 100000\n"}, "cpu_quota", "disturbs", f"echo max | sudo tee /{QUOTA}"),
        ({QUOTA: "150000 100000\n"}, "cpu_quota", "weakens", f"echo max | sudo tee /{QUOTA}"),
        ({"proc/swaps": SWAPS}, "swap_in_use", "weakens", "sudo swapoff -a && sudo swapon -a"),
        ({"proc/meminfo": FULL}, "full_memory", "disturbs", "ps -e"),
        ({LIMIT: "850000000\n"}, "full_memory_limit", "disturbs", f"/{LIMIT}"),
        ({"proc/loadavg": "1.20 0 0 1/1 1\n"}, "high_load", "weakens", "uptime"),
        ({"proc/loadavg": "7.50 0 0 1/1 1\n"}, "high_load", "disturbs", "uptime"),
        ({"proc/stat": STOLEN}, "steal", "weakens", "--budget"),
        ({CLOCK: "hpet\n"}, "coarse_clock", "disturbs", f"echo tsc | sudo tee /{CLOCK}"),
        (BATTERY, "battery", "disturbs", "plug it in"),
        ({GOVERNOR: "powersave\n"}, "governor", "weakens", "echo performance | sudo tee"),
        ({NO_TURBO: "0\n"}, "turbo", "weakens", f"echo 1 | sudo tee /{NO_TURBO}"),
        ({SMT: "1\n"}, "shared_cores", "weakens", f"echo off | sudo tee /{CPU}/smt/control"),
        ({PAGES: "[always] madvise never\n"}, "huge_pages", "weakens", "madvise | sudo tee"),
        ({f"proc/{RANDOM}": "0\n"}, "fixed_addresses", "weakens", "kernel.randomize_va_space=2"),
        ({"proc/self/personality": "00040000\n"}, "fixed_addresses", "weakens", "setarch"),
        ({PARANOID: "4\n"}, "counters_forbidden", "lacks", "kernel.perf_event_paranoid=2"),
    ],
)
def test_a_planted_disturbance_is_found_with_the_command_that_ends_it(
    tmp_path: Path, changed: Mapping[str, str], code: str, severity: str, hint: str
) -> None:
    disturbance = only(quiet_state(tmp_path, changed))
    assert (disturbance.code, disturbance.severity) == (code, severity)
    assert hint in disturbance.hint


def test_the_battery_of_a_mouse_does_not_matter(tmp_path: Path) -> None:
    supply = "sys/class/power_supply/hidpp_battery_0"
    changed = {f"{supply}/type": "Battery\n", f"{supply}/status": "Discharging\n"}
    assert disturbances_of(quiet_state(tmp_path, {**changed, f"{supply}/scope": "Device\n"})) == []


def test_a_restriction_for_other_users_is_not_reported_to_root(tmp_path: Path) -> None:
    state = quiet_state(tmp_path, {PARANOID: "4\n"})
    assert disturbances_of(msgspec.structs.replace(state, we_are_root=True)) == []


def test_missing_counters_of_the_processor_are_reported(tmp_path: Path) -> None:
    state = quiet_state(tmp_path)
    device = tmp_path / "sys/bus/event_source/devices/cpu"
    device.rename(device.with_name("software"))
    assert (only(state).code, only(state).severity) == ("no_hardware_counters", "lacks")


def test_covariates_that_the_host_lacks_are_named(tmp_path: Path) -> None:
    state = quiet_state(tmp_path)
    (tmp_path / "proc/pressure/io").unlink()
    disturbance = only(state)
    assert (disturbance.code, disturbance.severity) == ("no_covariate", "lacks")
    names = "pressure_io_s and pressure_io_before"
    assert disturbance.summary.startswith(f"{names} will be unknown: /proc/pressure/io: ")


def state_after(root: Path, happens: Mapping[str, str]) -> HostState:
    state = quiet_state(root)
    return msgspec.structs.replace(state, activity=activity_over(state.host, happens))


def test_a_busy_process_is_named_with_its_number_under_any_name(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/4711/stat": SPINNING.format(ticks=100)})
    disturbance = only(state_after(tmp_path, {"proc/4711/stat": SPINNING.format(ticks=195)}))
    assert (disturbance.code, disturbance.severity) == ("busy_process", "disturbs")
    assert disturbance.summary == "process 4711 (a) ) spin) uses 95 % of a CPU"
    assert "kill -STOP 4711" in disturbance.hint


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    loud = SPINNING.replace("a) ) spin", "\x1b[2Jx")
    disturbance = only(state_after(tmp_path, {"proc/4711/stat": loud.format(ticks=95)}))
    assert disturbance.summary == "process 4711 (?[2Jx) uses 95 % of a CPU"


def test_a_busy_thread_of_the_kernel_is_not_to_be_killed(tmp_path: Path) -> None:
    thread = "9 (kworker) R 2 0 0 0 -1 69238880 0 0 0 0 0 {ticks} 0 0 20 0 1 0 5 0 0\n"
    disturbance = only(state_after(tmp_path, {"proc/9/stat": thread.format(ticks=40)}))
    assert "process 9 (kworker) uses 40 % of a CPU" in disturbance.summary
    assert "kill" not in disturbance.hint


def test_many_small_processes_are_counted_together(tmp_path: Path) -> None:
    crowd = {
        f"proc/{number}/stat": f"{number} (bee) S 1 1 1 0 -1 0 0 0 0 0 4 0 0 0 20 0 1 0 9 0 0\n"
        for number in range(100, 110)
    }
    disturbance = only(state_after(tmp_path, crowd))
    assert (disturbance.code, disturbance.severity) == ("busy_processes", "disturbs")
    assert disturbance.summary == "10 other processes together use 40 % of a CPU"


@pytest.mark.parametrize(
    ("file", "text", "code", "words"),
    [
        ("stat", "cpu  1080 0 500 90100 10 0 5 0 0 0\n", "unseen_processes", "80 % of a CPU"),
        ("stat", "cpu  1000 0 500 90090 10 0 5 10 0 0\n", "steal", "10 %"),
        ("vmstat", "pswpin 60\npswpout 25\n", "swapping", "55 pages"),
    ],
)
def test_what_happens_now_is_worse_than_what_happened_before(
    tmp_path: Path, file: str, text: str, code: str, words: str
) -> None:
    disturbance = only(state_after(tmp_path, {f"proc/{file}": text}))
    assert (disturbance.code, disturbance.severity) == (code, "disturbs")
    assert words in disturbance.summary


def test_our_own_process_is_not_a_disturbance(tmp_path: Path) -> None:
    own = "999999 (doctor) R 1 1 1 0 -1 0 0 0 0 0 90 0 0 0 20 0 1 0 9 0 0\n"
    happens = {"proc/999999/stat": own, "proc/stat": "cpu  1090 0 500 90100 10 0 5 0 0 0\n"}
    assert disturbances_of(state_after(tmp_path, happens)) == []


def test_a_number_that_a_new_process_got_counts_from_its_start(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/4711/stat": SPINNING.format(ticks=5000)})
    newer = SPINNING.replace("777", "888").format(ticks=2)
    assert disturbances_of(state_after(tmp_path, {"proc/4711/stat": newer})) == []


def test_a_quota_that_stops_us_now_is_reported(tmp_path: Path) -> None:
    plant(tmp_path, {})
    state = quiet_state(tmp_path, {QUOTA: "150000 100000\n"})
    activity = activity_over(state.host, {f"{ME}/cpu.stat": "nr_throttled 4\n"})
    disturbance = only(msgspec.structs.replace(state, activity=activity))
    assert disturbance.severity == "disturbs"
    assert "4 times just now" in disturbance.summary


def test_a_tiny_temporary_folder_is_found(tmp_path: Path) -> None:
    tiny = msgspec.structs.replace(
        quiet_state(tmp_path), free_space=lambda _: space(free_bytes=1 << 20, total_bytes=2 << 20)
    )
    assert (only(tiny).code, only(tiny).severity) == ("small_temporary_folder", "disturbs")
    assert "/tmp has 1 MB left of 2 MB" in only(tiny).summary
    assert "TMPDIR" in only(tiny).hint


def test_a_temporary_folder_without_room_for_files_is_found(tmp_path: Path) -> None:
    crowded = msgspec.structs.replace(
        quiet_state(tmp_path),
        free_space=lambda _: space(10 << 30, 20 << 30, files=50_000, free_files=3),
    )
    assert "only 3 more files" in only(crowded).summary


def test_a_file_system_that_counts_no_files_has_room_for_them(tmp_path: Path) -> None:
    butter = msgspec.structs.replace(
        quiet_state(tmp_path), free_space=lambda _: space(10 << 30, 20 << 30, 0, 0)
    )
    assert disturbances_of(butter) == []


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("MALLOC_CHECK_", "3", "MALLOC_CHECK_=3 is set"),
        ("MALLOC_PERTURB_", "165", "MALLOC_PERTURB_=165 is set"),
        ("LD_DEBUG", "libs", "LD_DEBUG=libs is set"),
        ("LD_PRELOAD", "/lib/x.so", "LD_PRELOAD=/lib/x.so is set"),
        ("PYTHONDEVMODE", "1", "PYTHONDEVMODE is set"),
        ("PYTHONMALLOC", "debug", "PYTHONMALLOC=debug is set"),
        ("ASAN_OPTIONS", "log_path=/home/me", "ASAN_OPTIONS is set"),
    ],
)
def test_a_debug_variable_is_found(tmp_path: Path, name: str, value: str, shown: str) -> None:
    state = quiet_state(tmp_path)
    disturbance = only(
        msgspec.structs.replace(state, environment={**state.environment, name: value})
    )
    assert disturbance.code == "debug_variable"
    assert disturbance.summary.startswith(shown)
    assert disturbance.hint.startswith(f"unset {name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_CHECK_", "0"), ("PYTHONMALLOC", "pymalloc"), ("LD_PRELOAD", ""), ("TZ", "UTC")],
)
def test_a_variable_that_does_nothing_is_not_reported(
    tmp_path: Path, name: str, value: str
) -> None:
    state = quiet_state(tmp_path)
    assert disturbances_of(msgspec.structs.replace(state, environment={name: value})) == []


def everything_wrong(root: Path) -> HostState:
    state = quiet_state(
        root,
        {
            QUOTA: "50000 100000\n",
            PARANOID: "4\n",
            SMT: "1\n",
            NO_TURBO: "0\n",
            "proc/loadavg": "7.50 0 0 1/1 1\n",
        },
    )
    return msgspec.structs.replace(state, environment={"MALLOC_PERTURB_": "1"})


def test_the_worst_disturbance_is_first(tmp_path: Path) -> None:
    order = [
        SEVERITIES.index(disturbance.severity)
        for disturbance in disturbances_of(everything_wrong(tmp_path))
    ]
    assert order == sorted(order)
    assert codes(everything_wrong(tmp_path)) == [
        "cpu_quota",
        "high_load",
        "debug_variable",
        "turbo",
        "shared_cores",
        "counters_forbidden",
    ]


def test_no_hint_touches_the_mitigations(tmp_path: Path) -> None:
    for disturbance in disturbances_of(everything_wrong(tmp_path)):
        assert "mitigation" not in f"{disturbance.summary} {disturbance.hint}".lower()
    folder = Path(examine.__code__.co_filename).parent
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    assert len(sources) == 4
    assert not any("mitigations=" in text or "nopti" in text for text in sources)


def test_the_checks_change_nothing(tmp_path: Path) -> None:
    state = everything_wrong(tmp_path)

    def contents() -> dict[str, bytes]:
        return {
            os.path.join(folder, name): Path(folder, name).read_bytes()
            for folder, _, names in os.walk(tmp_path)
            for name in names
        }

    before = contents()
    examine(state)
    assert contents() == before


def test_a_check_that_cannot_read_has_a_reason(tmp_path: Path) -> None:
    host = Host(tmp_path)
    plant(tmp_path, {"proc/loadavg": "0.0 0.0 0.0 1/1 1\n"})
    state = msgspec.structs.replace(
        quiet_state(tmp_path / "complete"), host=host, activity=activity_over(host)
    )
    examination = examine(state)
    assert set(examination.checked) | set(examination.unchecked) == set(CHECKS)
    assert {"swap", "governor", "cpu_quota", "coarse_clock"} <= set(examination.unchecked)
    assert all(examination.unchecked.values())
    assert {disturbance.severity for disturbance in examination.disturbances} == {"lacks"}


def test_a_missing_folder_is_not_checked(tmp_path: Path) -> None:
    state = msgspec.structs.replace(
        quiet_state(tmp_path), scratch=tmp_path / "gone", free_space=os.statvfs
    )
    assert list(examine(state).unchecked) == ["full_temporary_folder"]


def test_a_host_with_half_of_its_files_still_has_results(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {SMT: "1\n"})
    (tmp_path / "proc/stat").unlink()
    state = msgspec.structs.replace(quiet_state(tmp_path / "complete"), host=host)
    examination = examine(msgspec.structs.replace(state, activity=activity_over(host)))
    assert "shared_cores" in [disturbance.code for disturbance in examination.disturbances]
    assert "steal" in examination.unchecked
