"""The files of a complete, quiet host; each test disturbs it in one way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from equipoise.measure.disturbances import HostState
from equipoise.measure.disturbances.host_state import Activity, read_moment
from equipoise.measure.environment import Host

CPU = "sys/devices/system/cpu"

QUIET: Mapping[str, str] = {
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
    "model\t\t: 207\nmodel name\t: Fast(R) CPU\nstepping\t: 2\nmicrocode\t: 0x2b\n"
    "flags\t\t: fpu tsc sse2\n\nprocessor\t: 1\nmodel name\t: Another\n",
    "proc/loadavg": "0.05 0.10 0.20 1/100 4242\n",
    "proc/meminfo": "MemTotal:       16000000 kB\nMemFree:        9000000 kB\n"
    "MemAvailable:   12000000 kB\nSwapTotal:       2000000 kB\n",
    "proc/stat": "cpu  1000 0 500 90000 10 0 5 0 0 0\ncpu0 500 0 250 45000 5 0 2 0 0 0\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2\tpartition\t2000000\t0\t-2\n",
    "proc/vmstat": "nr_free_pages 100\npswpin 10\npswpout 20\n",
    "proc/1/stat": "1 (init) S 0 1 1 0 -1 4194304 0 0 0 0 5 5 0 0 20 0 1 0 3 0 0\n",
    "proc/self/cgroup": "0::/user.slice/me\n",
    "proc/self/mountinfo": "25 20 0:23 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    "proc/self/personality": "00000000\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=500\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/sys/kernel/osrelease": "6.1.0-test\n",
    "proc/sys/kernel/version": "#1 SMP\n",
    "proc/sys/kernel/random/boot_id": "0b0e7a52-0000-4000-8000-000000000000\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/sys/kernel/perf_event_paranoid": "2\n",
    "sys/bus/event_source/devices/cpu/type": "4\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/class/dmi/id/sys_vendor": "Maker\n",
    "sys/class/dmi/id/product_name": "Box 1\n",
    "sys/class/power_supply/AC/type": "Mains\n",
    "sys/class/thermal/thermal_zone0/type": "acpitz\n",
    "sys/class/thermal/thermal_zone0/temp": "90000\n",
    "sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
    "sys/class/thermal/thermal_zone1/temp": "41500\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
    "sys/fs/cgroup/cpu.stat": "usage_usec 100\n",
    "sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
    "sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 100\nnr_throttled 0\n",
    "sys/fs/cgroup/user.slice/me/cpu.max": "max 100000\n",
    "sys/fs/cgroup/user.slice/me/cpu.stat": "usage_usec 50\nnr_throttled 0\n",
    "sys/fs/cgroup/user.slice/me/memory.max": "max\n",
    "sys/fs/cgroup/user.slice/me/memory.current": "900000000\n",
    "sys/fs/cgroup/user.slice/me/memory.stat": "anon 100\ninactive_file 100000000\n",
    "sys/fs/cgroup/user.slice/me/cpuset.cpus.effective": "0-1\n",
    f"{CPU}/online": "0-1\n",
    f"{CPU}/isolated": "\n",
    f"{CPU}/smt/active": "0\n",
    f"{CPU}/intel_pstate/no_turbo": "1\n",
    f"{CPU}/vulnerabilities/spectre_v1": "Mitigation: barriers\n",
    f"{CPU}/cpu0/topology/physical_package_id": "0\n",
    f"{CPU}/cpu0/topology/core_id": "0\n",
    f"{CPU}/cpu1/topology/physical_package_id": "0\n",
    f"{CPU}/cpu1/topology/core_id": "1\n",
    f"{CPU}/cpu0/cache/index0/level": "1\n",
    f"{CPU}/cpu0/cache/index0/type": "Data\n",
    f"{CPU}/cpu0/cache/index0/size": "48K\n",
    f"{CPU}/cpu0/cache/index0/shared_cpu_list": "0\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "2400000\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu1/cpufreq/scaling_driver": "intel_pstate\n",
    f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "3100000\n",
}


def plant(root: Path, files: Mapping[str, str]) -> None:
    """Write files below ``root`` and replace those that exist."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def quiet_host(root: Path, changed: Mapping[str, str] | None = None) -> Host:
    """Write the files of the quiet host, with some of them changed."""
    plant(root, {**QUIET, **(changed or {})})
    return Host(root)


def spacious(_: Path) -> os.statvfs_result:
    """A file system with enough space: 100 GB of 200 GB, and a million files."""
    return space(free_bytes=100 << 30, total_bytes=200 << 30)


def space(
    free_bytes: int, total_bytes: int, files: int = 2_000_000, free_files: int = 1_000_000
) -> os.statvfs_result:
    """Result of statvfs, with blocks of 4096 bytes."""
    free, total = free_bytes // 4096, total_bytes // 4096
    return os.statvfs_result(
        (4096, 4096, total, free, free, files, free_files, free_files, 4096, 255)
    )


def quiet_state(root: Path, changed: Mapping[str, str] | None = None) -> HostState:
    """The quiet host with some files changed, observed for a second without events."""
    host = quiet_host(root, changed)
    return HostState(
        host=host,
        activity=activity_over(host),
        environment={"LANG": "C.UTF-8", "PATH": "/usr/bin"},
        scratch=Path("/tmp"),
        free_space=spacious,
    )


def activity_over(host: Host, happens: Mapping[str, str] | None = None) -> Activity:
    """Activity of a planted host during a second in which some of its files change."""
    first = read_moment(host, clock=lambda: 10.0)
    plant(host.root, happens or {})
    last = read_moment(host, clock=lambda: 11.0)
    return Activity(first, last, own_pid=999_999, ticks_per_s=100)
