"""Reading CSV: the type of each column, and files that are not tables."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.tables import csv_file
from equipoise_matching.tables.csv_file import read_csv, to_csv
from equipoise_matching.tables.reading import read_columns


def read(folder: Path, text: str, **options: Any) -> dict[str, Any]:
    file = folder / "table.csv"
    file.write_text(text, encoding="utf-8")
    return read_csv(file, **options)


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (("1", "-2", "+3"), "i", [1, -2, 3]),
        (("1", "2.5", "1e3"), "f", [1.0, 2.5, 1000.0]),
        (("99999999999999999999", "1"), "f", [1e20, 1.0]),
        (("true", "False", "TRUE"), "b", [True, False, True]),
        (("1_000", "2"), "O", ["1_000", "2"]),
        (("\u0661", "2"), "O", ["\u0661", "2"]),
        (("2024-02-29", "2024-03-01"), "M", ["2024-02-29", "2024-03-01"]),
        (("2024-02-30", "2024-03-01"), "O", ["2024-02-30", "2024-03-01"]),
        (("yes", "no"), "O", ["yes", "no"]),
        (("9999-12-31T23:00-14:00",), "O", ["9999-12-31T23:00-14:00"]),
    ],
)
def test_a_column_is_of_the_first_kind_that_all_its_values_fit(
    tmp_path: Path, cells: tuple[str, ...], kind: str, values: list[Any]
) -> None:
    column = read(tmp_path, "\n".join(("x", *cells)))["x"]
    assert column.dtype.kind == kind
    values_read = column.astype(str).tolist() if kind == "M" else column.tolist()
    assert values_read == values


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_comma_before_decimals_makes_numbers(tmp_path: Path, separator: str) -> None:
    rows = (
        ("x", "whole", "word", "name"),
        ("1,5", "1", "1,5", "1,5"),
        ("-2", "2", "a,b", "2,5"),
        ("", "3", "3", "3,5"),
        ("1,5e3", "4", "4", "4,5"),
    )
    text = "\n".join(separator.join(row) for row in rows)
    columns = read(tmp_path, text, as_text=("name",))
    assert columns["x"].tolist()[:2] == [1.5, -2.0]
    assert np.isnan(columns["x"][2])
    assert columns["x"][3] == 1500.0
    assert columns["whole"].dtype.kind == "i"
    assert columns["word"].tolist() == ["1,5", "a,b", "3", "4"]
    assert columns["name"].tolist() == ["1,5", "2,5", "3,5", "4,5"]


@pytest.mark.parametrize("blank", ["", "NA", "null", "NaN"])
def test_a_missing_value_is_missing_in_every_kind_of_column(tmp_path: Path, blank: str) -> None:
    columns = read(
        tmp_path,
        "n,w,b,d,t\n1,a,true,2024-01-01,2024-01-01T10:00:00+02:00\n"
        + ",".join([blank] * 5)
        + "\n3,c,false,2024-01-03,2024-01-01 10:00:00Z\n",
    )
    assert columns["n"].tolist()[::2] == [1.0, 3.0]
    assert np.isnan(columns["n"][1])
    assert columns["w"].tolist() == ["a", None, "c"]
    assert columns["b"].tolist() == [True, None, False]
    assert np.isnat(columns["d"]).tolist() == [False, True, False]
    assert columns["t"][0] == np.datetime64("2024-01-01T08:00:00")
    assert columns["t"][2] == np.datetime64("2024-01-01T10:00:00")


def test_names_that_look_like_numbers_keep_their_text(tmp_path: Path) -> None:
    text = "version,n\n1.1,1\n1.10,2\n"
    assert read(tmp_path, text)["version"].tolist() == [1.1, 1.1]
    assert read(tmp_path, text, as_text=("version",))["version"].tolist() == ["1.1", "1.10"]


def test_pieces_of_different_kinds_become_one_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "_ROWS_PER_BLOCK", 2)
    text = "a,b,c,d,e\n1,1.10,,,\n2,2,,,\n0.5,x,true,2024-01-01,u\n,y,false,2024-01-02T00:00,v\n"
    columns = read(tmp_path, text)
    assert columns["a"].tolist()[:3] == [1.0, 2.0, 0.5]
    assert columns["b"].tolist() == ["1.10", "2", "x", "y"]
    assert columns["c"].tolist() == [None, None, True, False]
    assert np.isnat(columns["d"]).tolist() == [True, True, False, False]
    assert columns["e"].tolist() == [None, None, "u", "v"]


def test_a_column_without_a_value_is_missing_throughout(tmp_path: Path) -> None:
    assert np.isnan(read(tmp_path, "a,b\n1,\n2,\n")["b"]).all()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_that_of_the_first_line(tmp_path: Path, separator: str) -> None:
    text = f"\ufeffa{separator}b\n1{separator}'2'\n\n3{separator}x\n"
    columns = read(tmp_path, text)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "a": [1, 3],
        "b": ["'2'", "x"],
    }


def test_quotes_hold_separators_and_line_ends(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b\n"x,\ny",1\n')["a"].tolist() == ["x,\ny"]


def test_a_file_with_tabs_may_end_in_tsv(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text("a\tb\n1\tx, y\n")
    assert read_columns(file)["b"].tolist() == ["x, y"]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "table.csv.gz"
    file.write_bytes(gzip.compress(b"a,b\n1,x\n"))
    assert read_csv(file)["b"].tolist() == ["x"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, but the first line names 2 columns"),
        (b'a,b\n1,"2\n', "line 2"),
        (b'a,b\n1,"x"y\n', "line 2"),
        (b'a,b\n\n"x\ny",1\n3\n', "line 5 has 1 cells"),
        (b"a,b\n1,\xff\n", "not UTF-8 text"),
        (b"a,a\n1,2\n", "more than one column a"),
    ],
)
def test_a_file_that_is_not_a_table_is_named_with_its_line(
    tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(UnusableInput, match=words):
        read_csv(file)


def test_a_file_that_is_not_compressed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.csv.gz"
    file.write_text("a\n1\n")
    with pytest.raises(UnusableInput, match=r"table\.csv\.gz"):
        read_csv(file)


def test_written_columns_are_read_again(tmp_path: Path) -> None:
    columns = {
        "n": np.array([1, 2]),
        "x": np.array([0.1, np.nan]),
        "w": np.array(['a "b", c', None], dtype=object),
        "d": np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
    }
    columns_read = read(tmp_path, to_csv(columns))
    assert columns_read["n"].tolist() == [1, 2]
    assert columns_read["x"][0] == 0.1
    assert np.isnan(columns_read["x"][1])
    assert columns_read["w"].tolist() == ['a "b", c', None]
    assert columns_read["d"].astype(str).tolist() == ["2024-01-01", "NaT"]


def test_a_lone_carriage_return_stays_within_its_cell(tmp_path: Path) -> None:
    columns = {"w": np.array(["x\ry", "z"], dtype=object), "n": np.array([1, 2])}
    columns_read = read(tmp_path, to_csv(columns))
    assert columns_read["w"].tolist() == ["x\ry", "z"]
    assert columns_read["n"].tolist() == [1, 2]


CELLS = (
    *("1", "2.5", "1e400", "NA", "", "true", "yes", "2024-01-01", "2024-13-01", "0x10", "-", " "),
    *("2024-01-01T10:00:00.123456789Z", "0001-01-01T00:00+10:00", '"', '"x,y"', "\0", "9" * 5000),
    *("\u00e9", "inf", "1_0", ";", "\t", "\r"),
)


@given(st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3), max_size=5), st.data())
def test_any_text_is_read_as_columns_of_one_length_or_refused(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], data: st.DataObject
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.csv"
    content = "\n".join(["a,b,c"[: 2 * len(rows[0]) - 1 if rows else 5], *map(",".join, rows)])
    cut = data.draw(st.integers(0, len(content)))
    file.write_bytes(content[:cut].encode() + data.draw(st.binary(max_size=2)))
    try:
        columns = read_csv(file)
    except UnusableInput as refused:
        assert refused.hint
    else:
        assert len({len(column) for column in columns.values()}) <= 1
