"""Measures a verification: observes both revisions, then runs the campaign with its checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from equipoise.campaign import conduct
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import Runner
from equipoise.kinds.verify.blocks import (
    BlockChecks,
    CheckingRunner,
    InputCommand,
    VerifyJudge,
    new_identity,
    seed_of_input,
)
from equipoise.kinds.verify.objections import objections_to_change
from equipoise.kinds.verify.observing import observe_before
from equipoise.kinds.verify.outputs import OutputCheck, OutputFiles
from equipoise.kinds.verify.plan import VerifyRequest, verify_plan
from equipoise.kinds.verify.terms import VerifyPlan
from equipoise.ledger import Ledger
from equipoise.measure.trials import own_environment
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.revisions.build_cache import BuildCache
from equipoise.revisions.pairs import CheckoutPair
from equipoise.revisions.relinking import linking_again

_BEFORE_BLOCKS = "before blocks"
"""Phase of the input of the untimed runs."""


def measure_verification(
    request: VerifyRequest,
    checkouts: CheckoutPair,
    builds: BuildCache | None,
    scratch: Path,
    ledger: Ledger,
    listener: ProgressListener,
    *,
    command_line: Callable[[int], tuple[str, ...]],
    warnings: Sequence[CampaignWarning] = (),
) -> str:
    """Measure a verification, and return the id of its run.

    ``command_line`` returns the arguments that repeat the campaign with a seed.

    Raise `UnusableInput` if the baseline's output is not repeatable or a program is missing. Raise
    `ConditionFailed` if the baseline, the input command or the comparison of outputs fails.
    """
    environment, folder = own_environment(), str(checkouts[0].folder)
    timeout_s = request.limits.timeout_s
    outputs = OutputFiles.within(scratch)
    check = OutputCheck(outputs, request.check, environment, folder, timeout_s)
    inputs: InputCommand | None = None
    if request.input_command is not None:
        # The line runs in the baseline, so that the change cannot choose its own inputs.
        path = scratch / "input"
        inputs = InputCommand(request.input_command, path, environment, folder, timeout_s)
    plan = verify_plan(
        request,
        checkouts,
        outputs,
        None if inputs is None else inputs.path,
        objections_to_change(request),
    )
    plan = replace(plan, command_line=command_line(plan.seed))
    built_ns = time.time_ns() if builds is None else builds.completed_ns(checkouts[1].tree)
    if inputs is not None:
        inputs.write(seed_of_input(plan.seed, _BEFORE_BLOCKS, 0))
    plan = _with_observations(plan, check, checkouts, built_ns, scratch)
    checks, identity = BlockChecks(), new_identity()
    with linking_again(plan, request.min_links, checkouts, builds) as links:
        assert isinstance(links.plan.terms, VerifyPlan)
        terms = replace(links.plan.terms, relinking=links.relinking)
        linked_plan = replace(links.plan, terms=terms)

        def with_checks(runner: Runner) -> Runner:
            linking_runner = links.adapt_runner(runner)
            return CheckingRunner(
                linking_runner, linked_plan, check, inputs, checks, ledger, identity.hex()
            )

        return conduct.start(
            linked_plan,
            ledger,
            listener,
            warnings=warnings,
            identity=identity,
            judge_factory=lambda plan, stopping: VerifyJudge(plan, stopping, checks),
            adapt_runner=with_checks,
        )


def _with_observations(
    plan: Plan, check: OutputCheck, checkouts: CheckoutPair, built_ns: int, scratch: Path
) -> Plan:
    """Return the plan with the objections of the observed runs."""
    trees = (checkouts[0].tree, checkouts[1].tree)
    observations = observe_before(plan, check, trees, built_ns, scratch)
    terms = plan.terms
    assert isinstance(terms, VerifyPlan)
    return replace(
        plan,
        terms=replace(
            terms,
            objections=(*terms.objections, *observations.objections),
            unobserved_because=observations.unobserved_because,
        ),
    )
