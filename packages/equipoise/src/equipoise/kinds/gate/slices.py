"""Slices: the gates of several runners, each in a file, and the checks before they are joined.

A slice is an ordinary gate that stops later if its benchmark is slower (`judge_slice`), and whose
plan has the facts that all slices of a join share. Its file is a ledger with this one run. The
files of a join may come from a pull request of a stranger.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.kinds.gate.terms import GatePlan, SliceSource
from equipoise.ledger import Ledger, open_for_reading
from equipoise.ledger.merging import merge
from equipoise.ledger.opening import refuse_dubious_ownership
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted
from equipoise.model.record import RunRecord
from equipoise.model.revisions import BENCHMARK_SUFFIX, Revision
from equipoise.revisions.build_cache import source_of, version_text
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.plan import RevisionsRequest
from equipoise.shared.safe_text import visible
from equipoise.shared.spelling import option

_COMPILERS = {"rustc": "-vV", "go": "version", "cc": "--version"}
"""Compilers and their option that prints a version; they count if a revision is built."""
_INTERPRETERS = dict.fromkeys(("python", "python3", "node", "ruby", "perl"), "--version")
"""Programs that run a benchmark, and their option that prints a version."""
_MAX_SHOWN_LETTERS = 60
"""Maximum length of a value in a message."""
_WRITE_HINT = "write each file with equipoise gate --slice FILE, and download it whole"
_SAME_HINT = "join the slices of one pipeline, whose jobs run one command line on one image"


class Slice(Struct, frozen=True):
    """A slice that was read from a file."""

    path: Path
    record: RunRecord
    terms: GatePlan
    source: SliceSource

    @property
    def plan(self) -> Plan:
        """Plan of the slice."""
        return self.record.plan


def plan_of_slice(
    plan: Plan, request: RevisionsRequest, baseline: Revision, candidate: Revision
) -> Plan:
    """Return the plan of a gate as that of a slice, with the facts that all slices share.

    Raise `UnusableInput` if a file cannot be read, or a compiler does not print its version.
    """
    assert isinstance(plan.terms, GatePlan), "only a gate has slices"
    source = _slice_source(request, (baseline, candidate))
    return replace(plan, terms=replace(plan.terms, slice=source))


def _slice_source(request: RevisionsRequest, revisions: tuple[Revision, Revision]) -> SliceSource:
    repository = request.repository
    hashes = tree_hashes(repository, [revision.commit for revision in revisions])
    sources = [source_of(repository, revision, hashes) for revision in revisions]
    baseline, candidate = (f"{source.tree_hash}{source.changes_digest}" for source in sources)
    return SliceSource(
        trees=(baseline, candidate),
        folder=str(repository.inside),
        programs={benchmark.name: benchmark.command for benchmark in request.benchmarks},
        tool=None if request.tool is None else request.tool.name,
        build=request.build,
        toolchain=dict(_toolchain(request)),
        inputs=dict(_inputs(request)),
    )


def _toolchain(request: RevisionsRequest) -> Iterator[tuple[str, str]]:
    """Yield the platform, and the version of each program of the toolchain."""
    yield "platform", f"{platform.machine()} {' '.join(platform.libc_ver())}"
    is_built = request.build is not None or request.tool is not None
    words = {benchmark.command[0] for benchmark in request.benchmarks}
    compilers = _COMPILERS if is_built else {}
    interpreters = {name: text for name, text in _INTERPRETERS.items() if name in words}
    options = {**compilers, **interpreters}
    for name, version_option in options.items():
        program = shutil.which(name, path=own_environment().get("PATH", os.defpath))
        if program is not None:
            yield name, version_text(program, version_option, request.repository).strip()


def _inputs(request: RevisionsRequest) -> Iterator[tuple[str, str]]:
    """Yield the path and the digest of each file that a benchmark names by an absolute path."""
    words = chain.from_iterable(benchmark.command for benchmark in request.benchmarks)
    for word in words:
        for path in (word, word.partition("=")[2]):
            if os.path.isabs(path) and os.path.isfile(path) and not os.access(path, os.X_OK):
                try:
                    with open(path, "rb") as stream:
                        yield path, hashlib.file_digest(stream, "sha256").hexdigest()
                except OSError as error:
                    raise UnusableInput(
                        f"the input {path} cannot be read: {error.strerror}",
                        hint="make it readable",
                    ) from error


def read_slices(paths: Sequence[Path]) -> tuple[Slice, ...]:
    """Return the slices in files, which belong together.

    Raise `UnusableInput` if a file is not a slice, is damaged or is not trusted, if two files have
    the same slice, or if two slices measured different things.
    """
    if not paths:
        raise UnusableInput(
            f"{option('join')} needs the files of the slices",
            hint="equipoise gate --join slices/*.db",
        )
    slices = tuple(map(_read_slice, paths))
    for number, piece in enumerate(slices):
        _check_different_runs(slices[:number], piece)
    _check_same_question(slices)
    return slices


def merge_slices(target: Ledger, slices: Sequence[Slice]) -> None:
    """Copy the runs of slices into a ledger.

    Raise `UnusableInput` if a run contradicts the ledger's copy of the same run.
    """
    for piece in slices:
        with open_for_reading(piece.path) as source:
            report = merge(target, source, {bytes.fromhex(piece.record.identity)})
        for refusal in report.refused:
            raise UnusableInput(f"{piece.path}: {refusal.what}", hint=_WRITE_HINT) from refusal


def _read_slice(path: Path) -> Slice:
    refuse_dubious_ownership(path)
    try:
        with open_for_reading(path) as ledger:
            runs = ledger.runs()
            record = ledger.read_run(runs[0].id) if len(runs) == 1 else None
    except UnusableInput as error:
        raise UnusableInput(f"{path} cannot be joined: {error.what}", hint=_WRITE_HINT) from error
    terms = None if record is None else record.plan.terms
    if record is None or not isinstance(terms, GatePlan) or terms.slice is None:
        content = counted(len(runs), "run")
        if record is not None:
            content = f"a {record.plan.rules.noun} that is not a slice"
        raise UnusableInput(f"{path} is not a slice: it has {content}", hint=_WRITE_HINT)
    return Slice(path, record, terms, terms.slice)


def _check_different_runs(others: Sequence[Slice], piece: Slice) -> None:
    """Refuse a slice that is joined already, or that shares its coin with another slice."""
    for other in others:
        if other.record.identity == piece.record.identity:
            raise UnusableInput(
                f"{other.path} and {piece.path} are the same slice, run {piece.record.id}",
                hint="name each slice once, and give each job a file of its own",
            )
        if other.plan.seed == piece.plan.seed:
            raise UnusableInput(
                f"{other.path} and {piece.path} have the same seed {piece.plan.seed}, so the same "
                "random order: they are not independent",
                hint=f"leave out {option('seed')}, or give each job a seed of its own",
            )


def _check_same_question(slices: Sequence[Slice]) -> None:
    """Refuse slices that measured different revisions, builds, inputs or metrics."""
    first_values: dict[str, tuple[object, Path]] = {}
    for piece in slices:
        for name, value in _shared_values(piece):
            # A program or a file that only one slice has is not a contradiction.
            first_value, path = first_values.setdefault(name, (value, piece.path))
            if value != first_value:
                raise UnusableInput(
                    f"{path} and {piece.path} differ in {name}: {_value_text(first_value)} and "
                    f"{_value_text(value)}",
                    hint=_SAME_HINT,
                )


def _shared_values(piece: Slice) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each fact that slices share."""
    terms, source, judgement = piece.terms, piece.source, piece.plan.judgement
    yield "the baseline", terms.baseline.commit
    yield "the candidate", (terms.candidate.commit, terms.candidate.uncommitted)
    yield "the files of the baseline", source.trees[0]
    yield "the files of the candidate", source.trees[1]
    yield "the folder of the repository", source.folder
    yield "the build line", source.build
    yield "the benchmark tool", source.tool
    for name, argv in source.programs.items():
        yield f"the command of {visible(name)}", argv
    for name, version in source.toolchain.items():
        yield f"the version of {visible(name)}", version
    for path, digest in source.inputs.items():
        yield f"the input {visible(path)}", digest
    metrics = [metric for metric in terms.metrics if not metric.endswith(BENCHMARK_SUFFIX)]
    yield "the metrics", tuple(metrics)
    yield option("min_effect"), judgement.min_effect
    yield option("alpha"), judgement.alpha


def _value_text(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return visible(text or "none")[:_MAX_SHOWN_LETTERS]
