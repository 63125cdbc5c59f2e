"""Strata of Parquet files: the place of the rows of each stratum, and the rows of one.

An index is made once: the row groups that hold rows of each stratum. A partition by the column
(a folder ``column=value``) and the statistics of a row group with one value show it without
reading a row. Later only the row groups of a stratum are read, by whichever process sees the files.
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

_TAIL = 8
"""Bytes at the end of a Parquet file: the length of its footer, and the format's mark."""

_EXACT = {"bool": bool, "string": str, "large_string": str} | dict.fromkeys(
    ("int8", "int16", "int32", "int64"), int
)
"""Arrow types whose statistics are exact, and the Python types of their values."""


class Piece(Struct, frozen=True):
    """Row groups of one file that hold rows of a stratum.

    ``size`` (bytes) and ``footer``, the digest of the part that describes columns and row groups,
    distinguish the file from another one at the same path.
    """

    file: str
    size: int
    footer: str
    row_groups: tuple[int, ...]


class StratumRows(Struct, frozen=True):
    """The place of the rows of one stratum: all that a process needs to read them.

    ``columns`` is the schema of the columns to read, and ``value`` a record batch with the value of
    ``column`` that is the stratum, both in Arrow's IPC format. ``partitions`` are columns that
    folders below ``folder`` name.
    """

    folder: str
    column: str
    value: bytes
    columns: bytes
    partitions: tuple[str, ...]
    pieces: tuple[Piece, ...]


class AnotherFile(UnusableInput):
    """A file is missing here, or is not the one that was indexed."""


def find_strata(
    name: str, column: str, question: Question, progress: Callable[[str], object] = lambda _: None
) -> StratifiedLog[StratumRows]:
    """Find the strata of a Parquet file or of a folder of such files, in the order of their values.

    Raise `UnusableInput` if it is not a Parquet file, if a column is missing, or if a stratum has
    no name.
    """
    path = Path(name)
    if not is_parquet(path):
        raise UnusableInput(
            f"{name}: {option('strata')} reads Parquet files only: any other file would be read "
            "whole for "
            "each stratum",
            hint="save it as Parquet, such as by pandas.read_csv(…).to_parquet(…)",
        )
    dataset = open_parquet(path)
    with pyarrow_for(path, "dataset") as (arrow, datasets):
        schema = arrow.schema(_needed_columns(path, dataset.schema, column, question))
        strata: dict[Any, list[Piece]] = {}
        versions: dict[Any, None] = {}
        partitions: dict[str, None] = {}
        number_of_rows = 0
        fragments = list(dataset.get_fragments())
        for number, fragment in enumerate(fragments, 1):
            progress(f"finding the strata: file {number:,} of {len(fragments):,}")
            keys = datasets.get_partition_keys(fragment.partition_expression)
            partitions.update(dict.fromkeys(name for name in keys if name in schema.names))
            groups: dict[Any, list[int]] = {}
            for group, values in _values_of_groups(
                fragment, keys, (column, question.treatment), dataset.schema
            ):
                for value in values[column]:
                    groups.setdefault(value, []).append(group)
                versions.update(dict.fromkeys(values[question.treatment]))
            number_of_rows += fragment.metadata.num_rows
            size, footer = _identity(fragment.path)
            for value, numbers in groups.items():
                piece = Piece(fragment.path, size, footer, tuple(numbers))
                strata.setdefault(value, []).append(piece)
        if not strata:
            raise no_row(path)
        if any(value is None or value != value for value in strata):
            raise UnusableInput(
                f"{option('strata')}: {column} is missing in some rows",
                hint="fill it in, or leave them out",
            )
        folder = str(path.absolute())
        rows = {
            text_of(value): StratumRows(
                folder,
                column,
                _value_message(arrow, value, _value_type(dataset.schema, column)),
                schema.serialize().to_pybytes(),
                tuple(partitions),
                tuple(strata[value]),
            )
            for value in sorted(strata)
        }
        distinct = arrow.array(versions, _value_type(dataset.schema, question.treatment))
        log = columns_of(arrow.table({question.treatment: distinct})) or {}
    return StratifiedLog(column, rows, log, read_rows, number_of_rows)


def read_rows(stratum: StratumRows) -> Log:
    """Read the columns of a stratum, in the order of its files and rows.

    Raise `UnusableInput` if a file cannot be read.
    """
    first = Path(stratum.pieces[0].file)
    with pyarrow_for(first, "dataset", "ipc") as (arrow, datasets, ipc):
        schema = ipc.read_schema(arrow.py_buffer(stratum.columns))
        with ipc.open_stream(stratum.value) as stream:
            value = stream.read_next_batch().column(0)[0]
        partitioning = datasets.partitioning(
            arrow.schema([schema.field(name) for name in stratum.partitions]), flavor="hive"
        )
        whole = datasets.dataset(
            [piece.file for piece in stratum.pieces],
            schema=schema,
            format="parquet",
            partitioning=partitioning,
            partition_base_dir=stratum.folder,
        )
        groups = {piece.file: piece.row_groups for piece in stratum.pieces}
        dataset = datasets.FileSystemDataset(
            [
                fragment.subset(row_group_ids=groups[fragment.path])
                for fragment in whole.get_fragments()
            ],
            schema,
            whole.format,
            whole.filesystem,
        )
        table = dataset.to_table(filter=datasets.field(stratum.column) == value)
    return columns_of(table) or {}


def check_files(stratum: StratumRows) -> None:
    """Check that this process sees the files that were indexed.

    Raise `AnotherFile` if a file is missing, cannot be read, or is another one.
    """
    for piece in stratum.pieces:
        try:
            identity = _identity(piece.file)
        except FileNotFoundError as error:
            raise AnotherFile(f"does not see {piece.file}") from error
        except OSError as error:
            raise AnotherFile(f"cannot read {piece.file}: {error.strerror or error}") from error
        if identity != (piece.size, piece.footer):
            raise AnotherFile(f"sees another file as {piece.file}")


def _needed_columns(path: Path, schema: Any, column: str, question: Question) -> list[Any]:
    """Return the columns that the question names, of the schema."""
    named = dict.fromkeys((column, *itertools.chain.from_iterable(question.columns.values())))
    missing = [name for name in named if name not in schema.names]
    if missing:
        raise UnusableInput(
            f"{path}: there is no column {', '.join(missing)}",
            hint=f"the columns are {', '.join(schema.names)}",
        )
    refuse_repeated(path, (name for name in schema.names if name in named))
    return [schema.field(name) for name in named]


def _values_of_groups(
    fragment: Any, keys: Mapping[str, Any], columns: Sequence[str], schema: Any
) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """Yield each row group that has rows, with the distinct values of the columns.

    ``keys`` are the values of the whole file by the folders that hold it.
    """
    metadata = fragment.metadata
    known = {name: [keys[name]] for name in columns if name in keys}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        values = {**known, **_single_values(group, [*{*columns} - {*keys}], schema)}
        to_read = [name for name in columns if name not in values]
        if to_read:
            part = fragment.subset(row_group_ids=[number])
            table = part.to_table(schema=schema, columns=to_read)
            values |= {name: table[name].unique().to_pylist() for name in to_read}
        yield number, values


def _single_values(group: Any, columns: Sequence[str], schema: Any) -> dict[str, list[Any]]:
    """Return the columns that have one value in a row group, by its statistics.

    Only whole numbers, truths and texts count: of others a statistic may leave out some values.
    """
    single = {}
    for place in range(group.num_columns):
        chunk = group.column(place)
        name, statistics = chunk.path_in_schema, chunk.statistics
        if name not in columns or statistics is None or not statistics.has_min_max:
            continue
        low, high = statistics.min, statistics.max
        is_complete = statistics.has_null_count and statistics.null_count == 0
        if is_complete and low == high and type(low) is _EXACT.get(str(_value_type(schema, name))):
            single[name] = [low]
    return single


def _value_type(schema: Any, column: str) -> Any:
    """Return the type of a column's values; for categories, the type of their names."""
    kind = schema.field(column).type
    return getattr(kind, "value_type", kind)


def _value_message(arrow: Any, value: Any, kind: Any) -> bytes:
    """Return one value of an Arrow type as a stream of Arrow's IPC format."""
    batch = arrow.record_batch([arrow.array([value], kind)], names=["value"])
    buffer = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def _identity(file: str) -> tuple[int, str]:
    """Return the size of a file in bytes, and the digest of its footer (32 hexadecimal digits)."""
    with Path(file).open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _TAIL))
        footer = int.from_bytes(stream.read(4), "little")
        stream.seek(max(0, size - _TAIL - footer))
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
    return size, digest.hexdigest()
