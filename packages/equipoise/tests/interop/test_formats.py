"""Every value of a file of each format arrives, as the thing that it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import SAMPLES, reading_of, written


@pytest.mark.parametrize(
    ("sample", "form", "tool"),
    [
        ("hyperfine_2.json", "hyperfine", "hyperfine 2.0.0"),
        ("hyperfine_2.0.0.json", "hyperfine", "hyperfine 2.0.0"),
        ("jmh.json", "jmh", "JMH 1.37"),
        ("criterion", "criterion", "criterion.rs"),
        ("go.txt", "go", "go test -bench"),
        ("rebench.data", "rebench", "ReBench"),
        ("sysbench.txt", "sysbench", "sysbench 1.0.20"),
        ("vitest_4.1.12.json", "vitest", "vitest"),
        ("vitest_5.1.2.json", "vitest", "vitest"),
        ("catch2_2.13.10.xml", "catch2", "Catch2"),
        ("catch2_3.7.1.xml", "catch2", "Catch2 3.7.1"),
        ("divan_0.1.17.txt", "divan", "divan"),
        ("nanobench_4.0.0.txt", "nanobench", "nanobench"),
    ],
)
def test_content_determines_the_format_and_the_tool(sample: str, form: str, tool: str) -> None:
    format_name, reading = reading_of(SAMPLES / sample)
    assert (format_name, reading.tool) == (form, tool)


def test_each_run_of_hyperfine_2_is_a_process_with_its_own_figures() -> None:
    _, reading = reading_of(SAMPLES / "hyperfine_2.json")
    first, second, third, fourth = reading.processes
    assert first.benchmark == "sort, one thread"
    assert first.levels == {"threads": "1"}
    assert first.values == {
        "wall_s": 0.125,
        "user_s": 0.1,
        "sys_s": 0.02,
        "max_rss_bytes": 21000192.0,
        "instructions": 1e7,
    }
    assert second.values["wall_s"] == 0.135
    assert third.values["wall_s"] == pytest.approx(0.075, rel=1e-15)
    assert (third.exit, third.failure) == (3, "exit status 3")
    assert (fourth.exit, fourth.failure) == (None, "a signal ended the process")
    assert not any(process.iterations for process in reading.processes)


def test_every_value_of_a_file_that_hyperfine_2_wrote() -> None:
    path = SAMPLES / "hyperfine_2.0.0.json"
    _, reading = reading_of(path)
    file = json.loads(path.read_text())
    ours = iter(reading.processes)
    for theirs in file["results"]:
        for run in theirs["measurements"]:
            process = next(ours)
            assert process.benchmark == theirs["name"]
            assert process.levels == {
                name: one["value"] for name, one in theirs["parameters"].items()
            }
            assert process.exit == run.pop("exit_code")
            assert list(process.values.values()) == [quantity["value"] for quantity in run.values()]
        assert reading.environment["command_lines"][theirs["name"]] == theirs["command"]
        assert reading.environment["variables"][theirs["name"]] == theirs["environment"]
    assert next(ours, None) is None
    assert reading.environment["start_time"] == file["metadata"]["start_time"]


def test_the_metric_that_hyperfine_2_was_asked_for_is_compared(tmp_path: Path) -> None:
    path = SAMPLES / "hyperfine_2.0.0.json"
    assert reading_of(path)[1].metric == "cpu_s"
    # A counter that one command has and another has not compares nothing.
    text = path.read_text().replace('"primary_metric": "time_cpu"', '"primary_metric": "cycles"')
    assert reading_of(written(tmp_path, "other.json", text))[1].metric == "wall_s"


def test_each_fork_of_jmh_is_a_process_and_its_scores_are_iterations() -> None:
    _, reading = reading_of(SAMPLES / "jmh.json")
    adds = [process for process in reading.processes if process.benchmark.endswith("add")]
    assert [list(process.iterations["operations_per_s"]) for process in adds] == [
        [2.0e6, 2.1e6, 2.2e6],
        [1.9e6, 2.0e6, 2.1e6],
    ]
    assert [list(process.iterations["gc.alloc.rate"]) for process in adds] == [
        [10.0, 20.0, 15.0],
        [14.0, 16.0, 15.0],
    ]
    assert adds[0].values == {"time_s": pytest.approx(1.0 / 2.1e6)}
    assert adds[0].levels == {"mode": "thrpt", "size": "100"}
    (remove,) = [process for process in reading.processes if process.benchmark.endswith("remove")]
    assert list(remove.iterations["time_s"]) == pytest.approx([2.25e-6, 2.75e-6])
    (find,) = [process for process in reading.processes if process.benchmark.endswith("find")]
    assert list(find.iterations["time_s_seen"]) == pytest.approx([0.25e-3, 1.25e-3])
    assert list(find.iterations["time_s_times"]) == [3.0, 1.0]
    assert find.values["time_s"] == pytest.approx(0.5e-3)


def test_each_saved_run_of_criterion_is_one_process() -> None:
    _, reading = reading_of(SAMPLES / "criterion")
    parse, base, new = reading.processes
    assert (parse.benchmark, base.benchmark, new.benchmark) == ("parse", "sort/small", "sort/small")
    assert [process.levels["saved"] for process in reading.processes] == ["new", "base", "new"]
    assert list(base.iterations["time_s"]) == pytest.approx([100e-9, 110e-9, 100e-9])
    assert list(base.iterations["iterations_of_sample"]) == [10.0, 20.0, 30.0]
    assert new.values["time_s"] == pytest.approx(340e-9 / 3)
    assert reading.compared_factor == "saved"


def test_count_of_go_gives_iterations_of_one_process() -> None:
    _, reading = reading_of(SAMPLES / "go.txt")
    assert reading.environment["goos"] == "linux"
    lines = [line.split() for line in (SAMPLES / "go.txt").read_text().splitlines()]
    for process in reading.processes:
        own = [words for words in lines if words and words[0] == process.benchmark]
        assert len(own) == 2
        assert list(process.iterations["time_s"]) == [float(words[2]) * 1e-9 for words in own]
        assert list(process.iterations["loop_iterations"]) == [20.0, 20.0]
        assert process.levels == {"package": "example.com/sorting"}
    small, _, throughput = reading.processes
    assert list(small.iterations["allocs/op"]) == [0.0, 0.0]
    assert list(throughput.iterations["MB/s"]) == [25000.0, 28571.43]


def test_go_runs_appended_to_one_file_are_separate_processes(tmp_path: Path) -> None:
    text = (SAMPLES / "go.txt").read_text()
    _, reading = reading_of(written(tmp_path, "both.txt", text + text))
    small = [process for process in reading.processes if process.benchmark == "BenchmarkSort/small"]
    assert len(small) == 2
    assert [len(process.iterations["time_s"]) for process in small] == [2, 2]


def test_invocations_of_rebench_are_processes() -> None:
    _, reading = reading_of(SAMPLES / "rebench.data")
    rows = [
        line.split("\t")
        for line in (SAMPLES / "rebench.data").read_text().splitlines()
        if line[:1].isdigit()
    ]
    assert len(reading.processes) == 8
    values = [value for process in reading.processes for value in process.iterations["time_s"]]
    assert values == [float(row[2]) * 1e-3 for row in rows]
    assert {process.levels["executor"] for process in reading.processes} == {"fast", "slow"}
    assert reading.compared_factor == "executor"


def test_rebench_without_a_header_and_with_criteria_beside_the_total(tmp_path: Path) -> None:
    rows = [
        "1\t1\t2.5\tKB\tmemory\tBounce\tfast\tSuite\t\t1\t\t",
        "1\t1\t10.0\tms\ttotal\tBounce\tfast\tSuite\t\t1\t\t",
        "1\t2\t12.0\tms\ttotal\tBounce\tfast\tSuite\t\t1\t\t",
    ]
    _, reading = reading_of(written(tmp_path, "old.data", "\n".join(rows) + "\n"))
    (process,) = reading.processes
    assert reading.metric == "time_s"
    assert list(process.iterations["time_s"]) == pytest.approx([0.010, 0.012])
    assert list(process.iterations["memory_KB"]) == [2.5]


def test_a_run_of_sysbench_is_a_process_and_its_reports_are_iterations() -> None:
    _, reading = reading_of(SAMPLES / "sysbench.txt")
    (process,) = reading.processes
    assert process.values == pytest.approx(
        {
            "event_s": 1.0187 / 426,
            "wall_s": 1.0187,
            "events": 426.0,
            "latency_least_s": 0.00022,
            "latency_mean_s": 0.00239,
            "latency_greatest_s": 0.06028,
            "latency_p95_s": 0.0215,
            "latency_sum_s": 1.01752,
            "thread_events_mean": 426.0,
            "thread_events_deviation": 0.0,
            "thread_time_mean_s": 1.0175,
            "thread_time_deviation_s": 0.0,
        }
    )
    assert list(process.iterations["events_per_s"]) == [424.73]
    assert list(process.iterations["latency_p95_s"]) == pytest.approx([0.01795])


def test_rows_of_a_csv_are_trials(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "rows.csv",
        'condition,value,block,order,host\n"a, b",1.5,1,2,h1\nc,2.5e-3,1,1,\n',
    )
    form, reading = reading_of(path)
    first, second = reading.processes
    assert (form, reading.metric) == ("csv", "value")
    assert (first.benchmark, first.values, first.block) == ("a, b", {"value": 1.5}, 1)
    assert (first.order, first.host) == (2.0, "h1")
    assert (second.values, second.order, second.host) == ({"value": 2.5e-3}, 1.0, None)


def test_columns_of_a_csv_that_are_not_used_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "more.csv", "condition,wall_s,colour\na,1,red\n")
    _, reading = reading_of(path)
    assert reading.metric == "wall_s"
    assert reading.notes == ("columns that are not used: 'colour'",)


def test_rate_is_not_read_as_a_cost(tmp_path: Path) -> None:
    path = written(tmp_path, "rate.csv", "condition,operations_per_s\na,1\n")
    with pytest.raises(UnusableInput, match="does not name the columns"):
        reading_of(path, "csv")


def test_means_of_pytest_benchmark_without_rounds_are_said_to_be_that(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "saved.json",
        '{"machine_info": {}, "version": "4.0.0",'
        ' "benchmarks": [{"name": "test_a", "stats": {"mean": 0.25}}]}',
    )
    _, reading = reading_of(path)
    assert reading.processes[0].values == {"time_s": 0.25}
    assert not reading.processes[0].iterations
    assert reading.notes == ("1 benchmarks have a mean but no rounds",)


def test_google_benchmark_file_with_only_aggregates_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "aggregates.json",
        '{"context": {}, "benchmarks": [{"name": "A_mean", "run_type": "aggregate"}]}',
    )
    with pytest.raises(UnusableInput, match="has only aggregates"):
        reading_of(path)


def test_pyperf_suites_keep_the_common_metadata(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "suite.json",
        '{"version": "1.0", "metadata": {"perf_version": "2.6.1", "hostname": "h"},'
        ' "benchmarks": [{"metadata": {"name": "dump", "unit": "byte"},'
        ' "runs": [{"warmups": [[1, 5.0]]}, {"values": [3, 5.0], "warmups": [[1, 9.0]]}]}]}',
    )
    _, reading = reading_of(path)
    (process,) = reading.processes
    assert (reading.tool, reading.metric) == ("pyperf 2.6.1", "memory_bytes")
    assert process.values == {"memory_bytes": 4.0}
    assert process.iterations == {"memory_bytes": [3.0, 5.0], "warmup_memory_bytes": [9.0]}
    assert process.host == "h"
    assert reading.notes == ("1 runs that only calibrated have no value",)


@pytest.mark.parametrize(
    ("file", "times_us"),
    [
        (
            "vitest_4.1.12.json",
            {
                "sort.bench.js > sort > normal": (1.0447727368656, 0.302),
                "sort.bench.js > sort > reverse": (0.7897491445978, 0.305),
                "sum.bench.js > sum": (193.2869965210681, 75.183),
            },
        ),
        (
            "vitest_5.1.2.json",
            {
                "sort.bench.js > sort > both > normal": (0.7299049080983, 0.276),
                "sort.bench.js > sort > both > reverse": (0.7425442125018, 0.286),
                "sort.bench.js > sort > one > normal": (0.6315158688558, 0.201),
            },
        ),
    ],
)
def test_each_benchmark_of_a_file_of_vitest_is_a_process_with_its_mean_and_median(
    file: str, times_us: dict[str, tuple[float, float]]
) -> None:
    _, reading = reading_of(SAMPLES / file)
    measured = {process.benchmark: process.values for process in reading.processes}
    assert measured.keys() == times_us.keys()
    for name, (mean_us, median_us) in times_us.items():
        assert measured[name] == pytest.approx(
            {"time_s": mean_us * 1e-6, "median_s": median_us * 1e-6}, rel=1e-6, abs=0.0
        )


@pytest.mark.parametrize("name", ["vitest_4.1.12.json", "vitest_5.1.2.json"])
def test_samples_of_vitest_are_iterations_and_a_failed_benchmark_is_noted(
    name: str, tmp_path: Path
) -> None:
    text = (SAMPLES / name).read_text()
    file = json.loads(text)
    if "files" in file:
        first, second, *_ = file["files"][0]["groups"][0]["benchmarks"]
    else:
        tasks = file["testResults"][0]["assertionResults"][0]["benchmarks"][0]["tasks"]
        first, second = (task["latency"] for task in tasks)
    first["samples"] = [1.0, 3.0]
    second["mean"] = None
    _, reading = reading_of(written(tmp_path, "file.json", json.dumps(file)))
    assert reading.processes[0].iterations == {"time_s": [1e-3, 3e-3]}
    (note,) = reading.notes
    assert note.endswith("reverse' has no time")
