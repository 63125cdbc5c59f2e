"""Find the strata of Parquet files, and read the rows of one stratum.

A stratum has the rows with one value of a column. A Parquet file is divided into row groups, with
statistics at its end (the footer). ``find_strata`` finds the row groups of each stratum. It reads
no rows if a folder is named ``column=value``, or if the statistics show a single value. Later, any
process with access to the files reads only the row groups of one stratum.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise_matching.matching.frames import columns_of, text_of
from equipoise_matching.observation.question import Log, Question
from equipoise_matching.observation.strata import StratifiedLog
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.spelling import option
from equipoise_matching.tables.csv_file import refuse_repeated
from equipoise_matching.tables.reading import is_parquet, no_row, open_parquet, pyarrow_for

_TAIL_BYTES = 8
"""Number of bytes at the end of a Parquet file: the length of its footer, and ``PAR1``."""

_EXACT_TYPES = {"bool": bool, "string": str, "large_string": str} | dict.fromkeys(
    ("int8", "int16", "int32", "int64"), int
)
"""Arrow types whose statistics are exact, and the Python types of their values."""


class FilePart(Struct, frozen=True):
    """The row groups of one file that have rows of a stratum.

    The ``size`` (bytes) and the digest of the ``footer`` show whether the file has changed.
    """

    file: str
    size: int
    footer: str
    row_groups: tuple[int, ...]


class StratumRows(Struct, frozen=True):
    """The places of the rows of one stratum, for any process that reads them.

    ``columns`` is the schema of the columns to read. ``value`` is a record batch with the value of
    ``column`` in this stratum. Both are in Arrow's IPC format. ``partitions`` are the columns that
    come from the names of folders below ``folder``.
    """

    folder: str
    column: str
    value: bytes
    columns: bytes
    partitions: tuple[str, ...]
    parts: tuple[FilePart, ...]


class UnusableFile(UnusableInput):
    """A missing or changed file. The message begins with a verb, for a host: ``does not see …``."""


def find_strata(
    path_name: str,
    column: str,
    question: Question,
    progress: Callable[[str], object] = lambda _: None,
) -> StratifiedLog[StratumRows]:
    """Find the strata of a Parquet file or of a folder of such files, in the order of their values.

    The values of the strata column are found in each row group of each file, and the row groups are
    collected by value. Raise `UnusableInput` if the path has no Parquet file, a column is missing,
    or the column of the strata has missing values.
    """
    path = Path(path_name)
    if not is_parquet(path):
        raise UnusableInput(
            f"{path_name}: {option('strata')} needs a Parquet file, in which it finds the rows of "
            "a stratum without reading the whole file",
            hint="save the table as Parquet, for example with pandas.read_csv(…).to_parquet(…)",
        )
    dataset = open_parquet(path)
    with pyarrow_for(path, "dataset") as (arrow, datasets):
        schema = arrow.schema(_needed_columns(path, dataset.schema, column, question))
        strata: dict[Any, list[FilePart]] = {}
        treatment_values: dict[Any, None] = {}
        partitions: dict[str, None] = {}
        number_of_rows = 0
        fragments = list(dataset.get_fragments())
        for fragment_index, fragment in enumerate(fragments, 1):
            progress(f"finding the strata: file {fragment_index:,} of {len(fragments):,}")
            folder_values = datasets.get_partition_keys(fragment.partition_expression)
            partitions.update(dict.fromkeys(name for name in folder_values if name in schema.names))
            groups_by_value: dict[Any, list[int]] = {}
            for group, values in _values_of_groups(
                fragment, folder_values, (column, question.treatment), dataset.schema
            ):
                for value in values[column]:
                    groups_by_value.setdefault(value, []).append(group)
                treatment_values.update(dict.fromkeys(values[question.treatment]))
            number_of_rows += fragment.metadata.num_rows
            size, footer = _file_identity(fragment.path)
            for value, row_groups in groups_by_value.items():
                part = FilePart(fragment.path, size, footer, tuple(row_groups))
                strata.setdefault(value, []).append(part)
        if not strata:
            raise no_row(path)
        if any(value is None or value != value for value in strata):
            raise UnusableInput(
                f"{option('strata')}: {column} is missing in some rows",
                hint=f"fill in the values of {column}, or leave out these rows",
            )
        folder = str(path.absolute())
        rows = {
            text_of(value): StratumRows(
                folder,
                column,
                _serialized_value(arrow, value, _value_type(dataset.schema, column)),
                schema.serialize().to_pybytes(),
                tuple(partitions),
                tuple(strata[value]),
            )
            for value in sorted(strata)
        }
        treatment_type = _value_type(dataset.schema, question.treatment)
        treatments = arrow.array(treatment_values, treatment_type)
        log = columns_of(arrow.table({question.treatment: treatments})) or {}
    return StratifiedLog(column, rows, log, read_rows, number_of_rows)


def read_rows(stratum: StratumRows) -> Log:
    """Read the columns of a stratum, in the order of its files and rows.

    Raise `UnusableInput` if a file cannot be read.
    """
    first = Path(stratum.parts[0].file)
    with pyarrow_for(first, "dataset", "ipc") as (arrow, datasets, ipc):
        schema = ipc.read_schema(arrow.py_buffer(stratum.columns))
        with ipc.open_stream(stratum.value) as stream:
            value = stream.read_next_batch().column(0)[0]
        partitioning = datasets.partitioning(
            arrow.schema([schema.field(name) for name in stratum.partitions]), flavor="hive"
        )
        complete = datasets.dataset(
            [part.file for part in stratum.parts],
            schema=schema,
            format="parquet",
            partitioning=partitioning,
            partition_base_dir=stratum.folder,
        )
        groups = {part.file: part.row_groups for part in stratum.parts}
        dataset = datasets.FileSystemDataset(
            [
                fragment.subset(row_group_ids=groups[fragment.path])
                for fragment in complete.get_fragments()
            ],
            schema,
            complete.format,
            complete.filesystem,
        )
        table = dataset.to_table(filter=datasets.field(stratum.column) == value)
    return columns_of(table) or {}


def check_files(stratum: StratumRows) -> None:
    """Check that this process can read the indexed files.

    Raise `UnusableFile` if a file is missing, cannot be read, or has changed.
    """
    for part in stratum.parts:
        try:
            identity = _file_identity(part.file)
        except FileNotFoundError as error:
            raise UnusableFile(f"does not see {part.file}") from error
        except OSError as error:
            raise UnusableFile(f"cannot read {part.file}: {error.strerror or error}") from error
        if identity != (part.size, part.footer):
            raise UnusableFile(f"sees another file as {part.file}")


def _needed_columns(path: Path, schema: Any, column: str, question: Question) -> list[Any]:
    names = dict.fromkeys((column, *itertools.chain.from_iterable(question.columns.values())))
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise UnusableInput(
            f"{path}: there is no column {', '.join(missing)}",
            hint=f"name one of the columns {', '.join(schema.names)}",
        )
    refuse_repeated(path, (name for name in schema.names if name in names))
    return [schema.field(name) for name in names]


def _values_of_groups(
    fragment: Any, folder_values: Mapping[str, Any], columns: Sequence[str], schema: Any
) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """Yield the number of each row group with rows, and the distinct values of the columns.

    ``folder_values`` has the values of columns that come from names of folders.
    """
    metadata = fragment.metadata
    known = {name: [folder_values[name]] for name in columns if name in folder_values}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        values = {**known, **_single_values(group, [*{*columns} - {*folder_values}], schema)}
        to_read = [name for name in columns if name not in values]
        if to_read:
            subset = fragment.subset(row_group_ids=[number])
            table = subset.to_table(schema=schema, columns=to_read)
            values |= {name: table[name].unique().to_pylist() for name in to_read}
        yield number, values


def _single_values(group: Any, columns: Sequence[str], schema: Any) -> dict[str, list[Any]]:
    """Return the columns whose statistics show a single value in a row group, and this value.

    Only integers, truth values and texts count: other statistics may ignore some values.
    """
    values_by_column = {}
    for index in range(group.num_columns):
        chunk = group.column(index)
        name, statistics = chunk.path_in_schema, chunk.statistics
        if name not in columns or statistics is None or not statistics.has_min_max:
            continue
        low, high = statistics.min, statistics.max
        is_complete = statistics.has_null_count and statistics.null_count == 0
        exact_type = _EXACT_TYPES.get(str(_value_type(schema, name)))
        if is_complete and low == high and type(low) is exact_type:
            values_by_column[name] = [low]
    return values_by_column


def _value_type(schema: Any, column: str) -> Any:
    """Return the type of a column's values; for categories, the type of the categories."""
    arrow_type = schema.field(column).type
    return getattr(arrow_type, "value_type", arrow_type)


def _serialized_value(arrow: Any, value: Any, arrow_type: Any) -> bytes:
    """Return one value of an Arrow type as a stream of Arrow's IPC format."""
    batch = arrow.record_batch([arrow.array([value], arrow_type)], names=["value"])
    buffer = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def _file_identity(file: str) -> tuple[int, str]:
    """Return the size of a file in bytes, and the digest of its footer (32 hexadecimal digits)."""
    with Path(file).open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _TAIL_BYTES))
        footer = int.from_bytes(stream.read(4), "little")
        stream.seek(max(0, size - _TAIL_BYTES - footer))
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
    return size, digest.hexdigest()
