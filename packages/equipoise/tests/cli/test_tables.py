"""Tables as strangers have them: words, yes and no, gaps; and what one wants after matching."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pandas
import pytest

from equipoise.report.json_document import schema
from equipoise_matching import match
from equipoise_matching.matching.datasets import lalonde
from equipoise_matching.observation.result import ObservationResult
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise, document
from packages.equipoise.tests.programs import finished
from packages.matching.tests.observation.logs import loaded_log

WORDS = ("--treatment", "trained", "--covariates", "age,educ,region,married")


@pytest.fixture
def people(tmp_path: Path) -> pandas.DataFrame:
    """LaLonde's people with words, yes and no, and gaps in two columns of ``gaps.csv``."""
    frame = lalonde()
    frame = frame.assign(
        region=np.where(frame["age"] > 25, "north", "south"),
        married=np.where(frame["married"] == 1, "yes", "no"),
        trained=np.where(frame["treat"] == 1, "yes", "no"),
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    gaps = frame.astype({"age": float})
    gaps.loc[[3, 7, 300], "age"] = np.nan
    gaps.loc[[5], "region"] = None
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    return frame


def test_words_and_yes_and_no_are_matched_on_as_numbers(
    equipoise: Equipoise, people: pandas.DataFrame
) -> None:
    matrix = {
        "age": people["age"],
        "educ": people["educ"],
        "region=south": people["region"] == "south",
        "married=yes": people["married"] == "yes",
    }
    expected = match(people["re78"], people["treat"], pandas.DataFrame(matrix).astype(float))
    for table in ("people.csv", "people.parquet"):
        result = document(equipoise("match", table, *WORDS, "--outcome", "re78", "--json", "-"))
        assert result["estimate"] == expected.estimate
        assert result["interval"] == list(expected.interval or ())
        rows = result["balance"]
        assert isinstance(rows, list)
        assert [row["variable"] for row in rows[::2]] == list(matrix)
    balance = document(equipoise("balance", "people.csv", *WORDS, "--boot", "0", "--json", "-"))
    assert isinstance(balance["balance"], list)
    assert [row["sdiff"] for row in balance["balance"]] == [row["sdiff"] for row in rows]
    quick = ("--population", "10", "--generations", "1", "--hard-limit", "--seed", "1")
    search = document(equipoise("genmatch", "people.csv", *WORDS, *quick, "--json", "-"))
    assert isinstance(search["weights"], dict)
    assert list(search["weights"]) == list(matrix)


def test_two_of_the_values_of_a_column_may_be_compared(
    equipoise: Equipoise, people: pandas.DataFrame, tmp_path: Path
) -> None:
    people.assign(version=np.where(people["treat"] == 1, "1.10", "1.1")).to_csv(
        tmp_path / "versions.csv", index=False
    )
    named = ("--covariates", "age,educ", "--outcome", "re78", "--json", "-")
    versions = equipoise("match", "versions.csv", "--treatment", "version=1.10:1.1", *named)
    plain = equipoise("match", "people.csv", "--treatment", "treat", *named)
    assert document(versions)["estimate"] == document(plain)["estimate"]
    unnamed = equipoise("match", "people.csv", "--treatment", "region", *named)
    assert unnamed.status == 2
    assert "--treatment region=south:north" in unnamed.err


def test_a_gap_is_refused_left_out_or_marked_and_counted_everywhere(
    equipoise: Equipoise, people: pandas.DataFrame, tmp_path: Path
) -> None:
    asked = ("gaps.csv", *WORDS)
    refused = equipoise("match", *asked)
    assert refused.status == 2
    assert "age is missing in rows 3, 7, 300 (from 0)" in refused.err
    assert "hint: add --missing drop to leave out the 4 rows" in refused.err
    for command in ("match", "balance"):
        answer = equipoise(
            command, *asked, "--missing", "drop", "--report", "page.html", "--json", "found.json"
        )
        assert answer.status == 0, answer.err
        sentence = "Missing values (age in 3, region in 1): 4 rows are left out."
        assert sentence in answer.out
        assert sentence in (tmp_path / "page.html").read_text(encoding="utf-8")
        found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
        assert found["missing"] == {
            "policy": "drop",
            "columns": {"age": 3, "region": 1},
            "rows_left_out": 4,
        }
    marked = document(equipoise("match", *asked, "--missing", "indicator", "--json", "-"))
    assert isinstance(marked["balance"], list)
    names = [row["variable"] for row in marked["balance"][::2]]
    assert names == [
        *("age", "educ", "region=north", "region=south", "married=yes", "age is missing")
    ]
    assert isinstance(marked["pairs"], list)
    assert 3 in {pair["treated"] for pair in marked["pairs"]}


@pytest.mark.parametrize("name", ["matched.csv", "matched.parquet"])
def test_the_matched_data_set_is_written(
    equipoise: Equipoise, people: pandas.DataFrame, tmp_path: Path, name: str
) -> None:
    arguments = ("gaps.csv", *WORDS, "--outcome", "re78", "--missing", "drop")
    answer = equipoise("match", *arguments, "--exact", "region", "--matched", name, "--json", "-")
    result = document(answer)
    read = pandas.read_csv if name.endswith("csv") else pandas.read_parquet
    matched = read(tmp_path / name)
    assert list(matched.columns) == [*people.columns, "row", "pair", "stratum", "weight"]
    arms = [matched[matched["trained"] == word] for word in ("yes", "no")]
    high, low = (np.average(arm["re78"], weights=arm["weight"]) for arm in arms)
    assert high - low == pytest.approx(result["estimate"], rel=1e-9)
    assert matched["re78"].to_numpy() == pytest.approx(people["re78"].to_numpy()[matched["row"]])
    assert matched.groupby("stratum")["region"].nunique().tolist() == [1, 1]
    sizes = result["effective_sample_size"]
    assert isinstance(sizes, dict)
    weights = arms[1].groupby("row")["weight"].sum()
    assert sizes["control"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    quick = ("--population", "10", "--generations", "1", "--hard-limit", "--seed", "1")
    searched = equipoise("genmatch", *arguments, *quick, "--matched", f"searched-{name}")
    assert searched.status == 0, searched.err
    assert (tmp_path / f"searched-{name}").exists()


def test_the_screen_has_the_interval_the_effective_size_and_a_worse_balance(
    equipoise: Equipoise, people: pandas.DataFrame
) -> None:
    covariates = "age,educ,black,hisp,married,nodegr,re74,re75"
    answer = equipoise(
        *("match", "people.csv", "--treatment", "treat", "--outcome", "re78"),
        *("--covariates", covariates, "--verbose"),
    )
    for words in (
        "treat raises re78 by 2,109 (95 % interval 458 to 3,760)",
        "95 % interval: 458.28 to 3759.5",
        "they are worth 185 and 97.65 (effective sample size)",
        "Matching made the groups less alike in 2 of 8 covariates",
        "re75 from +8.2 % to +11.6 %",
    ):
        assert words in answer.out
    for command in ("match", "balance"):
        asked = (command, "people.csv", "--treatment", "treat", "--covariates", covariates)
        found = document(equipoise(*asked, "--json", "-", *BALANCED[command]))
        assert isinstance(found["warnings"], list)
        assert [warning["code"] for warning in found["warnings"]] == ["worse-balance", "unbalanced"]


BALANCED = {"match": (), "balance": ("--boot", "0")}


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("matched.xlsx", "a table cannot be written to a file with the ending '.xlsx'"),
        ("people.csv", "would replace the table"),
        ("no/where.csv", "there is no folder"),
    ],
)
def test_a_matched_data_set_that_cannot_be_written_is_refused_before_the_work(
    equipoise: Equipoise, people: pandas.DataFrame, tmp_path: Path, file: str, words: str
) -> None:
    answer = equipoise("match", "people.csv", *WORDS, "--matched", file, "--json", "found.json")
    assert answer.status == 2
    assert words in answer.err
    assert not (tmp_path / "found.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "people.csv", *WORDS, "--outcome", "re78"),
        ("balance", "people.csv", *WORDS, "--boot", "0"),
        (
            *("observe", "people.csv", "--treatment", "treat=1:0", "--outcome", "re78"),
            *("--difference", "--cluster", "none", "--covariates", "age", "--method"),
            "mahalanobis",
        ),
    ],
    ids=["match", "balance", "observe"],
)
def test_csv_needs_no_pyarrow(
    people: pandas.DataFrame, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from equipoise.cli.main import main\n"
        "sys.argv = ['equipoise', *sys.argv[1:]]\n"
        "sys.exit(main())\n"
    )
    done = finished([sys.executable, "-c", code, *arguments], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    whole = finished([*ENTRY, *arguments], cwd=tmp_path, check=True)
    assert done.stdout == whole.stdout
    assert done.stdout


OBSERVED = ("--treatment", "version=2.0:1.0", "--outcome", "wall_s", "--covariates", "load")
QUICK = ("--cluster", "none", "--method", "mahalanobis")


@pytest.fixture
def log(tmp_path: Path) -> None:
    """A log with three gaps in its load, and one without."""
    columns = loaded_log()
    for name, blank in (("ci.csv", ()), ("gaps.csv", (3, 5, 8))):
        load = [
            "" if row in blank else str(value) for row, value in enumerate(columns["load"].tolist())
        ]
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            cells = [column.tolist() for column in {**columns, "load": np.array(load)}.values()]
            writer.writerows(zip(*cells, strict=True))


@pytest.mark.usefixtures("log")
def test_observe_names_its_rows_as_its_user_does(equipoise: Equipoise, tmp_path: Path) -> None:
    answer = equipoise(
        *("observe", "ci.csv", *OBSERVED, *QUICK, "--unit", "builds"),
        *("--placebo-outcome", "unmoved", "--report", "page.html", "--verbose"),
    )
    assert answer.status == 0, answer.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        "the estimate among comparable builds. The interval of a placebo must include the line"
        in page
    )
    for words in (
        "Without matching, the table suggests that version 2.0 is",
        "Among comparable builds, version 2.0 is",
        "comparable builds do not differ in unmoved (95 % interval ",
        "which version cannot have changed: this check does not contradict the answer",
        "the answer holds unless something that was not measured made one of two comparable "
        "builds more than",
        "multiplied the odds of version 2.0 by this factor between two comparable builds.",
        "it explained",
    ):
        assert words in " ".join(answer.out.split()), words
    assert "comparable rows" in equipoise("observe", "ci.csv", *OBSERVED, *QUICK).out


@pytest.mark.usefixtures("log")
def test_of_two_versions_the_later_one_is_the_candidate(equipoise: Equipoise) -> None:
    named = json.loads(equipoise("observe", "ci.csv", *OBSERVED, *QUICK, "--json", "-").out)
    alone = ("--treatment", "version", *OBSERVED[2:])
    found = json.loads(equipoise("observe", "ci.csv", *alone, *QUICK, "--json", "-").out)
    assert found == named
    assert (found["question"]["candidate"], found["question"]["baseline"]) == ("2.0", "1.0")
    text = (equipoise.folder / "ci.csv").read_text(encoding="utf-8")
    for old, new in (("1.9", "1.10"), ("old", "new"), ("no", "yes"), ("main", "fix")):
        renamed = text.replace("\n1.0,", f"\n{old},").replace("\n2.0,", f"\n{new},")
        (equipoise.folder / "ci.csv").write_text(renamed, encoding="utf-8")
        other = json.loads(equipoise("observe", "ci.csv", *alone, *QUICK, "--json", "-").out)
        assert (other["question"]["candidate"], other["question"]["baseline"]) == (new, old)
        assert other["matched"] == named["matched"]


@pytest.mark.usefixtures("log")
def test_observe_has_the_policies_for_gaps(equipoise: Equipoise) -> None:
    asked = ("observe", "gaps.csv", *OBSERVED, *QUICK)
    refused = equipoise(*asked)
    assert refused.status == 2
    assert "--missing drop" in refused.err
    dropped = json.loads(equipoise(*asked, "--missing", "drop", "--json", "-").out)
    jsonschema.validate(dropped, schema(ObservationResult))
    assert dropped["rows"]["left_out"] == {"a missing value (load)": 3}
    kept = json.loads(equipoise(*asked, "--missing", "indicator", "--json", "-").out)
    assert kept["question"]["covariates"] == ["load", "load is missing"]
    assert "3 left out: a missing value (load)" in equipoise(*asked, "--missing", "drop").out


@pytest.mark.usefixtures("log")
def test_the_policies_for_gaps_hold_for_covariates_that_nobody_named(equipoise: Equipoise) -> None:
    asked = ("observe", "gaps.csv", *OBSERVED[:4], *QUICK)
    everything = json.loads(
        equipoise("observe", "ci.csv", *OBSERVED[:4], *QUICK, "--json", "-").out
    )["question"]["covariates"]
    assert "load" in everything
    refused = equipoise(*asked, "--missing", "refuse")
    assert refused.status == 2
    assert "load is missing in rows 3, 5, 8" in refused.err
    assert "hint: add --missing drop to leave out the 3 rows" in refused.err
    dropped = json.loads(equipoise(*asked, "--missing", "drop", "--json", "-").out)
    assert dropped["question"]["covariates"] == everything
    assert dropped["rows"]["left_out"] == {"a missing value (load)": 3}
    kept = json.loads(equipoise(*asked, "--missing", "indicator", "--json", "-").out)
    assert kept["question"]["covariates"] == [*everything, "load is missing"]
    assert kept["rows"]["left_out"] == {}
    for answer in (dropped, kept):
        assert "covariates-left-out" not in [warning["code"] for warning in answer["warnings"]]


@pytest.mark.usefixtures("log")
def test_a_column_with_gaps_that_is_not_matched_on_is_named(equipoise: Equipoise) -> None:
    answer = json.loads(equipoise("observe", "gaps.csv", *OBSERVED[:4], *QUICK, "--json", "-").out)
    assert "load" not in answer["question"]["covariates"]
    warning = next(
        warning for warning in answer["warnings"] if warning["code"] == "covariates-left-out"
    )
    assert warning["summary"].endswith("load (3 missing)")
    assert "--missing indicator" in warning["hint"]


@pytest.mark.usefixtures("log")
def test_a_column_with_infinite_values_is_named_wherever_it_could_be_matched_on(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    frame = pandas.read_csv(tmp_path / "ci.csv")
    frame.loc[[3, 5], "load"] = [math.inf, -math.inf]
    frame.to_csv(tmp_path / "infinite.csv", index=False)
    asked = ("observe", "infinite.csv", *OBSERVED[:4], *QUICK)
    answer = json.loads(equipoise(*asked, "--json", "-").out)
    assert "load" not in answer["question"]["covariates"]
    warning = next(
        warning for warning in answer["warnings"] if warning["code"] == "covariates-infinite"
    )
    assert warning["summary"].endswith("load (2 infinite)")
    assert warning["hint"].startswith("replace them by finite numbers")
    named = equipoise(*asked, "--covariates", "load")
    assert named.status == 2
    assert "load is infinite in rows 3, 5 (from 0)\n  hint: replace them" in named.err
    frame[["version", "wall_s", "load"]].to_csv(tmp_path / "alone.csv", index=False)
    alone = equipoise("observe", "alone.csv", *OBSERVED[:4], *QUICK)
    assert alone.status == 2
    assert "the columns to match on have infinite values: load (2 infinite)" in alone.err
    frame["treated"] = (frame["version"] == frame["version"][0]).astype(int)
    frame.to_csv(tmp_path / "infinite.csv", index=False)
    question = ("--treatment", "treated", "--covariates", "load")
    matched = equipoise("match", "infinite.csv", *question, "--outcome", "wall_s")
    assert matched.status == 2
    assert "load is infinite in rows 3, 5 (from 0)\n  hint: replace them" in matched.err


@pytest.mark.usefixtures("log")
def test_nothing_is_answered_where_gaps_leave_nothing_to_match_on(equipoise: Equipoise) -> None:
    frame = pandas.read_csv(equipoise.folder / "gaps.csv")[["version", "wall_s", "load"]]
    frame.to_csv(equipoise.folder / "gaps.csv", index=False)
    refused = equipoise("observe", "gaps.csv", *OBSERVED[:4], *QUICK)
    assert refused.status == 2
    assert "load is missing in rows 3, 5, 8" in refused.err
