"""The same number of bytes on the stack before a program begins (Mytkowicz et al. 2009).

The kernel puts the words of the command, the environment and the path there. A variable that no
program reads makes up for what one condition has less; what each block adds to both stays.
"""

from __future__ import annotations

from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import with_variables

CAUSES = frozenset({"more_time_in_function"})
VARIABLE = "EQUIPOISE_EVEN"
POINTER_BYTES = 8


def offered(case: Case) -> tuple[Intervention, ...]:
    """Nothing that anybody keeps: which size is fast is an accident of one build."""
    largest = max(_bytes(condition, case) for condition in case.pair)

    def alter(condition: Condition) -> Condition:
        missing = max(0, largest - _bytes(condition, case))
        return with_variables(condition, {VARIABLE: "x" * missing})

    if len({_bytes(condition, case) for condition in case.pair}) == 1:
        return ()
    return (
        Intervention(
            only_confirms=True,
            name="even_environment",
            words="making both environments as large",
            causes=CAUSES,
            alter=alter,
            verified="the sizes are reckoned from the words and variables that each trial is given",
        ),
    )


def _bytes(condition: Condition, case: Case) -> int:
    server = condition.server
    words = condition.command if server is None else server.start
    own = condition.environment if server is None else server.environment
    variables = {**case.site.environment, **own}
    variables.pop(VARIABLE, None)
    texts = [*words, *(f"{name}={value}" for name, value in variables.items())]
    # The path of the program is there once more, without a pointer.
    return sum(len(text.encode(errors="surrogateescape")) + 1 + POINTER_BYTES for text in texts) + (
        len(words[0].encode(errors="surrogateescape"))
    )
