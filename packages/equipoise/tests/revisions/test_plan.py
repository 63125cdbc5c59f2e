"""Two revisions and some benchmarks become conditions that differ in nothing else."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from equipoise.design.command_line import shell_line_with_placeholders
from equipoise.kinds.bisect.command import command
from equipoise.kinds.gate.analysis import joined_bisect_lines
from equipoise.kinds.gate.command import GateRequest, named_bisect_argvs
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast
from equipoise.model.revisions import Revision
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.commit_plans import chosen_benchmarks
from equipoise.revisions.git import Repository
from equipoise.revisions.pairs import CheckoutPair
from equipoise.revisions.plan import Checkout, conditions_of_gate
from equipoise.suites import TOOLS
from equipoise.suites.tool import TRIAL_MODULE


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckoutPair:
    """Two trees with a program each."""
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    repository = Repository(tmp_path / "own", "inside")
    made = []
    for name, role, commit in (("old", "baseline", "1" * 40), ("new", "candidate", "2" * 40)):
        folder = tmp_path / name / "inside"
        folder.mkdir(parents=True)
        (folder / "bench").write_text("#!/bin/sh\n")
        (folder / "bench").chmod(0o755)
        made.append(Checkout(role, Revision(name, commit), folder.parent, repository))
    return made[0], made[1]


def test_one_benchmark_is_two_conditions_in_their_own_folders(
    sides: CheckoutPair, tmp_path: Path
) -> None:
    benchmark = Benchmark("b", ("./bench", "$HOME;"))
    conditions, contrasts = conditions_of_gate([benchmark], sides, None)
    assert [condition.name for condition in conditions] == [
        "baseline old (1111111111)",
        "candidate new (2222222222)",
    ]
    assert [condition.command for condition in conditions] == [
        (str(tmp_path / side / "inside" / "bench"), "$HOME;") for side in ("old", "new")
    ]
    assert [condition.process.working_folder for condition in conditions] == [
        str(side.folder) for side in sides
    ]
    assert contrasts == (Contrast(0, 1, "revision", {}),)


def test_each_of_several_benchmarks_is_compared_with_itself(sides: CheckoutPair) -> None:
    benchmarks = [Benchmark("one", ("./bench",)), Benchmark("two", ("true",))]
    conditions, contrasts = conditions_of_gate(benchmarks, sides, None)
    assert [condition.levels["benchmark"] for condition in conditions] == [
        "one",
        "one",
        "two",
        "two",
    ]
    assert [(contrast.baseline, contrast.candidate) for contrast in contrasts] == [(0, 1), (2, 3)]
    assert contrasts[1].stratum == {"benchmark": "two"}
    assert conditions[2].command == conditions[3].command == ("/bin/true",)


def lines_of(
    *metrics: str, tool: str | None = None, uncommitted: bool = False
) -> dict[str, tuple[str, ...]]:
    """The words of the lines of a gate of two benchmarks, which a tool reports of one command."""
    commands = (Benchmark("parse", ("./bench", "a b")), Benchmark("render", ("./bench", "render")))
    request = GateRequest(
        repository=Repository(Path("/repository"), ""),
        baseline=Revision("old", "1" * 40),
        candidate=Revision("new", "2" * 40, uncommitted),
        benchmarks=commands if tool is None else commands[:1],
        build="make all",
        tool=None if tool is None else TOOLS[tool],
    )
    return dict(named_bisect_argvs(request, commands, metrics))


def test_each_benchmark_of_a_gate_has_a_line_that_bisect_takes() -> None:
    lines = lines_of("cpu_s")
    assert [*lines] == ["parse", "render"]
    words = list(lines["parse"])
    assert words[:2] == ["equipoise", "bisect"]
    options = command.make_context("bisect", words[2:]).params
    assert (options["good"], options["bad"]) == ("1" * 40, "2" * 40)
    assert (options["build"], options["metrics"]) == ("make all", "cpu_s")
    assert options["argv"] == ("./bench", "a b")
    assert "--metrics" not in lines_of("wall_s")["parse"]
    # Without --bad, a bisection ends at the working tree as well.
    assert "--bad" not in lines_of("wall_s", uncommitted=True)["parse"]


def test_a_benchmark_that_a_tool_reports_is_a_metric_of_the_bisection() -> None:
    lines = lines_of("parse time_s", "render time_s", tool="cargo")
    assert [*lines] == ["parse", "render"]
    options = command.make_context("bisect", list(lines["render"][2:])).params
    assert (options["kind"], options["metrics"]) == ("cargo", "render")


def test_gate_without_a_possible_bisection_has_no_command() -> None:
    assert lines_of("wall_s", "max_rss_bytes") == {}
    # A bisection searches the benchmarks of this tool by their times only.
    assert lines_of("cpu_time_s", tool="google-benchmark") == {}


def test_a_benchmark_that_a_program_lists_is_named_with_the_program() -> None:
    line = lines_of("time_s", tool="google-benchmark")["render"]
    options = command.make_context("bisect", list(line[2:])).params
    assert (options["kind"], options["metrics"]) == ("google-benchmark", "render")
    assert options["argv"] == ("./bench", "a b")


def test_one_command_bisects_all_slower_benchmarks() -> None:
    lines = joined_bisect_lines(lines_of("cpu_s"))
    assert lines["parse"] == lines["render"]
    options = command.make_context("bisect", shlex.split(lines["parse"])[2:]).params
    assert (options["good"], options["metrics"], options["argv"]) == ("1" * 40, "cpu_s", ())
    assert options["benches"] == ("parse=./bench 'a b'", "render=./bench render")
    of_tool = joined_bisect_lines(lines_of("parse time_s", "render time_s", tool="cargo"))
    options = command.make_context("bisect", shlex.split(of_tool["render"])[2:]).params
    assert (options["kind"], options["metrics"]) == ("cargo", "parse,render")


def test_lines_that_differ_in_more_stay_apart() -> None:
    lines = lines_of("wall_s")
    third = tuple(word.replace("make all", "make") for word in lines["parse"])
    hidden = {name: (*line, "A=$A") for name, line in lines.items()}
    for apart in ({**lines, "third": third}, hidden, {"parse": lines["parse"]}):
        joined = joined_bisect_lines(apart)
        assert joined == {name: shell_line_with_placeholders(one) for name, one in apart.items()}


def test_reading_command_is_the_same_for_both_revisions(sides: CheckoutPair) -> None:
    tool = TOOLS["cargo"]
    conditions, _ = conditions_of_gate([Benchmark("b", ("true", "x"))], sides, tool)
    for condition, side in zip(conditions, sides, strict=True):
        assert condition.command[1:] == ("-P", "-m", TRIAL_MODULE, "cargo", "--", "/bin/true", "x")
        assert condition.environment == {"CARGO_TARGET_DIR": f"{side.tree}/target"}
    lengths = {len(condition.environment["CARGO_TARGET_DIR"]) for condition in conditions}
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("./none", "the baseline old .* has no program ./none"),
        ("inside/bench", "has no program inside/bench"),
        ("./", "has no program ./"),
        ("./text", "text of the baseline old .* cannot be executed"),
        ("no-such-program", "there is no program 'no-such-program' on the PATH"),
    ],
)
def test_missing_program_is_refused(name: str, problem: str, sides: CheckoutPair) -> None:
    Path(sides[0].folder, "text").write_text("")
    with pytest.raises(UnusableInput, match=problem) as caught:
        conditions_of_gate([Benchmark("b", (name,))], sides, None)
    assert caught.value.hint


def test_a_program_of_the_users_own_tree_is_refused(sides: CheckoutPair, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    for path in (tmp_path / "own" / "bench", tmp_path / "link" / "bench"):
        with pytest.raises(UnusableInput, match="is a program of your own working tree"):
            conditions_of_gate([Benchmark("b", (str(path),))], sides, None)


NAMES = ("Sum<int, 4>", "Sum<int>", "Same", "int")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (None, NAMES),
        ("Same", ("Same",)),
        ("Same,Sum<int>", ("Same", "Sum<int>")),
        ("Sum<int, 4>,Same", ("Sum<int, 4>", "Same")),
        ("Sum<int,4>", ("Sum<int, 4>",)),
        ("Same,Same", ("Same",)),
    ],
)
def test_names_may_have_commas(text: str | None, chosen: tuple[str, ...]) -> None:
    assert chosen_benchmarks(TOOLS["google-benchmark"], text, NAMES) == chosen


@pytest.mark.parametrize("text", ["Nothing", "Same,Nothing", "Sum<int", "", "Same,"])
def test_unknown_name_is_refused_with_the_known_names(text: str) -> None:
    with pytest.raises(UnusableInput, match="has no benchmark") as refused:
        chosen_benchmarks(TOOLS["google-benchmark"], text, NAMES)
    assert "it has Sum<int, 4>, Sum<int>" in refused.value.what
