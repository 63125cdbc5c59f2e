"""The suite of a folder is found by its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.suites.finding import only_suite_in, suites_in

CARGO = '[package]\nname = "p"\nversion = "0.1.0"\n'
CMAKE = "project(p)\nadd_subdirectory(perf)\n"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <artifactId>perf</artifactId><version>1</version>
  <dependencies><dependency><artifactId>jmh-core</artifactId></dependency></dependencies>
  <build><plugins><plugin><artifactId>maven-shade-plugin</artifactId>
    <configuration><finalName>{jar}</finalName></configuration></plugin></plugins></build>
</project>"""
PERF = "add_executable(sums sums.cc)\ntarget_link_libraries(sums PRIVATE benchmark::benchmark)\n"

SUITES = [
    (
        {"Cargo.toml": f'{CARGO}[[bench]]\nname = "b"\n'},
        "--kind cargo",
        "Cargo.toml has a [[bench]]",
    ),
    (
        {"Cargo.toml": '[workspace]\nmembers = ["inner"]\n', "inner/Cargo.toml": CARGO}
        | {"inner/benches/sum.rs": ""},
        "--kind cargo",
        "inner/Cargo.toml has the folder benches",
    ),
    (
        {"go.mod": "module m\n", "inner/sum_test.go": "func BenchmarkSum(b *testing.B) {}\n"},
        "--kind go",
        "go.mod, and inner/sum_test.go has a benchmark",
    ),
    (
        {"tests/test_sum.py": "def test_sum(tmp_path, benchmark):\n    pass\n"},
        "--kind pytest",
        "tests/test_sum.py has a test with a benchmark fixture",
    ),
    (
        {
            "package.json": '{"devDependencies": {"vitest": "^4.0.0"}}',
            "src/sum.bench.mts": "bench('sum', sum)\n",
        },
        "--kind vitest",
        "package.json depends on vitest, and src/sum.bench.mts is a benchmark",
    ),
    (
        {
            "package.json": '{"scripts": {"bench": "tsx sum.ts"}, '
            '"dependencies": {"tinybench": "^6.0.0"}}',
        },
        "--kind tinybench",
        "package.json depends on tinybench, and has the script bench",
    ),
    (
        {"test_sum.py": "@pytest.mark.benchmark(group='sums')\nasync def test_sum():\n    pass\n"},
        "--kind pytest",
        "test_sum.py has a test with a benchmark marker",
    ),
    (
        {"perf/asv.conf.json": "{}", "setup.py": ""},
        "--kind asv -- python3 --config perf/asv.conf.json",
        "perf/asv.conf.json configures asv",
    ),
    (
        {"CMakeLists.txt": CMAKE, "perf/CMakeLists.txt": PERF},
        "--kind google-benchmark --build 'cmake -B build -DCMAKE_BUILD_TYPE=Release && "
        "cmake --build build --target sums' -- ./build/perf/sums",
        "perf/CMakeLists.txt links sums with benchmark::benchmark",
    ),
    (
        {"pom.xml": POM.format(jar="benchmarks")},
        "--kind jmh",
        "pom.xml builds benchmarks.jar with jmh-core",
    ),
    (
        {"pom.xml": POM.format(jar="perf")},
        "--kind jmh -- java -jar target/perf.jar",
        "pom.xml builds perf.jar with jmh-core",
    ),
    (
        {
            "CMakeLists.txt": CMAKE,
            "perf/CMakeLists.txt": PERF.replace("benchmark::benchmark", "nanobench"),
        }
        | {"perf/sums.cc": "#include <nanobench.h>\nankerl::nanobench::Bench().run(f);\n"},
        "--kind nanobench --build 'cmake -B build -DCMAKE_BUILD_TYPE=Release && "
        "cmake --build build --target sums' -- ./build/perf/sums",
        "perf/CMakeLists.txt builds sums, and sums.cc uses nanobench",
    ),
    (
        {
            "CMakeLists.txt": CMAKE,
            "perf/CMakeLists.txt": PERF.replace("benchmark::benchmark", "Catch2::Catch2"),
        }
        | {"perf/sums.cc": 'TEST_CASE("t", "[!benchmark]") { BENCHMARK("b") { f(); }; }\n'},
        "--kind catch2 --build 'cmake -B build -DCMAKE_BUILD_TYPE=Release && "
        "cmake --build build --target sums' -- ./build/perf/sums '[!benchmark]'",
        "perf/CMakeLists.txt builds sums, and sums.cc has a BENCHMARK of Catch2",
    ),
]
NO_SUITES: list[dict[str, str]] = [
    {},
    {"Cargo.toml": CARGO, "src/lib.rs": ""},
    {"Cargo.toml": "[[bench"},
    {"go.mod": "module m\n", "sum_test.go": "func TestSum(t *testing.T) {}\n"},
    {"go.mod": "module m\n", "vendor/v/v_test.go": "func BenchmarkV(b *testing.B) {}\n"},
    {"test_sum.py": "def test_sum(tmp_path):\n    benchmark = 1\n"},
    {"node_modules/x/test_x.py": "def test_x(benchmark):\n    pass\n"},
    {"test_sum.py": "# @pytest.mark.benchmark\ndef test_sum():\n    pass\n"},
    {"build/asv.conf.json": "{}"},
    {"CMakeLists.txt": CMAKE},
    {"pom.xml": POM.format(jar="benchmarks").replace("jmh-core", "junit")},
    {"package.json": '{"devDependencies": {"vitest": "^4.0.0"}}', "sum.test.ts": ""},
    {"package.json": '{"dependencies": {"tinybench": "^6.0.0"}}'},
]


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(("files", "options", "evidence"), SUITES)
def test_a_suite_is_found_with_the_options_that_name_it(
    files: dict[str, str], options: str, evidence: str, tmp_path: Path
) -> None:
    found = only_suite_in(written(tmp_path, files))
    assert (found.options, found.suite.evidence) == (options, evidence)


@pytest.mark.parametrize("files", NO_SUITES)
def test_other_files_are_not_a_suite(files: dict[str, str], tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, files)) == ()
    with pytest.raises(UnusableInput, match="there is no suite of asv, cargo, ") as refused:
        only_suite_in(tmp_path)
    assert "-- ./bench" in str(refused.value.hint)


def test_of_several_suites_the_user_must_choose_one(tmp_path: Path) -> None:
    for files, *_ in SUITES[:1] + SUITES[2:3]:
        written(tmp_path, files)
    with pytest.raises(UnusableInput) as refused:
        only_suite_in(tmp_path)
    assert refused.value.what == (
        f"there are 2 suites in {tmp_path}: cargo (Cargo.toml has a [[bench]]); "
        "go (go.mod, and inner/sum_test.go has a benchmark)"
    )
    assert refused.value.hint == "choose one, such as equipoise gate --kind cargo"
