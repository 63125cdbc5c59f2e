"""Read criterion.rs's folder ``target/criterion``: a saved run is one process.

Each benchmark has a folder for each saved run: ``new`` is the latest run, ``base`` the run before
it, and ``--save-baseline`` names other runs. ``base`` is mostly a copy of ``new``, because a plain
``cargo bench`` copies it at the end. ``sample.json`` has the number of iterations of each sample
and their total time in nanoseconds; ``benchmark.json`` has the benchmark's name. The saved runs of
one benchmark are compared.
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

SAVED = "saved"
_SAMPLE = "sample.json"
_LATEST, _BEFORE = "new", "base"
_COPY_RANK = {_LATEST: 1, _BEFORE: 2}
"""Rank of a run among its copies; only the lowest rank is kept, a run of ``--save-baseline``."""
ITERATIONS = "iterations_of_sample"


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
    copies = len(all_samples) - len(samples)
    return Reading(
        tool="criterion.rs",
        metric=TIME,
        processes=tuple(_processes(file, samples)),
        compared_factor=SAVED,
        notes=(f"{copies} saved runs, each a copy of another run",) if copies else (),
        no_series=(ITERATIONS,),
    )


def _samples(file: SourceFile) -> list[Path]:
    """Return every sample in the folder, sorted by the names of its folders."""
    try:
        samples = sorted(
            (path for path in file.path.rglob(_SAMPLE) if path.exists() and not path.is_dir()),
            key=lambda path: (path.parent.parent, _run_order(path)),
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
            f"its samples are larger than {MAX_BYTES // 2**20} MiB",
            "give the folder of one benchmark in it",
        )
    return samples


def _without_copies(samples: list[Path]) -> list[Path]:
    """Return one sample of each run; ``new`` and ``base`` are mostly the same run."""
    first: dict[tuple[Path, bytes], Path] = {}
    for path in sorted(samples, key=lambda path: _COPY_RANK.get(path.parent.name, 0)):
        content = read_within_bounds(str(path), path).content
        first.setdefault((path.parent.parent, content), path)
    return [path for path in samples if path in first.values()]


def _run_order(path: Path) -> tuple[int, str]:
    """Return a sort key: saved baselines come first, then ``base``, then ``new``."""
    saved = path.parent.name
    return ({_BEFORE: 1, _LATEST: 2}.get(saved, 0), saved)


def _processes(file: SourceFile, samples: list[Path]) -> Iterator[Process]:
    for path in samples:
        sample = _decode(path, _Sample)
        if len(sample.iters) != len(sample.times) or not all(count > 0 for count in sample.iters):
            raise file.error(f"{path} does not have a number of iterations for each time")
        times = [
            1e-9 * total / count for total, count in zip(sample.times, sample.iters, strict=True)
        ]
        if times:
            iterations = {TIME: times, ITERATIONS: sample.iters}
            levels = {SAVED: path.parent.name}
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
