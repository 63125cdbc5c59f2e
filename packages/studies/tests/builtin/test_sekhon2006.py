"""The article's table, figure and claims, on results whose answers are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.plans import study_plan
from equipoise.design.grid import grid_of
from equipoise.design.limits import CampaignLimits
from equipoise.design.site import Site
from equipoise.model.plan import Condition, Judgement, Plan
from equipoise.model.result import ResultDocument
from equipoise.studies.catalogue import find_study
from equipoise.studies.preparation import quick_form
from equipoise.studies.reader.study import read_study
from equipoise_studies.builtin.sekhon2006.analysis import (
    empirical_p,
    figure_1_rows,
    findings,
    normalise,
    ratio_rows,
)
from equipoise_studies.builtin.sekhon2006.charts import figures
from equipoise_studies.study_data import StudyData
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.studies.tests.builtin.synthetic import study_document

NO_GAP = {"445": 1.0, "890": 1.0}
FACTORS = {
    "algorithm": ("scythe", "blas"),
    "allocator": ("glibc", "glibc_15k", "dlmalloc"),
    "rows": ("445", "890"),
}


def document(
    gap: dict[str, float], lea: float = 1.0, *, old: float = 2.0, blocks: int = 20
) -> ResultDocument:
    """Searches where the 15 KB policy costs so much by rows, and Doug Lea's malloc so much."""

    def values(levels: dict[str, str]) -> dict[str, float]:
        seconds = (
            1e-6 * float(levels["rows"]) ** 2 * (old if levels["algorithm"] == "scythe" else 1)
        )
        seconds *= {"glibc": 1.0, "glibc_15k": gap[levels["rows"]], "dlmalloc": lea}[
            levels["allocator"]
        ]
        return {"search_s": seconds, "best_search_s": 0.9 * seconds}

    return study_document("sekhon2006", FACTORS, values, blocks=blocks, iterated=["search_s"])


def claim(result: ResultDocument, beginning: str) -> str:
    paragraphs = [
        paragraph for paragraph in findings(StudyData(result)).paragraphs if beginning in paragraph
    ]
    assert paragraphs, beginning
    return paragraphs[0]


def test_a_gap_that_grows_is_found_with_its_numbers() -> None:
    paragraph = claim(document({"445": 1.02, "890": 1.3}), "grows with the size")
    assert "Holds here with the algorithm blas" in paragraph
    assert "at 445 rows" in paragraph and "+30 %" in paragraph
    assert "certain here" in paragraph


def test_answer_is_the_cost_of_the_policy_by_algorithm() -> None:
    answer = findings(StudyData(document({"445": 2.5, "890": 2.5}))).answer
    assert answer.startswith("The 15 KB policy costs the old algorithm ×2.")
    assert "(certain) and the BLAS algorithm ×2." in answer
    assert answer.endswith("(certain) over Doug Lea's malloc, at 445 rows.")


@pytest.mark.parametrize(
    ("beginning", "gap", "others", "words"),
    [
        ("grows with the size", {"445": 1.5, "890": 1.2}, {}, "(the gap does not grow)"),
        ("grows with the size", NO_GAP, {}, "Does not hold (there is no gap)"),
        ("the old algorithm is far slower", {"445": 2.4, "890": 2.4}, {}, "Holds here"),
        ("the old algorithm is far slower", {"445": 2.4, "890": 2.4}, {}, "×2.4"),
        ("the old algorithm is far slower", {"445": 1.2, "890": 1.2}, {}, "Does not hold here"),
        ("the gap vanishes", {"445": 1.5, "890": 1.5}, {}, "Holds here"),
        ("the gap vanishes", {"445": 1.5, "890": 1.5}, {"lea": 1.3}, "Does not hold here"),
        ("the gap vanishes", NO_GAP, {}, "Nothing to vanish"),
        ("BLAS makes the algorithm faster", NO_GAP, {"old": 7.0}, "Holds here"),
        ("BLAS makes the algorithm faster", NO_GAP, {"old": 0.5}, "Does not hold here"),
        ("Open question", NO_GAP, {"lea": 1.1}, "Seen here too"),
        ("Open question", NO_GAP, {"lea": 1.0}, "Not seen here"),
    ],
)
def test_a_claim_holds_where_the_numbers_say_so(
    beginning: str, gap: dict[str, float], others: dict[str, Any], words: str
) -> None:
    assert words in claim(document(gap, **others), beginning)


def test_speed_up_of_blas_is_given_for_each_size() -> None:
    paragraph = claim(document(NO_GAP, old=7.0), "BLAS makes the algorithm faster")
    assert paragraph.count("×7") >= 2


def test_too_few_blocks_are_not_certain_and_show_their_range() -> None:
    few = document({"445": 2.4, "890": 2.4}, blocks=3)
    paragraph = claim(few, "the old algorithm is far slower")
    assert "too few blocks to be certain" in paragraph
    assert "in 3 blocks" in paragraph


def test_the_tables_hold_every_condition_and_the_published_figures() -> None:
    searches, ratios = findings(StudyData(document({"445": 1.0, "890": 1.2}))).tables
    assert len(searches.rows) == 12
    assert len(ratios.rows) == 8
    first = dict(zip(searches.headings, searches.rows[0], strict=True))
    assert (first["algorithm"], first["allocator"], first["published"]) == (
        "scythe",
        "glibc",
        "8.84 s",
    )
    cell = next(row for row in ratios.rows if row[:3] == ("blas", "445", "glibc_15k"))
    assert "0.09" in cell
    assert all(
        len(row) == len(table.headings) for table in (searches, ratios) for row in table.rows
    )


def test_the_p_value_counts_pairs_in_the_wrong_order() -> None:
    assert empirical_p(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 0.0
    assert empirical_p(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == 0.0
    # Of the four pairs only 2 against 1.5 is in the wrong order.
    assert empirical_p(np.array([1.0, 2.0]), np.array([1.5, 3.0])) == 0.25
    assert empirical_p(np.array([1.0]), np.array([1.0])) == 0.5
    assert empirical_p(np.array([]), np.array([1.0])) is None


def test_figure_1_divides_the_mean_of_the_best_by_n_squared_log_n() -> None:
    assert normalise(445**2 * math.log(445), 445) == pytest.approx(1.0)
    measured = StudyData(document(NO_GAP))
    rows = [row for row in figure_1_rows(measured) if row["source"] == "here"]
    assert len(rows) == 12
    one = next(
        row
        for row in rows
        if (row["algorithm"], row["condition"], row["rows"]) == ("blas", "glibc", 890)
    )
    assert one["value"] == pytest.approx(1e9 * 0.9e-6 / math.log(890), rel=0.02)
    assert {row["source"] for row in ratio_rows(measured)} == {"here", "published in 2006"}


def test_both_figures_show_the_published_values() -> None:
    charts = {
        figure.name: figure.chart.to_dict()
        for figure in figures(StudyData(document({"445": 1.0, "890": 1.2})))
    }
    assert list(charts) == ["figure_1", "ratios"]
    for chart in charts.values():
        rows = [row for table in chart["datasets"].values() for row in table]
        assert any(row.get("source") == "published in 2006" for row in rows)
        assert any(row.get("source") == "here" for row in rows)


SECONDS = {
    ("scythe", "445"): {"glibc": 0.40, "glibc_15k": 0.93, "glibc_never": 0.28, "dlmalloc": 0.27},
    ("scythe", "890"): {"glibc": 1.6, "glibc_15k": 3.4, "glibc_never": 1.0, "dlmalloc": 1.0},
    ("blas", "445"): {"glibc": 0.11, "glibc_15k": 0.11, "glibc_never": 0.11, "dlmalloc": 0.11},
    ("blas", "890"): {"glibc": 0.25, "glibc_15k": 0.36, "glibc_never": 0.25, "dlmalloc": 0.25},
    ("fast", "445"): {"glibc": 0.02, "glibc_15k": 0.02, "glibc_never": 0.02, "dlmalloc": 0.02},
    ("fast", "890"): {"glibc": 0.02, "glibc_15k": 0.02, "glibc_never": 0.02, "dlmalloc": 0.02},
}
"""About what a search takes on the machine of docs/evidence/texts.md: ten seconds a block."""


def quick_plan(native_folder: Path) -> Plan:
    """The quick form, with programs that are never run, and one metric."""
    study = quick_form(read_study(find_study("sekhon2006")[0]))
    grid = grid_of(study, Site(native_folder, lambda name: f"/lib/{name}"), {})
    plan, _ = study_plan(study, grid, CampaignLimits(seed=3))
    return replace(
        plan,
        conditions=tuple(
            Condition(condition.name, ("/bin/x",), condition.levels)
            for condition in plan.conditions
        ),
        judgement=Judgement(min_effect=plan.judgement.min_effect),
    )


def test_the_quick_form_decides_a_clear_gap_within_its_budget(
    native_folder: Path, tmp_path: Path
) -> None:
    plan = quick_plan(native_folder)
    medians = tuple(
        SECONDS[condition.levels["algorithm"], condition.levels["rows"]][
            condition.levels["allocator"]
        ]
        for condition in plan.conditions
    )
    stage = Stage(tmp_path, medians=medians, noise=0.05)
    result = analyse_campaign(stage.ledger.read_run(stage.start(plan)))
    assert stage.clock.seconds < plan.stopping.budget_s + sum(medians)
    verdicts = {comparison.candidate: comparison.verdict for comparison in result.comparisons}
    for rows in ("445", "890"):
        assert verdicts[f"algorithm=scythe glibc_15k rows={rows}"] == "slower"
        assert verdicts[f"algorithm=scythe dlmalloc rows={rows}"] == "faster"
    assert not any("algorithm=fast" in name for name in verdicts)
    assert all(condition.trials for condition in result.conditions)
