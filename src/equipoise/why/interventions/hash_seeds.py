"""Hash seeds that are not drawn at random (design/chance.py)."""

from __future__ import annotations

from equipoise.design.chance import SEEDS
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import with_variables

CAUSES = frozenset({"more_time_in_python_function"})
FIXED = {name: value for seed in SEEDS for name, value in seed.environment.items()}


def offered(_: Case) -> tuple[Intervention, ...]:
    """The seeds that a variable sets; nobody should keep that where strangers choose the keys."""
    return (
        Intervention(
            only_confirms=True,
            name="fixed_hash_seeds",
            words="fixing the hash seeds (PYTHONHASHSEED=0)",
            causes=CAUSES,
            alter=lambda condition: with_variables(condition, FIXED),
            verified="not seen: the variables reach the process, and a program may read none",
        ),
    )
