"""The table of a server in a study is read, or refused with file, line, key and the hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.study import Study
from equipoise.studies.reader.study import read_study

NAMED = '[study]\nname = "x"\n'
VARIES = "[factors.n]\nlevels = [1, 2]\n"
SERVER = '[workload.server]\nstart = ["x"]\nclient = ["y", "{n}"]\nready = ["z"]\n'


def read(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path, "study.toml", counters=("cycles",))


MALFORMED = {
    "a workload without a command": (
        NAMED + "[workload]\n" + VARIES,
        "study.toml:3: [workload]: command is missing",
        'as in command = ["sort", "words"]',
    ),
    "a trial that is neither a life nor an interval": (
        NAMED + SERVER + 'trial = "hour"\n' + VARIES,
        "study.toml:7: [workload.server] trial: a trial cannot be 'hour'",
        "there are life, interval",
    ),
    "lives beside intervals": (
        NAMED
        + SERVER
        + "[factors.n.a]\n[factors.n.b.server]\n"
        + 'start = ["x"]\nclient = ["y"]\nready = ["z"]\ntrial = "interval"\n',
        "study.toml:7: [factors]: a trial is a whole life of one server and an interval of another",
        "give every server the same trial",
    ),
    "a level that is a server and a command": (
        NAMED
        + '[workload]\n[factors.n.a]\ncommand = ["x"]\n'
        + '[factors.n.a.server]\nstart = ["x"]\nclient = ["y"]\nready = ["z"]\n',
        "study.toml:5: [factors.n.a] command: a server has a client",
        "move it to the table server",
    ),
    "a metric of lives where trials are intervals": (
        NAMED
        + SERVER
        + 'trial = "interval"\n'
        + VARIES
        + '[measure]\nmetrics = ["server_voluntary_switches"]\n',
        "study.toml:11: [measure] metrics: there is no metric 'server_voluntary_switches'",
        "is it voluntary_switches? there are wall_s, user_s, sys_s, max_rss_bytes, minor_faults, "
        "major_faults, voluntary_switches, involuntary_switches, block_reads, block_writes, "
        "output_bytes, cycles, server_user_s, server_sys_s, server_max_rss_bytes, "
        "server_pss_bytes, server_minor_faults, server_major_faults; what the workload itself "
        "reports is named in [workload] reports",
    ),
    "a placeholder in the server of a level": (
        NAMED
        + '[workload]\n[factors.m.a.server]\nstart = ["x", "{prot}"]\n'
        + 'client = ["y"]\nready = ["z"]\n',
        "study.toml:5: [factors.m.a.server] start: {prot} stands for nothing",
        "is it port? there are folder, m, password_file, port, python, study; write {{prot}} for "
        "the braces themselves",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_server_is_refused_in_exact_words(case: str, tmp_path: Path) -> None:
    text, what, hint = MALFORMED[case]
    with pytest.raises(UnusableInput) as caught:
        read(tmp_path, text)
    assert (caught.value.what, caught.value.hint) == (what, hint)


def test_a_whole_table_of_a_server_is_read(tmp_path: Path) -> None:
    more = (
        'install = ["i"]\nfill = ["f"]\nprepare = "p q"\nstop = "s"\nready_s = 5\n'
        'path = "/usr/lib/*/bin"\nneeds = { x = "some" }\nunprivileged = true\n'
    )
    study = read(tmp_path, NAMED + SERVER + more + VARIES)
    server = study.workload.server
    assert server is not None
    assert (server.install, server.fill, server.prepare) == (("i",), ("f",), ("p", "q"))
    assert (server.stop, server.ready_s, server.trial) == (("s",), 5.0, "life")
    assert (server.path, server.needs) == (("/usr/lib/*/bin",), {"x": "some"})
    assert server.unprivileged
    assert study.workload.command == ("y", "{n}")


def test_a_level_brings_a_server_and_changes_its_client(tmp_path: Path) -> None:
    text = (
        '[factors.n.a.server]\nstart = ["x"]\nclient = ["y"]\nready = ["z"]\n'
        '[factors.m.b]\nclient = { args = ["--tcp"], cpu = "0-1" }\n'
        '[factors.m.c]\n[compare]\nfactor = "m"\n'
    )
    brings, changes = read(tmp_path, NAMED + text).factors
    assert brings.levels[0].command == ("y",)
    assert brings.levels[0].server is not None
    assert brings.levels[0].server.keys == ("factors", "n", "a", "server")
    changed = changes.levels[0]
    assert (changed.client_arguments, changed.client_cpus) == (("--tcp",), (0, 1))
