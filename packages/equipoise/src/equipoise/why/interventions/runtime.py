"""Interventions in how a program runs: threads, CPUs, sleeps, and what chance decides."""

from __future__ import annotations

import os

from equipoise.design.chance import SEEDS
from equipoise.model.plan import Condition
from equipoise.why.interventions.intervention import (
    Case,
    Intervention,
    preload,
    with_process,
    with_variables,
)

THREAD_VARIABLES = tuple(
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS BLIS_NUM_THREADS MKL_NUM_THREADS RAYON_NUM_THREADS "
    "GOMAXPROCS JULIA_NUM_THREADS NUMEXPR_NUM_THREADS POLARS_MAX_THREADS".split()
)
"""Variables from which runtimes usually read the number of threads."""

_TOO_FEW = frozenset({"one_thread"})
_TOO_MANY = frozenset({"lock_waits", "memory_contention"})
_FIXED_SEEDS = {name: value for seed in SEEDS for name, value in seed.environment.items()}
_FUNCTION = frozenset({"more_time_in_function"})
_OF_LAYOUT = 1.5
"""Largest ratio that the layout of memory makes: a few per cent in most programs, a half in loops
that were built for it (Mytkowicz et al. 2009, Curtsinger and Berger 2013)."""
_FILLER = "EQUIPOISE_EVEN"
_POINTER_BYTES = 8


def offered(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions; a gap may come from too few threads or too many."""
    cpus = case.site.cpus
    # The first CPU often serves the interrupts.
    last = cpus[-1:]
    single = None if len(cpus) > 1 else "we may use one CPU only: allow more with taskset"
    sizes = [_stack_bytes(condition, case) for condition in case.pair]

    def as_large(condition: Condition) -> Condition:
        if sizes[0] == sizes[1]:
            return condition
        missing = max(0, max(sizes) - _stack_bytes(condition, case))
        return with_variables(condition, {_FILLER: "x" * missing})

    return (
        Intervention(
            name="thread_per_cpu",
            summary="a thread for each CPU",
            causes=_TOO_FEW,
            alter=lambda one: _with_threads(one, len(one.measured_process.process.cpus or cpus)),
            changes="threads",
            impossible_because=single,
            only_confirms=True,
            advice=_advice(len(cpus)),
        ),
        Intervention(
            name="single_thread",
            summary="a single thread",
            causes=_TOO_MANY,
            alter=lambda one: _with_threads(one, 1),
            changes="threads",
            only_confirms=True,
            advice=_advice(1),
        ),
        Intervention(
            name="pinning",
            summary="pinning to one CPU",
            causes=_TOO_MANY | {"messages"},
            alter=lambda one: with_process(one, cpus=last),
            changes="CPUs",
            impossible_because=single,
            only_confirms=True,
            advice=f"taskset -c {','.join(map(str, last))} {{command}}",
        ),
        Intervention(
            name="every_cpu",
            summary="letting it use every CPU",
            causes=_TOO_FEW,
            # A condition without a setting may use them all.
            alter=lambda one: (
                one if one.measured_process.process.cpus is None else with_process(one, cpus=cpus)
            ),
            changes="CPUs",
            impossible_because=single,
            only_confirms=True,
        ),
        # A test only: a program that sleeps until something has happened asks again and again.
        preload(case, "no_sleep", "answering sleeps at once", frozenset({"sleeping"})),
        # Nobody should keep the others: fixed seeds and addresses help attackers, and which size of
        # the environment is fast is an accident of one build.
        Intervention(
            name="fixed_hash_seeds",
            summary="fixing the hash seeds (PYTHONHASHSEED=0)",
            causes=frozenset({"more_time_in_python_function"}),
            alter=lambda one: with_variables(one, _FIXED_SEEDS),
            only_confirms=True,
        ),
        Intervention(
            name="even_environment",
            summary="making both environments as large",
            causes=_FUNCTION,
            alter=as_large,
            only_confirms=True,
            max_ratio=_OF_LAYOUT,
        ),
        Intervention(
            name="fixed_addresses",
            summary="fixing the addresses (ASLR off)",
            causes=_FUNCTION,
            alter=lambda one: with_process(one, random_addresses=False),
            only_confirms=True,
            max_ratio=_OF_LAYOUT,
        ),
    )


def _with_threads(condition: Condition, count: int) -> Condition:
    return with_variables(condition, dict.fromkeys(THREAD_VARIABLES, str(count)))


def _advice(count: int) -> str:
    return " ".join((*(f"{name}={count}" for name in THREAD_VARIABLES), "{command}"))


def _stack_bytes(condition: Condition, case: Case) -> int:
    """Return the bytes that the kernel puts on the stack (Mytkowicz et al. 2009).

    They are the words of the command, the environment and the path.
    """
    started = condition.measured_process
    variables = {**case.site.environment, **started.environment}
    variables.pop(_FILLER, None)
    texts = [*started.command, *(f"{name}={value}" for name, value in variables.items())]
    # The path of the program is there once more, without a pointer.
    return len(os.fsencode(texts[0])) + sum(
        len(os.fsencode(text)) + 1 + _POINTER_BYTES for text in texts
    )
