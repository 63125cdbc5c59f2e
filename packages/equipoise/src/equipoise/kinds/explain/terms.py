"""The terms of an experiment, which tests the causes of a gap by interventions; its document."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from equipoise.model.kinds import TAG, Terms
from equipoise.model.plan import Plan
from equipoise.model.result import ResultDocument
from equipoise.model.why import ExpectedChange, Explanation

STUDY = "why"
"""The study of every experiment."""


class PlannedIntervention(Struct, frozen=True):
    """One attempt: an intervention, with the indexes of its conditions in the plan."""

    intervention: str
    words: str
    """The change, as the subject of a sentence, such as ``keeping freed memory (mmap_max=0)``."""
    causes: tuple[str, ...]
    """The causes that the intervention tests; empty if the user added the intervention."""
    baseline_with: int
    """Index of the baseline with the intervention."""
    candidate_with: int
    baseline_without: int
    """Index of the baseline, with a sham if the intervention has one (docs/methods/fraction.md)."""
    candidate_without: int
    weight: float
    """Weight in the draw among the open attempts: the seconds of the causes."""
    advice: str | None = None
    """Shell line with which a user keeps the change; ``{command}`` stands for the command."""
    only_confirms: bool = False
    """Whether the intervention can confirm a cause, but cannot refute it."""
    expected: tuple[ExpectedChange, ...] = ()
    """Changes that the trials must show, and changes that were missing in an observed run."""
    is_reachable: bool = True
    """Whether the intervention may change the evidence of a cause; if not, it gets no block."""


class OmittedIntervention(Struct, frozen=True):
    """One intervention that was left out, with the reason."""

    intervention: str
    words: str
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
    not_tried: tuple[OmittedIntervention, ...] = field(default=())
    """Interventions that fit a cause but are not among the attempts."""
    identity: str = ""
    """Identity of the campaign with the gap, 32 hexadecimal digits. In a merged ledger another
    campaign may have the same id."""

    @property
    def reference(self) -> str:
        """Name of the campaign with the gap, unique in every ledger if it has an identity."""
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
