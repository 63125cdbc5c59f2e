"""Files that JMH itself writes are read with every value: one kept here, and one made now."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from packages.equipoise.tests.imports import SAMPLES, reading_of
from packages.equipoise.tests.tools import printed_by, ran

PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.openjdk.jmh</groupId><artifactId>jmh-core</artifactId><version>1.37</version>
    </dependency>
    <dependency>
      <groupId>org.openjdk.jmh</groupId><artifactId>jmh-generator-annprocess</artifactId>
      <version>1.37</version><scope>provided</scope>
    </dependency>
  </dependencies>
</project>
"""
BENCHMARK = """package bench;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.*;
@State(Scope.Benchmark)
@Fork(2)
@Warmup(iterations = 1, time = 20, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 2, time = 20, timeUnit = TimeUnit.MILLISECONDS)
public class Sums {
  @Param({"10"}) int n;
  @Benchmark @BenchmarkMode(Mode.AverageTime) @OutputTimeUnit(TimeUnit.NANOSECONDS)
  public long average() { long s = 0; for (int i = 0; i < n; i++) s += i * s; return s; }
  @Benchmark @BenchmarkMode(Mode.Throughput)
  public long throughput() { return average(); }
  @Benchmark @BenchmarkMode(Mode.SampleTime)
  public long sample() { return average(); }
  @Benchmark @BenchmarkMode(Mode.SingleShotTime)
  public long once() { return average(); }
}
"""
SECONDS = {"ns/op": 1e-9, "s/op": 1.0}


def holds_every_value(path: Path) -> list[str]:
    """Hold what was read against the file, read by another reader; return the modes in it."""
    form, reading = reading_of(path)
    assert form == "jmh"
    assert reading.tool == "JMH 1.37"
    processes = iter(reading.processes)
    theirs: list[dict[str, Any]] = json.loads(path.read_text())
    for result in theirs:
        metric = result["primaryMetric"]
        for fork in range(result["forks"]):
            process = next(processes)
            assert process.benchmark == result["benchmark"]
            assert process.levels == {"mode": result["mode"], **result["params"]}
            ours = {name: list(values) for name, values in process.iterations.items()}
            for name, other in result["secondaryMetrics"].items():
                assert ours[name] == other["rawData"][fork]
            if result["mode"] == "sample":
                pairs = [
                    pair for iteration in metric["rawDataHistogram"][fork] for pair in iteration
                ]
                assert list(zip(ours["time_s_seen"], ours["time_s_times"], strict=True)) == [
                    (seconds, times) for seconds, times in pairs if times
                ]
                assert ours["time_s"] == pytest.approx(
                    [
                        sum(seconds * times for seconds, times in histogram)
                        / sum(times for _, times in histogram)
                        for histogram in metric["rawDataHistogram"][fork]
                    ]
                )
            elif result["mode"] == "thrpt":
                assert ours["operations_per_s"] == metric["rawData"][fork]
            else:
                factor = SECONDS[metric["scoreUnit"]]
                assert ours["time_s"] == [factor * score for score in metric["rawData"][fork]]
    assert next(processes, None) is None
    return [result["mode"] for result in theirs]


def test_every_value_of_a_file_that_jmh_wrote() -> None:
    assert sorted(holds_every_value(SAMPLES / "jmh_1.37.json")) == ["avgt", "sample", "ss", "thrpt"]


def test_no_warm_up_is_looked_for_in_the_bins_of_a_histogram() -> None:
    _, reading = reading_of(SAMPLES / "jmh_1.37.json")
    assert reading.metrics_without_time_order == ("time_s_seen", "time_s_times")


def test_every_value_of_a_file_that_jmh_writes_now(tmp_path: Path) -> None:
    for program in ("mvn", "javac"):
        if shutil.which(program) is None:
            pytest.skip(f"misses {program}: install Maven and a JDK of 17 or later")
    source = tmp_path / "src/main/java/bench/Sums.java"
    source.parent.mkdir(parents=True)
    source.write_text(BENCHMARK)
    (tmp_path / "pom.xml").write_text(PROJECT)
    maven = ["mvn", "-q", "-B", "-ntp", "compile", "dependency:build-classpath"]
    built = ran(*maven, "-Dmdep.outputFile=classpath", folder=tmp_path)
    if built.returncode != 0:
        pytest.skip(f"misses JMH, which Maven could not fetch and build: {built.stdout[-200:]}")
    classpath = f"target/classes:{(tmp_path / 'classpath').read_text()}"
    # Another run of JMH on this host is nothing to a test.
    java = ("java", "-Djmh.ignoreLock=true", "-cp", classpath)
    jmh = (*java, "org.openjdk.jmh.Main", "-rf", "json", "-rff", "out.json")
    printed_by(*jmh, "-prof", "gc", "-foe", "true", "Sums.(average|sample)", folder=tmp_path)
    assert sorted(holds_every_value(tmp_path / "out.json")) == ["avgt", "sample"]
