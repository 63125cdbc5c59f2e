"""The file of a study is read, or the error has file, line, key and a hint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Process
from equipoise.model.study import ComparedFactor, Level, Study
from equipoise.studies.reader.study import read_study

NAMED = '[study]\nname = "x"\n'
RUNS = '[workload]\ncommand = ["sort", "{n}"]\n'
VARIES = "[factors.n]\nlevels = [1, 2]\n"
SERVER = '[workload.server]\nstart = ["x"]\nclient = ["y", "{n}"]\nready = ["z"]\n'
WHOLE = NAMED + RUNS + VARIES
"""Six lines."""


def read(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path, "study.toml", counters=("cycles",))


MALFORMED = {
    "an unknown data set": (
        NAMED + '[workload]\ndata = "iris"\ncommand = ["cat", "{data}", "{n}"]\n' + VARIES,
        "study.toml:4: [workload] data: there is no data set 'iris'",
        "use lalonde",
    ),
    "a data set that is not named": (
        NAMED + '[workload]\ncommand = ["cat", "{data}", "{n}"]\n' + VARIES,
        "study.toml:4: [workload] command: {data} is not a placeholder",
        "use one of helpers, n, python, study; write {{data}} for the braces themselves",
    ),
    "a variable that no program can have": (
        NAMED + '[workload]\ncommand = ["sort"]\n[factors.n.a]\nenv = { "A=B" = "1" }\n',
        "study.toml:6: [factors.n.a.env] A=B: no variable can be called 'A=B'",
        'write env = { NAME = "value" }',
    ),
    "a null byte in a variable": (
        NAMED + '[workload]\ncommand = ["sort"]\n[factors.n.a]\nenv = { A = "\\u0000" }\n',
        "study.toml:6: [factors.n.a.env] A: the text contains a null byte",
        "remove the null byte",
    ),
    "a working folder that is not there": (
        NAMED + '[workload]\ncommand = ["sort", "{n}"]\nfolder = "/no/where"\n' + VARIES,
        "study.toml:5: [workload] folder: there is no folder /no/where",
        "create it; a relative path starts from the study's own folder",
    ),
    "a report of what is measured anyway": (
        NAMED + '[workload]\ncommand = ["sort", "{n}"]\nreports = ["wall_s"]\n' + VARIES,
        "study.toml:5: [workload] reports: every trial measures wall_s anyway",
        "remove wall_s from reports",
    ),
    "a warm-up without end": (
        WHOLE + "[measure]\nwarmup = 100000000000000000000\n",
        "study.toml:8: [measure] warmup: the value is 100000000000000000000",
        "give a whole number from 0 to 1000",
    ),
    "more blocks at least than at most": (
        WHOLE + "[measure]\nblocks = 2\nmin_blocks = 5\n",
        "study.toml:9: [measure] min_blocks: 5 is more than blocks = 2",
        "lower min_blocks to 2, or raise blocks to 5",
    ),
    "a quick form with a level that its kind lacks": (
        NAMED
        + '[workload]\ncommand = ["sort"]\n[factors.n]\nkind = "blas"\n[quick]\n'
        + 'factors.n = ["atlsa"]\n',
        "study.toml:8: [quick.factors] n: n has no level 'atlsa'",
        "did you mean atlas? use one of reference, atlas, openblas, blis, openblas_haswell,"
        " openblas_zen, openblas_skylakex, blis_haswell, blis_zen, blis_zen2, blis_zen3, "
        "blis_skylakex",
    ),
    "a number of more digits than Python reads": (
        WHOLE + "[measure]\nbudget = " + "9" * 5000 + "\n",
        "study.toml: exceeds the limit (4300 digits) for integer string conversion: value has 5000 "
        "digits; use sys.set_int_max_str_digits() to increase the limit",
        "give a number that fits in 64 bits, or put the digits in quotes",
    ),
    "a number of hundreds of digits": (
        WHOLE + "[measure]\nbudget = " + "9" * 400 + "\n",
        "study.toml:8: [measure] budget: the number has hundreds of digits",
        "give a number that fits in 64 bits, or put the digits in quotes",
    ),
    "a number of thousands of digits in another base": (
        NAMED + RUNS + "[factors.n]\nlevels = [1, 0x" + "f" * 20000 + "]\n",
        "study.toml:6: [factors.n] levels: the number has hundreds of digits",
        "give a number that fits in 64 bits, or put the digits in quotes",
    ),
    "arrays without end": (
        WHOLE + "[measure]\nmetrics = " + "[" * 3000 + "]" * 3000 + "\n",
        "study.toml: arrays or tables are nested too deeply",
        "use at most three levels, as in docs/reference/study.md",
    ),
    "an unknown table": (
        WHOLE + "[measures]\n",
        "study.toml:7: [measures]: there is no such table",
        "did you mean measure? use one of compare, exclude, factors, measure, quick, study, "
        "workload",
    ),
    "an unknown key": (
        WHOLE + "[measure]\nbugdet = 3\n",
        "study.toml:8: [measure] bugdet: there is no such key",
        "did you mean budget? use one of alpha, aslr, author_block_s, blocks, budget, "
        "ignore_failure, layouts, metrics, min_blocks, min_effect, min_seconds, precision, "
        "tail, timeout, warmup, washout",
    ),
    "a word for ASLR that is none": (
        WHOLE + '[measure]\nlayouts = 4\naslr = "of"\n',
        "study.toml:9: [measure] aslr: there is no aslr 'of'",
        "did you mean off? use one of drawn, on, off",
    ),
    "layouts beside a factor of that name": (
        NAMED
        + '[workload]\ncommand = ["sort", "{layout}"]\n[factors.layout]\nlevels = [1, 2]\n'
        + "[measure]\nlayouts = 4\n",
        "study.toml:8: [measure] layouts: there is a factor called layout already",
        "rename the factor layout",
    ),
    "a wrong type": (
        WHOLE + '[measure]\nbudget = "fast"\n',
        "study.toml:8: [measure] budget: the value is a string, not a number above 0",
        "give a number above 0",
    ),
    "an unknown placeholder": (
        NAMED + '[workload]\ncommand = [\n  "sort",\n  "{m}"]\n' + VARIES,
        "study.toml:4: [workload] command: {m} is not a placeholder",
        "use one of helpers, n, python, study; write {{m}} for the braces themselves",
    ),
    "a factor without levels": (
        NAMED + RUNS + "[factors.n]\nlevels = []\n",
        "study.toml:5: [factors.n]: the factor has no levels",
        "add levels, such as levels = [1, 2]",
    ),
    "a baseline that is not a level": (
        WHOLE + '[compare]\nfactor = "n"\nbaseline = "3"\n',
        "study.toml:9: [compare] baseline: n has no level '3'",
        "use one of 1, 2",
    ),
    "an unknown role": (
        WHOLE + 'role = "sise"\n',
        "study.toml:7: [factors.n] role: there is no role 'sise'",
        "did you mean size? use one of treatment, size, stratum",
    ),
    "a level twice": (
        NAMED + RUNS + "[factors.n]\nlevels = [1, 1]\n",
        "study.toml:6: [factors.n] levels: 1 appears twice",
        "remove one of the two",
    ),
    "a factor twice": (
        WHOLE + VARIES,
        "study.toml:7: this is the second definition of a key or table: [factors.n]",
        "remove one of the two definitions",
    ),
    "a negative budget": (
        WHOLE + "[measure]\nbudget = -5\n",
        "study.toml:8: [measure] budget: the value is -5",
        "give a number above 0",
    ),
    "an unknown metric": (
        NAMED + RUNS + 'reports = ["rate"]\n' + VARIES + '[measure]\nmetrics = ["wal_s"]\n',
        "study.toml:9: [measure] metrics: there is no metric 'wal_s'",
        "did you mean wall_s? use one of wall_s, user_s, sys_s, max_rss_bytes, "
        "minor_faults, major_faults, voluntary_switches, involuntary_switches, block_reads,"
        " block_writes, output_bytes, cycles, rate; list metrics that the workload itself "
        "reports in [workload] reports",
    ),
    "an exclusion of everything": (
        WHOLE + "[[exclude]]\nn = 1\n[[exclude]]\nn = [2]\n",
        "study.toml:9: [exclude]: this exclusion leaves nothing to run",
        "remove one of its levels",
    ),
    "an exclusion of what is not there": (
        WHOLE + "[[exclude]]\nn = 3\nm = 1\n",
        "study.toml:9: [exclude] m: there is no such key",
        "use n",
    ),
    "no TOML": (
        WHOLE + "[measure\n",
        "study.toml:7: this is not TOML: Expected ']' at the end of a table declaration",
        "see https://toml.io for the format",
    ),
    "nothing": (
        "",
        "study.toml: [study]: name is missing",
        'add it, for example [study] name = "allocators"',
    ),
    "a size that is compared": (
        WHOLE + 'role = "size"\n[compare]\nfactor = "n"\n',
        "study.toml:9: [compare] factor: n is a size, not a treatment",
        "compare another factor at each size",
    ),
    "an unknown allocator": (
        NAMED + RUNS + '[factors.n]\nkind = "allocator"\nlevels = [\n  "glibc",\n  "jmalloc"]\n',
        "study.toml:7: [factors.n] levels: there is no level 'jmalloc'",
        "did you mean jemalloc? use one of glibc, glibc_15k, glibc_128k, glibc_256k, glibc_never, "
        "dlmalloc, jemalloc, mimalloc, tcmalloc",
    ),
    "an unknown setting of a level": (
        NAMED + RUNS + "[factors.n]\na = { preload = 3 }\n",
        "study.toml:6: [factors.n.a] preload: the value is a whole number, not a string or "
        "an array of strings",
        "give a string or an array of strings",
    ),
    "two treatments and no comparison": (
        WHOLE + "[factors.m]\nlevels = [1]\n",
        "study.toml: [compare]: factor is missing",
        "add factor, one of n, m",
    ),
    "a stratum that is compared": (
        WHOLE + 'role = "stratum"\n[compare]\nfactor = "n"\n',
        "study.toml:9: [compare] factor: n is a stratum, not a treatment",
        "compare another factor at each stratum",
    ),
    "a size that is a word": (
        NAMED + RUNS + '[factors.n]\nlevels = [\n  1,\n  "big"]\nrole = "size"\n',
        "study.toml:6: [factors.n] levels: 'big' is not a size",
        'give numbers above 0, or role = "stratum" for other levels',
    ),
    "a size of nothing": (
        NAMED + RUNS + '[factors.n]\nrole = "size"\n[factors.n.0]\nargs = "-r"\n',
        "study.toml:7: [factors.n] 0: '0' is not a size",
        'give numbers above 0, or role = "stratum" for other levels',
    ),
    "an exclusion of a size that is none": (
        WHOLE + 'role = "size"\n[[exclude]]\nn = "big"\n',
        "study.toml:9: [exclude] n: 'big' is not a size",
        "give numbers above 0",
    ),
    "an exclusion that is neither level nor levels": (
        WHOLE + "[[exclude]]\nn = true\n",
        "study.toml:8: [exclude] n: True is neither a string nor a number",
        'write a level in quotes, such as "fast"',
    ),
    "an exclusion of no level": (
        WHOLE + "[[exclude]]\nn = []\n",
        "study.toml:8: [exclude] n: the list of levels is empty",
        "name at least one level",
    ),
    "a null byte in a command": (
        NAMED + '[workload]\ncommand = "sort \\u0000 {n}"\n' + VARIES,
        "study.toml:4: [workload] command: the text contains a null byte",
        "remove the null byte",
    ),
    "a null byte in a level": (
        NAMED + RUNS + '[factors.n]\nlevels = ["a", "\\u0000"]\n',
        "study.toml:6: [factors.n] levels: the text contains a null byte",
        "remove the null byte",
    ),
    "no metric": (
        WHOLE + "[measure]\nmetrics = []\n",
        "study.toml:8: [measure] metrics: the list of metrics is empty",
        'write metrics = ["wall_s"]',
    ),
    "a report twice": (
        NAMED + RUNS + 'reports = ["rate", "rate"]\n' + VARIES,
        "study.toml:5: [workload] reports: rate appears twice",
        "remove one of the two",
    ),
    "a date for a number": (
        WHOLE + "[measure]\nbudget = 2006-05-01\n",
        "study.toml:8: [measure] budget: the value is a date or a time, not a number above 0",
        "give a number above 0",
    ),
    "rows that nothing asks for": (
        NAMED + RUNS + 'data = "lalonde"\n' + VARIES,
        "study.toml:5: [workload] data: no text contains {data}",
        "write {data} in the command, for the file of rows",
    ),
    "a level of a kind that is a table too": (
        NAMED + RUNS + '[factors.n]\nkind = "allocator"\nlevels = ["glibc"]\n[factors.n.glibc]\n',
        "study.toml:8: [factors.n] glibc: glibc is in levels and also has a table",
        "remove glibc from levels",
    ),
    "braces in a path": (
        NAMED + '[workload]\ncommand = ["sort"]\n[factors.n.a]\npreload = "{study}/x.so"\n',
        "study.toml:6: [factors.n.a] preload: a path cannot contain {study}",
        "write the path out; a relative path starts from the study's own folder",
    ),
    "CPUs from the last to the first": (
        NAMED + '[workload]\ncommand = ["sort"]\n[factors.n.a]\ncpu = "3-1"\n',
        "study.toml:6: [factors.n.a] cpu: '3-1' does not name CPUs",
        'write cpu = 0 or cpu = "0-1,4"',
    ),
    "a comparison left out where there is no such factor": (
        WHOLE + '[compare]\nfactor = "n"\nnot_compared_at.m = 1\n',
        "study.toml:9: [compare.not_compared_at] m: there is no such key",
        "remove m",
    ),
    "a server that nobody can ask": (
        NAMED + '[workload.server]\nstart = ["x"]\nclient = ["y"]\n' + VARIES,
        "study.toml:3: [workload.server]: ready is missing, and start contains neither {port} nor "
        "{folder}/socket",
        'add a command that succeeds once the server is ready: ready = ["pg_isready"]',
    ),
    "a workload without a command": (
        NAMED + "[workload]\n" + VARIES,
        "study.toml:3: [workload]: command is missing",
        'add one, such as command = ["sort", "words"]',
    ),
    "a trial that is neither a life nor an interval": (
        NAMED + SERVER + 'trial = "hour"\n' + VARIES,
        "study.toml:7: [workload.server] trial: there is no trial 'hour'",
        "use one of life, interval",
    ),
    "lives beside intervals": (
        NAMED
        + SERVER
        + "[factors.n.a]\n[factors.n.b.server]\n"
        + 'start = ["x"]\nclient = ["y"]\nready = ["z"]\ntrial = "interval"\n',
        "study.toml:7: [factors]: a trial is the whole life of one server, but an interval "
        "of another server's life",
        'give every server the same value of trial, such as trial = "life"',
    ),
    "a level that is a server and a command": (
        NAMED
        + '[workload]\n[factors.n.a]\ncommand = ["x"]\n'
        + '[factors.n.a.server]\nstart = ["x"]\nclient = ["y"]\nready = ["z"]\n',
        "study.toml:5: [factors.n.a] command: there is a command besides a server",
        "move the command to the key client of the server",
    ),
    "a metric of lives where trials are intervals": (
        NAMED
        + SERVER
        + 'trial = "interval"\n'
        + VARIES
        + '[measure]\nmetrics = ["server_voluntary_switches"]\n',
        "study.toml:11: [measure] metrics: there is no metric 'server_voluntary_switches'",
        "did you mean voluntary_switches? use one of wall_s, user_s, sys_s, max_rss_bytes, "
        "minor_faults, major_faults, voluntary_switches, involuntary_switches, block_reads,"
        " block_writes, output_bytes, cycles, server_user_s, server_sys_s, "
        "server_max_rss_bytes, server_pss_bytes, server_minor_faults, server_major_faults; "
        "list metrics that the workload itself reports in [workload] reports",
    ),
    "a placeholder in the server of a level": (
        NAMED
        + '[workload]\n[factors.m.a.server]\nstart = ["x", "{prot}"]\n'
        + 'client = ["y"]\nready = ["z"]\n',
        "study.toml:5: [factors.m.a.server] start: {prot} is not a placeholder",
        "did you mean port? use one of folder, helpers, m, password_file, port, python, study; "
        "write {{prot}} for the braces themselves",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_study_is_refused_in_exact_words(case: str, tmp_path: Path) -> None:
    text, what, hint = MALFORMED[case]
    with pytest.raises(UnusableInput) as caught:
        read(tmp_path, text)
    assert (caught.value.what, caught.value.hint) == (what, hint)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"[study]\nname = '\xff'\n")
    with pytest.raises(UnusableInput, match="study.toml:2: the file is not UTF-8"):
        read_study(path)
    with pytest.raises(UnusableInput, match="No such file"):
        read_study(tmp_path / "none.toml")


def test_the_form_of_the_design_is_read(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        """
[study]
name = "allocators"
[workload]
command = ["equipoise-workload", "genmatch2006", "--rows", "{rows}"]
[factors.allocator]
glibc = {}
jemalloc = { preload = "libjemalloc.so.2" }
glibc_15k = { env = { GLIBC_TUNABLES = "glibc.malloc.mmap_threshold=15360" } }
[factors.rows]
levels = [445, 890]
role = "size"
[measure]
metrics = ["wall_s", "minor_faults"]
min_effect = 1.0
budget = 600
[compare]
factor = "allocator"
baseline = "glibc"
""",
    )
    allocator, rows = study.factors
    assert [level.name for level in allocator.levels] == ["glibc", "jemalloc", "glibc_15k"]
    assert allocator.levels[1].package == "libjemalloc2"
    assert allocator.levels[2].environment == {
        "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=15360"
    }
    assert (rows.role, rows.accepts_other_levels) == ("size", True)
    assert study.compared == ComparedFactor("allocator", "glibc")
    assert (study.measure.budget, study.measure.min_effect) == (600.0, 1.0)


def test_every_setting_of_a_level_is_read(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        NAMED
        + RUNS.replace("{n}", "x")
        + """[factors.how.all]
env = { A = 1 }
preload = ["./lib/a.so", "libb.so"]
library_path = "lib"
args = ["-v"]
folder = "sub"
cpu = "0-1,3"
aslr = false
huge_pages = true
command = "sort -r 'a b'"
build = "cc -o {build}/x x.c"
package = "libb1"
summary = "all of it"
""",
    )
    assert study.factors[0].levels == (
        Level(
            "all",
            environment={"A": "1"},
            preload=(f"{tmp_path}/./lib/a.so", "libb.so"),
            library_path=(f"{tmp_path}/lib",),
            arguments=("-v",),
            command=("sort", "-r", "a b"),
            process=Process(f"{tmp_path}/sub", (0, 1, 3), random_addresses=False, huge_pages=True),
            build="cc -o {build}/x x.c",
            package="libb1",
            summary="all of it",
        ),
    )


def test_braces_without_a_name_are_unchanged(tmp_path: Path) -> None:
    program = 'print({"a": {}}, f"{{n}}", {1, 2})'
    study = read(
        tmp_path, NAMED + f"[workload]\ncommand = ['python3', '-c', '''{program}''']\n" + VARIES
    )
    assert study.workload.command[-1] == program


def test_a_file_that_is_not_regular_is_not_a_study(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.toml")
    with pytest.raises(UnusableInput, match=r"study\.toml is not a regular file"):
        read_study(tmp_path / "study.toml", "study.toml", counters=())


def test_a_complete_table_of_a_server_is_read(tmp_path: Path) -> None:
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
    assert brings.levels[0].server.start == ("x",)
    changed = changes.levels[0]
    assert (changed.client_arguments, changed.client_cpus) == (("--tcp",), (0, 1))
