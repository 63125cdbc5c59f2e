"""``equipoise gate --relink``: programs of both revisions are linked again for each block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from equipoise.campaign.conduct import RunnerAdapter
from equipoise.kinds.gate.terms import GatePlan, Relinking
from equipoise.model.plan import Plan
from equipoise.revisions.build_cache import BuildCache
from equipoise.revisions.plan import Checkout
from equipoise.revisions.relinking import Relinker


@contextlib.contextmanager
def linking_again(
    plan: Plan, min_links: int | None, checkouts: Sequence[Checkout], builds: BuildCache | None
) -> Iterator[tuple[Plan, RunnerAdapter]]:
    """Yield the plan with the terms of its links, and the adapter of the runner of its trials.

    Without ``min_links``, the plan and its runner stay as they are. Raise `UnusableInput` if a
    revision has no program that can be linked again.
    """
    recorder = None if builds is None else builds.recipe.recorder
    if min_links is None or recorder is None:
        yield plan, lambda runner: runner
        return
    candidates = {contrast.candidate for contrast in plan.contrasts}
    sides = [int(index in candidates) for index in range(len(plan.conditions))]
    trees = [checkout.tree for checkout in checkouts]
    with Relinker(recorder, plan, trees, sides) as relinker:
        terms, stopping = plan.terms, plan.stopping
        assert isinstance(terms, GatePlan)
        files = (relinker.linked_tree(0).files, relinker.linked_tree(1).files)
        yield (
            replace(
                plan,
                stopping=replace(
                    stopping,
                    min_blocks=max(stopping.min_blocks, min_links),
                    min_blocks_explicit=True,
                ),
                terms=replace(terms, relinking=Relinking(recorder.version, min_links, files)),
            ),
            relinker.adapt,
        )
