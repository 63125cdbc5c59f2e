"""Checks out and builds the two revisions that a campaign compares."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.model.revisions import Revision
from equipoise.revisions.build_cache import BuildCache, open_cache, source_of
from equipoise.revisions.checkout import REVISION_FOLDERS, check_out
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.plan import Checkout, RevisionsRequest


class PairRequest(RevisionsRequest, frozen=True, kw_only=True):
    """The user's request to compare two revisions."""

    baseline: Revision
    candidate: Revision
    min_links: int | None = None
    """Smallest number of links of each revision; ``None`` unless programs are linked again."""


CheckoutPair = tuple[Checkout, Checkout]
"""Checkouts of the baseline and of the candidate, both built."""


def builds_of_pair(
    request: PairRequest, scratch: Path
) -> AbstractContextManager[BuildCache | None]:
    """Open the repository's cache of builds; ``None`` if the campaign builds nothing."""
    if request.build is None:
        return nullcontext()
    return open_cache(request.repository, request.build, request.tool, scratch, request.recorder)


def check_out_and_build(
    request: PairRequest, scratch: Path, builds: BuildCache | None, *, show: Callable[[str], None]
) -> CheckoutPair:
    """Check both revisions out and build them, unless the cache has their builds.

    ``builds`` is the cache. If the campaign builds nothing, ``builds`` is ``None``, and the
    checkouts are in the scratch folder. ``show`` is called with a line about each step.

    Raise `UnusableInput` if a revision cannot be checked out or lacks the user's folder.
    Raise `ConditionFailed` if a revision cannot be built.
    """
    repository = request.repository
    revisions = (request.baseline, request.candidate)
    if builds is not None:
        hashes = tree_hashes(repository, [revision.commit for revision in revisions])
        sources = [source_of(repository, revision, hashes) for revision in revisions]
    checkouts: list[Checkout] = []
    for role, revision in zip(("baseline", "candidate"), revisions, strict=True):
        if builds is None:
            show(f"checking out the {role} {revision.label}")
            parent_folder = scratch / REVISION_FOLDERS[len(checkouts)]
            parent_folder.mkdir()
            revision_folder = check_out(repository, revision, parent_folder)
        else:
            show(f"building the {role} {revision.label}: {request.build}")
            source = sources[len(checkouts)]
            revision_folder = builds.get(source, f"the {role} {revision.label}", sources).tree
        checkouts.append(Checkout(role, revision, revision_folder, repository))
    for checkout in checkouts:
        if not checkout.folder.is_dir():
            raise UnusableInput(
                f"the {checkout.label} has no folder {repository.inside}",
                hint="run the command in a folder that both revisions have",
            )
    return checkouts[0], checkouts[1]
