"""A condition that differs from its name is an error before anything is measured."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.analysis.comparisons import scope_of
from equipoise.campaign.verification import check_effects, mapped_by_condition
from equipoise.design.libraries import TUNED_BLAS
from equipoise.measure.environment import Host
from equipoise.measure.environment.hardware import instructions
from equipoise.measure.installation import native_programs
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.packages import own_file
from equipoise.model.plan import Condition, Plan, Process, Server
from packages.equipoise.tests.plans import plan_of

SORT = shutil.which("sort") or "sort"


def plan_with(condition: Condition) -> Plan:
    usual = Condition("usual", (SORT,))
    return msgspec.structs.replace(plan_of(), conditions=(usual, condition))


def check(condition: Condition) -> None:
    plan = plan_with(condition)
    environment = dict(os.environ)
    check_effects(plan, mapped_by_condition(plan, environment), environment)


def own_library() -> str:
    return str(own_file("libequipoise_dlmalloc.so", native_programs()))


def test_a_library_that_is_preloaded_took_effect() -> None:
    check(Condition("dlmalloc", (SORT,), environment={"LD_PRELOAD": own_library()}))


def test_the_path_of_a_preload_may_start_at_the_folder_of_the_command(
    tmp_path: Path,
) -> None:
    (tmp_path / "lib.so").symlink_to(own_library())
    process = Process(working_folder=str(tmp_path))
    check(Condition("own", (SORT,), environment={"LD_PRELOAD": "./lib.so"}, process=process))


def test_a_preload_that_does_not_load_is_named_with_its_condition(tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    with pytest.raises(UnusableInput) as caught:
        check(Condition("broken", (SORT,), environment={"LD_PRELOAD": str(broken)}))
    assert f"does not load {broken}" in caught.value.what
    assert caught.value.hint is not None


def test_tunables_in_force_pass_and_unknown_ones_do_not() -> None:
    name = "GLIBC_TUNABLES"
    check(Condition("a", (SORT,), environment={name: "glibc.malloc.mmap_threshold=15360"}))
    with pytest.raises(UnusableInput, match="has no tunable 'glibc.malloc.threshold'"):
        check(Condition("a", (SORT,), environment={name: "glibc.malloc.threshold=15360"}))
    with pytest.raises(UnusableInput, match="mmap_threshold is 0x0, not high"):
        check(Condition("a", (SORT,), environment={name: "glibc.malloc.mmap_threshold=high"}))


def test_an_unused_library_path_did_not_take_effect(tmp_path: Path) -> None:
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    with pytest.raises(UnusableInput, match=f"the command loads no library from {tmp_path}"):
        check(Condition("a", ("/bin/true",), environment=environment, mapped_from=(str(tmp_path),)))


def test_a_library_that_is_opened_while_it_runs_took_effect(tmp_path: Path) -> None:
    library = shutil.copy(own_library(), tmp_path / "libopened.so")
    opens = f"import ctypes; ctypes.CDLL({str(library)!r})"
    check(Condition("a", (sys.executable, "-c", opens), mapped_from=(str(tmp_path),)))


def test_a_check_that_runs_the_program_runs_once_for_all_sizes(tmp_path: Path) -> None:
    library = shutil.copy(own_library(), tmp_path / "libopened.so")
    opens = f"import ctypes, sys; ctypes.CDLL({str(library)!r}); print(file=open(sys.argv[1], 'a'))"
    runs = tmp_path / "runs"
    conditions = tuple(
        Condition(
            f"{task} {size}",
            (sys.executable, "-c", opens, str(runs)),
            levels={"task": task, "size": size},
            mapped_from=(str(tmp_path),),
        )
        for task in ("sort", "invert")
        for size in ("1", "2", "3")
    )
    plan = msgspec.structs.replace(plan_of(), conditions=conditions, sizes=("size",))
    environment = dict(os.environ)
    check_effects(plan, mapped_by_condition(plan, environment), environment)
    assert runs.read_text() == "\n" * 2


def test_a_cpu_that_is_not_there_is_named() -> None:
    with pytest.raises(
        UnusableInput, match="a did not take effect: Equipoise may not use CPU 9999"
    ):
        check(Condition("a", (SORT,), process=Process(cpus=(9999,))))


def test_a_plan_has_trials_that_are_lives_or_intervals_but_not_both() -> None:
    conditions = tuple(
        Condition(trial, (SORT,), server=Server((SORT,), ready=(SORT,), trial=trial))
        for trial in ("life", "interval")
    )
    plan = msgspec.structs.replace(plan_of(), conditions=conditions)
    with pytest.raises(
        UnusableInput,
        match='different lengths of a trial: "interval" for interval, "life" for life',
    ):
        check_effects(plan, {}, {})


def test_verdicts_on_intervals_are_about_one_life_of_each_server() -> None:
    server = Server((SORT,), ready=(SORT,), trial="interval")
    plan = msgspec.structs.replace(plan_of(), conditions=(Condition("a", (SORT,), server=server),))
    assert scope_of(plan).startswith("across intervals of one life of each server")
    assert scope_of(plan_of()).startswith("across processes")


def printing(*lines: str) -> tuple[str, ...]:
    """A program that reports a core like one with a tuned BLAS."""
    text = "".join(f"{line}\n" for line in lines)
    return (sys.executable, "-c", f"import sys; sys.stderr.write({text!r})")


def test_a_core_type_that_the_library_reports_took_effect() -> None:
    openblas = {"OPENBLAS_CORETYPE": "skylakex"}
    check(Condition("a", printing("Core: SkylakeX"), environment=openblas))
    blis = printing("libblis: selecting sub-configuration 'skx'.")
    check(Condition("a", blis, environment={"BLIS_ARCH_TYPE": "0"}, tuned_for=("skx",)))
    both = {**openblas, "BLIS_ARCH_TYPE": "0"}
    check(Condition("a", printing("Core: SkylakeX"), environment=both))


WRONG_CORES = {
    "OPENBLAS_CORETYPE is z80, and OpenBLAS is tuned for Zen": Condition(
        "a",
        printing("Core not found: z80", "Core: Zen"),
        environment={"OPENBLAS_CORETYPE": "z80"},
    ),
    "BLIS_ARCH_TYPE is zen, and BLIS is tuned for skx": Condition(
        "a",
        printing("libblis: selecting sub-configuration 'skx'."),
        environment={"BLIS_ARCH_TYPE": "zen"},
    ),
    "the BLAS is tuned for zen3, not skx": Condition(
        "a",
        printing("libblis: selecting sub-configuration 'zen3'."),
        environment={"BLIS_ARCH_TYPE": "0"},
        tuned_for=("skx",),
    ),
    "the command uses no OpenBLAS or BLIS that reports its core type": Condition(
        "a", (SORT,), environment={"OPENBLAS_CORETYPE": "Zen"}
    ),
    r"it was ended by signal 4 \(SIGILL\): the CPU lacks instructions": Condition(
        "a",
        (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"),
        environment={"OPENBLAS_CORETYPE": "Zen"},
    ),
}


@pytest.mark.parametrize("words", WRONG_CORES)
def test_an_ignored_core_type_is_named(words: str) -> None:
    with pytest.raises(TookNoEffect, match=f"a did not take effect: .*{words}") as caught:
        check(WRONG_CORES[words])
    assert caught.value.study_key == "env"


@pytest.mark.live
@pytest.mark.parametrize("name", ["openblas_haswell", "blis_haswell"])
def test_a_real_library_reports_its_core_type(name: str) -> None:
    level = next(level for level in TUNED_BLAS if level.name == name)
    (folder,) = level.library_path
    if not Path(folder).is_dir():
        pytest.skip(f"misses {folder}: apt-get install {level.package}")
    flags = instructions(Host())
    if flags is not None and not flags.issuperset(level.instructions):
        pytest.skip(f"this CPU lacks {' or '.join(level.instructions)}")
    condition = Condition(
        name,
        (str(own_file("equipoise-workload", native_programs())), "dgemm", "--size", "8"),
        environment={**level.environment, "LD_LIBRARY_PATH": folder},
        mapped_from=level.library_path,
        tuned_for=level.tuned_for,
    )
    check(condition)
    with pytest.raises(TookNoEffect, match="the BLAS is tuned for .*, not z80"):
        check(msgspec.structs.replace(condition, tuned_for=("z80",)))
