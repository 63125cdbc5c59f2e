"""The terms of an experiment, which tests the causes of a gap by interventions; its document."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from equipoise.model.kinds import TAG, Terms
from equipoise.model.plan import Plan
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ReachCheck

STUDY = "why"


class PlannedIntervention(Struct, frozen=True):
    """One attempt: an intervention, with the indexes of its conditions in the plan."""

    intervention: str
    summary: str
    """The change, as the subject of a sentence, such as ``keeping freed memory (mmap_max=0)``."""
    causes: tuple[str, ...]
    """The causes that the intervention tests; empty if the user added the intervention."""
    baseline_with: int
    """Index of the baseline with the intervention."""
    candidate_with: int
    baseline_without: int
    """Index of the baseline without the intervention, but with its sham if it has one."""
    candidate_without: int
    weight: float
    """Seconds of the causes. In a draw, an attempt with more seconds has a larger chance."""
    advice: str | None = None
    """Shell line with which a user keeps the change; ``{command}`` stands for the command."""
    cannot_refute: bool = False
    """Whether the intervention can confirm a cause, but cannot refute a cause."""
    reach_checks: tuple[ReachCheck, ...] = ()
    """Checks whether the intervention reaches its causes."""
    may_reach_cause: bool = True
    """``False`` if an observed run shows that it reaches no cause; it then gets no block."""


class OmittedIntervention(Struct, frozen=True):
    """An intervention that fits a cause, but is not an attempt, with the reason."""

    intervention: str
    summary: str
    """The change, as the subject of a sentence."""
    causes: tuple[str, ...]
    because: str
    """Reason, such as ``libjemalloc2 is not installed``."""


class ExperimentPlan(Struct, Terms, frozen=True, tag_field=TAG, tag="explain"):
    """A gap, the causes that evidence suggests, and the interventions that test them.

    Conditions 0 and 1 of the plan are the baseline and the candidate.
    """

    noun: ClassVar[str] = "test of causes"
    can_rank: ClassVar[bool] = False
    describes_single_condition: ClassVar[bool] = False
    checks_carry_over: ClassVar[bool] = False
    runs_whole_blocks: ClassVar[bool] = False
    needs_every_cost: ClassVar[bool] = False
    run: str
    """Id of the campaign with the gap."""
    causes: tuple[Explanation, ...]
    """Suggested causes, whose status is open."""
    attempts: tuple[PlannedIntervention, ...]
    omitted: tuple[OmittedIntervention, ...] = field(default=())
    identity: str = ""
    """32 random digits of the campaign with the gap. In a merged ledger, two campaigns may have the
    same id, but not the same identity."""

    @property
    def reference(self) -> str:
        """Identity of the campaign with the gap or, without an identity, its id."""
        return self.identity or self.run

    @property
    def referenced_runs(self) -> tuple[str, ...]:
        """The reference of the campaign with the gap, as the only item."""
        return (self.reference,)


def experiment_of(plan: Plan) -> ExperimentPlan:
    """Return the terms of an experiment."""
    assert isinstance(plan.terms, ExperimentPlan), "the plan tests causes"
    return plan.terms


class ExplainDocument(ResultDocument, frozen=True, kw_only=True, tag="explain"):
    """The result document of an experiment; its field ``why`` has the tested causes."""
