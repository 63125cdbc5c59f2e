"""Results of bisections, by hand: for what shows them."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from equipoise.kinds.bisect.analysis import (
    bisect_sentence,
    branch_sentence,
    culprit_sentence,
)
from equipoise.kinds.bisect.terms import (
    STUDY,
    BisectBlock,
    BisectBranch,
    BisectCommit,
    BisectDocument,
    BisectGap,
    BisectResult,
    BisectVerdict,
    Culprit,
)
from equipoise.model.revisions import Revision
from packages.equipoise.tests.documents import comparison_of, document_as, document_of

GOOD = Revision("v1.0", "0" * 40)
COUNT = 16
CULPRIT = 11


def name_of(place: int) -> str:
    """The whole name of a commit; of 0, the good one."""
    return hashlib.sha1(str(place).encode()).hexdigest() if place else GOOD.commit


BAD = Revision("HEAD", name_of(COUNT))
PAIRS = ((0, 16), (0, 16), (0, 16), (5, 12), (5, 12), (8, 12), (10, 12), (10, 11), (10, 11))


def candidate(place: int, text: str = "") -> BisectCommit:
    """The commit that made the difference is the only one that is not excluded."""
    excluded_at = 5 if place < 6 or place > 12 else 7
    is_culprit = place == CULPRIT
    return BisectCommit(
        commit=name_of(place),
        subject=f"Change {place}{text}",
        author=f"Ada{text}",
        date="2026-03-01T10:15:00+00:00",
        status="culprit" if is_culprit else "excluded",
        e_value=1.25 if is_culprit else 41.5,
        excluded_at=None if is_culprit else excluded_at,
        trials=sum(place in pair for pair in PAIRS),
        not_built=False,
    )


def culprit_of(place: int, text: str = "", ratio: float = 1.031) -> Culprit:
    """One commit that made a difference on its own."""
    one = candidate(place, text)
    culprit = Culprit(
        commit=one.commit,
        subject=one.subject,
        author=one.author,
        date=one.date,
        parent=name_of(place - 1),
        not_built=(),
        is_merge=False,
        ratio=ratio,
        ratio_ci=(ratio - 0.007, ratio + 0.007),
        significance_level=0.025,
        e_value=812.0,
        blocks=24,
        share_of_gap=0.97,
        share_ci=(0.8, 1.1),
        summary="",
    )
    return replace(culprit, summary=culprit_sentence(culprit, "wall_s"))


def bisect_result(text: str = "", verdict: BisectVerdict = "culprit") -> BisectResult:
    """A search among sixteen commits, of which the eleventh is the culprit, or alone is left."""
    candidates = [candidate(place, text) for place in range(1, COUNT + 1)]
    if verdict != "culprit":
        candidates[CULPRIT - 1] = replace(candidates[CULPRIT - 1], status="suspect")
    result = BisectResult(
        good=replace(GOOD, typed_name=f"v1.0{text}"),
        bad=BAD,
        verdict=verdict,
        culprits=(culprit_of(CULPRIT, text),) if verdict == "culprit" else (),
        searched_commits=tuple(candidates),
        gap=BisectGap(GOOD.commit, BAD.commit, 1.032, (1.027, 1.037), 0.05, 3, "slower"),
        remaining_gaps=(),
        margin=0.31,
        course=tuple(BisectBlock(block, *pair, 1) for block, pair in enumerate(PAIRS, start=1)),
        metric="wall_s",
        min_effect=1.0,
        alpha=0.05,
        trials=2 * len(PAIRS),
        tried_commits=6,
        seconds=34.0,
        blocks_to_go=None,
        build="make",
        summary="",
    )
    return replace(result, summary=bisect_sentence(result))


def merge_result(verdict: BisectVerdict = "culprit") -> BisectResult:
    """The culprit is a merge, with the search of its branch of four: 21 to 24, from 9 on."""
    result = bisect_result()
    (merge,) = result.culprits
    inside = replace(culprit_of(23), parent=name_of(22))
    candidates = tuple(
        replace(candidate(place), status="excluded", excluded_at=12) for place in (21, 22, 24)
    )
    left = replace(candidate(23), status="culprit" if verdict == "culprit" else "suspect")
    candidates = (*candidates[:2], replace(left, excluded_at=None), candidates[2])
    branch = BisectBranch(
        merge=merge.commit,
        fork_hash=name_of(9),
        tip_hash=name_of(24),
        verdict=verdict,
        culprits=(inside,) if verdict == "culprit" else (),
        searched_commits=candidates,
        gap=BisectGap(name_of(9), name_of(24), 1.03, (1.024, 1.036), 0.05, 5, "slower"),
        remaining_gaps=(),
        margin=0.3,
        failed_ends=(),
        course=(BisectBlock(10, 0, 4, 1), BisectBlock(11, 2, 3, 1), BisectBlock(12, 2, 3, 1)),
        summary="",
    )
    branch = replace(branch, summary=branch_sentence(branch))
    result = replace(result, culprits=(replace(merge, is_merge=True),), branches=(branch,))
    return replace(result, summary=bisect_sentence(result))


COMMAND = f"equipoise bisect --good {'a' * 40} --bad {'b' * 40} --build make -- ./bench"


def bisect_document(text: str = "", result: BisectResult | None = None) -> BisectDocument:
    """A campaign with the result of a search."""
    good, bad = f"good{text}", f"bad{text}"
    document = document_of(good, bad, blocks=3)
    return document_as(
        BisectDocument,
        document,
        run=replace(document.run, study=STUDY, blocks=len(PAIRS), command_line=COMMAND),
        comparisons=(comparison_of(good, bad, 1.032, 3),),
        bisect=bisect_result(text) if result is None else result,
    )
