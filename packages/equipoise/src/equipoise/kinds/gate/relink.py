"""``equipoise gate --relink``: programs of both revisions are linked again for each block."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from equipoise.campaign.conduct import RunnerAdapter
from equipoise.kinds.gate.terms import GatePlan, Relinking
from equipoise.model.plan import Plan
from equipoise.revisions.build_cache import BuildCache
from equipoise.revisions.plan import Checkout
from equipoise.revisions.relinking import LinkedTree, PairRelinkingRunner, RelinkingRunner


@contextlib.contextmanager
def linking_again(
    plan: Plan, min_links: int | None, checkouts: Sequence[Checkout], builds: BuildCache | None
) -> Iterator[tuple[Plan, RunnerAdapter]]:
    """Yield the plan with the terms of its links, and what adapts the runner of its trials.

    ``min_links`` is 0 if any number of links will do. Without it, the plan and its runner stay as
    they are. Raise `UnusableInput` if a revision has no program that can be linked again.
    """
    recorder = None if builds is None else builds.recipe.recorder
    if min_links is None or recorder is None:
        yield plan, lambda runner: runner
        return
    trees = {
        checkout.tree: LinkedTree(checkout.tree, recorder, _programs(plan, checkout.tree))
        for checkout in checkouts
    }
    with contextlib.ExitStack() as stack:
        for tree in trees.values():
            stack.enter_context(tree)
            tree.check_links_differ()
        baseline, candidate = (trees[checkout.tree] for checkout in checkouts)
        terms, stopping = plan.terms, plan.stopping
        assert isinstance(terms, GatePlan)
        relinking = Relinking(recorder.version, min_links, (baseline.files, candidate.files))
        if min_links:
            stopping = replace(
                stopping,
                min_blocks=max(stopping.min_blocks, min_links),
                min_blocks_explicit=True,
            )
        plan = replace(plan, stopping=stopping, terms=replace(terms, relinking=relinking))
        candidates = {contrast.candidate for contrast in plan.contrasts}
        sides = tuple(int(index in candidates) for index in range(len(plan.conditions)))
        runner_class = RelinkingRunner if terms.functions is None else PairRelinkingRunner
        yield plan, lambda runner: runner_class(runner, plan, (baseline, candidate), sides)


def _programs(plan: Plan, tree: Path) -> list[str]:
    """Return the programs of the plan in a working tree, or its library, relative to the tree."""
    # The command of a function is: PROGRAM --library FILE --function NAME.
    word = 2 if plan.rules.shares_processes else 0
    paths = (Path(os.path.realpath(condition.command[word])) for condition in plan.conditions)
    return [str(path.relative_to(tree)) for path in paths if path.is_relative_to(tree)]
