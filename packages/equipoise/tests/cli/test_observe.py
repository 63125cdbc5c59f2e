"""``equipoise observe`` as a user has it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jsonschema
import msgspec.structs
import pytest

from equipoise.ledger import open_for_writing
from equipoise.model.record import Draw
from equipoise.report.json_document import schema
from equipoise_matching.observation.result import ObservationResult
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.clusters import litter_collected
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.matching.tests.observation.logs import Log, loaded_log

ARGUMENTS = ("--treatment", "version=2.0:1.0", "--outcome", "wall_s", "--method", "mahalanobis")
LOAD = (*ARGUMENTS, "--covariates", "load")


def write(path: Path, log: Log) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(log)
        writer.writerows(zip(*(column.tolist() for column in log.values()), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> str:
    write(tmp_path / "ci.csv", loaded_log())
    return "ci.csv"


def test_the_answer_stands_first_and_what_it_rests_on_below(
    equipoise: Equipoise, table: str
) -> None:
    answer = equipoise("observe", table, *LOAD, "--placebo-outcome", "unmoved", "--verbose")
    assert answer.status == 0, answer.err
    first, *rest = answer.out.splitlines()
    assert first.startswith("observed: Without matching, the log suggests that version 2.0 ")
    assert "Among comparable rows" in first
    told = "\n".join(rest)
    for words in ("naive", "by clusters", "Abadie-Imbens", "load", "odds ×2", "clusters: day: 40"):
        assert words in told
    assert "placebo outcome: comparable rows do not differ in unmoved" in told


def test_the_document_keeps_to_its_schema_and_csv_and_parquet_give_the_same(
    equipoise: Equipoise, table: str, tmp_path: Path
) -> None:
    answer = equipoise("observe", table, *LOAD, "--json", "-")
    document = json.loads(answer.out)
    jsonschema.validate(document, schema(ObservationResult))
    assert document["schema"] == "equipoise.observed/1"
    import pandas

    pandas.DataFrame(loaded_log()).to_parquet(tmp_path / "ci.parquet")
    other = json.loads(equipoise("observe", "ci.parquet", *LOAD, "--json", "-").out)
    for answered in (document, other):
        del answered["question"]["source"]
    assert other == document


def test_versions_that_look_like_numbers_stay_apart(equipoise: Equipoise, tmp_path: Path) -> None:
    log = loaded_log()
    log["version"] = (log["version"] == "2.0").choose(["1.1", "1.10"]).astype(object)
    write(tmp_path / "ci.csv", log)
    arguments = ("--treatment", "version=1.10:1.1", "--outcome", "wall_s", "--covariates", "load")
    answer = equipoise("observe", "ci.csv", *arguments, "--json", "-")
    assert json.loads(answer.out)["question"]["candidate"] == "1.10"


def test_a_refusal_has_its_tables_its_document_and_status_2(equipoise: Equipoise) -> None:
    log = loaded_log()
    log["load"] = log["load"] + 50.0 * (log["version"] == "2.0")
    write(equipoise.folder / "ci.csv", log)
    answer = equipoise("observe", "ci.csv", *LOAD, "--json", "refused.json")
    assert answer.status == 2
    assert answer.err.startswith("equipoise: load still differs by")
    assert "hint: collect rows of 1.0 with load between" in answer.err
    assert "No answer can be given" in answer.out
    document = json.loads((equipoise.folder / "refused.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema(ObservationResult))
    assert document["matched"] is None
    assert document["refusal"]["needed"][0]["column"] == "load"


def test_a_page_and_its_figures_are_written(equipoise: Equipoise, table: str) -> None:
    answer = equipoise("observe", table, *LOAD, "--report", "page.html", "--figures", "drawn")
    assert answer.status == 0, answer.err
    page = (equipoise.folder / "page.html").read_text(encoding="utf-8")
    assert "Among comparable rows" in page
    assert 'id="run-1-balance-2"' in page
    assert {path.name for path in (equipoise.folder / "drawn").glob("*.svg")} == {
        "balance.svg",
        "effects.svg",
    }


def test_names_out_of_a_log_are_text_on_the_page_and_on_the_screen(equipoise: Equipoise) -> None:
    log = loaded_log()
    log["<b>load"] = log.pop("load")
    log["version"] = (log["version"] == "2.0").choose(["old", "\x1b[31m<script>"]).astype(object)
    write(equipoise.folder / "ci.csv", log)
    arguments = ("--treatment", "version=\x1b[31m<script>:old", "--outcome", "wall_s")
    answer = equipoise(
        "observe", "ci.csv", *arguments, "--covariates", "<b>load", "--report", "page.html"
    )
    assert answer.status == 0, answer.err
    assert "\x1b[31m<" not in answer.out
    page = (equipoise.folder / "page.html").read_text(encoding="utf-8")
    assert "<b>load" not in page
    assert "[31m<script>" not in page


def record_run(path: Path, environment: dict[str, object], started: float) -> str:
    """A campaign of thirty blocks in which ``b`` takes about 10 % longer; block 9 failed."""
    with open_for_writing(path, durable=False) as ledger:
        run_id = ledger.begin_run(plan_of("a", "b"), environment, started)
        for block in range(1, 31):
            draw = Draw("measured", block, (0, 1) if block % 2 else (1, 0), 0)
            ledger.record_draw(run_id, draw)
            for place in (0, 1):
                wall = 1.0 + 0.1 * draw.order[place] + 0.01 * (block * 7 % 5)
                trial = trial_of(draw, place, wall, failure="exit status 1" if block == 9 else None)
                covariates = {"load_1_minute": float(block * 7 % 5), "temperature_c": None}
                trial = msgspec.structs.replace(
                    trial, covariates=covariates, started_at=started + 2 * block + place
                )
                ledger.record_trial(run_id, trial)
        ledger.end_segment(run_id, 1, started + 100, "decided")
    return run_id


B_AGAINST_A = ("--treatment", "condition=b:a", "--outcome", "wall_s")


def test_the_trials_of_a_ledger_are_rows_with_their_covariates(equipoise: Equipoise) -> None:
    run_id = record_run(equipoise.folder / "ledger.db", {"boot_id": "x"}, 1.7e9)
    for named in (("ledger.db",), (run_id[:13], "--ledger", "ledger.db")):
        answer = equipoise("observe", *named, *B_AGAINST_A, "--json", "-")
        assert answer.status == 0, answer.err
        document = json.loads(answer.out)
        assert document["question"]["covariates"] == ["covariate_load_1_minute"]
        assert document["rows"]["left_out"] == {"failed": 2}
        assert document["rows"]["candidate"] == 29
        assert 1.05 < document["matched"]["effect"]["ratio"] < 1.15


@pytest.fixture
def two_kernels(tmp_path: Path) -> str:
    """A ledger with a campaign under each of two kernels."""
    for place, kernel in enumerate(("6.1", "6.8")):
        record_run(
            tmp_path / "ledger.db", {"kernel": kernel, "boot_id": kernel}, 1.7e9 + 1e4 * place
        )
    return "ledger.db"


COVARIATE = ("--covariates", "covariate_load_1_minute")


def test_campaigns_of_unlike_environments_are_refused_with_what_differs(
    equipoise: Equipoise, two_kernels: str
) -> None:
    answer = equipoise("observe", two_kernels, *B_AGAINST_A, *COVARIATE)
    assert answer.status == 2
    assert "different environments (kernel: 6.1, 6.8)" in answer.err
    assert "--exact environment_kernel" in answer.err
    assert "--allow kernel" in answer.err


def test_differences_may_be_matched_on_or_allowed_by_name(
    equipoise: Equipoise, two_kernels: str
) -> None:
    arguments = ("observe", two_kernels, *B_AGAINST_A, *COVARIATE, "--json", "-")
    matched = json.loads(equipoise(*arguments, "--exact", "environment_kernel").out)
    assert matched["question"]["exact"] == ["environment_kernel"]
    allowed = json.loads(equipoise(*arguments, "--allow", "kernel").out)
    assert "kernel (6.1, 6.8), which was allowed" in allowed["warnings"][0]["summary"]
    answer = equipoise(*arguments, "--allow", "cpu_model")
    assert answer.status == 2
    assert "allow a fact that differs: kernel" in answer.err


def test_by_default_what_differs_is_matched_on(equipoise: Equipoise, two_kernels: str) -> None:
    document = json.loads(equipoise("observe", two_kernels, *B_AGAINST_A, "--json", "-").out)
    assert "environment_kernel" in document["question"]["covariates"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.csv", *LOAD), "there is no such file"),
        (("nothing.db", *LOAD), "there is no such file"),
        (("ci.csv", *LOAD[2:], "--treatment", "version="), "COLUMN[=CANDIDATE:BASELINE]"),
        (
            ("ci.csv", *LOAD[2:], "--treatment", "day"),
            "the question does not name the two values to compare",
        ),
        (("ci.csv", *LOAD[2:], "--treatment", "host_type"), "host_type=arm:amd compares arm"),
        (("ci.csv", *LOAD[2:], "--treatment", "version=3.0:1.0"), "no row has 3.0"),
        (("ci.csv", *LOAD[2:], "--treatment", "release=2.0:1.0"), "there is no column release"),
        (("ci.csv", *LOAD[2:], "--treatment", "day=1:0"), "day has 40 values"),
        (("ci.csv", *ARGUMENTS, "--covariates", "load,wall_s"), "named by --outcome"),
        (("ci.csv", *ARGUMENTS, "--covariates", "load,"), "an empty name"),
        (("ci.csv", *LOAD, "--cluster", "day,host_type"), "overlap"),
        (("ci.csv", *LOAD, "--cluster", "rack"), "--cluster: there is no column rack"),
        (("ci.csv", *LOAD, "--cluster", "day", "--cluster", "load"), "at most one value with"),
        (("ci.csv", *LOAD, "--cluster", "local:2"), "--cluster local:2 needs --strata"),
        (
            ("ci.csv", *LOAD, "--cluster", "local:two"),
            "'local:two' does not end with a number of workers",
        ),
        (("ci.csv", *LOAD, "--insecure"), "--insecure is given without --cluster"),
        (("ci.csv", *LOAD, "--placebo-period", "day"), "is not COLUMN=VALUE"),
        (("ci.csv", *LOAD, "--report", "page.txt"), "page.txt: the extension '.txt' does not"),
        (("ci.csv", *LOAD, "--json", "no/where.json"), "there is no folder"),
    ],
)
def test_bad_input_gets_one_line_and_its_hint(
    equipoise: Equipoise, table: str, arguments: tuple[str, ...], words: str
) -> None:
    answer = equipoise("observe", *arguments)
    assert answer.status == 2
    assert words in answer.err
    assert answer.err.startswith("equipoise: ")
    assert len(answer.err.strip().splitlines()) <= 2
    assert answer.out == ""


def test_times_in_mixed_units_are_refused(equipoise: Equipoise, tmp_path: Path) -> None:
    log = loaded_log()
    log["wall_s"] = log["wall_s"].copy()
    log["wall_s"][::3] *= 1000.0
    write(tmp_path / "ci.csv", log)
    answer = equipoise("observe", "ci.csv", *LOAD)
    assert answer.status == 2
    assert "wall_s seems to be in mixed units" in answer.err


def test_a_missing_covariate_is_named_with_its_rows(equipoise: Equipoise, tmp_path: Path) -> None:
    log = loaded_log()
    log["load"] = log["load"].astype(object)
    log["load"][[3, 5]] = ""
    write(tmp_path / "ci.csv", log)
    answer = equipoise("observe", "ci.csv", *LOAD)
    assert answer.status == 2
    assert "load is missing in rows 3, 5" in answer.err


BY_HOST = ("--strata", "host_type")


def test_strata_are_read_one_by_one_from_parquet_and_reported_each(
    equipoise: Equipoise, table: str, tmp_path: Path
) -> None:
    import pandas

    pandas.DataFrame(loaded_log(800)).to_parquet(tmp_path / "ci.parquet")
    by_host = (*LOAD, "--cluster", "day", "--strata", "host_type")
    answer = equipoise("observe", "ci.parquet", *by_host, "--report", "answer.html", "--verbose")
    assert answer.status == 0, answer.err
    for words in ("amd", "arm", "strata: host_type", "shared clusters: 40 have rows"):
        assert words in answer.out
    assert "strata" in (tmp_path / "answer.html").read_text()
    document = json.loads(equipoise("observe", "ci.parquet", *by_host, "--json", "-").out)
    jsonschema.validate(document, schema(ObservationResult))
    assert [stratum["name"] for stratum in document["strata"]["results"]] == ["amd", "arm"]
    assert (
        sum(stratum["candidate_rows"] for stratum in document["strata"]["results"])
        == (document["rows"]["candidate"])
    )
    categories = pandas.DataFrame(loaded_log(800)).astype({"host_type": "category"})
    categories.to_parquet(tmp_path / "kinds.parquet")
    repeated = json.loads(equipoise("observe", "kinds.parquet", *by_host, "--json", "-").out)
    assert repeated["matched"] == document["matched"]
    refused = equipoise("observe", table, *by_host)
    assert refused.status == 2
    assert "save the table as Parquet" in refused.err
    missing = equipoise("observe", "ci.parquet", *by_host[:-1], "rack")
    assert missing.status == 2
    assert "there is no column rack" in missing.err
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "ci.parquet").read_bytes()[:-9])
    torn = equipoise("observe", "torn.parquet", *by_host)
    assert torn.status == 2
    assert "write the file again" in torn.err


def test_a_folder_of_parquet_files_is_a_table(equipoise: Equipoise, tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame(loaded_log(800))
    frame.to_parquet(tmp_path / "ci.parquet")
    for kind, rows in frame.groupby("host_type"):
        folder = tmp_path / "ci" / f"host_type={kind}"
        folder.mkdir(parents=True)
        rows.drop(columns="host_type").to_parquet(folder / "rows.parquet")
    answers = []
    for arguments in ((*LOAD, "--cluster", "day"), (*LOAD, "--cluster", "day", *BY_HOST)):
        for log in ("ci.parquet", "ci"):
            answer = equipoise("observe", log, *arguments, "--json", "-")
            assert answer.status == 0, answer.err
            answers.append(json.loads(answer.out))
    whole, folder, by_host, folder_by_host = (answer["matched"]["effect"] for answer in answers)
    assert folder["ratio"] == pytest.approx(whole["ratio"], rel=1e-12)
    assert folder_by_host == by_host
    (tmp_path / "empty").mkdir()
    nothing = equipoise("observe", "empty", *LOAD)
    assert nothing.status == 2


def test_the_report_repeats_both_clusters(equipoise: Equipoise, tmp_path: Path) -> None:
    import pandas

    pandas.DataFrame(loaded_log(800)).to_parquet(tmp_path / "ci.parquet")
    arguments = (*LOAD, "--cluster", "day", *BY_HOST, "--cluster", "local:1")
    with litter_collected():
        report = ("--report", "answer.md", "--json", "-")
        answer = equipoise("observe", "ci.parquet", *arguments, *report)
    assert answer.status == 0, answer.err
    assert "--cluster day --cluster local:1" in (tmp_path / "answer.md").read_text()
    alone = equipoise("observe", "ci.parquet", *arguments[:-2], "--json", "-")
    assert answer.out == alone.out
