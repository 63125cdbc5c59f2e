"""Each intervention, on a condition that really runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.campaign.verification import check_effects, mapped_by_condition
from equipoise.design import libraries as design
from equipoise.measure.environment import Host
from equipoise.measure.environment.hardware import instructions
from equipoise.measure.installation import host_site, native_programs
from equipoise.model.packages import own_file
from equipoise.model.plan import Condition, Output, Process
from equipoise.why.interventions.catalogue import every_intervention
from equipoise.why.interventions.intervention import Case
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.why.evidence.programs import compiled
from packages.equipoise.tests.why.interventions.cases import (
    case_here,
    case_of,
    cause,
    intervention_named,
    output_of,
    ran,
    shell,
    site,
)

MAPS = shell("cat /proc/self/maps")
SEVERAL_CPUS = len(os.sched_getaffinity(0)) > 1

CHURN = r"""
#include <stdlib.h>
int main(void) {
    for (int round = 0; round < 2000; round++) {
        char *block = malloc(35600);
        for (int at = 0; at < 35600; at += 4096) block[at] = 1;
        free(block);
    }
    return 0;
}
"""


def verified(condition: Condition) -> None:
    """Ask of it what is asked before the first block of a campaign."""
    plan = msgspec.structs.replace(plan_of(), conditions=(condition,))
    environment = dict(os.environ)
    check_effects(plan, mapped_by_condition(plan, environment), environment)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("dlmalloc", "libequipoise_dlmalloc.so"),
        ("jemalloc", "libjemalloc.so.2"),
        ("mimalloc", "libmimalloc.so.2"),
        ("tcmalloc", "libtcmalloc_minimal.so.4"),
    ],
)
def test_an_allocator_is_mapped(name: str, library: str, tmp_path: Path) -> None:
    swap = intervention_named(name, case_here(MAPS))
    if swap.impossible_because is not None:
        pytest.skip(swap.impossible_because)
    altered = swap.alter(MAPS)
    verified(altered)
    assert os.path.realpath(altered.environment["LD_PRELOAD"]) in output_of(altered, tmp_path)
    assert library in altered.environment["LD_PRELOAD"]


@pytest.mark.live("cc", package="gcc")
def test_freed_memory_that_is_kept_is_not_faulted_in_again(tmp_path: Path) -> None:
    program = str(compiled(tmp_path, CHURN))
    policy = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
    churn = Condition("15 KB", (program,), environment={"GLIBC_TUNABLES": policy})
    altered = intervention_named("never_mmap", case_here(churn)).alter(churn)
    verified(altered)
    before = ran(churn, tmp_path).trial.accounting.minor_faults
    after = ran(altered, tmp_path).trial.accounting.minor_faults
    assert before is not None
    assert after is not None
    assert before > 2000 * 9 > 2000 > after


@pytest.mark.parametrize(
    ("name", "allowed"), [("no_huge_pages", "0"), ("huge_pages", "1"), ("malloc_huge_pages", "1")]
)
def test_huge_pages_are_those_of_the_kernel(name: str, allowed: str, tmp_path: Path) -> None:
    usual = shell("grep THP_enabled /proc/self/status")
    forbidden = msgspec.structs.replace(usual, process=Process(huge_pages=False))
    change = intervention_named(name, Case((forbidden, usual), host_site()))
    if change.impossible_because is not None:
        pytest.skip(change.impossible_because)
    altered = change.alter(usual if name == "no_huge_pages" else forbidden)
    verified(altered)
    assert output_of(altered, tmp_path).split() == ["THP_enabled:", allowed]


def test_host_without_huge_pages_has_a_hint(tmp_path: Path) -> None:
    place = tmp_path / "sys/kernel/mm/transparent_hugepage"
    place.mkdir(parents=True)
    (place / "enabled").write_text("always madvise [never]\n")
    case = msgspec.structs.replace(case_of(), host=Host(tmp_path))
    assert "echo madvise" in str(intervention_named("no_huge_pages", case).impossible_because)


FINCORE = "fincore --bytes --noheadings --output RES"


def with_file(condition: Condition, file: Path) -> Condition:
    return msgspec.structs.replace(condition, command=(*condition.command, str(file)))


@pytest.mark.live("fincore", package="util-linux")
def test_a_file_is_in_the_page_cache_or_not_by_the_intervention(tmp_path: Path) -> None:
    data = tmp_path / "it's data"
    data.write_bytes(b"x" * (1 << 20))
    reads = with_file(shell(f'{FINCORE} "$0"'), data)
    case = msgspec.structs.replace(
        case_here(reads), causes=(cause("cold_file", file=str(data)), cause("sleeping", file="/x"))
    )
    cold, warm = intervention_named("cold_files", case), intervention_named("warm_files", case)
    assert int(output_of(warm.alter(reads), tmp_path)) == 1 << 20
    if cold.impossible_because is not None:
        pytest.skip(cold.impossible_because)
    assert int(output_of(cold.alter(reads), tmp_path)) == 0
    # What is asked for last holds, whatever is prepared before.
    assert int(output_of(warm.alter(cold.alter(reads)), tmp_path)) == 1 << 20


@pytest.mark.live("fincore", package="util-linux")
def test_a_file_that_the_program_drops_stays_in_the_page_cache(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"x" * (1 << 20))
    line = (
        "import os, subprocess, sys\n"
        "file = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.fsync(file)\n"
        "os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)\n"
        f"subprocess.run([*'{FINCORE}'.split(), sys.argv[1]], check=True)\n"
    )
    drops = with_file(Condition("python", (sys.executable, "-S", "-c", line)), data)
    intervention = intervention_named("keep_cache", case_here(drops))
    assert intervention.sham is not None
    verified(intervention.alter(drops))
    assert int(output_of(intervention.alter(drops), tmp_path)) == 1 << 20
    if intervention_named("cold_files", case_here(drops)).impossible_because is None:
        assert int(output_of(intervention.sham(drops), tmp_path)) == 0


def test_a_file_that_a_trial_has_removed_is_no_failure(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"x")
    removes = with_file(shell("true"), data)
    case = case_here(removes)
    changes = [intervention_named("cold_files", case), intervention_named("warm_files", case)]
    data.unlink()
    for change in changes:
        ran(change.alter(removes), tmp_path)


def test_a_file_in_memory_cannot_be_cold(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"x")
    planted = tmp_path / "host" / "proc" / "self"
    planted.mkdir(parents=True)
    mounts = f"1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / {tmp_path} rw - tmpfs tmpfs rw\n"
    (planted / "mountinfo").write_text(mounts)
    causes = (cause("cold_file", file=str(data)),)
    case = msgspec.structs.replace(case_of(), causes=causes, host=Host(tmp_path / "host"))
    assert intervention_named("cold_files", case).impossible_because == (
        f"{data} is in memory (tmpfs): put it on a disk"
    )
    assert intervention_named("warm_files", case).impossible_because is None


def test_unnamed_file_makes_file_interventions_impossible() -> None:
    reason = intervention_named("warm_files", case_of()).impossible_because
    assert reason is not None
    assert "names no existing file" in reason


@pytest.mark.skipif(not SEVERAL_CPUS, reason="we may use one CPU only")
def test_pinning_uses_one_cpu_and_every_cpu_uses_all(tmp_path: Path) -> None:
    status = shell("grep Cpus_allowed_list /proc/self/status")
    pinned = intervention_named("pinning", case_here(status)).alter(status)
    verified(pinned)
    last = max(os.sched_getaffinity(0))
    assert output_of(pinned, tmp_path).split()[1] == str(last)
    freed = intervention_named("every_cpu", Case((pinned, status), host_site())).alter(pinned)
    assert output_of(freed, tmp_path) == output_of(status, tmp_path)


def test_addresses_are_the_same_in_each_trial(tmp_path: Path) -> None:
    fixed = intervention_named("fixed_addresses", case_here(MAPS)).alter(MAPS)
    assert len({output_of(fixed, tmp_path).split("\n")[0] for _ in range(3)}) == 1


def test_hash_seeds_are_the_same_in_each_trial(tmp_path: Path) -> None:
    python = Condition("python", (sys.executable, "-S", "-c", "print(hash('equipoise'))"))
    fixed = intervention_named("fixed_hash_seeds", case_here(python)).alter(python)
    assert len({output_of(fixed, tmp_path) for _ in range(3)}) == 1
    assert len({output_of(python, tmp_path) for _ in range(3)}) > 1


@pytest.mark.parametrize("name", ["thread_per_cpu", "single_thread", "even_environment"])
def test_variables_reach_the_process(name: str, tmp_path: Path) -> None:
    env = Condition("env", (shutil.which("env") or "/usr/bin/env",))
    longer = msgspec.structs.replace(env, name="longer", environment={"LONG": "x" * 99})
    change = intervention_named(name, Case((longer, env), site(environment={"PATH": "/bin"})))
    altered = change.alter(env)
    said = output_of(altered, tmp_path).splitlines()
    assert altered.environment
    assert {f"{key}={value}" for key, value in altered.environment.items()} <= set(said)


def test_output_goes_to_a_file_without_a_name_or_nowhere(tmp_path: Path) -> None:
    where = Condition("where", (shutil.which("readlink") or "/bin/readlink", "/proc/self/fd/1"))
    loud = Case((where, where), host_site(), output=Output("file", "printed"))
    nowhere = intervention_named("output_discarded", loud).alter(where)
    ran(nowhere, tmp_path)
    assert not (tmp_path / "printed").exists()
    to_file = intervention_named("output_to_file", case_here(where)).alter(where)
    done = ran(to_file, tmp_path)
    assert not (tmp_path / "printed").exists()
    assert done.trial.accounting.output_bytes is not None
    assert done.trial.accounting.output_bytes > len("/dev/null")


@pytest.mark.parametrize(
    "name", ["quick_sync", "no_sleep", "keep_pages", "large_buffers", "late_flush", "huge_mappings"]
)
def test_the_library_of_interventions_and_its_sham_are_mapped(name: str, tmp_path: Path) -> None:
    change = intervention_named(name, case_here(MAPS))
    if change.impossible_because is not None:
        pytest.skip(change.impossible_because)
    assert change.sham is not None
    for altered in (change.alter(MAPS), change.sham(MAPS)):
        verified(altered)
        assert str(native_programs() / "libequipoise_interventions.so") in output_of(
            altered, tmp_path
        )


def test_a_program_of_python_gets_its_own_buffers_back(tmp_path: Path) -> None:
    line = "import sys; print(sys.stdout.write_through)"
    python = Condition(
        "python", (sys.executable, "-S", "-c", line), environment={"PYTHONUNBUFFERED": "1"}
    )
    change = intervention_named("large_buffers", case_here(python))
    assert change.sham is not None
    assert output_of(change.sham(python), tmp_path) == "True\n"
    assert output_of(change.alter(python), tmp_path) == "False\n"


@pytest.mark.parametrize("library", ["openblas", "blis"])
def test_a_blas_reports_the_core_type_that_was_set(library: str) -> None:
    chosen = next(
        blas_library for blas_library in design.BLAS_LIBRARIES if blas_library.name == library
    )
    if not chosen.is_installed():
        pytest.skip(f"apt install {chosen.package}")
    if "avx2" not in (instructions(Host()) or ()):
        pytest.skip("this CPU has no other core type to be told of")
    program = own_file("equipoise-workload", native_programs())
    dgemm = Condition("dgemm", (str(program), "dgemm", "--size", "16", "--repeat", "1"))
    swapped = intervention_named(library, case_here(dgemm)).alter(dgemm)
    verified(swapped)
    (told,) = (
        intervention
        for intervention in every_intervention(case_here(swapped))
        if intervention.name.startswith(f"{library}_")
    )
    altered = told.alter(swapped)
    assert altered.tuned_for
    verified(altered)
