"""Reads criterion.rs's folder ``target/criterion``: each saved run is a process.

Each benchmark has a folder for each saved run, and the saved runs of a benchmark are compared.
``new`` is the latest run, ``base`` usually a copy of ``new``. The option ``--save-baseline`` names
other runs. ``sample.json`` has the number of iterations and the total nanoseconds of each sample.
``benchmark.json`` has the name of the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from equipoise.interop.reading import (
    MAX_BYTES,
    TIME,
    Decoded,
    Format,
    Process,
    Reading,
    SourceFile,
    mean,
    read_within_bounds,
)

SAVED_RUN = "saved"
"""Factor whose levels are the names of the saved runs."""
_SAMPLE = "sample.json"
_LATEST_RUN, _PREVIOUS_RUN = "new", "base"
_COPY_RANK = {_LATEST_RUN: 1, _PREVIOUS_RUN: 2}
"""Rank of a folder among equal runs; other folders have 0. The lowest rank is kept."""
ITERATIONS = "iterations_of_sample"
"""Metric with the number of iterations in each sample."""


class _Sample(msgspec.Struct):
    iters: list[float]
    times: list[float]


class _Benchmark(msgspec.Struct):
    full_id: str


def _recognises(file: SourceFile) -> bool:
    return file.is_folder


def _read(file: SourceFile) -> Reading:
    all_samples = _samples(file)
    samples = _without_copies(all_samples)
    copy_count = len(all_samples) - len(samples)
    return Reading(
        tool="criterion.rs",
        metric=TIME,
        processes=tuple(_processes(file, samples)),
        compared_factor=SAVED_RUN,
        notes=(f"{copy_count} saved runs, each a copy of another run",) if copy_count else (),
        metrics_without_time_order=(ITERATIONS,),
    )


def _samples(file: SourceFile) -> list[Path]:
    try:
        samples = sorted(
            (path for path in file.path.rglob(_SAMPLE) if path.exists() and not path.is_dir()),
            key=lambda path: (path.parent.parent, _age_order(path)),
        )
        size = sum(path.stat().st_size for path in samples)
    except OSError as error:
        raise file.error(
            f"{error.filename}: {(error.strerror or str(error)).lower()}",
            "check the permissions of the folder",
        ) from error
    if not samples:
        raise file.error(
            f"this folder has no {_SAMPLE} of criterion",
            "run cargo bench, and give the folder target/criterion",
        )
    if size > MAX_BYTES:
        raise file.error(
            f"the samples in this folder are larger than {MAX_BYTES // 2**20} MiB",
            "give a subfolder, which has the runs of one benchmark",
        )
    return samples


def _without_copies(samples: list[Path]) -> list[Path]:
    kept_by_content: dict[tuple[Path, bytes], Path] = {}
    for path in sorted(samples, key=lambda path: _COPY_RANK.get(path.parent.name, 0)):
        content = read_within_bounds(str(path), path).content
        kept_by_content.setdefault((path.parent.parent, content), path)
    return [path for path in samples if path in kept_by_content.values()]


def _age_order(path: Path) -> tuple[int, str]:
    """Return a sort key: named runs come first, then ``base``, then ``new``."""
    run_name = path.parent.name
    return ({_PREVIOUS_RUN: 1, _LATEST_RUN: 2}.get(run_name, 0), run_name)


def _processes(file: SourceFile, samples: list[Path]) -> Iterator[Process]:
    for path in samples:
        sample = _decode(path, _Sample)
        if len(sample.iters) != len(sample.times) or not all(count > 0 for count in sample.iters):
            raise file.error(f"{path} does not have a number of iterations for each time")
        times = [1e-9 * ns / count for ns, count in zip(sample.times, sample.iters, strict=True)]
        if times:
            iterations = {TIME: times, ITERATIONS: sample.iters}
            levels = {SAVED_RUN: path.parent.name}
            yield Process(_name(path), {TIME: mean(times)}, iterations, levels)


def _name(sample: Path) -> str:
    description = sample.parent / "benchmark.json"
    if description.is_file():
        return _decode(description, _Benchmark).full_id
    return sample.parent.parent.name


def _decode(path: Path, content_type: type[Decoded]) -> Decoded:
    return read_within_bounds(str(path), path).decode(content_type, "criterion")


FORMAT = Format(
    "criterion",
    "cargo bench (the folder target/criterion)",
    _recognises,
    _read,
    reads_folders=True,
)
