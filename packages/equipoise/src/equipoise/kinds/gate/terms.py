"""Additions of a gate to the plan of a campaign (its terms) and to the result document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument, TrialColumn
from equipoise.model.revisions import Relinking, Revision, SourcePlace
from equipoise.revisions.terms import group_adjacent
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "gate"
"""Name of the study in the plan of every gate."""
COMMENT_MARK = "<!-- equipoise gate -->"
"""Invisible last line of a comment on a pull request. The next run finds the comment by it."""
MIN_EFFECT = 2.0
"""Default smallest effect that matters, in percent."""


class SliceSource(Struct, frozen=True):
    """Facts about one slice that must be equal in all slices of a join.

    A slice is the gate of one of several runners. A join is the gate over all of them.
    """

    trees: tuple[str, str]
    """Git's hash of the tree of the baseline, and of the candidate with uncommitted changes."""
    folder: str
    """Folder in the repository in which the build and the benchmarks ran."""
    programs: dict[str, tuple[str, ...]]
    """Argument vector of each benchmark program, as the user typed it, by name."""
    tool: str | None
    """Name of the benchmark tool that reads the results."""
    build: str | None
    """Shell line that builds a revision."""
    toolchain: dict[str, str]
    """Version of each program of the toolchain, by name."""
    inputs: dict[str, str]
    """Digest of each file outside the repository that a benchmark names, by absolute path."""


class KnownNoise(Struct, frozen=True):
    """The noise of a comparison in an earlier gate on a host with the same CPU model."""

    run: str
    """Id of the earlier gate."""
    spread: float
    """Robust standard deviation of the log ratio of one block."""
    block_s: float
    """Mean seconds of one block of the benchmark: one trial of each revision."""
    blocks: int
    """Number of blocks of the earlier gate that the two numbers come from."""


class KnownFiles(Struct, frozen=True):
    """The files that an observed run of a benchmark used, in this gate or an earlier one."""

    benchmark: str
    """Digest of the benchmark's name and command."""
    commit: str
    """Baseline of the gate that observed the run."""
    observed_at: float
    """Seconds since 1970."""
    ran: tuple[int, ...] = ()
    """Files of which a function ran, as indices in `TouchedOrder.files`."""
    read: tuple[int, ...] = ()
    """Other files, which were imported or opened."""
    unknown_because: str | None = None
    """Clause with the reason why the files are not all known; ``None`` if they are."""


class TouchedOrder(Struct, frozen=True):
    """The benchmarks of a gate that run no file of the diff, and how this is known."""

    untouched: tuple[int, ...]
    """Contrasts that are measured last."""
    files: tuple[tuple[str, str], ...]
    """Path of each file that a benchmark used, and git's hash of its content in the baseline."""
    benchmarks: tuple[KnownFiles, ...]
    """The files of each benchmark; without those whose observed run failed."""


class FunctionTiming(Struct, frozen=True):
    """How the functions of both revisions are timed in the same processes (``--functions``)."""

    library: str
    """Path of the shared library, as the user typed it."""
    iterations: tuple[tuple[int, int], ...]
    """Number of calls in a batch of each benchmark, for the baseline and for the candidate."""
    rounds: tuple[int, ...]
    """Number of timed batches of each revision in a process, for each benchmark."""


class GatePlan(Struct, Terms, frozen=True, tag_field=TAG, tag="gate"):
    """Terms of a gate. All comparisons on all metrics share one false-discovery rate.

    `Terms` explains the class variables.
    """

    noun: ClassVar[str] = "gate"
    can_rank: ClassVar[bool] = False
    not_adjustable_because: ClassVar[str | None] = "a gate is never adjusted"
    alpha_factor: ClassVar[int] = 2
    restart_hint: ClassVar[str | None] = "run the gate again"
    baseline: Revision
    candidate: Revision
    metrics: tuple[str, ...]
    fails_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""
    bisect_argvs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Argument vector that bisects each benchmark, by the benchmark's name."""
    places: dict[str, SourcePlace] = field(default_factory=dict)
    """Definition of each benchmark in the candidate revision, by the benchmark's name. A benchmark
    is left out if its definition is not known."""
    counted_by: dict[str, str] = field(default_factory=dict)
    """Counter of each metric, such as ``callgrind``; empty unless the gate counts."""
    known_noises: tuple[KnownNoise | None, ...] = ()
    """Noise of each comparison in earlier gates; empty if no comparison has one."""
    touched: TouchedOrder | None = None
    """``None`` unless untouched benchmarks are measured last (``--touched``)."""
    slice: SliceSource | None = None
    """Facts about a slice; ``None`` for any other gate."""
    failures: dict[str, str] = field(default_factory=dict)
    """Reason why a benchmark failed or hung before the first block, with the revision, by its name.
    The gate does not compare it."""
    relinking: Relinking | None = None
    """``None`` unless programs are linked again for each block (``--relink``)."""
    functions: FunctionTiming | None = None
    """``None`` unless both revisions share the processes of each block (``--functions``)."""
    joined: tuple[str, ...] = ()
    """Identities of the runs of the slices; empty unless the gate is a join, without trials."""

    @property
    def shares_processes(self) -> bool:
        """Whether one process times a benchmark of both revisions."""
        return self.functions is not None

    def execution_order(self, order: list[int]) -> list[int]:
        """Return an order in which the two revisions of a benchmark that share a process meet."""
        return group_adjacent(order, benchmark_of_condition) if self.functions else order

    @property
    def earlier_ids(self) -> tuple[str, ...]:
        """Identities of the slices, without which a join has no result."""
        return self.joined

    def check_resumable(self, run: str) -> None:
        """Refuse to continue, because the checked-out revisions no longer exist."""
        raise UnusableInput(
            f"run {run} is a gate, and its checked-out revisions were removed when it ended",
            hint=f"run equipoise gate again, with a larger {option('budget')}",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain, because the checked-out revisions no longer exist."""
        raise UnusableInput(
            f"run {record.id} is a gate, and its checked-out revisions were removed when it ended",
            hint="build both revisions, compare them with equipoise compare, and explain that run",
        )


def benchmark_of_condition(condition: int) -> int:
    """Return the index of a condition's benchmark, which has a condition for each revision."""
    return condition // 2


GateOutcome = Literal["slower", "passes", "undecided"]
"""``slower``: the whole equivalence interval is above the smallest effect that matters. ``passes``:
the whole interval is at most this effect. ``undecided``: neither is true."""


class GateRunner(Struct, frozen=True):
    """One benchmark on one runner of a join."""

    host: str
    """Name of the runner; equal names have a number."""
    run: str
    """Run id of the slice, in the ledger of the join."""
    ratio: float | None
    ratio_ci: Interval
    """Interval at the level of the row, for this runner alone."""
    blocks: int
    environment: dict[str, Any]
    """Facts of the runner that may explain why its result differs."""
    baseline_median: float | None
    candidate_median: float | None
    equivalence_ci: Interval
    outcome: GateOutcome
    """The outcomes ``slower`` of all runners and of the mean hold together."""
    differs: Literal["slower", "faster"] | None
    """Whether the ratio is certainly larger (``slower``) or smaller than the mean ratio of the
    other runners."""


class GateRowForecast(Struct, frozen=True):
    """The time that an undecided benchmark needs, at its noise so far."""

    blocks: int
    """Forecast number of blocks until the decision, measured blocks included."""
    seconds: float
    """Seconds of these blocks, without other benchmarks."""
    min_effect: float | None = None
    """Smallest larger ``--min-effect``, in percent, that the budget would decide; null if none."""
    min_effect_s: float | None = None
    """Forecast seconds with this larger effect."""


class GateRow(Struct, frozen=True):
    """One benchmark: the candidate revision against the baseline on one metric.

    In a join, the ratio and the intervals are about the mean over the runners (``hosts``).
    """

    benchmark: str
    metric: str
    baseline_median: float | None
    """Median cost; null if it timed out, and in a join, where each runner has its own."""
    candidate_median: float | None
    ratio: float | None
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    outcome: GateOutcome
    summary: str
    equivalence_ci: Interval
    """Equivalence interval, which decides the outcome. Each end alone is wrong with a chance of at
    most ``significance_level``."""
    equivalence_level: float
    """1 minus the coverage of ``equivalence_ci``."""
    place: SourcePlace | None = None
    """Definition of the benchmark in the candidate revision; null if it is not known."""
    exact: bool = False
    """Whether all counts of each revision were equal, so that ``ratio`` is not an estimate."""
    hosts: tuple[GateRunner, ...] = ()
    """The runners of a join that have the benchmark; empty for any other gate."""
    mean_outcome: GateOutcome | None = None
    """Outcome of the mean over the runners; null unless the gate is a join."""
    forecast: GateRowForecast | None = None
    """Null if the benchmark is decided or has too few blocks for a forecast, if its change is too
    close to the smallest effect that matters, or if it is the only one (`GateShortage`)."""


class GateShortage(Struct, frozen=True):
    """The time of an undecided gate: how much is measured, and how much is needed."""

    undecided: int
    """Number of undecided benchmarks."""
    blocks: int
    """Number of measured blocks of the undecided benchmark with the fewest blocks."""
    block_s: float
    """Mean seconds of a block of the undecided benchmarks."""
    needed_blocks: int | None
    """Forecast number of blocks until all benchmarks are decided, measured blocks included. Null if
    a change is too close to the smallest effect that matters."""
    needed_s: float | None
    """Forecast seconds of a gate that decides all benchmarks, without its warm-up. Null if
    ``needed_blocks`` is null."""
    is_lower_bound: bool = False
    """Whether too few blocks ran for a forecast, and ``needed_blocks`` is only a lower bound."""


class GateResult(Struct, frozen=True):
    """The result of a gate."""

    baseline: Revision
    candidate: Revision
    min_effect: float
    """Smallest effect that matters, in percent; the gate fails if a benchmark is slower by more."""
    passed: bool
    rows: tuple[GateRow, ...]
    summary: str
    bisect_lines: dict[str, str] = field(default_factory=dict)
    """Shell line that bisects each slower benchmark, by the benchmark's name. Benchmarks that one
    bisection can search have the same line."""
    shortage: GateShortage | None = None
    """Blocks that are missing for a decision; null if every benchmark is decided, and in a join."""
    counted_by: dict[str, str] = field(default_factory=dict)
    """Counter of each metric, such as ``callgrind``; empty unless the gate counts."""
    failures: dict[str, str] = field(default_factory=dict)
    """Reason why a benchmark failed or hung, with the revision, by its name; it has no row."""
    relinking: Relinking | None = None
    """Null unless each block had links of its own; the outcomes then hold across links."""
    functions: FunctionTiming | None = None
    """Null unless both revisions shared the processes of each block (``--functions``)."""
    runners: tuple[str, ...] = ()
    """Names of the runners of a join, in the order of the slices; empty for any other gate."""
    alpha: float | None = None
    """False-discovery rate of a join; null for any other gate, whose comparisons have it."""

    @property
    def undecided_count(self) -> int:
        """Number of undecided benchmarks."""
        return sum(row.outcome == "undecided" for row in self.rows)


class GateDocument(ResultDocument, frozen=True, kw_only=True, tag="gate"):
    """The result document of a gate."""

    gate: GateResult | None
    """Null if no block is complete."""

    @property
    def shares_processes(self) -> bool:
        """Whether one process timed a benchmark of both revisions."""
        return self.gate is not None and self.gate.functions is not None

    def trial_columns(self) -> Iterator[TrialColumn]:
        """Yield the runner of each trial of a join."""
        if self.gate is not None and self.gate.runners:
            yield "host", "text", tuple(row.host for row in self.trials)
