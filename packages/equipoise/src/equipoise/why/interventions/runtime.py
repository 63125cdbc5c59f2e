"""Interventions in threads, CPUs, sleeps, hash seeds, environment sizes and addresses."""

from __future__ import annotations

import os

from equipoise.design.chance import HASH_SEEDS
from equipoise.model.plan import Condition
from equipoise.why.interventions.intervention import (
    Case,
    Intervention,
    preload_intervention,
    with_process,
    with_variables,
)

THREAD_VARIABLES = tuple(
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS BLIS_NUM_THREADS MKL_NUM_THREADS RAYON_NUM_THREADS "
    "GOMAXPROCS JULIA_NUM_THREADS NUMEXPR_NUM_THREADS POLARS_MAX_THREADS".split()
)
"""Variables from which runtimes usually read the number of threads."""

_FEW_THREADS_CAUSES = frozenset({"one_thread"})
_MANY_THREADS_CAUSES = frozenset({"lock_waits", "memory_contention"})
_FIXED_SEEDS = {name: value for seed in HASH_SEEDS for name, value in seed.environment.items()}
_FUNCTION_CAUSES = frozenset({"more_time_in_function"})
_MAX_LAYOUT_RATIO = 1.5
"""Largest ratio of times that layouts make (Mytkowicz et al. 2009, Curtsinger and Berger 2013)."""
_FILLER_VARIABLE = "EQUIPOISE_EVEN"
"""Variable that makes the smaller environment as large as the other environment."""
_POINTER_BYTES = 8


def runtime_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions in threads, CPUs, sleeps, seeds, environments and addresses."""
    cpus = case.site.cpus
    # The first CPU often serves interrupts, so take the last.
    one_cpu = cpus[-1:]
    one_cpu_reason = None if len(cpus) > 1 else "only one CPU may be used: allow more with taskset"
    stack_sizes = [_stack_bytes(condition, case) for condition in case.conditions]

    def with_equal_size(condition: Condition) -> Condition:
        if min(stack_sizes) == max(stack_sizes):
            return condition
        missing_bytes = max(0, max(stack_sizes) - _stack_bytes(condition, case))
        return with_variables(condition, {_FILLER_VARIABLE: "x" * missing_bytes})

    return (
        Intervention(
            name="thread_per_cpu",
            summary="a thread for each CPU",
            causes=_FEW_THREADS_CAUSES,
            alter=lambda condition: _with_threads(
                condition, len(condition.measured_process.process.cpus or cpus)
            ),
            changed_property="threads",
            impossible_because=one_cpu_reason,
            cannot_refute=True,
            advice=_threads_advice(len(cpus)),
        ),
        Intervention(
            name="single_thread",
            summary="a single thread",
            causes=_MANY_THREADS_CAUSES,
            alter=lambda condition: _with_threads(condition, 1),
            changed_property="threads",
            cannot_refute=True,
            advice=_threads_advice(1),
        ),
        Intervention(
            name="pinning",
            summary="pinning to one CPU",
            causes=_MANY_THREADS_CAUSES | {"messages"},
            alter=lambda condition: with_process(condition, cpus=one_cpu),
            changed_property="CPUs",
            impossible_because=one_cpu_reason,
            cannot_refute=True,
            advice=f"taskset -c {','.join(map(str, one_cpu))} {{command}}",
        ),
        Intervention(
            name="every_cpu",
            summary="letting it use every CPU",
            causes=_FEW_THREADS_CAUSES,
            # A condition without a setting may use every CPU already.
            alter=lambda condition: (
                condition
                if condition.measured_process.process.cpus is None
                else with_process(condition, cpus=cpus)
            ),
            changed_property="CPUs",
            impossible_because=one_cpu_reason,
            cannot_refute=True,
        ),
        # This change gives no advice: without sleeps, a program that polls would never pause.
        preload_intervention(case, "no_sleep", "answering sleeps at once", frozenset({"sleeping"})),
        # The following interventions give no advice. Fixed seeds and addresses help attackers. The
        # best size of the environment differs between builds.
        Intervention(
            name="fixed_hash_seeds",
            summary="fixing the hash seeds (PYTHONHASHSEED=0)",
            causes=frozenset({"more_time_in_python_function"}),
            alter=lambda condition: with_variables(condition, _FIXED_SEEDS),
            cannot_refute=True,
        ),
        Intervention(
            name="even_environment",
            summary="making both environments equally large",
            causes=_FUNCTION_CAUSES,
            alter=with_equal_size,
            cannot_refute=True,
            max_ratio=_MAX_LAYOUT_RATIO,
        ),
        Intervention(
            name="fixed_addresses",
            summary="fixing the addresses (ASLR off)",
            causes=_FUNCTION_CAUSES,
            alter=lambda condition: with_process(condition, random_addresses=False),
            cannot_refute=True,
            max_ratio=_MAX_LAYOUT_RATIO,
        ),
    )


def _with_threads(condition: Condition, count: int) -> Condition:
    return with_variables(condition, dict.fromkeys(THREAD_VARIABLES, str(count)))


def _threads_advice(count: int) -> str:
    return " ".join((*(f"{name}={count}" for name in THREAD_VARIABLES), "{command}"))


def _stack_bytes(condition: Condition, case: Case) -> int:
    """Return the bytes of command, environment and path on the stack (Mytkowicz et al. 2009)."""
    process = condition.measured_process
    variables = {**case.site.environment, **process.environment}
    variables.pop(_FILLER_VARIABLE, None)
    stack_texts = [*process.command, *(f"{name}={value}" for name, value in variables.items())]
    # The kernel writes the program's path once more, without a pointer.
    return len(os.fsencode(stack_texts[0])) + sum(
        len(os.fsencode(text)) + 1 + _POINTER_BYTES for text in stack_texts
    )
