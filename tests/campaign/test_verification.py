"""A condition that is not what its name says is an error before anything is measured."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from pathlib import Path

import pytest

from equipoise.campaign.comparisons import scope_of
from equipoise.campaign.verification import check_that_each_took_effect, mapped_by_condition
from equipoise.measure.native import native_programs
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Plan, Process, Server
from tests.plans import plan_of

SORT = shutil.which("sort") or "sort"


def plan_with(condition: Condition) -> Plan:
    usual = Condition("usual", (SORT,))
    return dataclasses.replace(plan_of(), conditions=(usual, condition))


def check(condition: Condition) -> None:
    plan = plan_with(condition)
    environment = dict(os.environ)
    check_that_each_took_effect(plan, mapped_by_condition(plan, environment), environment)


def own_library() -> str:
    return str(native_programs() / "libequipoise_dlmalloc.so")


def test_a_library_that_is_preloaded_took_effect() -> None:
    check(Condition("dlmalloc", (SORT,), environment={"LD_PRELOAD": own_library()}))


def test_a_preload_that_does_not_load_is_named_with_its_condition(tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    with pytest.raises(UnusableInput) as caught:
        check(Condition("broken", (SORT,), environment={"LD_PRELOAD": str(broken)}))
    assert caught.value.what.startswith(f"broken did not take effect: {broken} is not mapped by")
    assert caught.value.mend is not None


def test_tunables_in_force_pass_and_unknown_ones_do_not() -> None:
    name = "GLIBC_TUNABLES"
    check(Condition("a", (SORT,), environment={name: "glibc.malloc.mmap_threshold=15360"}))
    with pytest.raises(UnusableInput, match="knows no tunable 'glibc.malloc.threshold'"):
        check(Condition("a", (SORT,), environment={name: "glibc.malloc.threshold=15360"}))
    with pytest.raises(UnusableInput, match="mmap_threshold is 0x0, not high"):
        check(Condition("a", (SORT,), environment={name: "glibc.malloc.mmap_threshold=high"}))


def test_a_library_path_that_nothing_comes_from_did_not_take_effect(tmp_path: Path) -> None:
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    with pytest.raises(UnusableInput, match=f"it maps no library from {tmp_path}"):
        check(Condition("a", ("/bin/true",), environment=environment, mapped_from=(str(tmp_path),)))


def test_a_library_that_is_opened_while_it_runs_took_effect(tmp_path: Path) -> None:
    library = shutil.copy(own_library(), tmp_path / "libopened.so")
    opens = f"import ctypes; ctypes.CDLL({str(library)!r})"
    check(Condition("a", (sys.executable, "-c", opens), mapped_from=(str(tmp_path),)))


def test_what_has_to_be_run_to_be_verified_is_run_once_for_all_sizes(tmp_path: Path) -> None:
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
    plan = dataclasses.replace(plan_of(), conditions=conditions, sizes=("size",))
    environment = dict(os.environ)
    check_that_each_took_effect(plan, mapped_by_condition(plan, environment), environment)
    assert runs.read_text() == "\n" * 2


def test_a_cpu_that_is_not_there_is_named() -> None:
    with pytest.raises(UnusableInput, match="a did not take effect: CPU 9999 is not there"):
        check(Condition("a", (SORT,), process=Process(cpus=(9999,))))


def test_a_life_and_an_interval_are_no_trials_of_one_plan() -> None:
    conditions = tuple(
        Condition(trial, (SORT,), server=Server((SORT,), ready=(SORT,), trial=trial))
        for trial in ("life", "interval")
    )
    plan = dataclasses.replace(plan_of(), conditions=conditions)
    with pytest.raises(UnusableInput, match="a whole life of one server and an interval"):
        check_that_each_took_effect(plan, {}, {})


def test_verdicts_on_intervals_are_about_one_life_of_each_server() -> None:
    server = Server((SORT,), ready=(SORT,), trial="interval")
    plan = dataclasses.replace(plan_of(), conditions=(Condition("a", (SORT,), server=server),))
    assert scope_of(plan).startswith("across intervals of one life of each server")
    assert scope_of(plan_of()).startswith("across processes")
