"""Fixed results of the eleven commands whose screens are held: no program is run for them.

Times are drawn from a seeded generator, and everything else is computed by the code that a
campaign uses. So the screens show what a user sees in the usual case, and never change by chance.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.interim import judge_for
from equipoise.design.coin import draw_block
from equipoise.kinds.bisect.terms import BisectDocument
from equipoise.kinds.gate.terms import GateDocument, GatePlan
from equipoise.kinds.history.analysis import history_sentence
from equipoise.kinds.history.terms import HistoryDocument
from equipoise.kinds.verify.terms import BuildDigest, VerifyDocument, VerifyPlan
from equipoise.model.host import Disturbance, Examination
from equipoise.model.plan import Condition, Contrast, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Draw, RunRecord, RunSummary, Segment, Trial
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import BENCHMARK, Revision
from equipoise.model.why import Explanation, ExtraTime, TimePart
from equipoise_matching.matching.datasets import lalonde
from equipoise_studies.primitives.rows import BANDWIDTH, LATENCY_METRIC, ProbeRow
from packages.equipoise.tests import bisections, histories
from packages.equipoise.tests.documents import CLOSED
from packages.equipoise.tests.plans import trial_of
from packages.matching.tests.observation.logs import loaded_log
from packages.studies.tests.primitives.campaigns import ProbeRunner, plan_of_rows, record_of

RUN = "20260301-101500-ab12"
STARTED = 1_772_360_100.0
"""The moment that the id of the run names, in seconds since the epoch."""
ENVIRONMENT = {"system": "Linux", "kernel": "6.1.0", "cpu_model": "Example CPU", "cpus": 8}


PRIMITIVES = {
    "process": {"fork": 9e-5, "exec": 4e-4, "sh": 9e-4},
    "thread": {"thread": 1.5e-5, "futex_same_cpu": 2e-6},
    "system_calls": {"null_call": 1.2e-7, "stat": 9e-7, "open_close": 1.6e-6},
    "signals": {"signal_handle": 1.1e-6},
    "ipc": {"pipe_same_cpu": 4.5e-6, "pipe_across_cpus": 5e-5},
    "context_switch": {"context_switch_2_processes_0k": 2.1e-6},
    "memory": {"page_fault": 2.5e-7, "mmap_4k": 6e-7},
    "memory_bandwidth": {"memory_read": 1.1e10},
    "files": {"file_create_0k": 7e-6, "file_delete_0k": 5e-6},
    "time": {"sleep_50us": 1.06e-4},
}
"""Typical cost of each row, in the classes of `equipoise os`."""


def compared() -> tuple[RunRecord, ResultDocument]:
    """Return a campaign of two commands, of which the second is 5 % slower."""
    plan = plan_of_commands(
        {"gzip -6 log": 0.0500, "gzip -7 log": 0.0526},
        Stopping(min_seconds=0.0),
        Judgement(),
    )
    record = measured(plan, (0.0500, 0.0526))
    return record, analyse_campaign(record)


def plan_of_commands(medians: dict[str, float], stopping: Stopping, judgement: Judgement) -> Plan:
    """Return the plan of a comparison of commands."""
    conditions = tuple(Condition(name, tuple(name.split())) for name in medians)
    return Plan(
        study="compare",
        conditions=conditions,
        measure=Measure(working_folder="/"),
        stopping=stopping,
        judgement=judgement,
        seed=7,
        command_line=("equipoise", "compare", "--seed", "7", *medians),
    )


def measured(plan: Plan, medians: tuple[float, ...], *, noise: float = 0.02) -> RunRecord:
    """Return the record of a campaign whose times are drawn, until its judge stops it."""
    generator, judge = np.random.default_rng(7), judge_for(plan, plan.stopping)
    draws: list[Draw] = []
    trials: list[Trial] = []
    for block in range(1, 201):
        draw = draw_block(plan, "measured", block, judge.needed_conditions("measured", block))
        ran = tuple(
            trial_of(draw, place, medians[condition] * float(np.exp(noise * generator.normal())))
            for place, condition in enumerate(draw.order)
        )
        draws.append(draw)
        trials.extend(ran)
        judge.add(ran)
        judge.analyse()
        if judge.stop_reason() is not None:
            break
    segment = Segment(STARTED, ENVIRONMENT, STARTED + 21.0, judge.stop_reason() or "block limit")
    return RunRecord(RUN, plan, STARTED, (segment,), tuple(draws), tuple(trials), ())


def gated() -> GateDocument:
    """Return a gate of two benchmarks, of which one became 6 % slower."""
    names = [f"{name} {side}" for name in ("parse", "write") for side in ("old", "new")]
    plan = plan_of_commands(
        dict.fromkeys(names, 0.01),
        Stopping(leave_out_decided=True, min_seconds=0.0),
        Judgement(min_effect=2.0),
    )
    conditions = tuple(
        replace(condition, levels={BENCHMARK: condition.name.split()[0]})
        for condition in plan.conditions
    )
    terms = GatePlan(
        Revision("main", "1" * 40),
        Revision("HEAD", "2" * 40),
        ("wall_s",),
        bisect_argvs={"parse": ("equipoise", "bisect", "--good", "main", "--", "./parse")},
    )
    plan = replace(
        plan,
        study="gate",
        conditions=conditions,
        chosen_contrasts=(Contrast(0, 1), Contrast(2, 3)),
        terms=terms,
        command_line=("equipoise", "gate", "--baseline", "main", "--suite", "bench.toml"),
    )
    document = analyse_campaign(measured(plan, (0.0100, 0.0106, 0.0200, 0.0199)))
    assert isinstance(document, GateDocument)
    return document


def verification(terms: VerifyPlan, medians: tuple[float, float]) -> RunRecord:
    """Return the record of a verification whose two revisions have these times."""
    plan = plan_of_commands(
        {"baseline main (1111111111)": 0.01, "candidate HEAD (2222222222)": 0.01},
        Stopping(min_seconds=0.0),
        Judgement(),
    )
    command_line = ("equipoise", "verify", "--baseline", "main", "--build", "make", "--", "./bench")
    return measured(replace(plan, study="verify", terms=terms, command_line=command_line), medians)


VERIFY_TERMS = VerifyPlan(
    baseline=Revision("main", "1" * 40),
    candidate=Revision("HEAD", "2" * 40),
    trees=("3" * 40, "4" * 40),
    folder="",
    command=("./bench",),
    build="make",
    check=None,
    input_command=None,
    builds=(BuildDigest({"bench": "5" * 64}), BuildDigest({"bench": "6" * 64})),
)
"""Terms of a verification without an objection."""


def verified() -> VerifyDocument:
    """Return a verification of a change that takes 6 % less time."""
    document = analyse_campaign(verification(VERIFY_TERMS, (0.0100, 0.0094)))
    assert isinstance(document, VerifyDocument)
    return document


def bisected() -> BisectDocument:
    """Return a search among sixteen commits that named one."""
    document = bisections.bisect_document()
    command_line = "equipoise bisect --good v1.0 --bad HEAD -- ./bench"
    return replace(document, run=replace(document.run, command_line=command_line), warnings=())


def historied() -> HistoryDocument:
    """Return a history of 24 commits with two changes."""
    result = histories.history_result()
    result = replace(result, changes=result.changes[:2], blocks_to_go=None)
    result = replace(result, summary=history_sentence(result))
    return replace(histories.history_document(result=result), warnings=())


def explained() -> tuple[RunRecord, ResultDocument]:
    """Return a campaign with the causes of its gap, which one intervention confirmed."""
    plan = plan_of_commands(
        {"search with dlmalloc": 0.1, "search with glibc": 0.25},
        Stopping(min_blocks=20, min_seconds=0.0),
        Judgement(),
    )
    record = measured(plan, (0.1, 0.25))
    fast, slow = (condition.name for condition in plan.conditions)
    extra = ExtraTime(
        baseline=fast,
        candidate=slow,
        slower=slow,
        gap_s=0.150,
        gap_s_ci=(0.144, 0.156),
        parts=(
            TimePart("user", 0.094, 0.102, 0.008, (0.005, 0.011), 0.06),
            TimePart("system", 0.003, 0.145, 0.142, (0.136, 0.148), 0.94),
            TimePart("waiting", 0.002, 0.002, 0.0, (-0.001, 0.001), 0.0),
        ),
        run_counts={"profile": (3, 3), "syscalls": (3, 3)},
        unseen={},
        summary="94 % of the extra time is system time and 6 % user time",
    )
    outcomes = tuple(
        replace(
            CLOSED,
            intervention=name,
            summary=summary,
            share=share,
            share_ci=ci,
            share_of_seconds=share,
            share_of_seconds_ci=ci,
            from_candidate=share,
            advice=advice,
        )
        for name, summary, share, ci, advice in (
            (
                "never_mmap",
                "keeping freed memory",
                0.99,
                (0.96, 1.02),
                "run with GLIBC_TUNABLES=glibc.malloc.mmap_max=0.",
            ),
            ("jemalloc", "jemalloc", 0.97, (0.93, 1.01), ""),
        )
    )
    cause = Explanation(
        cause="blocks_returned_at_free",
        kind="allocation",
        evidence={"syscall": "munmap", "size_bytes": 35_600},
        status="confirmed",
        share_of_gap=0.99,
        share_ci=(0.96, 1.02),
        summary="blocks of 35,600 bytes go back to the kernel at every free",
        seconds=0.140,
        seconds_ci=(0.134, 0.146),
        tested=outcomes,
        remedy="Allocate the blocks once and use them again.",
    )
    return record, replace(analyse_campaign(record), extra_time=extra, why=(cause,))


def primitives() -> ResultDocument:
    """Return the costs of the primitives of an operating system, of which two vary a lot."""
    rows = [
        ProbeRow(
            name, name, group, name, BANDWIDTH if group == "memory_bandwidth" else LATENCY_METRIC
        )
        for group, names in PRIMITIVES.items()
        for name in names
    ]
    costs = {name: cost for names in PRIMITIVES.values() for name, cost in names.items()}
    generator = np.random.default_rng(3)

    def cost(name: str, block: int, usual: float) -> float:
        spread = 0.2 if name in ("page_fault", "sleep_50us") else 0.01
        return costs[name] * float(np.exp(spread * generator.normal()))

    plan = plan_of_rows(*rows, blocks=13)
    runner = ProbeRunner(plan, value=cost, typical=costs)
    return analyse_campaign(replace(record_of(runner, ENVIRONMENT), id=RUN))


def examined() -> Examination:
    """Return the disturbances of a host like many."""
    found = (
        Disturbance(
            "busy_process",
            "disturbs",
            "process 4711 (rustc) uses 97 % of a processor",
            "wait for its end, or: kill 4711",
        ),
        Disturbance(
            "governor",
            "weakens",
            "the CPU frequency governor is powersave",
            "sudo cpupower frequency-set -g performance",
        ),
        Disturbance(
            "no_covariate",
            "lacks",
            "cpu_temperature_c is unknown in every trial",
            "modprobe coretemp, unless this is a virtual machine",
        ),
    )
    checked = tuple(f"check {number}" for number in range(17))
    return Examination(found, checked, {"thermal throttling": "no such file in /sys"})


def listed() -> list[RunSummary]:
    """Return the campaigns of a ledger."""
    pair = ("gzip -6 log", "gzip -7 log")
    return [
        RunSummary(RUN, "compare", pair, STARTED, 64, "verdict", "ada"),
        RunSummary(
            "20260301-104501-77c0", "compare", pair, STARTED + 1800, 120, "budget", "ada"
        ),
        RunSummary(
            "20260302-091000-90fe", "gate", ("parse old", "parse new"), STARTED + 82_500, 80,
            "verdict", "ada",
        ),
        RunSummary("20260302-093010-1b2d", "os", ("null_call", "fork", "pipe_same_cpu",
            "pipe_across_cpus", "memory_read"), STARTED + 83_700, 35, None, "ada"),
    ]  # fmt: skip


def write_log(path: Path) -> None:
    """Write a log of runs of two versions: the new one runs mostly under load."""
    log = {name: values for name, values in loaded_log().items() if name != "unmoved"}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(log)
        writer.writerows(zip(*(column.tolist() for column in log.values()), strict=True))


def write_people(path: Path) -> None:
    """Write the people of LaLonde's experiment."""
    lalonde().to_csv(path, index=False)
