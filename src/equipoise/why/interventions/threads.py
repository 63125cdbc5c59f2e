"""As many threads as there are CPUs, or one, by the variables that runtimes usually read."""

from __future__ import annotations

from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import process_of, with_variables

TOO_FEW = frozenset({"one_thread"})
TOO_MANY = frozenset({"lock_waits", "memory_contention"})
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "GOMAXPROCS",
    "JULIA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
SEEN = "not seen: the variables reach the process, and a program may read none of them"


def offered(case: Case) -> tuple[Intervention, ...]:
    """Both ways, as a gap may come from too few threads or from too many."""
    return (
        Intervention(
            only_confirms=True,
            name="thread_per_cpu",
            words="a thread for each CPU",
            causes=TOO_FEW,
            alter=lambda condition: _threads(condition, len(_cpus(condition, case))),
            verified=SEEN,
            impossible_because=None
            if len(case.site.cpus) > 1
            else "we may use one CPU only: allow more with taskset",
            advice=_advice(len(case.site.cpus)),
        ),
        Intervention(
            only_confirms=True,
            name="single_thread",
            words="a single thread",
            causes=TOO_MANY,
            alter=lambda condition: _threads(condition, 1),
            verified=SEEN,
            advice=_advice(1),
        ),
    )


def _threads(condition: Condition, count: int) -> Condition:
    return with_variables(condition, dict.fromkeys(VARIABLES, str(count)))


def _advice(count: int) -> str:
    return " ".join((*(f"{name}={count}" for name in VARIABLES), "{command}"))


def _cpus(condition: Condition, case: Case) -> tuple[int, ...]:
    return process_of(condition).cpus or case.site.cpus
