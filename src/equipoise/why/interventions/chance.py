"""Interventions on chance: hash seeds, the size of the environment, addresses.

Nobody should keep them: fixed seeds and addresses help attackers, and which size of the environment
is fast is an accident of one build.
"""

from __future__ import annotations

from dataclasses import replace

from equipoise.design.chance import SEEDS
from equipoise.model.plan import Condition
from equipoise.why.interventions.alter import process_of, with_process, with_variables
from equipoise.why.interventions.intervention import Case, Intervention

_FIXED_SEEDS = {name: value for seed in SEEDS for name, value in seed.environment.items()}
_FUNCTION = frozenset({"more_time_in_function"})
_FILLER = "EQUIPOISE_EVEN"
_POINTER_BYTES = 8


def offered(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions on chance."""
    sizes = [_stack_bytes(condition, case) for condition in case.pair]

    def as_large(condition: Condition) -> Condition:
        if sizes[0] == sizes[1]:
            return condition
        missing = max(0, max(sizes) - _stack_bytes(condition, case))
        return with_variables(condition, {_FILLER: "x" * missing})

    return (
        Intervention(
            name="fixed_hash_seeds",
            summary="fixing the hash seeds (PYTHONHASHSEED=0)",
            causes=frozenset({"more_time_in_python_function"}),
            alter=lambda one: with_variables(one, _FIXED_SEEDS),
            verified="not seen: the variables reach the process, and a program may read none",
            only_confirms=True,
        ),
        Intervention(
            name="even_environment",
            summary="making both environments as large",
            causes=_FUNCTION,
            alter=as_large,
            verified="the sizes are computed from the words and variables of each trial",
            only_confirms=True,
        ),
        Intervention(
            name="fixed_addresses",
            summary="fixing the addresses (ASLR off)",
            causes=_FUNCTION,
            alter=lambda one: with_process(one, replace(process_of(one), random_addresses=False)),
            verified="the launcher starts no trial for which the kernel refuses it (personality)",
            only_confirms=True,
        ),
    )


def _stack_bytes(condition: Condition, case: Case) -> int:
    """Return the bytes that the kernel puts on the stack (Mytkowicz et al. 2009).

    They are the words of the command, the environment and the path.
    """
    server = condition.server
    words = condition.command if server is None else server.start
    own = condition.environment if server is None else server.environment
    variables = {**case.site.environment, **own}
    variables.pop(_FILLER, None)
    texts = [*words, *(f"{name}={value}" for name, value in variables.items())]
    # The path of the program is there once more, without a pointer.
    return len(words[0].encode(errors="surrogateescape")) + sum(
        len(text.encode(errors="surrogateescape")) + 1 + _POINTER_BYTES for text in texts
    )
