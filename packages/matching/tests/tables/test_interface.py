"""The functions of ``tables`` on frames of every library: the answers of the array forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from equipoise_matching import UnusableInput, gen_match, match, match_balance, match_by, tables
from equipoise_matching.matching.datasets import lalonde
from equipoise_matching.tables.interface import Observation
from packages.matching.tests.observation.logs import loaded_log

COVARIATES = ["age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75"]
FRAMES: dict[str, Callable[[pandas.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, another index": lambda frame: frame.set_index(np.arange(len(frame))[::-1] % 7),
    "polars": lambda frame: polars.DataFrame({name: frame[name].to_numpy() for name in frame}),
    "lazy": lambda frame: polars.LazyFrame({name: frame[name].to_numpy() for name in frame}),
    "pyarrow": lambda frame: pyarrow.table({name: frame[name].to_numpy() for name in frame}),
    "mapping": lambda frame: {name: frame[name].to_numpy() for name in frame},
}
QUICK: dict[str, Any] = {"population": 10, "generations": 2, "hard_generation_limit": True}


@pytest.fixture(scope="module")
def people() -> pandas.DataFrame:
    """LaLonde's people, with words for two columns of numbers."""
    frame = lalonde()
    return frame.assign(
        region=np.where(frame["age"] > 25, "north", "south"),
        trained=np.where(frame["treat"] == 1, "Yes", "no"),
    )


@pytest.mark.parametrize("library", FRAMES)
def test_names_of_columns_give_the_result_of_arrays(people: pandas.DataFrame, library: str) -> None:
    frame = FRAMES[library](people)
    expected = match(people["re78"], people["treat"], people[COVARIATES])
    result = tables.match(frame, outcome="re78", treatment="treat", covariates=COVARIATES)
    assert (result.estimate, result.se) == (expected.estimate, expected.se)
    assert result.interval == expected.interval
    assert result.pairs.control_index.tolist() == expected.control_index.tolist()


@pytest.mark.parametrize("library", FRAMES)
def test_the_matched_rows_are_a_frame_of_the_same_library(
    people: pandas.DataFrame, library: str
) -> None:
    frame = FRAMES[library](people)
    result = tables.match(frame, "re78", "treat", ["age", "region"], by="black")
    matched = result.matched_frame()
    libraries = {"lazy": "polars", "mapping": "pandas"}
    assert type(matched).__module__.partition(".")[0] == libraries.get(
        library, library.partition(",")[0]
    )
    columns = {name: np.asarray(matched[name]) for name in ("re78", "treat", "row", "weight")}
    treated = columns["treat"] == 1
    means = [
        np.average(columns["re78"][arm], weights=columns["weight"][arm])
        for arm in (treated, ~treated)
    ]
    assert means[0] - means[1] == pytest.approx(result.estimate, rel=1e-12)
    assert columns["re78"].tolist() == people["re78"].to_numpy()[columns["row"]].tolist()
    sums = np.bincount(columns["row"], columns["weight"], len(people))
    assert sums == pytest.approx(result.row_weights)
    pairs, strata = np.asarray(matched["pair"]), np.asarray(matched["stratum"])
    assert pairs.min() == 1
    assert len(np.unique(pairs)) == 185
    # Each pair has its unit first, and lies in one stratum.
    assert [int(treated[pairs == pair].sum()) for pair in (1, 90, 185)] == [1, 1, 1]
    assert all(len(set(strata[pairs == pair])) == 1 for pair in range(1, 186))
    black = np.asarray(matched["black"])
    assert sorted({*zip(strata.tolist(), black.tolist(), strict=True)}) == [(1, 0), (2, 1)]


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_the_weighted_means_of_the_matched_rows_are_the_effect(
    people: pandas.DataFrame, estimand: Any
) -> None:
    result = tables.match(people, "re78", "treat", ["age", "educ", "re74"], estimand=estimand, m=2)
    matched = result.matched_frame()
    arms = [matched[matched["treat"] == arm] for arm in (1, 0)]
    high, low = (np.average(arm["re78"], weights=arm["weight"]) for arm in arms)
    assert high - low == pytest.approx(result.estimate, rel=1e-9)


def test_a_name_that_the_table_has_is_not_lost(people: pandas.DataFrame) -> None:
    frame = people.assign(weight=7.0)
    matched = tables.match(frame, "re78", "treat", ["age"]).matched_frame()
    assert set(matched["weight"]) == {7.0}
    assert matched["match_weight"].sum() == pytest.approx(2 * 185)


def test_the_effective_sample_size_counts_a_control_of_many_pairs_once() -> None:
    frame = {"t": [1, 1, 1, 1, 0, 0], "x": [1.0, 1.0, 1.0, 5.0, 1.0, 5.0], "y": [1.0] * 6}
    result = tables.match(frame, "y", "t", "x")
    # The weights of the controls are 3 and 1: 16 / 10.
    assert result.effective_sizes == pytest.approx((4.0, 1.6))
    assert "worth 4 and 1.6 (effective sample size)" in result.summary()


def test_words_become_indicators_and_yes_is_treated(people: pandas.DataFrame) -> None:
    matrix = np.column_stack([people["age"], people["region"] == "south"]).astype(float)
    expected = match(people["re78"], people["treat"], matrix)
    for treatment in ("trained", "trained=Yes:no", "treat=1:0"):
        result = tables.match(people, "re78", treatment, ["age", "region"])
        assert result.estimate == expected.estimate
    assert result.balance.variables == ("age", "region=south")


def test_a_column_of_words_may_be_equal_in_pairs(people: pandas.DataFrame) -> None:
    result = tables.match(people, "re78", "treat", ["age", "educ", "region"], exact="region")
    regions = people["region"].to_numpy()
    pairs = result.pairs
    unnamed = tables.match(people, "re78", "treat", ["age", "educ"], exact="region", caliper=[1, 2])
    both = tables.match(
        people, "re78", "treat", ["age", "educ", "region"], exact="region", caliper=[1, 2, 9]
    )
    assert unnamed.estimate == both.estimate
    assert (regions[pairs.treated_index] == regions[pairs.control_index]).all()
    many = people.assign(place=[f"place {number % 40}" for number in people["age"]])
    result = tables.match(many, "re78", "treat", ["age", "place"], exact=["place"])
    places = many["place"].to_numpy()
    assert (places[result.pairs.treated_index] == places[result.pairs.control_index]).all()


def test_rows_of_other_values_take_no_part(people: pandas.DataFrame) -> None:
    frame = people.assign(group=np.where(people["treat"] == 1, "new", "old"))
    frame.loc[frame.index[::5], "group"] = "pilot"
    kept = frame[frame["group"] != "pilot"]
    expected = match(kept["re78"], kept["treat"], kept[["age", "educ"]])
    result = tables.match(frame, "re78", "group=new:old", ["age", "educ"])
    assert result.estimate == expected.estimate
    assert result.pairs.treated_index.tolist() == [
        int(kept.index[row]) for row in expected.treated_index
    ]
    assert "89 rows are neither treated nor controls" in result.summary()


def test_strata_give_the_result_of_match_by(people: pandas.DataFrame) -> None:
    units = people["re78"], people["treat"], people[["age", "re74"]]
    expected = match_by(*units, people[["black", "region"]])
    result = tables.match(people, "re78", "treat", ["age", "re74"], by=["black", "region"])
    assert (result.estimate, result.se) == (expected.estimate, expected.se)


def test_a_match_by_given_weights_names_them_in_its_report(people: pandas.DataFrame) -> None:
    result = tables.match(people, "re78", "treat", ["age", "educ"], metric=[1.0, 2.0])
    assert "weighted by the given metric" in result._repr_html_()


def test_balance_and_search_give_the_results_of_the_array_forms(people: pandas.DataFrame) -> None:
    names = ["age", "educ", "re74"]
    frame = people[names]
    search = gen_match(people["treat"], frame, seed=1, **QUICK)
    result = tables.gen_match(people, "treat", names, outcome="re78", seed=1, **QUICK)
    assert result.weights == dict(zip(names, search.weights.tolist(), strict=True))
    by_hand = match(people["re78"], people["treat"], frame, metric=search.to_metric(), seed=1)
    assert result.estimate == by_hand.estimate
    expected = match_balance(people[COVARIATES], people["treat"], by_hand, boot=20, seed=3)
    found = tables.match_balance(people, "treat", COVARIATES, match=result, boot=20, seed=3)
    assert found.rows() == expected.rows()
    assert tables.match_balance(people, "treat", names, boot=0).after is None


def test_a_balance_of_rows_with_gaps_takes_the_pairs_by_their_rows(
    people: pandas.DataFrame,
) -> None:
    frame = people.assign(age=people["age"].astype(float))
    frame.loc[[2, 300], "age"] = np.nan
    result = tables.match(frame, "re78", "treat", ["age", "educ"], missing="drop")
    found = tables.match_balance(
        frame, "treat", ["age", "educ"], match=result, missing="drop", boot=0, ks=False
    )
    assert [row["sdiff"] for row in found.rows()] == pytest.approx(
        [row["sdiff"] for row in result.balance.rows()]
    )
    whole = tables.match(frame, "re78", "treat", ["educ"])
    with pytest.raises(UnusableInput, match="rows that match_balance leaves out"):
        tables.match_balance(frame, "treat", ["age"], match=whole, missing="drop")


def test_a_file_is_a_table(people: pandas.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet")
    expected = tables.match(people, "re78", "treat", ["age", "region"]).estimate
    for name in ("people.csv", "people.parquet"):
        result = tables.match(tmp_path / name, "re78", "treat", ["age", "region"])
        assert result.estimate == expected
        assert len(result.matched_frame()) > 185


def test_an_object_with_an_arrow_stream_is_a_table(people: pandas.DataFrame) -> None:
    class Stream:
        """A table that is not a frame of a known library."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            table = pyarrow.table({name: people[name].to_numpy() for name in ("treat", "age")})
            return table.__arrow_c_stream__(requested_schema)

    result = tables.match(Stream(), treatment="treat", covariates="age")
    assert result.estimate is None
    assert result.matched_frame().column_names[-4:] == ["row", "pair", "stratum", "weight"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_observe_takes_frames(library: str) -> None:
    from equipoise_matching.observation.analysis import observe
    from packages.matching.tests.observation.logs import question

    log = loaded_log()
    frame = FRAMES[library](pandas.DataFrame(log))
    result = tables.observe(
        frame, "version=2.0:1.0", "wall_s", covariates="load", method="mahalanobis", unit="builds"
    )
    expected = observe(log, question(), source="the log").matched
    assert expected is not None
    assert result.ratio == expected.effect.ratio
    assert result.interval == expected.effect.ratio_ci
    assert "Among comparable builds, version 2.0 is" in str(result)
    assert not result.refused


def test_observe_takes_the_values_of_the_command_line() -> None:
    def observed(**arguments: Any) -> Observation:
        return tables.observe(
            loaded_log(),
            "version=2.0:1.0",
            "wall_s",
            covariates="load",
            method="mahalanobis",
            **arguments,
        )

    independent = observed(cluster="none").document
    assert independent.clustering is None
    assert independent.matched == observed(cluster=()).document.matched
    period = "placebo_period: there is no column phase"
    for value in ("phase=before", ("phase", "before")):
        with pytest.raises(UnusableInput, match=period):
            observed(placebo_period=value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "Genetic"}, "there is no method 'Genetic'"),
        ({"placebo_period": "before"}, "placebo_period: 'before' is not COLUMN=VALUE"),
    ],
)
def test_observe_refuses_unknown_values(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UnusableInput, match=words):
        tables.observe(loaded_log(), "version=2.0:1.0", "wall_s", covariates="load", **arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"treatment": "treat"}, "^covariates is missing"),
        ({"treatment": "treat", "covariates": ["z"]}, "no column z"),
        ({"treatment": "region", "covariates": ["age"]}, "it has north, south"),
        ({"treatment": "region=east:west", "covariates": ["age"]}, "does not name two values"),
        ({"treatment": "treat", "covariates": ["age"], "missing": "guess"}, "no policy 'guess'"),
        ({"treatment": "treat", "covariates": ["age"], "exact": ["z"]}, "no covariate z"),
        ({"treatment": "treat", "covariates": ["re78"], "outcome": "region"}, "is not a number"),
    ],
)
def test_unusable_input_is_named(
    people: pandas.DataFrame, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnusableInput, match=words):
        tables.match(people, **arguments)


def test_arrays_are_sent_to_the_array_forms() -> None:
    with pytest.raises(UnusableInput, match="a table is needed, not ndarray") as refused:
        tables.match(np.ones((3, 2)), treatment="t", covariates="x")
    assert "equipoise_matching.match" in str(refused.value.hint)


def test_a_result_shows_itself(people: pandas.DataFrame) -> None:
    result = tables.match(people, "re78", "treat", COVARIATES)
    assert "treat raises re78 by" in str(result)
    assert "Matching made the groups less alike" in str(result)
    assert repr(result).startswith("TableMatch(estimate=")
    assert "<table" in result._repr_html_()
    assert '<img alt="Standardized differences' in result._repr_html_()
    assert [warning.code for warning in result.warnings] == ["worse-balance", "unbalanced"]


@pytest.mark.parametrize(
    ("argument", "ours"),
    [
        ({"distance": "glm"}, "propensity=True"),
        ({"distance": "mahalanobis"}, 'metric="mahalanobis"'),
        ({"ratio": 2}, "m=2"),
        ({"method": "genetic"}, "gen_match(...)"),
        ({"discard": "both"}, "common_support=True"),
    ],
)
def test_an_argument_of_matchit_is_refused_with_the_one_that_is_meant(
    people: pandas.DataFrame, argument: dict[str, Any], ours: str
) -> None:
    with pytest.raises(TypeError, match=f"there is no argument {next(iter(argument))}=") as refused:
        tables.match(people, treatment="treat", covariates=COVARIATES, **argument)
    assert isinstance(refused.value, UnusableInput)
    assert ours in str(refused.value.hint)
    unknown: dict[str, Any] = {"colour": "red"}
    with pytest.raises(TypeError, match=r"match\(\) got an unexpected keyword argument 'colour'"):
        tables.match(people, treatment="treat", covariates=COVARIATES, **unknown)


def test_without_replacement_the_largest_score_is_matched_first_as_in_matchit(
    people: pandas.DataFrame,
) -> None:
    options: dict[str, Any] = {"propensity": True, "replace": False, "seed": 1}
    usual = tables.match(people, "re78", "treat", COVARIATES, **options)
    by_name = {
        order: tables.match(people, "re78", "treat", COVARIATES, order=order, **options)
        for order in ("largest", "data")
    }
    assert usual.estimate == by_name["largest"].estimate
    assert usual.estimate != by_name["data"].estimate
    methods = [str(result.report()) for result in (usual, by_name["data"])]
    assert "from the largest score on" in methods[0]
    assert "in the order of the rows" in methods[1]


def test_there_is_a_standard_error_without_replacement_too(people: pandas.DataFrame) -> None:
    result = tables.match(people, "re78", "treat", COVARIATES, propensity=True, replace=False)
    assert result.se is not None
    assert result.interval is not None
    low, high = result.interval
    assert high - low == pytest.approx(2 * 1.959963984540054 * result.se)
    differences = (
        people["re78"].to_numpy()[result.pairs.treated_index]
        - (people["re78"].to_numpy()[result.pairs.control_index])
    )
    assert result.se == pytest.approx(differences.std() / np.sqrt(len(differences)), rel=0.02)


def test_a_balance_prints_as_a_table(people: pandas.DataFrame) -> None:
    matched = tables.match(people, "re78", "treat", COVARIATES)
    balance = tables.match_balance(people, "treat", COVARIATES, match=matched, boot=0)
    heading, *rows, sentence = str(balance).splitlines()
    assert heading.split()[:2] == ["covariate", "matching"]
    assert [row.split()[:2] for row in rows[:2]] == [["age", "before"], ["age", "after"]]
    assert len(rows) == 2 * len(COVARIATES)
    assert len({len(row) for row in (heading, *rows)}) == 1
    assert sentence.startswith("The smallest p-value of balance was")
