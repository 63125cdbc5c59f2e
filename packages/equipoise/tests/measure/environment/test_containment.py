"""The tightest limit of all control groups of this process counts, in both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.measure.environment import Host, Unknown
from equipoise.measure.environment.cgroups import (
    Limit,
    cpu_quota,
    memory_in_use,
    memory_limit,
    times_throttled,
)
from packages.equipoise.tests.measure.planted import plant, quiet_host

V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
V1 = "sys/fs/cgroup/cpu,cpuacct"


def v1_host(root: Path, *, mounted: str = "/", files: dict[str, str]) -> Host:
    plant(
        root,
        {
            "proc/self/cgroup": "3:memory:/jobs/one\n2:cpu,cpuacct:/jobs/one\n0::/\n",
            "proc/self/mountinfo": V1_MOUNTS.format(root=mounted),
            "sys/fs/cgroup/unified/cgroup.procs": "",
            "sys/fs/cgroup/memory/cgroup.procs": "",
            f"{V1}/cpu.cfs_quota_us": "-1\n",
            **files,
        },
    )
    return Host(root)


def test_no_limit_is_none(tmp_path: Path) -> None:
    host = quiet_host(tmp_path)
    assert cpu_quota(host) is None
    assert memory_limit(host) is None
    assert times_throttled(host) == 0


def test_a_quota_of_version_2_is_found_in_a_group_above_ours(tmp_path: Path) -> None:
    host = quiet_host(
        tmp_path,
        {
            "sys/fs/cgroup/user.slice/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/user.slice/me/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/me/cpu.stat": "nr_throttled 7\n",
        },
    )
    assert cpu_quota(host) == Limit(0.5, "/sys/fs/cgroup/user.slice/cpu.max")
    assert times_throttled(host) == 7


def test_a_quota_of_version_1_is_found_beside_an_empty_version_2(tmp_path: Path) -> None:
    host = v1_host(
        tmp_path,
        files={
            f"{V1}/jobs/one/cpu.cfs_quota_us": "150000\n",
            f"{V1}/jobs/one/cpu.cfs_period_us": "100000\n",
        },
    )
    assert cpu_quota(host) == Limit(1.5, "/sys/fs/cgroup/cpu,cpuacct/jobs/one/cpu.cfs_quota_us")


def test_in_a_container_the_mount_is_our_own_group(tmp_path: Path) -> None:
    files = {f"{V1}/cpu.cfs_quota_us": "20000\n", f"{V1}/cpu.cfs_period_us": "100000\n"}
    host = v1_host(tmp_path, mounted="/jobs/one", files=files)
    assert cpu_quota(host) == Limit(0.2, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us")


def test_the_largest_number_of_version_1_is_not_a_memory_limit(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory/jobs/one"
    host = v1_host(tmp_path, files={f"{folder}/memory.limit_in_bytes": "9223372036854771712\n"})
    assert memory_limit(host) is None


def test_memory_that_can_be_dropped_is_not_in_use(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {"sys/fs/cgroup/user.slice/me/memory.max": "1000000000\n"})
    limit = memory_limit(host)
    assert limit == Limit(1_000_000_000, "/sys/fs/cgroup/user.slice/me/memory.max")
    assert memory_in_use(host, limit) == 800_000_000


def test_a_quota_that_makes_no_sense_is_unknown(tmp_path: Path) -> None:
    host = quiet_host(tmp_path, {"sys/fs/cgroup/user.slice/me/cpu.max": "much 0\n"})
    with pytest.raises(Unknown, match="is not a quota"):
        cpu_quota(host)


def test_without_control_groups_the_limits_are_unknown(tmp_path: Path) -> None:
    with pytest.raises(Unknown):
        cpu_quota(Host(tmp_path))
