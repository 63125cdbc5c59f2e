"""A run goes from one ledger to another in slices, and a wrong slice is an error."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.files.state import this_host
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import FIRST_SEGMENT, Fork, Ledger, open_for_writing, parts
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Membership, member_identity
from equipoise.model.record import (
    Accounting,
    Draw,
    Observation,
    RecordedWarning,
    RunRecord,
    Sample,
    Trial,
)
from packages.equipoise.tests.ledger.conftest import make_plan, row_count

FEW = 3
"""Trials in a slice, so that a run of a test takes several."""
HERE = {"kernel": "6.1", "odd": "\udcff"}
WARNING = RecordedWarning("code", "words", "hint")


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Ledger]:
    """The ledger that absorbs slices."""
    with open_for_writing(tmp_path / "copy.db", durable=False) as opened:
        yield opened


def record(ledger: Ledger, run: str, blocks: range, wall_s: float = 0.125) -> None:
    for block in blocks:
        ledger.record_draw(run, Draw("measured", block, (block % 2, 1 - block % 2), 16 * block))
        for position in (0, 1):
            samples = (Sample("latency_s", 0.5, 1, "s"), Sample("latency_s", -0.0, 2, "s"))
            took = Accounting(wall_s=wall_s, minor_faults=2**62, unknown={"user_s": "not here"})
            condition = (block + position) % 2
            ledger.record_trial(
                run,
                Trial("measured", block, position, condition, 1e3 + block, took, samples=samples),
            )


def pull(source: Ledger, target: Ledger, identity: str) -> int:
    """Absorb slices until nothing is new; return their number."""
    count = 0
    while True:
        content, more = source.slice(identity, target.cursor(identity), max_trials=FEW)
        if not content:
            assert not more
            return count
        target.append_slice(content)
        target.append_slice(content)
        count += 1


def read(ledger: Ledger, identity: str) -> RunRecord:
    name = ledger.id_of(identity)
    assert name is not None
    return ledger.read_run(name)


def test_a_run_arrives_in_slices_as_it_was_recorded(ledger: Ledger, copy: Ledger) -> None:
    plan = make_plan("a\udcff", "b")
    run = ledger.begin_run(plan, HERE, 1.0)
    identity = ledger.identity_of(run)
    assert copy.cursor(identity) == b""
    assert copy.id_of(identity) is None
    record(ledger, run, range(1, 4))
    assert pull(ledger, copy, identity) > 1
    assert read(copy, identity) == ledger.read_run(run)
    record(ledger, run, range(4, 8))
    ledger.record_warning(run, WARNING)
    ledger.end_segment(run, FIRST_SEGMENT, 2.0, "interrupted")
    ledger.begin_segment(run, {"kernel": "6.2"}, 3.0)
    ledger.record_observation(run, Observation("profile", 0, 1, 0, 1.0, b"{}", None))
    assert pull(ledger, copy, identity) > 2
    assert read(copy, identity) == ledger.read_run(run)
    assert copy.cursor(identity) == ledger.cursor(identity)


def test_a_copy_that_is_behind_has_not_ended(ledger: Ledger, copy: Ledger) -> None:
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    record(ledger, run, range(1, 8))
    ledger.record_warning(run, WARNING)
    ledger.end_segment(run, FIRST_SEGMENT, 2.0, "verdict")
    identity, more = ledger.identity_of(run), True
    whole = ledger.read_run(run)
    while more:
        content, more = ledger.slice(identity, copy.cursor(identity), max_trials=FEW)
        copy.append_slice(content)
        behind = read(copy, identity)
        assert whole.trials[: len(behind.trials)] == behind.trials
        assert len(behind.segments) == 1
        assert (behind.segments[0].stopped_because is None) == more
        assert (behind.warnings == ()) == more
    assert behind == whole


def test_a_slice_of_a_run_continued_in_both_ledgers_is_a_fork(ledger: Ledger, copy: Ledger) -> None:
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    identity = ledger.identity_of(run)
    record(ledger, run, range(1, 3))
    pull(ledger, copy, identity)
    record(ledger, run, range(3, 5))
    record(copy, run, range(3, 6), wall_s=0.25)
    before = read(copy, identity)
    for after in (b"", ledger.cursor(identity)):
        with pytest.raises(Fork, match=f"run {run} .*different (draw|trial)"):
            copy.append_slice(
                ledger.slice(identity, after, max_trials=99)[0] or _everything(ledger)
            )
    assert read(copy, identity) == before


def _everything(ledger: Ledger) -> bytes:
    (run,) = ledger.runs()
    return ledger.slice(ledger.identity_of(run.id), max_trials=99)[0]


def test_a_slice_behind_the_end_of_a_copy_is_refused(ledger: Ledger, copy: Ledger) -> None:
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    identity = ledger.identity_of(run)
    record(ledger, run, range(1, 6))
    after = ledger.cursor(identity)
    record(ledger, run, range(6, 9))
    content, _ = ledger.slice(identity, after, max_trials=99)
    with pytest.raises(UnusableInput, match="begins after the end"):
        copy.append_slice(content)
    assert copy.runs() == []


def test_an_invalid_slice_changes_nothing(
    ledger: Ledger, copy: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_SLICE_BYTES", 2**19)
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    record(ledger, run, range(1, 3))
    sound = _everything(ledger)
    form, part = msgspec.msgpack.decode(zlib.decompress(sound))
    head, start, events, draws, trials, warnings, observations = part

    def packed(*lists: object) -> bytes:
        return zlib.compress(msgspec.msgpack.encode((form, lists)))

    def trial_with(place: int, value: object) -> list[object]:
        row, samples = trials[0]
        return [[*row[:place], value, *row[place + 1 :]], samples]

    unsound = {
        "is truncated": sound[:-9],
        "": b"nothing",
        "larger than": zlib.compress(bytes(2**20)),
        "it has format 2": zlib.compress(msgspec.msgpack.encode((2, part))),
        "its start is negative": packed(
            head, [-1, 0, 0, 0, 0], events, draws, trials, warnings, observations
        ),
        "trial.condition": packed(
            head, start, events, draws, [trial_with(3, 7.5)], warnings, observations
        ),
        "condition 7 of a plan": packed(
            head, start, events, draws, [trial_with(3, 7)], warnings, observations
        ),
        "UNIQUE": packed(head, start, events, draws, trials * 2, warnings, observations),
        "bindings": packed(head, start, events, draws, [[[1], []]], warnings, observations),
        "large": packed(head, start, events, draws, [trial_with(1, 2**63)], warnings, observations),
        "type dict": packed(
            head, start, events, draws, [trial_with(1, {})], warnings, observations
        ),
        "another plan|contradicts its plan": packed(
            [*head[:5], "why", *head[6:]], start, events, draws, trials, warnings, observations
        ),
        "CHECK constraint": packed(
            [b"short", *head[1:]], start, events, draws, trials, warnings, observations
        ),
    }
    for why, content in unsound.items():
        with pytest.raises(UnusableInput, match=f"cannot be used.*({why})"):
            copy.append_slice(content)
    with pytest.raises(UnusableInput, match="not the cursor"):
        ledger.slice(ledger.identity_of(run), b"\xff", max_trials=1)
    assert copy.runs() == []
    assert row_count(copy.path, "environment") == 0


def test_a_slice_whose_head_is_refused_adds_nothing(ledger: Ledger, copy: Ledger) -> None:
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    record(ledger, run, range(1, 3))

    def refuse(head: parts.Head) -> None:
        assert head.identity.hex() == ledger.identity_of(run)
        raise UnusableInput("nobody asked for it")

    with pytest.raises(UnusableInput, match="nobody asked for it"):
        copy.append_slice(_everything(ledger), check=refuse)
    assert copy.runs() == []


def test_a_slice_cannot_put_an_environment_in_the_place_of_another(
    ledger: Ledger, copy: Ledger
) -> None:
    own = copy.begin_run(make_plan(), HERE, 1.0)
    run = ledger.begin_run(make_plan(), HERE, 1.0)
    connection = sqlite3.connect(ledger.path)
    for trigger in ("update", "delete"):
        connection.execute(f"DROP TRIGGER environment_refuses_{trigger}")
    connection.execute('UPDATE environment SET document = \'{"kernel":"forged"}\'')
    connection.commit()
    connection.close()
    copy.append_slice(_everything(ledger))
    assert copy.read_run(own).segments[0].environment == HERE
    copied = read(copy, ledger.identity_of(run))
    assert copied.segments[0].environment == {"kernel": "forged"}


def test_a_run_begins_once_under_its_identity(ledger: Ledger) -> None:
    identity = bytes(range(16))
    run = ledger.begin_run(make_plan(), HERE, 1.0, identity=identity)
    assert ledger.begin_run(make_plan(), {}, 2.0, identity=identity) == run
    assert ledger.identity_of(run) == identity.hex()
    assert ledger.id_of(identity.hex()) == run
    with pytest.raises(UnusableInput, match="another plan"):
        ledger.begin_run(make_plan(seed=8), {}, 2.0, identity=identity)
    assert len(ledger.runs()) == 1


def test_the_run_of_a_coordinator_comes_with_those_of_its_hosts(
    ledger: Ledger, copy: Ledger
) -> None:
    host = this_host()
    assert host is not None
    fleet = FleetPlan((host, host), (0.5, 0.5), "local:2")
    coordinator = copy.begin_run(replace(make_plan(), terms=fleet), {}, 1.0)
    identity = copy.identity_of(coordinator)
    members = []
    for place in (1, 0):
        plan = replace(make_plan(seed=place), membership=Membership(identity, place))
        of_host = bytes.fromhex(member_identity(identity, place))
        members.append(ledger.begin_run(plan, {}, 2.0, identity=of_host))
        record(ledger, members[-1], range(1, 3))
    assert ledger.read_run("last").id in members
    assert copy.read_run("last").members == ()
    for run in members:
        pull(ledger, copy, ledger.identity_of(run))
    record_of_all = copy.read_run("last")
    assert record_of_all.id == coordinator
    assert [member.plan.seed for member in record_of_all.members] == [0, 1]
    assert [len(member.trials) for member in record_of_all.members] == [4, 4]
