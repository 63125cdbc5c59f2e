"""Run the two trials of a comparison at once, each on CPUs of its own (Bulej et al. 2020).

Two trials that run at the same time meet the same noise of the host, so that it cancels in their
ratio. The order of a block assigns the CPUs: a condition at an even position has the first set. So
the coin swaps the CPUs, and a faster CPU favours neither condition (docs/methods/duet.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from equipoise.measure.environment.hardware import CPUS_FOLDER, cpu_list
from equipoise.measure.environment.system import Host, Unknown
from equipoise.measure.launcher import PairStarter, Report, Request
from equipoise.measure.trials import FinishedTrial, TrialReport, TrialRunner
from equipoise.measure.workload_metrics import MetricsFile
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import CpuSets
from equipoise.model.record import Draw
from equipoise.shared.spelling import option

SET_COUNT = 2
"""Number of trials that run at once, each on one set of CPUs."""


def two_cpu_sets(host: Host | None = None, allowed: Sequence[int] | None = None) -> CpuSets:
    """Return two sets of equally many CPUs for two trials that run at once.

    ``allowed`` are the CPUs that Equipoise may use; by default those of this process. Hardware
    threads of one core are in the same set, if there are two cores.

    Raise `UnusableInput` if Equipoise may use fewer than two CPUs.
    """
    host = Host() if host is None else host
    cpus = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    if len(cpus) < SET_COUNT:
        raise UnusableInput(
            f"{option('duet', True)} needs two CPUs, but Equipoise may use only CPU {cpus[0]} here",
            hint=f"leave out {option('duet', True)}, or allow a second CPU, as with taskset -c 0,1",
        )
    cores: dict[tuple[int, ...], list[int]] = {}
    for cpu in cpus:
        cores.setdefault(_threads_of_core(host, cpu), []).append(cpu)
    # Cores of which different numbers of threads are allowed would make unequal sets.
    thread_count = min(map(len, cores.values()))
    threads = [core[:thread_count] for core in cores.values()]
    if len(threads) < SET_COUNT:
        # Both trials share the only core, so each gets half of its threads.
        threads = [[cpu] for cpu in cpus]
    half = len(threads) // SET_COUNT
    first, second = threads[:half], threads[half : SET_COUNT * half]
    return (_sorted(first), _sorted(second))


def _threads_of_core(host: Host, cpu: int) -> tuple[int, ...]:
    """Return the hardware threads of the core of a CPU; the CPU alone if they are unknown."""
    try:
        threads = cpu_list(host.text(f"{CPUS_FOLDER}/cpu{cpu}/topology/thread_siblings_list"))
    except Unknown:
        return (cpu,)
    return tuple(sorted({cpu, *threads}))


def _sorted(cores: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))


class DuetRunner(TrialRunner, kw_only=True):
    """Runner of two trials at once: those at positions 0 and 1 of a block, at 2 and 3, and so on.

    In some blocks of the pilot (`Plan.runs_at_once`) it runs them one after the other, on all CPUs,
    as a campaign in turns does.
    """

    pair_starter: PairStarter
    monotonic_ns: Callable[[], int] = time.monotonic_ns

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return functions that run the trials at one position of a block.

        The function of an even position runs two trials, so an odd position has no function.
        """
        if not self.plan.runs_at_once(draw.phase, draw.block):
            return super().trials_at(draw, position)
        if position % SET_COUNT:
            return ()
        return (lambda: self._run_pair(draw, position),)

    def _run_pair(self, draw: Draw, first_position: int) -> TrialReport:
        """Run two trials at once; their hooks run before the start and after both ends."""
        positions = (first_position, first_position + 1)
        files = [MetricsFile(self.scratch / f"trial-{number}") for number in range(SET_COUNT)]
        requests: list[Request] = []
        for position, metrics_file in zip(positions, files, strict=True):
            index = draw.order[position]
            self._run_hooks_before(draw, index)
            metrics_file.clear()
            request = self._request(self.plan.conditions[index], draw, None, metrics_file)
            cpus = self.plan.measure.cpu_sets[position % SET_COUNT]
            requests.append(replace(request, process=replace(request.process, cpus=cpus)))
        self.covariates.read_before()
        first_request, second_request = requests
        reports = self.pair_starter.run_pair((first_request, second_request), self.on_wait)
        ended_at, ended_ns = self.now(), self.monotonic_ns()
        trial_reports: list[TrialReport] = []
        for position, metrics_file, report in zip(positions, files, reports, strict=True):
            index = draw.order[position]
            covariates = self.covariates.read_after(cpu=report.cpu, run_delay_s=report.run_delay_s)
            started_at = _epoch_seconds(report, ended_at, ended_ns)
            finished = FinishedTrial(report, metrics_file.read(), started_at, covariates)
            self._run_hook("conclude", self.plan.conditions[index])
            trial_reports.append(self._trial_report(draw, index, position, finished))
        first, second = trial_reports
        return replace(first, at_once=second)


def _epoch_seconds(report: Report, ended_at: float, ended_ns: int) -> float:
    """Return the start of a trial in seconds since the epoch; its end if it did not start."""
    return ended_at - (0.0 if report.started_ns is None else (ended_ns - report.started_ns) / 1e9)
