"""In any order, merged ledgers hold each run once, with the results of the complete ledger."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from equipoise.files.state import this_host
from equipoise.kinds.explain.terms import ExperimentPlan
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import FIRST_SEGMENT, Fork, Ledger, open_for_reading, open_for_writing, store
from equipoise.ledger.merging import merge, needed_runs
from equipoise.ledger.parts import Cursor, RunPart, add_part, cursor_of, read_part, run_of
from equipoise.ledger.schema import migrate
from equipoise.model.plan import Membership, Plan, member_identity
from equipoise.model.record import Draw, Observation, RecordedWarning, RunRecord, Sample
from equipoise.report.json_document import encode
from equipoise.why.result import latest_experiment, result_of
from packages.equipoise.tests.ledger.conftest import run_script
from packages.equipoise.tests.ledger.test_append_only import CERTIFICATE
from packages.equipoise.tests.plans import plan_of, trial_of

ALL = 10**6
LEDGERS = 3
RUNS = 7
START = 1.7e9

Script = Callable[[Ledger], Iterator[str]]
"""Records campaigns, and yields the name of one after each thing that it recorded."""


def campaign(
    plan: Plan, started_at: float, *, resumed: bool = False, identity: bytes | None = None
) -> Callable[[Ledger], Iterator[str]]:
    """A campaign of a few blocks, with one segment or with two and observations."""

    def record(ledger: Ledger) -> Iterator[str]:
        environment = {"kernel": "6.1", "at": started_at}
        run = ledger.begin_run(plan, environment, START + started_at, identity=identity)
        yield run
        yield from blocks(ledger, run, plan, range(1, 4))
        ledger.record_warning(run, RecordedWarning("odd", "it is odd", "look"))
        yield run
        if resumed:
            ledger.end_segment(run, FIRST_SEGMENT, START + 50.0, "interrupted")
            yield run
            ledger.begin_segment(run, {"kernel": "6.2"}, START + 60.0)
            yield run
            yield from blocks(ledger, run, plan, range(4, 6))
            for place in (0, 1):
                evidence = Observation("profile", 0, 1, place, START, b'{"samples":3}', None)
                ledger.record_observation(run, evidence)
                yield run
        ledger.end_segment(run, FIRST_SEGMENT + resumed, START + 100.0, "verdict")
        yield run

    return record


def blocks(ledger: Ledger, run: str, plan: Plan, numbers: Iterable[int]) -> Iterator[str]:
    count = len(plan.conditions)
    for block in numbers:
        order = tuple((place + block) % count for place in range(count))
        draw = Draw("measured", block, order, 16 * block)
        ledger.record_draw(run, draw)
        yield run
        for place in range(count):
            wall = 1.0 + 0.1 * order[place] + 0.01 * (block * 7 % 5)
            samples = (Sample("latency_s", wall / 2.0),) * place
            ledger.record_trial(run, replace(trial_of(draw, place, wall), samples=samples))
            yield run


def fleet(ledger: Ledger) -> Iterator[str]:
    """The run of a coordinator and the runs of its two hosts."""
    plan = plan_of("a", "b")
    host = this_host("lab")
    assert host is not None
    terms = FleetPlan((host, host), (0.5, 0.5), "local:2")
    run = ledger.begin_run(replace(plan, terms=terms), {"kernel": "6.1"}, START + 3.0)
    yield run
    identity = ledger.identity_of(run)
    for place in (0, 1):
        member = replace(plan, membership=Membership(identity, place), seed=place)
        of_host = bytes.fromhex(member_identity(identity, place))
        yield from campaign(member, 4.0 + place, identity=of_host)(ledger)


def experiment(ledger: Ledger) -> Iterator[str]:
    """A campaign that explains the gap of the first one."""
    explained = ledger.runs()[0].id
    terms = ExperimentPlan(explained, (), (), identity=ledger.identity_of(explained))
    plan = replace(plan_of("a", "b", "a without"), study="why", terms=terms)
    return campaign(plan, 6.0)(ledger)


SCRIPTS: tuple[Script, ...] = (
    campaign(plan_of("a", "b"), 1.0),
    campaign(plan_of("a", "b", seed=2), 2.0, resumed=True),
    campaign(plan_of("c", "d"), 2.0),
    fleet,
    experiment,
)


class Whole:
    """A complete ledger: its runs, the end of each run at each moment, and its results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.moments: dict[bytes, list[Cursor]] = {}
        self.parts: dict[bytes, RunPart] = {}
        with open_for_writing(path, durable=False, host="lab") as ledger:
            for script in SCRIPTS:
                for run in script(ledger):
                    identity = bytes.fromhex(ledger.identity_of(run))
                    self.moments.setdefault(identity, []).append(end_of(ledger, identity))
            for identity in self.moments:
                number = run_of(ledger.connection, identity)
                assert number is not None
                self.parts[identity], _ = read_part(ledger.connection, number, Cursor(), ALL)
            ledger.record_certificate(CERTIFICATE)
            self.results = results_of(ledger)

    def beginning(self, identity: bytes, moment: int) -> RunPart:
        """A run at a moment; the moments repeat cyclically."""
        ends, part = self.moments[identity], self.parts[identity]
        end = ends[moment % len(ends)]
        return RunPart(
            part.head,
            Cursor(),
            part.events[: end.events],
            part.draws[: end.draws],
            part.trials[: end.trials],
            part.warnings[: end.warnings],
            part.observations[: end.observations],
        )


def end_of(ledger: Ledger, identity: bytes) -> Cursor:
    number = run_of(ledger.connection, identity)
    assert number is not None
    return cursor_of(ledger.connection, number)


def results_of(ledger: Ledger) -> dict[str, bytes]:
    """The output of `show --json` for each run."""
    return {run.id: result_bytes(ledger, run.id) for run in ledger.runs()}


def result_bytes(ledger: Ledger, run: str) -> bytes:
    record = ledger.read_run(run)
    explaining = latest_experiment(record, ledger)
    known_by = msgspec.msgpack.encode((record, explaining))
    if known_by not in _RESULTS:
        _RESULTS[known_by] = encode(result_of(record, explaining))
    return _RESULTS[known_by]


_RESULTS: dict[bytes, bytes] = {}
"""Documents by all that they are computed from: each is computed once."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("whole") / "ledger.db")


@cache
def _empty() -> bytes:
    """An empty ledger, made once: its tables take longer than the merges."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        return connection.serialize()


def in_memory(stack: ExitStack, path: Path) -> Ledger:
    """A ledger without a file; ``path`` is any file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(_empty())
    return stack.enter_context(Ledger(connection, path))


def content_of(ledger: Ledger) -> list[RunRecord]:
    """The complete content of a ledger, in its order."""
    return [ledger.read_run(run.id) for run in ledger.runs()]


moments = st.none() | st.integers(0, 10**4)
splits = st.lists(
    st.tuples(st.permutations(range(LEDGERS)), moments, moments), min_size=RUNS, max_size=RUNS
)
"""For each run: the ledger that has it whole, and what the two others have of it, if anything."""


def ledgers_of(
    stack: ExitStack, whole: Whole, split: Sequence[tuple[list[int], int | None, int | None]]
) -> list[Ledger]:
    ledgers = [in_memory(stack, whole.path) for _ in range(LEDGERS)]
    for identity, ((first, *others), *partial) in zip(whole.moments, split, strict=True):
        for place, moment in zip((first, *others), (-1, *partial), strict=True):
            if moment is not None:
                part = whole.beginning(identity, moment)
                add_part(ledgers[place].connection, whole.path, part)
    return ledgers


@settings(
    deadline=None,
    max_examples=200,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(split=splits, order=st.permutations(range(LEDGERS)))
def test_a_ledger_that_was_split_merges_back_to_the_same_results(
    whole: Whole, split: list[tuple[list[int], int | None, int | None]], order: list[int]
) -> None:
    with ExitStack() as stack:
        ledgers = ledgers_of(stack, whole, split)
        merged = in_memory(stack, whole.path)
        for place in order:
            assert merge(merged, ledgers[place], None).refused == ()
        assert results_of(merged) == whole.results
        again = merge(merged, ledgers[order[0]], None)
        assert (again.new, again.extended, again.trials) == (0, 0, 0)


@settings(
    deadline=None,
    max_examples=15,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(split=splits)
def test_merging_is_associative_and_commutative(
    whole: Whole, split: list[tuple[list[int], int | None, int | None]]
) -> None:
    with ExitStack() as stack:
        one, two, three = ledgers_of(stack, whole, split)

        def merged(*ledgers: Ledger) -> Ledger:
            union = in_memory(stack, whole.path)
            for ledger in ledgers:
                merge(union, ledger, None)
            return union

        contents = [
            content_of(union)
            for union in (
                merged(merged(one, two), three),
                merged(one, merged(two, three)),
                merged(three, two, one),
                merged(two, two, merged(one, three), one),
            )
        ]
        assert contents[0] == contents[1] == contents[2] == contents[3]


def test_slices_may_follow_a_merge_and_a_merge_slices(whole: Whole, tmp_path: Path) -> None:
    with ExitStack() as stack:
        source = stack.enter_context(open_for_reading(whole.path))
        copy = stack.enter_context(open_for_writing(tmp_path / "copy.db", durable=False))
        for number, identity in enumerate(whole.moments):
            content, _ = source.slice(identity.hex(), max_trials=1 + number)
            copy.append_slice(content)
        assert merge(copy, source, None).extended == 4
        assert results_of(copy) == whole.results
        for identity in whole.moments:
            assert source.slice(identity.hex(), copy.cursor(identity.hex()), max_trials=9) == (
                b"",
                False,
            )


def test_certificates_and_hosts_come_along_once(whole: Whole, tmp_path: Path) -> None:
    with (
        open_for_reading(whole.path) as source,
        open_for_writing(tmp_path / "into.db", durable=False) as into,
    ):
        for _ in range(2):
            merge(into, source, None)
        assert into.latest_certificate("6.1", "fast") == CERTIFICATE
        rows = {
            table: into.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("certificate", "host", "environment")
        }
        assert rows == {"certificate": 1, "host": 1, "environment": 7}
        assert {run.host for run in into.runs()} == {"lab"}


def test_a_fork_is_refused_alone_and_both_copies_stay(whole: Whole, tmp_path: Path) -> None:
    paths = [Path(shutil.copy(whole.path, tmp_path / f"{name}.db")) for name in ("a", "b")]
    forked = ""
    for number, path in enumerate(paths):
        with open_for_writing(path, durable=False) as ledger:
            forked = ledger.runs()[1].id
            segment = ledger.begin_segment(forked, {"kernel": "6.3"}, START + 200.0 + number)
            ledger.end_segment(forked, segment, START + 300.0, "verdict")
            list(campaign(plan_of("e", seed=number), 9.0)(ledger))
    with open_for_writing(paths[0], durable=False) as into, open_for_reading(paths[1]) as source:
        before = into.read_run(forked)
        report = merge(into, source, None)
        (refusal,) = report.refused
        assert isinstance(refusal, Fork)
        assert f"run {forked} " in refusal.what and "different segment" in refusal.what
        assert (report.new, report.unchanged) == (1, 6)
        assert into.read_run(forked) == before
        with pytest.raises(Fork):
            into.append_slice(source.slice(source.identity_of(forked), max_trials=ALL)[0])


def test_a_merged_run_that_claims_a_place_of_a_fleet_changes_no_result(
    whole: Whole, tmp_path: Path
) -> None:
    path = Path(shutil.copy(whole.path, tmp_path / "whole.db"))
    with (
        open_for_writing(path, durable=False) as into,
        open_for_writing(tmp_path / "other.db", durable=False, host="lab") as other,
    ):
        before, listed = results_of(into), into.runs()
        coordinator = next(run.id for run in listed if into.read_run(run.id).plan.rules.has_members)
        fleet = into.identity_of(coordinator)
        for place, identity in ((0, None), (1, bytes(16))):
            plan = replace(plan_of("a", "b"), membership=Membership(fleet, place), seed=7)
            list(campaign(plan, 50.0, identity=identity)(other))
        assert merge(into, other, None).new == 2
        assert {run: result_bytes(into, run) for run in before} == before
        assert into.runs()[: len(listed)] == listed
        assert [run.part_of for run in into.runs()[len(listed) :]] == [None, None]


def test_a_merged_run_of_the_same_id_takes_no_explanation_away(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(whole.path, tmp_path / "whole.db"))
    with (
        open_for_writing(path, durable=False) as into,
        open_for_writing(tmp_path / "other.db", durable=False, host="lab") as other,
    ):
        explained = into.runs()[0].id
        (explaining,) = into.runs_explaining(explained)
        identity = into.identity_of(explained)
        monkeypatch.setattr(store, "new_run_id", lambda started_at: explained)
        list(campaign(plan_of("x", "y"), 0.5)(other))
        assert merge(into, other, None).new == 1
        assert into.runs_explaining(f"{explained}-{identity}") == (explaining,)
        assert into.runs_explaining(f"{explained}-{other.identity_of(explained)}") == ()


KILLED = """
import os, signal, sys
from contextlib import contextmanager
from equipoise.ledger import file, merging, open_for_reading, open_for_writing

merging.MAX_TRIALS = 4
commits, whole = int(sys.argv[3]), file.LedgerFile.writing

@contextmanager
def writing(self):
    global commits
    with whole(self):
        yield
        commits -= 1
        if commits < 0:
            os.kill(os.getpid(), signal.SIGKILL)

file.LedgerFile.writing = writing
with open_for_writing(sys.argv[2], durable=False) as into, open_for_reading(sys.argv[1]) as source:
    merging.merge(into, source, None)
"""


@pytest.mark.parametrize("commits", [0, 3, 9])
def test_a_merge_that_is_killed_leaves_beginnings_that_the_next_one_finishes(
    whole: Whole, tmp_path: Path, commits: int
) -> None:
    into = tmp_path / "into.db"
    answer = run_script(KILLED, str(whole.path), str(into), str(commits))
    assert answer.returncode == -signal.SIGKILL, answer.stderr
    with open_for_reading(whole.path) as source:
        records = {record.identity: record for record in content_of(source)}
        with open_for_reading(into) as left:
            for record in content_of(left):
                original = records[record.identity]
                assert record.trials == original.trials[: len(record.trials)]
                assert record.draws == original.draws[: len(record.draws)]
        with open_for_writing(into, durable=False) as merged:
            merge(merged, source, None)
            assert results_of(merged) == whole.results


def test_a_run_that_cannot_be_read_is_left_out_alone(whole: Whole, tmp_path: Path) -> None:
    hostile = Path(shutil.copy(whole.path, tmp_path / "hostile.db"))
    with closing(sqlite3.connect(hostile, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER trial_refuses_update")
        connection.execute("DROP TRIGGER run_refuses_update")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE trial SET covariates = '[7]' WHERE run = 2")
        connection.execute("UPDATE run SET names = '[\"other\"]' WHERE number = 3")
        connection.execute(
            "UPDATE run SET part_of = (SELECT identity FROM run AS other WHERE other.number = 4), "
            "host_index = 9 WHERE number = 1"
        )
    with (
        open_for_reading(hostile) as source,
        open_for_writing(tmp_path / "into.db", durable=False) as into,
    ):
        names = [run.id for run in source.runs()]
        report = merge(into, source, None)
        assert report.new == RUNS - 3
        left_out = "".join(refusal.what for refusal in report.refused)
        assert left_out.count("is left out") == 3
        assert all(f"run {name} is left out" in left_out for name in names[:3])
        assert "contradicts its plan" in left_out
        # An environment or a plan in the file changes neither in our ledger.
        assert {run.id for run in into.runs()} == set(names[3:])


def test_a_slice_contains_the_runs_that_its_result_needs(whole: Whole) -> None:
    with open_for_reading(whole.path) as source:
        names = [run.id for run in source.runs()]

        def needed(name: str) -> set[str | None]:
            return {source.id_of(identity.hex()) for identity in needed_runs(source, name)}

        first, resumed, other, coordinator, *members, explaining = names
        assert needed(first) == needed(explaining) == {first, explaining}
        assert needed(coordinator) == {coordinator, *members}
        assert needed(members[0]) == {members[0]}
        assert needed(resumed) == {resumed}
        assert needed(other) == {other}
