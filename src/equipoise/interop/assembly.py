"""Files of other tools as a run of the ledger: its plan, its draws and its trials.

Nothing is made up: a draw of an imported run is the order in which its file has the trials, and
every field of a trial that the file does not have is unknown, for that reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.interop.reading import BENCHMARK, Process, Reading, quoted
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    Condition,
    Contrast,
    ImportSource,
    Judgement,
    Measure,
    Order,
    Plan,
    Stopping,
)
from equipoise.model.record import Accounting, CampaignWarning, Draw, Sample, Trial

STUDY = "import"
FILE = "file"
"""The factor whose levels are the names that the user gave the files."""
HOST = "host"
AS_THE_FILE_SAYS = "as_the_file_says"
"""Key of an environment under which the file's own facts stand."""
MOST_TRIALS = 100_000
MOST_VALUES = 1_000_000
LONGEST_NAME = 2**17
"""Bytes that one word of a command may have (execve(2), MAX_ARG_STRLEN)."""
_ACCOUNTED = ("wall_s", "user_s", "sys_s", "max_rss_bytes")
_WHOLE = frozenset({"max_rss_bytes"})
_LARGEST = 1e100
"""No measurement comes near it, and squares of it can still be added up."""
_LARGEST_WHOLE = 2.0**63
"""Bound that every whole number of the ledger stays below."""
_NEVER_IMPORTED = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")


class Named(Struct, frozen=True):
    """One file that was read."""

    file: str
    """Name of the file, as the user typed it."""
    label: str | None
    """The name that the user gave what it measured."""
    format: str
    reading: Reading


class Imported(Struct, frozen=True):
    """A run that another tool measured, as the ledger takes it."""

    plan: Plan
    environment: dict[str, Any]
    draws: tuple[Draw, ...]
    trials: tuple[Trial, ...]
    notices: tuple[CampaignWarning, ...]


class _Placed(Struct, frozen=True):
    """A process at its place: the number of its block and of its condition."""

    process: Process
    block: int
    condition: int


def assemble(
    named: Sequence[Named],
    *,
    judgement: Judgement,
    folder: str,
    now: float,
    baseline: str | None = None,
) -> Imported:
    """Put files together into one run.

    Files of which several have the same benchmark and no label give more trials of it; files with
    labels are levels of the factor ``file``.

    Parameters
    ----------
    folder
        The folder that the files are named in.
    now
        When it is imported, in seconds since the epoch: no file tells when each trial began.
    baseline
        The condition that every other one is compared with, by name.

    Raises
    ------
    UnusableInput
        The files compare different metrics, hold too much, or a value is not finite.
    """
    metric = _common_metric(named)
    conditions, keyed = _conditions(named)
    _check_size(named, keyed)
    placed = _placed(named, keyed)
    plan = Plan(
        study=STUDY,
        conditions=conditions,
        measure=Measure(working_folder=folder, warmup=0, vary_environment_size=False),
        stopping=Stopping(),
        judgement=replace(judgement, primary_metric=metric),
        # A seed of resampling only: one and the same import gives the same document.
        seed=0,
        imported=ImportSource(
            format=" and ".join(dict.fromkeys(one.format for one in named)),
            tool=" and ".join(dict.fromkeys(one.reading.tool or "" for one in named)) or None,
            files=tuple(one.file for one in named),
            order=_order(placed),
            no_series=tuple(dict.fromkeys(name for one in named for name in one.reading.no_series)),
        ),
    )
    contrasts = (
        contrasts_of(conditions, _compared(named))
        if baseline is None
        else with_baseline(conditions, baseline)
    )
    hosts = tuple(dict.fromkeys(one.process.host for one in placed if one.process.host))
    return Imported(
        plan=replace(plan, chosen_contrasts=contrasts),
        environment=_environment(named, hosts),
        draws=_draws(placed),
        trials=tuple(_trials(placed, hosts, now)),
        notices=_notices(named, placed, conditions, hosts),
    )


def _common_metric(named: Sequence[Named]) -> str:
    metrics = list(dict.fromkeys(one.reading.metric for one in named))
    if len(metrics) > 1:
        raise UnusableInput(
            f"the files measure different things: {', '.join(metrics)}",
            hint="import them one by one",
        )
    return metrics[0]


def _compared(named: Sequence[Named]) -> str | None:
    if len({one.label for one in named}) > 1:
        return FILE
    return named[0].reading.compared


Keyed = list[tuple[int, Process, int]]
"""The place of the file, what it says, and the condition that it is of."""


def _conditions(named: Sequence[Named]) -> tuple[tuple[Condition, ...], Keyed]:
    """Return the conditions in the order in which the files name them."""
    labelled = any(one.label is not None for one in named)
    # Where benchmarks themselves are compared, each is a condition and no level of a factor.
    benchmarks_are_levels = labelled or named[0].reading.compared != BENCHMARK
    places: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    found: list[tuple[str, dict[str, str]]] = []
    keyed: Keyed = []
    for place, each in enumerate(named):
        for process in each.reading.processes:
            levels = dict(process.levels)
            if benchmarks_are_levels:
                levels = {BENCHMARK: process.benchmark, **levels}
            if labelled:
                levels[FILE] = each.label or each.file
            key = (process.benchmark, tuple(levels.items()))
            if key not in places:
                places[key] = len(found)
                found.append((process.benchmark, levels))
            keyed.append((place, process, places[key]))
    conditions = tuple(
        Condition(name=name, command=(benchmark,), levels=levels)
        for name, (benchmark, levels) in zip(_names(found), found, strict=True)
    )
    return conditions, keyed


def _names(found: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """Return the levels of each condition, without a benchmark that is always the same."""
    everywhere = [levels for _, levels in found]
    varying = [
        factor
        for factor in dict.fromkeys(name for levels in everywhere for name in levels)
        if factor != BENCHMARK and len({levels.get(factor) for levels in everywhere}) > 1
    ]
    one_benchmark = len({benchmark for benchmark, _ in found}) == 1
    names: list[str] = []
    for benchmark, levels in found:
        own = [levels[factor] for factor in varying if factor in levels]
        if BENCHMARK not in levels:
            own = []
        names.append(", ".join(own if own and one_benchmark else [benchmark, *own]))
    return _unique(names)


def _unique(names: Iterable[str]) -> list[str]:
    seen: Counter[str] = Counter()
    found: list[str] = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _check_size(named: Sequence[Named], keyed: Keyed) -> None:
    values = sum(
        len(process.values) + sum(map(len, process.iterations.values())) for _, process, _ in keyed
    )
    if len(keyed) > MOST_TRIALS or values > MOST_VALUES:
        raise UnusableInput(
            f"there are {len(keyed)} processes with {values} values; one import takes "
            f"{MOST_TRIALS} and {MOST_VALUES}",
            hint="import the files one by one, or export fewer values",
        )
    for place, process, _ in keyed:
        names = (process.benchmark, *process.iterations, *process.values, *_both(process.levels))
        if any(len(name) > LONGEST_NAME for name in names):
            raise UnusableInput(
                f"{named[place].file}: a name has more than {LONGEST_NAME} characters",
                hint="name the benchmark shorter",
            )
        every = (process.values.values(), *process.iterations.values())
        whole = (process.values.get(name, 0.0) for name in _WHOLE)
        # Not so of NaN either.
        if not all(abs(value) <= _LARGEST for some in every for value in some) or any(
            not 0.0 <= value < _LARGEST_WHOLE for value in whole
        ):
            raise UnusableInput(
                f"{named[place].file}: {quoted(process.benchmark)} has a value that no measurement "
                "can have",
                hint="correct the file, or leave the benchmark out",
            )


def _both(levels: Mapping[str, str]) -> tuple[str, ...]:
    return (*levels, *levels.values())


def _placed(named: Sequence[Named], keyed: Keyed) -> list[_Placed]:
    """Return every process in its block, in their order; a file without blocks is one block."""
    found: list[_Placed] = []
    first = 1
    for place in range(len(named)):
        own = [(process, condition) for at, process, condition in keyed if at == place]
        if all(process.order is not None for process, _ in own):
            own.sort(key=lambda one: one[0].order or 0.0)
        blocks: dict[int | None, int] = {}
        for process, _ in own:
            blocks.setdefault(process.block, first + len(blocks))
        found.extend(
            _Placed(process, blocks[process.block], condition) for process, condition in own
        )
        first += len(blocks)
    # A block stands together in the ledger, as every campaign's does.
    return sorted(found, key=lambda one: one.block)


def _order(placed: Sequence[_Placed]) -> Order:
    if all(one.process.block is not None for one in placed):
        return "in blocks"
    conditions = [one.condition for one in placed]
    changes = sum(a != b for a, b in zip(conditions, conditions[1:], strict=False))
    return "one after the other" if changes < len(set(conditions)) else "mixed"


def _draws(placed: Sequence[_Placed]) -> tuple[Draw, ...]:
    orders: dict[int, list[int]] = defaultdict(list)
    for one in placed:
        orders[one.block].append(one.condition)
    return tuple(
        Draw("measured", block, tuple(order), padding_bytes=0) for block, order in orders.items()
    )


def _trials(placed: Sequence[_Placed], hosts: Sequence[str], now: float) -> Iterable[Trial]:
    positions: Counter[int] = Counter()
    for one in placed:
        process = one.process
        yield Trial(
            phase="measured",
            block=one.block,
            position=positions[one.block],
            condition=one.condition,
            started_at=now,
            accounting=_accounting(process),
            exit=process.exit,
            failure=process.failure,
            covariates={HOST: float(hosts.index(process.host))} if process.host else {},
            samples=tuple(_samples(process)),
        )
        positions[one.block] += 1


def _accounting(process: Process) -> Accounting:
    known: dict[str, Any] = {
        name: int(process.values[name]) if name in _WHOLE else process.values[name]
        for name in _ACCOUNTED
        if name in process.values
    }
    absent = [name for name in (*_ACCOUNTED, *_NEVER_IMPORTED) if name not in known]
    return Accounting(**known, unknown=dict.fromkeys(absent, "the imported file does not have it"))


def _samples(process: Process) -> Iterable[Sample]:
    for metric, value in process.values.items():
        if metric not in _ACCOUNTED:
            yield Sample(metric, value)
    for metric, values in process.iterations.items():
        for number, value in enumerate(values):
            yield Sample(metric, value, iteration=number)


def _environment(named: Sequence[Named], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the environments of the files; of several files, each by its name."""
    described: dict[str, Any] = {
        one.file: dict(one.reading.environment) for one in named if one.reading.environment
    }
    environment: dict[str, Any] = {"imported_from": [one.file for one in named]}
    if described:
        environment[AS_THE_FILE_SAYS] = (
            next(iter(described.values())) if len(named) == 1 else described
        )
    if hosts:
        environment["hosts"] = list(hosts)
    return environment


def _notices(
    named: Sequence[Named],
    placed: Sequence[_Placed],
    conditions: Sequence[Condition],
    hosts: Sequence[str],
) -> tuple[CampaignWarning, ...]:
    notices = [
        CampaignWarning("import", f"{one.file}: {words}", "nothing to do if that is what you want")
        for one in named
        for words in one.reading.notes
    ]
    counts = Counter(one.condition for one in placed)
    single = [condition for index, condition in enumerate(conditions) if counts[index] == 1]
    if single:
        some = single[0].name if len(single) == 1 else f"{len(single)} conditions"
        notices.append(
            CampaignWarning(
                "one_process",
                f"{some} ran in one process only: its iterations are no independent trials, so "
                "nothing tells what another process would do",
                "run the tool several times and import all its files at once",
            )
        )
    used = {(one.condition, one.process.host) for one in placed}
    if len(hosts) > 1 and any(len({h for c, h in used if c == index}) == 1 for index in counts):
        notices.append(
            CampaignWarning(
                "hosts",
                "some conditions ran on one host and others on another: the hosts are in the ratio",
                "measure every condition on every host",
            )
        )
    return tuple(notices)


NAMES_SHOWN = 5


def contrasts_of(conditions: Sequence[Condition], compared: str | None) -> tuple[Contrast, ...]:
    """Compare the levels of one factor where everything else is equal.

    Parameters
    ----------
    compared
        The factor; with `BENCHMARK` every condition is compared with the first one, with ``None``
        nothing is: benchmarks of one file are different things.

    Returns
    -------
    The first of the conditions that share all other levels is the baseline of the rest.
    """
    if compared is None:
        return ()
    if compared == BENCHMARK:
        return tuple(Contrast(0, index) for index in range(1, len(conditions)))
    firsts: dict[tuple[tuple[str, str], ...], int] = {}
    found: list[Contrast] = []
    for index, condition in enumerate(conditions):
        shared = {name: level for name, level in condition.levels.items() if name != compared}
        baseline = firsts.setdefault(tuple(sorted(shared.items())), index)
        if baseline != index:
            found.append(Contrast(baseline, index, factor=compared, stratum=shared))
    return tuple(found)


def with_baseline(conditions: Sequence[Condition], name: str) -> tuple[Contrast, ...]:
    """Compare every other condition with the one of this name.

    Raises
    ------
    UnusableInput
        There is none.
    """
    names = [condition.name for condition in conditions]
    if name not in names:
        some = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
        raise UnusableInput(f"no condition is named {quoted(name)}", hint=f"there are: {some}")
    baseline = names.index(name)
    return tuple(Contrast(baseline, index) for index in range(len(names)) if index != baseline)
