"""Results of histories, by hand: for what shows them."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from equipoise.kinds.history.analysis import change_sentence, history_sentence
from equipoise.kinds.history.terms import (
    STUDY,
    HistoryCampaign,
    HistoryChange,
    HistoryDocument,
    HistoryEra,
    HistoryPair,
    HistoryResult,
    HistoryRevision,
    PairStatus,
)
from equipoise.model.revisions import Revision
from equipoise.model.series import ImportedSeries, SeriesPoint, Suspicion
from packages.equipoise.tests.documents import document_as, document_of

BASELINE = Revision("v1.0", "0" * 40)
COUNT = 24
"""Commits after the baseline."""
SLOWER, FASTER = 9, 17
"""The two commits that are confirmed."""
RANGE = (19, 23)
"""Between these two something changes as well."""
NOT_BUILT = 5
WAITING = 22
LEVELS = {0: 1.0, SLOWER: 1.052, FASTER: 1.021, RANGE[1]: 1.046}
"""Cost over the baseline, from each of these commits on."""
MEASURED = (0, 1, 2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 17, 18, 19, 23, 24)
PAIRS: tuple[tuple[int, int, PairStatus], ...] = (
    (0, 8, "equivalent"),
    (8, 16, "changed"),
    (16, 24, "undecided"),
    (8, 12, "changed"),
    (8, 9, "changed"),
    (16, 17, "changed"),
    (19, 23, "changed"),
)


def name_of(place: int) -> str:
    """The whole name of a commit; of 0, the baseline."""
    return hashlib.sha1(str(place).encode()).hexdigest() if place else BASELINE.commit


LATEST = Revision("HEAD", name_of(COUNT))


def level_at(place: int) -> float:
    """True cost of a commit over that of the baseline."""
    return LEVELS[max(earlier for earlier in LEVELS if earlier <= place)]


def revision(place: int, text: str = "") -> HistoryRevision:
    """One commit of the curve."""
    measured = place in MEASURED
    ratio = level_at(place) * (1.0 + 0.001 * (place % 3 - 1)) if measured and place else None
    return HistoryRevision(
        commit=name_of(place),
        subject=f"Change {place}{text}",
        author=f"Ada{text}",
        date=f"2026-03-{1 + place:02d}T10:15:00+00:00",
        place=place,
        status="not built" if place == NOT_BUILT else "measured" if measured else "waiting",
        ratio=ratio if place else 1.0,
        ratio_ci=(ratio - 0.012, ratio + 0.012)
        if ratio
        else ((1.0, 1.0) if not place else (None, None)),
        significance_level=0.002 if ratio else None,
        blocks=30 if ratio else 0,
        era=2 if place > 18 else 1,
    )


def change_of(after: int, until: int, text: str = "", ratio: float | None = None) -> HistoryChange:
    """Change between two commits."""
    true = level_at(until) / level_at(after) if ratio is None else ratio
    confirmed = until - after == 1
    one = revision(until, text)
    change = HistoryChange(
        commit=name_of(until) if confirmed else None,
        earlier_hash=name_of(after),
        later_hash=name_of(until),
        subject=one.subject,
        author=one.author,
        date=one.date,
        commit_count=until - after,
        not_built=(),
        is_merge=False,
        ratio=true,
        ratio_ci=(true - 0.007, true + 0.007),
        significance_level=0.0025,
        e_value=4321.0,
        threshold=420.0,
        pair_number=5,
        confirmed=confirmed,
        blocks=48,
        summary="",
        confirm=None
        if confirmed
        else f"equipoise bisect --good {name_of(after)} --bad {name_of(until)} -- ./bench",
    )
    return replace(change, summary=change_sentence(change, "wall_s"))


def pair_of(number: int, after: int, until: int, status: PairStatus) -> HistoryPair:
    """Two commits that ran side by side."""
    ratio = level_at(until) / level_at(after)
    return HistoryPair(
        pair_number=number,
        earlier_hash=name_of(after),
        later_hash=name_of(until),
        status=status,
        ratio=ratio,
        ratio_ci=(ratio - 0.008, ratio + 0.008),
        significance_level=0.05 / (number * (number + 1)),
        e_value=4321.0 if status == "changed" else 0.02,
        blocks=48,
        era=1 if until < 19 else 2,
    )


def campaign_of(number: int, era: int, text: str = "") -> HistoryCampaign:
    """One night."""
    day = f"2026-03-{24 + number}"
    return HistoryCampaign(
        run=f"202603{24 + number}-020000-ab1{number}{text}",
        started=f"{day}T02:00:00.000+00:00",
        ended=f"{day}T02:15:00.000+00:00",
        stopped_because="its budget was spent",
        era=era,
        blocks=120,
        trials=320,
        tried_commits=9,
        seconds=900.0,
        latest_hash=name_of(COUNT - 3 + number),
    )


def series_of(text: str = "") -> ImportedSeries:
    """Values that another tool measured on other days, and where its level may have changed."""
    points = tuple(
        SeriesPoint(
            name_of(place), f"2025-11-{1 + place:02d}", 0.02 * level * (1 + 0.01 * (place % 4))
        )
        for place in range(COUNT + 1)
        for level in (level_at(place),)
    )
    confirm = f"equipoise bisect --good {name_of(8)} --bad {name_of(9)} -- ./bench"
    suspicion = Suspicion(
        last_old_commit=name_of(8),
        first_new_commit=name_of(9),
        last_old_index=8,
        change_index=9,
        first_new_index=9,
        old_level=0.0203,
        ratio=1.051,
        confirm_command=confirm,
        summary=f"About {name_of(9)[:10]} it may have become 5.10 % slower{text}.",
    )
    return ImportedSeries(
        source=f"results{text}",
        tool=f"asv 0.6.5{text}",
        benchmark=f"time_sort{text}",
        metric="wall_s",
        unit="s",
        setting=f"ci-7{text}",
        points=points,
        suspicions=(suspicion,),
        notes=(f"Two results without a commit are left out{text}.",),
        summary=f"One place in 25 values may be a change{text}.",
    )


def history_result(text: str = "") -> HistoryResult:
    """A history of three nights: two changes are confirmed, a third one is a range."""
    result = HistoryResult(
        baseline=replace(BASELINE, typed_name=f"v1.0{text}"),
        latest=LATEST,
        revisions=tuple(
            revision(place, text)
            for place in range(COUNT + 1)
            if place in MEASURED or place in (NOT_BUILT, WAITING)
        ),
        changes=(
            change_of(SLOWER - 1, SLOWER, text),
            change_of(FASTER - 1, FASTER, text),
            change_of(*RANGE, text),
        ),
        pairs=tuple(pair_of(number, *one) for number, one in enumerate(PAIRS, start=1)),
        eras=(
            HistoryEra(1, "2026-03-25T02:00:00.000+00:00", ()),
            HistoryEra(2, "2026-03-27T02:00:00.000+00:00", ("kernel: 6.1 instead of 5.10",)),
        ),
        campaigns=(campaign_of(1, 1), campaign_of(2, 1), campaign_of(3, 2, text)),
        commit_count=COUNT,
        metric="wall_s",
        min_effect=1.0,
        alpha=0.05,
        trials=960,
        tried_commits=21,
        seconds=2700.0,
        blocks_to_go=40,
        build="make",
        summary="",
    )
    return replace(result, summary=history_sentence(result))


COMMAND = "equipoise history --from v1.0 --build make -- ./bench"


def history_document(text: str = "", result: HistoryResult | None = None) -> HistoryDocument:
    """The last campaign of a history, with the result of its series."""
    document = document_of(f"first{text}", f"second{text}", blocks=3)
    return document_as(
        HistoryDocument,
        document,
        run=replace(document.run, study=STUDY, blocks=120, command_line=COMMAND),
        comparisons=(),
        history=history_result(text) if result is None else result,
    )
