"""Settings of an intervention, in addition to those of a condition."""

from __future__ import annotations

import msgspec.structs

from equipoise.model.plan import Condition, Hooks, Process, Server
from equipoise.why.interventions.intervention import (
    variable_value,
    with_preparation,
    with_variables,
)
from packages.equipoise.tests.why.interventions.cases import (
    BASELINE,
    CANDIDATE,
    case_of,
    intervention_named,
    site,
)

TUNABLES = "GLIBC_TUNABLES"
POLICY = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
HUGE = str(2**63 - 1)


def test_tunables_are_added_to_those_of_a_condition_and_override_them() -> None:
    own = f"{POLICY}:glibc.malloc.mmap_max=9"
    candidate = msgspec.structs.replace(CANDIDATE, environment={TUNABLES: own, "A": "1"})
    case = case_of(candidate=candidate)
    assert intervention_named("never_mmap", case).alter(candidate).environment == {
        "A": "1",
        TUNABLES: f"{POLICY}:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold={HUGE}",
    }


def test_inherited_tunables_stay() -> None:
    case = case_of(at=site(environment={TUNABLES: POLICY}))
    altered = intervention_named("never_mmap", case).alter(BASELINE)
    assert altered.environment[TUNABLES].startswith(f"{POLICY}:")


def test_an_allocator_takes_the_place_of_another_and_of_nothing_else() -> None:
    preloads = "/lib/libjemalloc.so.2:/opt/libother.so"
    candidate = msgspec.structs.replace(CANDIDATE, environment={"LD_PRELOAD": preloads})
    case = case_of(candidate=candidate)
    altered = intervention_named("mimalloc", case).alter(candidate)
    assert altered.environment["LD_PRELOAD"] == "/lib/libmimalloc.so.2 /opt/libother.so"
    assert intervention_named("jemalloc", case).alter(candidate) == candidate
    preloaded = (
        intervention_named("quick_sync", case).alter(candidate).environment["LD_PRELOAD"].split()
    )
    assert preloaded == ["/lib/libequipoise_interventions.so", *preloads.split(":")]


def test_a_variable_that_env_sets_in_the_command_is_changed_there() -> None:
    command = ("/usr/bin/env", f"{TUNABLES}={POLICY}", "A=1", "/bin/b", "C=2")
    candidate = Condition("b", command)
    assert variable_value(candidate, "A", site()) == "1"
    assert variable_value(candidate, "C", site()) is None
    altered = intervention_named("never_mmap", case_of(candidate=candidate)).alter(candidate)
    assert altered.command == ("/usr/bin/env", "A=1", "/bin/b", "C=2")
    assert altered.environment[TUNABLES].startswith(f"{POLICY}:")


def test_options_of_env_stay() -> None:
    candidate = Condition("b", ("env", "-i", "A=1", "/bin/b"))
    assert with_variables(candidate, {"A": "2"}).command == candidate.command


def test_server_is_altered_and_its_client_is_not() -> None:
    server = Server(("/bin/server",), environment={"A": "1"}, process=Process(cpus=(0,)))
    candidate = msgspec.structs.replace(CANDIDATE, server=server)
    case = case_of(candidate=candidate)
    for name in ("never_mmap", "jemalloc", "quick_sync"):
        altered = intervention_named(name, case).alter(candidate)
        assert (altered.command, altered.environment) == (CANDIDATE.command, {})
        assert altered.server is not None
        assert altered.server.environment.items() > {"A": "1"}.items()
    pinned = intervention_named("pinning", case).alter(candidate)
    assert pinned.process == Process()
    assert pinned.server is not None
    assert pinned.server.process.cpus == (1,)


def test_existing_preparation_stays_first() -> None:
    own = msgspec.structs.replace(CANDIDATE, hooks=Hooks(prepare="true # first", cleanup="rm x"))
    hooks = with_preparation(own, "echo second").hooks
    assert hooks == Hooks(prepare="( true # first\n) && { echo second\n}", cleanup="rm x")


def test_threads_are_as_many_as_the_condition_may_have_cpus() -> None:
    few = msgspec.structs.replace(CANDIDATE, process=Process(cpus=(0, 1, 2)))
    threads = intervention_named(
        "thread_per_cpu", case_of(candidate=few, at=site(cpus=(0, 1, 2, 3)))
    )
    assert threads.alter(few).environment["OMP_NUM_THREADS"] == "3"
    assert threads.alter(BASELINE).environment["GOMAXPROCS"] == "4"


def test_environments_get_the_same_size() -> None:
    candidate = msgspec.structs.replace(CANDIDATE, environment={"LONG": "y" * 500})
    case = case_of(candidate=candidate)
    even = intervention_named("even_environment", case).alter

    def stack(condition: Condition) -> int:
        texts = [f"{name}={value}" for name, value in condition.environment.items()]
        words = (*condition.command, *texts)
        return sum(len(word) + 9 for word in words) + len(condition.command[0])

    assert stack(BASELINE) != stack(candidate)
    assert stack(even(BASELINE)) == stack(even(candidate))
