"""Strata of Parquet files: their row groups, and the rows of one stratum."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest
from pyarrow import parquet

from equipoise_matching.observation.strata import observe_strata
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.tables.reading import read_parquet
from equipoise_matching.tables.strata import UnusableFile, check_files, find_strata, read_rows
from packages.matching.tests.observation.logs import loaded_log, question

ROWS = 12


def log_of(kinds: Sequence[Any], *, first: float = 0.0) -> pyarrow.Table:
    """Return rows of two versions in turn, whose load is their number."""
    rows = len(kinds)
    return pyarrow.table(
        {
            "kind": kinds,
            "version": ["1.0", "2.0"] * (rows // 2),
            "wall_s": [1.0] * rows,
            "load": [first + row for row in range(rows)],
            "ignored": ["x"] * rows,
        }
    )


def without_rows(file: Path) -> None:
    """Overwrite every row of a Parquet file; its footer stays."""
    content = bytearray(file.read_bytes())
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    content[4:-footer] = bytes(len(content) - footer - 4)
    file.write_bytes(content)


@pytest.mark.parametrize("row_group_size", [2, 5, ROWS])
@pytest.mark.parametrize(
    "kinds",
    [
        ["a", "b", "c"] * 4,
        ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
        [3, 1, 2] * 4,
        [0.5, 1.5, 2.0] * 4,
        [True, False] * 6,
        [date(2026, 1, 1), date(2025, 12, 31)] * 6,
    ],
)
def test_each_stratum_has_its_rows_in_their_order(
    tmp_path: Path, kinds: list[Any], row_group_size: int
) -> None:
    table = log_of(kinds)
    parquet.write_table(table, tmp_path / "log.parquet", row_group_size=row_group_size)
    strata = find_strata(str(tmp_path / "log.parquet"), "kind", question())
    assert len(strata.rows) == len(set(kinds))
    assert strata.versions["version"].tolist() == ["1.0", "2.0"]
    for name, value in zip(strata.rows, sorted(set(kinds)), strict=True):
        rows = strata.read(strata.rows[name])
        assert rows["load"].tolist() == [row for row in range(ROWS) if kinds[row] == value]
        assert list(rows) == ["kind", "version", "wall_s", "load"]


def test_a_stratum_needs_only_the_row_groups_that_hold_its_rows(tmp_path: Path) -> None:
    kinds = ["a"] * 4 + ["b"] * 2 + ["a"] * 2 + ["c"] * 4
    parquet.write_table(log_of(kinds), tmp_path / "log.parquet", row_group_size=2)
    strata = find_strata(str(tmp_path / "log.parquet"), "kind", question())
    groups = {name: rows.parts[0].row_groups for name, rows in strata.rows.items()}
    assert groups == {"a": (0, 1, 3), "b": (2,), "c": (4, 5)}


def test_statistics_give_the_strata_without_reading_a_row(tmp_path: Path) -> None:
    table = log_of(["a"] * 6 + ["b"] * 6).sort_by([("kind", "ascending"), ("version", "ascending")])
    parquet.write_table(table, tmp_path / "log.parquet", row_group_size=3)
    expected = find_strata(str(tmp_path / "log.parquet"), "kind", question())
    without_rows(tmp_path / "log.parquet")
    found = find_strata(str(tmp_path / "log.parquet"), "kind", question())
    assert found.rows == expected.rows
    assert found.versions["version"].tolist() == ["1.0", "2.0"]
    with pytest.raises(UnusableInput, match=r"log\.parquet"):
        read_rows(found.rows["a"])


def test_rows_that_false_statistics_hide_are_missed(tmp_path: Path) -> None:
    frame = pandas.DataFrame(loaded_log(800))
    frame["kind"] = ["seven01"] * 799 + ["seven02"]
    file = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.Table.from_pandas(frame), file)
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert content[footer:].count(b"seven02") == 1
    file.write_bytes(content[:footer] + content[footer:].replace(b"seven02", b"seven01"))
    request = question(cluster=("day",))
    log = find_strata(str(file), "kind", request)
    assert list(log.rows) == ["seven01"]
    with pytest.raises(
        UnusableInput, match="799 rows together, but the file has 800: the statistics"
    ):
        observe_strata(log, request, source="log")


def test_a_partition_by_the_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, first in (("b c", 0.0), ("a", 100.0)):
        folder = tmp_path / "log" / f"kind={kind.replace(' ', '%20')}" / "day=3"
        folder.mkdir(parents=True)
        table = log_of([kind] * 4, first=first).drop_columns("kind")
        for part in range(2):
            parquet.write_table(table, folder / f"part-{part}.parquet")
    (tmp_path / "log" / "_SUCCESS").write_text("")
    (tmp_path / "log" / "_metadata.parquet").write_text("no rows")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    strata = find_strata("../log", "kind", question(covariates=("load", "day")))
    assert list(strata.rows) == ["a", "b c"]
    for name, first in (("a", 100.0), ("b c", 0.0)):
        pieces = strata.rows[name].parts
        assert [Path(piece.file).name for piece in pieces] == ["part-0.parquet", "part-1.parquet"]
        rows = read_rows(strata.rows[name])
        assert rows["load"].tolist() == [first + row for row in range(4)] * 2
        assert set(rows["kind"]) == {name}
        assert set(rows["day"]) == {3}
    whole = read_parquet(Path("../log"))
    assert whole["load"].tolist() == [100.0 + row for row in range(4)] * 2 + [*range(4)] * 2


def test_files_of_a_folder_may_differ_in_their_types_of_numbers(tmp_path: Path) -> None:
    whole = log_of(["a"] * 4).set_column(3, "load", pyarrow.array([1, 2, 3, 4]))
    parquet.write_table(whole, tmp_path / "1.parquet")
    parquet.write_table(log_of(["a"] * 2, first=0.5), tmp_path / "2.parquet")
    (rows,) = find_strata(str(tmp_path), "kind", question()).rows.values()
    assert read_rows(rows)["load"].tolist() == [1.0, 2.0, 3.0, 4.0, 0.5, 1.5]
    texts = whole.set_column(3, "load", pyarrow.array(["heavy"] * 4))
    parquet.write_table(texts, tmp_path / "3.parquet")
    with pytest.raises(UnusableInput, match="load"):
        find_strata(str(tmp_path), "kind", question())


def test_categories_are_strata_by_their_names(tmp_path: Path) -> None:
    frame = log_of(["b", "a"] * 3).to_pandas().astype({"kind": "category"})
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=2)
    strata = find_strata(str(tmp_path / "log.parquet"), "kind", question())
    assert list(strata.rows) == ["a", "b"]
    assert read_rows(strata.rows["b"])["load"].tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("missing", [["a", None] * 3, [1.0, float("nan")] * 3])
def test_a_stratum_without_a_name_is_refused(tmp_path: Path, missing: list[Any]) -> None:
    frame = log_of([1.0] * 6).to_pandas()
    frame["kind"] = pandas.Series(missing)
    frame.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(UnusableInput, match="kind is missing in some rows"):
        find_strata(str(tmp_path / "log.parquet"), "kind", question())


def test_a_folder_without_parquet_and_a_torn_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(UnusableInput, match="the folder has no Parquet file"):
        find_strata(str(tmp_path / "empty.parquet"), "kind", question())
    parquet.write_table(log_of(["a"] * 4), tmp_path / "empty.parquet" / "1.parquet")
    (tmp_path / "empty.parquet" / "2.parquet").write_bytes(b"PAR1" + b"\xff" * 20)
    with pytest.raises(UnusableInput, match=r"2\.parquet|magic bytes"):
        find_strata(str(tmp_path / "empty.parquet"), "kind", question())


def test_a_file_that_is_gone_or_was_replaced_is_named(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    parquet.write_table(log_of(["a"] * 4), file)
    rows = find_strata(str(file), "kind", question()).rows["a"]
    check_files(rows)
    parquet.write_table(log_of(["a"] * 4, first=1.0), file)
    with pytest.raises(UnusableFile, match="sees another file as"):
        check_files(rows)
    file.write_bytes(b"")
    with pytest.raises(UnusableFile, match="sees another file as"):
        check_files(rows)
    file.unlink()
    with pytest.raises(UnusableFile, match="does not see"):
        check_files(rows)
