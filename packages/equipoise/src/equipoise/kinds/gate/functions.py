"""``equipoise gate --functions``: the benchmarks of a shared library of both revisions.

The library exports ``uint64_t equipoise_bench_NAME(uint64_t iterations)`` for each benchmark. A
batch is a number of calls that are timed together. Before the campaign, each benchmark of each
revision runs alone, which shows how many calls make a batch, and which benchmarks fail.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.kinds.gate.terms import MIN_EFFECT, STUDY, FunctionTiming, GatePlan
from equipoise.measure.installation import native_programs, require_file
from equipoise.measure.trials import own_environment
from equipoise.measure.untimed import describe_status, run_untimed, stderr_suffix, tail
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import CALL_METRIC, Condition, Judgement, Plan, Stopping
from equipoise.model.quantities import names_of
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import BuildCache
from equipoise.revisions.link_recording import link_recorder, recorded_links
from equipoise.revisions.plan import Checkout, RevisionsRequest, common_names, conditions_of_gate
from equipoise.revisions.probing import failure_warnings
from equipoise.shared.spelling import option

PROGRAM = "equipoise-functions"
"""Native program that loads libraries and times their functions (crates/functions)."""
MAX_ITERATIONS_RATIO = 8
"""If the numbers of calls differ by at most this factor, both revisions get the larger number."""
ROUNDS = 32
"""Number of timed batches of each revision in a process."""
MAX_PROCESS_NS = 250_000_000
"""Nanoseconds of the timed batches of a process; slow functions get fewer batches."""
MIN_SECONDS_WITH_LINKS = 0.3
"""Default minimum seconds of processes, if links take most of the time between them."""
_MAX_LISTED_BYTES = 1 << 20
_EXAMPLE = "equipoise gate --baseline main --build make --functions ./libbenchmarks.so"


def functions_program() -> Path:
    """Return the path of the native program; raise `UnusableInput` if it is missing."""
    program = native_programs() / PROGRAM
    return require_file(program, f"the program {program} does not exist")


def refuse_other_programs(options: Mapping[str, object]) -> None:
    """Raise `UnusableInput` if a command or an option is given that ``--functions`` cannot use.

    ``options`` has their values, by their names on the command line.
    """
    given = [name for name, value in options.items() if value]
    if given:
        raise UnusableInput(
            f"--functions times functions of a library, and cannot be combined with {given[0]}",
            hint=f"run, for example: {_EXAMPLE}",
        )


def functions_plan(
    request: RevisionsRequest,
    library: str,
    checkouts: tuple[Checkout, Checkout],
    *,
    fails_undecided: bool,
    has_links: bool,
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a gate over functions, and warnings about those that are left out.

    ``library`` is the path of the shared library, relative to the folder of the user in each
    checkout. ``has_links`` says whether each block has links of its own, which take longer than its
    processes.

    Raise `UnusableInput` if a checkout has no such library, or if no function is in both. Raise
    `ConditionFailed` if no function runs.
    """
    program = str(functions_program())
    libraries = [_library_in(checkout, library) for checkout in checkouts]
    all_names = [
        _names_in(program, file, checkout)
        for file, checkout in zip(libraries, checkouts, strict=True)
    ]
    names, warnings = common_names(library, checkouts, all_names)
    examined, failures = _examine(program, names, libraries, checkouts, request)
    benchmarks = [Benchmark(name, (PROGRAM,)) for name in examined]
    conditions, contrasts = conditions_of_gate(benchmarks, checkouts, None)
    baseline, candidate = checkouts
    plan = request.plan(
        STUDY,
        tuple(
            _with_function(condition, file)
            for condition, file in zip(conditions, libraries * len(benchmarks), strict=True)
        ),
        (CALL_METRIC,),
        folder=str(candidate.folder),
        # Each function has just run, and each process runs untimed batches first.
        warmup=0,
        stopping=Stopping(
            leave_out_decided=True,
            min_seconds=MIN_SECONDS_WITH_LINKS if has_links else Stopping().min_seconds,
        ),
        judgement=Judgement(min_effect=MIN_EFFECT),
    )
    timings = [_timing_of(calibrations) for calibrations in examined.values()]
    terms = GatePlan(
        baseline=baseline.revision,
        candidate=candidate.revision,
        metrics=(CALL_METRIC,),
        fails_undecided=fails_undecided,
        failures=dict(failures),
        functions=FunctionTiming(
            library=library,
            iterations=tuple(iterations for iterations, _ in timings),
            rounds=tuple(rounds for _, rounds in timings),
        ),
    )
    plan = replace(plan, chosen_contrasts=contrasts, terms=terms)
    return plan, (*warnings, *failure_warnings(failures))


def _library_in(checkout: Checkout, library: str) -> str:
    path = os.path.normpath(os.path.join(checkout.folder, library))
    if os.path.isabs(library):
        raise UnusableInput(
            f"{library} would be the library of both revisions",
            hint="give its path from the current folder, such as ./libbenchmarks.so",
        )
    if not os.path.isfile(path):
        raise UnusableInput(
            f"the {checkout.label} has no library {library}",
            hint=f"build the library with {option('build')}, and give its path from the current "
            "folder",
        )
    return path


def _names_in(program: str, library: str, checkout: Checkout) -> list[str]:
    output = _output_of(program, ("--list", "--library", library), checkout, timeout_s=60.0)
    if output.failure is not None:
        raise UnusableInput(
            f"{checkout.label}: {output.failure}",
            hint="name a shared library (gcc -shared, or the crate type cdylib)",
        )
    names = [name for name in output.text.splitlines() if name and name.isprintable()]
    if not names:
        raise UnusableInput(
            f"{os.path.basename(library)} of the {checkout.label} exports no equipoise_bench_NAME",
            hint="write EQUIPOISE_BENCHMARK(NAME) { … } with equipoise_functions.h: see "
            "docs/how-to/gate-functions.md",
        )
    return names


def _with_function(condition: Condition, library: str) -> Condition:
    """Return a condition whose command runs its function alone."""
    program = condition.command[0]
    function = condition.levels[BENCHMARK]
    return replace(
        condition,
        command=(program, "--library", library, "--function", function),
    )


class _Calibration(Struct, frozen=True):
    """A batch of a function that ran alone."""

    iterations: int
    batch_ns: int


def _examine(
    program: str,
    names: Sequence[str],
    libraries: Sequence[str],
    checkouts: Sequence[Checkout],
    request: RevisionsRequest,
) -> tuple[Mapping[str, list[_Calibration]], Mapping[str, str]]:
    """Run each function of each checkout alone.

    Return the batches of the functions that work in all checkouts, by name, and the reasons why
    others failed. Raise `ConditionFailed` if all failed.
    """
    examined: dict[str, list[_Calibration]] = {}
    failures: dict[str, str] = {}
    for name in names:
        calibrations: list[_Calibration] = []
        reasons: list[str] = []
        for library, checkout in zip(libraries, checkouts, strict=True):
            arguments = ("--library", library, "--function", name)
            output = _output_of(program, arguments, checkout, request.limits.timeout_s)
            if output.failure is None:
                calibrations.append(msgspec.json.decode(output.text, type=_Calibration))
            else:
                reasons.append(f"{checkout.role}: {output.failure}")
        if reasons:
            failures[name] = "; ".join(reasons)
        else:
            examined[name] = calibrations
    if not examined:
        name, reason = next(iter(failures.items()))
        others = list(failures)[1:]
        also = f"; {names_of(others)} failed, too" if others else ""
        raise ConditionFailed(
            f"{name} failed ({reason}){also}",
            hint="correct the functions: none can be compared",
        )
    return examined, failures


def _timing_of(calibrations: Sequence[_Calibration]) -> tuple[tuple[int, int], int]:
    """Return the number of calls in a batch of each revision, and the number of rounds.

    The two revisions get one number, unless one is much faster. The result depends on both alike.
    """
    counts = [calibration.iterations for calibration in calibrations]
    call_ns = [calibration.batch_ns / calibration.iterations for calibration in calibrations]
    if max(counts) <= MAX_ITERATIONS_RATIO * min(counts):
        counts = [max(counts)] * len(counts)
    round_ns = sum(count * each for count, each in zip(counts, call_ns, strict=True))
    baseline, candidate = counts
    return (baseline, candidate), max(1, min(ROUNDS, int(MAX_PROCESS_NS / round_ns)))


class _Output(Struct, frozen=True):
    """Output of the native program, or the reason of its failure."""

    text: str = ""
    failure: str | None = None


def _output_of(
    program: str, arguments: Sequence[str], checkout: Checkout, timeout_s: float
) -> _Output:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            status = run_untimed(
                (program, *arguments),
                own_environment(),
                str(checkout.folder),
                timeout_s,
                stderr,
                stdout,
            )
        except subprocess.TimeoutExpired:
            return _Output(failure=f"it did not end within {timeout_s:g} s")
        error_tail = tail(stderr.fileno())
        if status > 0:
            # The program says why.
            lines = error_tail.strip().splitlines() or [describe_status(status)]
            return _Output(failure=lines[-1])
        if status < 0:
            return _Output(failure=f"{describe_status(status)}{stderr_suffix(error_tail)}")
        stdout.seek(0)
        return _Output(text=stdout.read(_MAX_LISTED_BYTES).decode("utf-8", "replace"))


def can_link_by_default() -> bool:
    """Return whether this host can link libraries again, without being asked to."""
    try:
        link_recorder(own_environment())
    except UnusableInput:
        return False
    return True


def warnings_of_one_link(
    library: str, checkouts: Sequence[Checkout], builds: BuildCache | None
) -> Iterator[CampaignWarning]:
    """Yield a warning if the library of a checkout cannot be linked again."""
    if builds is None:
        reason = "this gate builds nothing"
    elif builds.recipe.recorder is None:
        reason = "this host has no linker lld"
    else:
        unlinked = [
            checkout.label for checkout in checkouts if not _is_link_recorded(library, checkout)
        ]
        if not unlinked:
            return
        reason = f"lld did not link it in the build of the {unlinked[0]}"
    yield CampaignWarning(
        "one_link",
        f"{library} has one link in each revision, because {reason}: its place of code is a part "
        "of the difference",
        f"read the result as that of these two files; see {option('relink')}",
    )


def _is_link_recorded(library: str, checkout: Checkout) -> bool:
    path = os.path.relpath(os.path.realpath(checkout.folder / library), checkout.tree)
    return any(path in link.files for link in recorded_links(checkout.tree))
