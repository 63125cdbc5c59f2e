"""Suites of JMH: finding them, listing their benchmarks, and reading one process of a benchmark."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.suites import TOOLS
from equipoise.suites.finding import suites_in
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import repository
from packages.equipoise.tests.suites.adapters.example_projects import (
    EXAMPLES,
    TEST_TOOLS,
    gates_a_suite,
)
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run

EXAMPLE = EXAMPLES / "jmh"
MAVEN_REPOSITORY = TEST_TOOLS / "maven"
VERSION = "1.37"
JMH = TOOLS["jmh"]
SAMPLE = "org.openjdk.jmh.samples.JMHSample_34_SafeLooping"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <artifactId>perf</artifactId><version>2.1</version>
  <properties><jar.name>${{project.artifactId}}-all</jar.name></properties>
  <dependencies><dependency>
    <groupId>org.openjdk.jmh</groupId><artifactId>jmh-core</artifactId>{dependency}
  </dependency></dependencies>
  <build><plugins><plugin>{plugin}</plugin></plugins></build>
</project>"""
SHADE = "<artifactId>maven-shade-plugin</artifactId>"
FINAL_NAME = "<configuration><finalName>{}</finalName></configuration>"
ATTACHED = (
    "<configuration><shadedArtifactAttached>true</shadedArtifactAttached>"
    "<shadedClassifierName>jmh</shadedClassifierName></configuration>"
)
PARENT = "<project><modules><module>inner</module></modules></project>"
BUILD = "mvn -q -B -DskipTests package"
GRADLE_PLUGIN = 'plugins {\n    id("me.champeau.jmh") version "0.7.2"\n}\n'


def pom(plugin: str = SHADE, dependency: str = "") -> str:
    return POM.format(plugin=plugin, dependency=dependency)


@pytest.mark.parametrize(
    ("files", "build", "jar"),
    [
        ({"pom.xml": pom()}, BUILD, "target/perf-2.1.jar"),
        (
            {"pom.xml": pom(SHADE + FINAL_NAME.format("${jar.name}"))},
            BUILD,
            "target/perf-all.jar",
        ),
        ({"pom.xml": pom(SHADE + ATTACHED)}, BUILD, "target/perf-2.1-jmh.jar"),
        (
            {"pom.xml": pom("<artifactId>maven-assembly-plugin</artifactId>")},
            BUILD,
            "target/perf-2.1-jar-with-dependencies.jar",
        ),
        (
            {"pom.xml": PARENT, "inner/pom.xml": pom()},
            f"{BUILD} -am -pl inner",
            "inner/target/perf-2.1.jar",
        ),
        (
            {"pom.xml": "<project/>", "my inner/pom.xml": pom()},
            f"{BUILD} -f 'my inner/pom.xml'",
            "my inner/target/perf-2.1.jar",
        ),
        (
            {"build.gradle.kts": GRADLE_PLUGIN},
            "gradle -q --no-daemon :jmhJar && cp build/libs/*-jmh.jar build/jmh.jar",
            "build/jmh.jar",
        ),
        (
            {
                "gradlew": "",
                "settings.gradle": "include 'inner'",
                "build.gradle": "id 'me.champeau.jmh' version '0.7.2' apply false\n",
                "inner/build.gradle": "plugins {\n  alias(libs.plugins.jmh)\n}\n",
            },
            "./gradlew -q --no-daemon :inner:jmhJar && "
            "cp inner/build/libs/*-jmh.jar inner/build/jmh.jar",
            "inner/build/jmh.jar",
        ),
    ],
)
def test_the_build_and_the_jar_of_a_suite_are_found(
    files: dict[str, str], build: str, jar: str, tmp_path: Path
) -> None:
    (found,) = suites_in(written(tmp_path, files))
    assert found.suite.build == build
    assert found.suite.command == ("java", "-jar", jar)


@pytest.mark.parametrize(
    "files",
    [
        {"pom.xml": pom(dependency="<scope>test</scope>")},
        {"pom.xml": pom("<artifactId>maven-jar-plugin</artifactId>")},
        {"pom.xml": "<!DOCTYPE project [<!ENTITY e 'e'>]>" + pom()},
        {"pom.xml": pom()[:-3]},
        {"inner/pom.xml": pom()},
        {"pom.xml": PARENT, "src/main/resources/archetype/pom.xml": pom()},
        {"pom.xml": "<project><modules><module>../x</module><module/></modules></project>"},
        {"build.gradle": "// id 'me.champeau.jmh'\n"},
        {"inner/build.gradle": GRADLE_PLUGIN},
    ],
)
def test_a_build_without_a_jar_of_jmh_is_not_a_suite(files: dict[str, str], tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, files)) == ()


NAMES = """Benchmarks: \r
demo.Odd.$dollar_é
demo.Odd.nasty
demo.Odd.words
demo.Odd.twoModes
demo.Odd.twoModes"""
PARAMETERS = """a.banner
Benchmarks: \r
demo.Odd.$dollar_é
demo.Odd.nasty
  param "word" = {a
b.c, \x1b[31mred}
  param "list" = {1,2, 3}
demo.Odd.words
  param "word" = {<b>&c, , x=y z}
  param "n" = {1, 2}
demo.Odd.twoModes
demo.Odd.twoModes"""
"""Lists that JMH 1.37 prints for a class with odd names and parameters."""


def listed(names: str, parameters: str) -> dict[str, tuple[str, ...]]:
    """Benchmarks in the lists that a program prints, with the options that choose them."""

    def printed_lines(*options: str) -> Sequence[str]:
        text = {"-l": names, "-lp": parameters}[options[0]]
        return [line for line in text.splitlines() if line and line.isprintable()]

    assert JMH.listing is not None
    selections = JMH.listing.benchmarks(printed_lines)
    return {name: options for name, options in selections.items() if options is not None}


def test_each_combination_of_parameters_is_a_benchmark_that_jmh_can_choose() -> None:
    benchmarks = listed(NAMES, PARAMETERS)
    words = [
        ("demo.Odd.words (word = <b>&c, n = 1)", "<b>&c", "1"),
        ("demo.Odd.words (word = <b>&c, n = 2)", "<b>&c", "2"),
        ("demo.Odd.words (word = , n = 1)", "", "1"),
        ("demo.Odd.words (word = , n = 2)", "", "2"),
        ("demo.Odd.words (word = x=y z, n = 1)", "x=y z", "1"),
        ("demo.Odd.words (word = x=y z, n = 2)", "x=y z", "2"),
    ]
    assert benchmarks == {
        "demo.Odd.$dollar_é": ("-e", r"^(?!demo\.Odd\.\$dollar_é$)"),
        # JMH cannot choose values with commas or newlines.
        "demo.Odd.nasty": ("-e", r"^(?!demo\.Odd\.nasty$)"),
        "demo.Odd.twoModes": ("-e", r"^(?!demo\.Odd\.twoModes$)"),
    } | {
        name: ("-e", r"^(?!demo\.Odd\.words$)", "-p", f"word={word}", "-p", f"n={n}")
        for name, word, n in words
    }


def test_lines_of_another_program_are_not_benchmarks() -> None:
    assert listed("usage: a.b\na.b\n", "usage: a.b\na.b\n") == {}


def test_ten_thousand_benchmarks_are_listed_and_more_are_refused() -> None:
    names = [f"demo.Many.m{index}" for index in range(10_000)]
    text = "\n".join(["Benchmarks: ", *names])
    assert list(listed(text, text)) == names
    values = ", ".join(map(str, range(30)))
    parameters = "\n".join(f'  param "{name}" = {{{values}}}' for name in "abcdef")
    with pytest.raises(UnusableInput, match="JMH lists 729000000 benchmarks") as refused:
        listed("Benchmarks: \nd.M.m", f"Benchmarks: \nd.M.m\n{parameters}")
    assert "-p NAME=VALUE" in str(refused.value.hint)


def test_options_of_a_short_run_are_added_unless_the_user_gave_them() -> None:
    assert JMH.listing is not None
    command = JMH.listing.command_for(("-e", "^(?!a$)"), (*JMH.command, "-f", "2", "-w", "1s"))
    assert command[3:7] == ("-f", "2", "-w", "1s")
    assert command[7:] == (
        *("-wf", "0", "-wi", "2", "-i", "5", "-r", "100ms", "-foe", "true"),
        *("-e", "^(?!a$)"),
    )


def entry(mode: str = "avgt", unit: str = "us/op", **fields: Any) -> dict[str, Any]:
    """A result as JMH 1.37 writes it, with two forks of two iterations."""
    metric = {"scoreUnit": unit, "rawData": [[1.0, 3.0], [3.0, 5.0]]}
    return {
        "jmhVersion": VERSION,
        "benchmark": "demo.Sort.quick",
        "mode": mode,
        "params": {"size": "10"},
        "primaryMetric": metric,
        "secondaryMetrics": {},
        **fields,
    }


def program(folder: Path, results: str, *, output: str = "printed", status: int = 0) -> str:
    """A program that writes these results to the file of ``-rff``."""
    path = folder / "java"
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "assert sys.argv[-4:-1] == ['-rf', 'json', '-rff']\n"
        f"open({str(folder / 'arguments')!r}, 'w').write(json.dumps(sys.argv[1:-4]))\n"
        f"print({output!r})\n"
        f"open(sys.argv[-1], 'w').write({results!r})\n"
        f"raise SystemExit({status})\n"
    )
    path.chmod(0o755)
    return str(path)


def values_of(folder: Path, *entries: dict[str, Any]) -> dict[str, float]:
    values = reported(folder, "jmh", program(folder, json.dumps(entries)))
    return {name: metric["value"] for name, metric in values.items()}


def test_the_forks_of_a_process_are_one_value_in_seconds(tmp_path: Path) -> None:
    assert values_of(tmp_path, entry()) == {"time_s": pytest.approx(3e-6)}


def test_an_interrupted_iteration_does_not_change_the_time_of_a_process(tmp_path: Path) -> None:
    interrupted = {"scoreUnit": "us/op", "rawData": [[2.0, 2.0, 2.0, 90.0, 2.0]]}
    assert values_of(tmp_path, entry(primaryMetric=interrupted)) == {"time_s": pytest.approx(2e-6)}


def test_a_throughput_becomes_the_seconds_of_an_operation(tmp_path: Path) -> None:
    values = values_of(tmp_path, entry("thrpt", "ops/ms"))
    assert values == {"time_s": pytest.approx((1e-3 / 2 + 1e-3 / 4) / 2)}


def test_each_mode_of_a_benchmark_is_reported_the_average_time_first(tmp_path: Path) -> None:
    values = values_of(tmp_path, entry("ss"), entry("thrpt", "ops/s"), entry(unit="ms/op"))
    assert values == {
        "time_s": pytest.approx(3e-3),
        "thrpt_time_s": pytest.approx(0.375),
        "ss_time_s": pytest.approx(3e-6),
    }


def test_the_time_of_parameters_that_were_not_chosen_is_the_mean(tmp_path: Path) -> None:
    slow = {"scoreUnit": "us/op", "rawData": [[9.0]]}
    entries = (entry(), entry(params={"size": "1,0"}, primaryMetric=slow))
    assert values_of(tmp_path, *entries) == {"time_s": pytest.approx(5e-6)}


def test_a_parameter_may_be_called_mode(tmp_path: Path) -> None:
    assert values_of(tmp_path, entry(params={"mode": "x"})) == {"time_s": pytest.approx(3e-6)}


@pytest.mark.parametrize("name", ["gc.alloc.rate.norm", "·gc.alloc.rate.norm"])
def test_bytes_of_the_gc_profiler_are_reported(name: str, tmp_path: Path) -> None:
    profiled = {"scoreUnit": "B/op", "rawData": [[16.0, 24.0], [16.0, 8.0]]}
    values = values_of(tmp_path, entry(secondaryMetrics={name: profiled}))
    assert values == {"time_s": pytest.approx(3e-6), "allocated_bytes": pytest.approx(16.0)}


def test_the_last_value_of_a_parameter_is_chosen(tmp_path: Path) -> None:
    java = program(tmp_path, json.dumps([entry()]))
    given = ("-p", "modules", "-jar", "x.jar", "-p", "n=1,2", "-p", "m=3", "-p", "n=2")
    reported(tmp_path, "jmh", java, *given)
    arguments = json.loads((tmp_path / "arguments").read_text())
    assert arguments == ["-p", "modules", "-jar", "x.jar", "-p", "m=3", "-p", "n=2"]


FAILURE = """# JMH version: 1.37
# Benchmark: demo.Odd.broken
# Warmup Iteration   1: <failure>

java.lang.IllegalStateException: no <b>data
	at demo.Odd.broken(Odd.java:13)
"""
EXIT = "# Warmup Iteration   1: <failure: VM prematurely exited before JMH had finished with it>\n"


@pytest.mark.parametrize(
    ("results", "output", "status", "problem"),
    [
        ("", FAILURE, 1, "JMH 1.37: demo.Odd.broken failed: java.lang.IllegalStateException: no "),
        ("", EXIT, 1, "JMH: the benchmark failed: VM prematurely exited before JMH had finished"),
        ("", "No matching benchmarks. Miss-spelled regexp?", 1, "No matching benchmarks."),
    ],
)
def test_a_process_that_measured_nothing_has_failed_with_one_line(
    results: str, output: str, status: int, problem: str, tmp_path: Path
) -> None:
    done = run("jmh", program(tmp_path, results, output=output, status=status))
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr and "\tat " not in done.stderr


def test_the_user_s_own_file_of_results_is_refused() -> None:
    done = run("jmh", "java", "-jar", "x.jar", "-rff", "mine.json")
    assert done.stderr == "jmh: remove -rf and -rff from the command: Equipoise adds both to JMH\n"


ODD = r"""package demo;
import org.openjdk.jmh.annotations.*;
public class Odd {
  @State(Scope.Thread) public static class Words {
    @Param({"<b>", "a\nb.c", "\u001b[31mred"}) public String word;
    @Param({"1", "2"}) public int n;
  }
  @Benchmark public int words(Words w) { return w.word.length() + w.n; }
  @Benchmark @BenchmarkMode({Mode.AverageTime, Mode.SingleShotTime})
  public int prints() { System.out.println("[{]"); return 1; }
  @Benchmark public int broken() { throw new IllegalStateException("no <b>data"); }
  @Benchmark public int exits() { System.exit(3); return 1; }
}
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maven with the packages that `scripts/test_tools.sh` fetched."""
    if not (MAVEN_REPOSITORY / f"org/openjdk/jmh/jmh-core/{VERSION}").is_dir():
        pytest.skip(f"misses JMH {VERSION}: scripts/test_tools.sh jmh")
    monkeypatch.setenv("MAVEN_OPTS", f"-Dmaven.repo.local={MAVEN_REPOSITORY}")
    # JMH leaves a lock file in the folder of temporary files.
    folder = tmp_path / "java"
    folder.mkdir()
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.io.tmpdir={folder}")


@gates_a_suite
@pytest.mark.live("mvn", package="maven")
@pytest.mark.usefixtures("maven")
def test_the_example_gated_with_more_work_is_slower(tmp_path: Path, gate: Gate) -> None:
    project = repository(tmp_path / "project")
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    (patch,) = project.path.glob("*.patch")
    # Twenty-one times the work, where the patch plants 5 %: a busy host shows that, too.
    patch.write_text(patch.read_text().replace("size * 21 / 20", "size * 21"))
    project.commit()
    project.git("apply", patch.name)
    project.commit()
    short = ("-wi", "1", "-w", "20ms", "-i", "2", "-r", "20ms", "-p", "size=1000")
    options = ("--kind", "jmh", "--min-effect", "50", "--budget", "400", "--json", "-")
    words = (*JMH.command, "measureRight_1", *short)
    answer = gate(project, "--baseline", "HEAD~1", *options, "--", *words)
    assert answer.status == 1, answer
    result = document(answer)
    (row,) = result["gate"]["rows"]
    assert row["benchmark"] == f"{SAMPLE}.measureRight_1 (size = 1000)"
    assert row["outcome"] == "slower"
    assert row["ratio"] > 3.0


@pytest.mark.live("mvn", package="maven")
@pytest.mark.usefixtures("maven")
def test_odd_benchmarks_are_listed_and_measured_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, {"src/main/java/demo/Odd.java": ODD})
    shutil.copy(EXAMPLE / "pom.xml", tmp_path)
    (found,) = suites_in(tmp_path)
    assert (found.options, found.suite.command) == ("--kind jmh", JMH.command)
    monkeypatch.chdir(tmp_path)
    built = finished(["sh", "-c", str(found.suite.build)])
    assert built.returncode == 0, built.stdout
    names, parameters = (
        finished([*found.suite.command, option]).stdout for option in ("-l", "-lp")
    )
    benchmarks = listed(names, parameters)
    assert list(benchmarks) == [
        *("demo.Odd.broken", "demo.Odd.exits"),
        *("demo.Odd.words (n = 1)", "demo.Odd.words (n = 2)", "demo.Odd.prints"),
    ]
    short = (*found.suite.command, "-wi", "1", "-w", "10ms", "-i", "1", "-r", "10ms")
    assert JMH.listing is not None
    commands = {
        name: JMH.listing.command_for(selection, short) for name, selection in benchmarks.items()
    }
    for name, reason in {
        "demo.Odd.broken": "java.lang.IllegalStateException: no <b>data",
        "demo.Odd.exits": "VM prematurely exited before JMH had finished with it, explicit "
        "System.exit was called?",
    }.items():
        failed = run("jmh", *commands[name])
        assert failed.stderr == f"JMH {VERSION}: {name} failed: {reason}\n"
    words = reported(tmp_path, "jmh", *commands["demo.Odd.words (n = 2)"])
    assert words.keys() == {"time_s"}
    prints = reported(tmp_path, "jmh", *commands["demo.Odd.prints"])
    assert prints.keys() == {"time_s", "ss_time_s"}
    assert 0.0 < prints["time_s"]["value"] < 1.0
