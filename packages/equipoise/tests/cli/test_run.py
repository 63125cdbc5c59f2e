"""`equipoise run` from a study's file to the result document."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from equipoise.design.libraries import BLAS
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.studies.catalogue import built_in_studies
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise, result_of

SLEEPS = """
[study]
name = "sleeps"
[workload]
command = ["sh", "-c", "sleep $1", "{size}"]
[factors.seconds]
short = { args = "0.01" }
long = { args = "0.03" }
[factors.size]
levels = [1, 2]
role = "size"
"""


def written(folder: Path, text: str) -> str:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def small_study(factor: str, *levels: str, command: str = "true") -> str:
    """A study of one factor, whose command is given as words of TOML."""
    head = f'\n[study]\nname = "small"\n[workload]\ncommand = ["{command}"]\n'
    return "\n".join([f"{head}[factors.{factor}]", *levels, ""])


def test_a_study_compares_its_factor_at_each_level_of_the_others(equipoise: Equipoise) -> None:
    answer = equipoise("run", written(equipoise.folder, SLEEPS), "--json", "-")
    result = result_of(answer)
    assert [condition["levels"] for condition in result["conditions"]] == [
        {"seconds": seconds, "size": size} for seconds in ("short", "long") for size in ("1", "2")
    ]
    assert [
        (comparison["baseline"], comparison["candidate"]) for comparison in result["comparisons"]
    ] == [
        ("short size=1", "long size=1"),
        ("short size=2", "long size=2"),
    ]
    assert result["comparisons"][1]["stratum"] == {"size": "2"}
    assert [comparison["verdict"] for comparison in result["comparisons"]] == ["slower", "slower"]
    words = result["comparisons"][1]["summary"]
    assert words.startswith("At size 2: long is slower than short")
    assert result["run"]["study"] == "sleeps"
    screen = equipoise("show", "last").out
    assert "against baseline" in screen
    assert "2 comparisons: 2 slower" in screen


def documented_lines() -> list[str]:
    """Return the lines of the recipes that run the allocator study with another program."""
    recipes = Path(__file__).parents[4] / "docs/how-to/compare-libraries.md"
    lines = recipes.read_text().splitlines()
    found = [line for line in lines if "allocators --quick --command" in line]
    assert len(found) == 2
    return found


@pytest.mark.parametrize("line", documented_lines())
def test_another_program_is_asked_in_the_one_line_that_the_recipes_show(
    line: str, equipoise: Equipoise, tmp_path: Path
) -> None:
    source = tmp_path / "program.c"
    source.write_text(
        "#include <stdlib.h>\n"
        "int main(void) { for (int i = 0; i < 999; i++) *(volatile char *)malloc(99) = 1; }\n"
    )
    subprocess.run(["cc", "-O0", "-o", tmp_path / "program", source], check=True)
    words = shlex.split(line, comments=True)
    result = result_of(equipoise(*words[1:], "--blocks", "2", "--json", "-"))
    assert_that_every_allocator_ran(result)


def test_another_program_is_asked_by_changing_one_line_of_the_file(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (built_in,) = [study for study in built_in_studies() if study.name == "allocators"]
    text = built_in.file.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("command = ")]
    path = written(tmp_path, text.replace(line, 'command = ["python3", "-c", "[0] * 10**5"]'))
    result = result_of(equipoise("run", path, "--quick", "--blocks", "2", "--json", "-"))
    assert_that_every_allocator_ran(result)
    (idle,) = [warning for warning in result["warnings"] if warning["code"] == "factor_idle"]
    assert "the factor size changes nothing: no text contains {size}" in idle["summary"]


def assert_that_every_allocator_ran(found: Any) -> None:
    mapped = found["environment"]["mapped"]
    assert [condition["levels"]["allocator"] for condition in found["conditions"]] == list(mapped)
    assert "libequipoise_dlmalloc.so" in mapped["dlmalloc"]["libraries"]
    assert all(condition["trials"] == 2 for condition in found["conditions"])


def test_every_allocator_that_is_here_runs_and_the_others_are_named(equipoise: Equipoise) -> None:
    listed = equipoise("list", "allocators").out
    answer = equipoise("run", "allocators", "--factor", "size=1024", "--blocks", "1", "--json", "-")
    result = result_of(answer)
    ran = {condition["levels"]["allocator"] for condition in result["conditions"]}
    missing = [warning for warning in result["warnings"] if warning["code"] == "level_missing"]
    lines = {line.split()[0]: line for line in listed.splitlines()[1:]}
    assert ran == {name for name, line in lines.items() if line.rstrip().endswith("yes")}
    assert len(missing) == len(lines) - len(ran)
    assert {"glibc", "glibc_15k", "glibc_never", "dlmalloc"} <= ran


def test_a_level_that_is_not_installed_is_named_with_its_package(equipoise: Equipoise) -> None:
    absent = 'absent = { preload = "libabsent.so.9", package = "libabsent9" }'
    text = small_study("allocator", "usual = {}", 'other = { env = { A = "1" } }', absent)
    answer = equipoise("run", written(equipoise.folder, text), "--blocks", "1", "--json", "-")
    (warning,) = [
        warning for warning in result_of(answer)["warnings"] if warning["code"] == "level_missing"
    ]
    assert warning["summary"] == (
        "allocator absent cannot run here: there is no libabsent.so.9; it is left out"
    )
    assert warning["hint"] == "apt install libabsent9"


def test_every_blas_that_is_here_runs_verified_and_the_others_are_named(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    command = 'equipoise-workload", "dgemm", "--size", "64'
    text = small_study("library", 'kind = "blas"', command=command)
    here = {level.name for level in BLAS if Path(level.library_path[0]).is_dir()}
    answer = equipoise("run", written(tmp_path, text), "--blocks", "1", "--json", "-")
    if "reference" not in here or len(here) < 2:
        assert answer.status == 2
        assert "apt install lib" in answer.err or "nothing is left to compare" in answer.err
        return
    result = result_of(answer)
    assert {condition["levels"]["library"] for condition in result["conditions"]} == here
    missing = [
        warning["hint"] for warning in result["warnings"] if warning["code"] == "level_missing"
    ]
    packages = [level.package for level in BLAS if level.name not in here]
    assert missing == [f"apt install {package}" for package in packages]


def test_a_condition_that_did_not_take_effect_is_an_error_before_the_first_block(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    tuned = 'tuned = { env = { GLIBC_TUNABLES = "glibc.malloc.mmap_treshold=15360" } }'
    text = small_study("allocator", "usual = {}", tuned)
    answer = equipoise("run", written(tmp_path, text))
    assert answer.status == 2
    place = "study.toml:8: [factors.allocator.tuned.env] GLIBC_TUNABLES"
    assert f"{place}: tuned did not take effect" in answer.err
    assert "has no tunable 'glibc.malloc.mmap_treshold'" in answer.err
    assert not (tmp_path / ".equipoise" / "ledger.db").exists() or "no campaigns yet" in (
        equipoise("list").out
    )


def test_a_cpu_that_is_not_ours_is_named_with_file_line_and_key(equipoise: Equipoise) -> None:
    text = small_study("cpu", "here = {}", "there = { cpu = 4321 }")
    answer = equipoise("run", written(equipoise.folder, text))
    assert answer.status == 2
    place = "study.toml:8: [factors.cpu.there] cpu"
    assert f"{place}: nothing is left to compare here with: cpu there" in answer.err
    assert "there is no CPU 4321 that Equipoise may use" in answer.err


def test_levels_are_built_once_before_the_campaign(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "work.c").write_text(
        "int main(void) { for (volatile int i = 0; i < WORK; i++) ; return 0; }\n"
    )
    levels = (
        f'{name} = {{ build = "cc -DWORK={work} -o {{build}}/work work.c && echo x >> built" }}'
        for name, work in (("little", 1000), ("much", 90_000_000))
    )
    text = small_study("work", *levels, command="{build}/work")
    path = written(tmp_path, text)
    result = result_of(equipoise("run", path, "--json", "-"))
    assert result["comparisons"][0]["verdict"] == "slower"
    assert (tmp_path / "built").read_text() == "x\nx\n"
    broken = equipoise("run", written(tmp_path, text.replace("90000000", "'('")))
    assert broken.status == 3
    assert "much cannot be built: exit status 1" in broken.err


FETCH = "import urllib.request as u; u.urlopen('http://127.0.0.1:{port}').read()"
SERVED = f"""
[study]
name = "served"
[workload.server]
start = ["{sys.executable}", "-m", "http.server", "{{port}}", "--bind", "127.0.0.1"]
client = ["{sys.executable}", "-c", "{FETCH}"]
[factors.allocator]
kind = "allocator"
levels = ["glibc", "dlmalloc"]
[measure]
metrics = ["wall_s", "server_max_rss_bytes"]
"""


def test_a_server_is_a_workload_like_another(equipoise: Equipoise, tmp_path: Path) -> None:
    path = written(tmp_path, SERVED)
    result = result_of(equipoise("run", path, "--blocks", "2", "--json", "-"))
    assert [condition["failures"] for condition in result["conditions"]] == [0, 0]
    for condition in result["conditions"]:
        assert condition["metrics"]["server_max_rss_bytes"]["min"] > 1e6
    assert [comparison["metric"] for comparison in result["comparisons"]] == [
        "wall_s",
        "server_max_rss_bytes",
    ]
    mapped = result["environment"]["mapped"]["dlmalloc"]["libraries"]
    assert "libequipoise_dlmalloc.so" in mapped


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_study_that_is_ended_leaves_no_server_and_is_gone_on_with(
    number: int, equipoise: Equipoise, tmp_path: Path
) -> None:
    path = written(tmp_path, SERVED)
    ledger = tmp_path / ".equipoise" / "ledger.db"
    running = subprocess.Popen(
        [*ENTRY, "run", path, "--quiet"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 300
        while trials_in(ledger) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        family = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(number)
        running.wait(600)
    finally:
        running.kill()
        running.wait()
    psutil.wait_procs(family, timeout=600)
    assert not [process for process in family if process.is_running()]
    before = trials_in(ledger)
    answer = equipoise("resume", "last", "--blocks", "3", "--json", "-")
    result = result_of(answer)
    assert len(result["trials"]) > before >= 3
    assert result["run"]["blocks"] == 3


def trials_in(ledger: Path) -> int:
    if not ledger.exists():
        return 0
    try:
        with open_for_reading(ledger) as opened:
            runs = opened.runs()
    except UnusableInput:
        # It is just being made.
        return 0
    return runs[-1].trials if runs else 0


def test_the_built_in_studies_are_listed_and_found(equipoise: Equipoise) -> None:
    listed = equipoise("list", "studies").out
    assert any(line.split()[:1] == ["allocators"] for line in listed.splitlines())
    answer = equipoise("run", "allocatrs")
    assert answer.status == 2
    assert "did you mean allocators?" in answer.err


def test_options_of_a_study_are_below_those_of_the_command_line(equipoise: Equipoise) -> None:
    text = SLEEPS + "[measure]\nalpha = 0.1\nmin_effect = 3\nblocks = 2\n"
    path = written(equipoise.folder, text)
    result = result_of(equipoise("run", path, "--json", "-"))
    assert result["run"]["blocks"] == 2
    assert {
        (comparison["alpha"], comparison["min_effect"]) for comparison in result["comparisons"]
    } == {(0.1, 3.0)}
    result = result_of(equipoise("run", path, "--alpha", "0.05", "--blocks", "1", "--json", "-"))
    assert result["run"]["blocks"] == 1
    assert {
        (comparison["alpha"], comparison["min_effect"]) for comparison in result["comparisons"]
    } == {(0.05, 3.0)}
    page = equipoise.folder / "page.md"
    assert equipoise("report", "last", "-o", str(page)).status == 0
    options = f"--alpha 0.05 --blocks 1 --seed {result['run']['seed']}"
    assert f"equipoise run {shlex.quote(path)} {options}\n" in page.read_text()


def test_the_study_of_2006_prints_its_tables_and_writes_its_figures(equipoise: Equipoise) -> None:
    answer = equipoise(
        *("run", "sekhon2006", "--factor", "algorithm=blas,fast", "--blocks", "1"),
        *("--factor", "allocator=glibc,glibc_15k", "--factor", "rows=445", "--figures", "drawn"),
    )
    assert answer.status == 0, answer.err
    assert "Table 1" in answer.out and "mean of the best" in answer.out
    assert "the gap that the 15 KB policy makes" not in answer.out
    assert "figure: drawn/figure_1.html" in answer.out
    assert {path.name for path in (equipoise.folder / "drawn").iterdir()} == {
        f"{name}.{ending}" for name in ("figure_1", "ratios") for ending in ("html", "svg", "png")
    }
    repeated = equipoise("show", "last").out
    assert "Table 1" in repeated and "figure:" not in repeated
    result = result_of(equipoise("show", "last", "--json", "-"))
    searches = [trial["iterations"]["search_s"] for trial in result["trials"]]
    assert {len(search) for search in searches} == {3}


def test_a_program_that_is_not_installed_is_named_with_its_package(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    text = SLEEPS.replace(
        'long = { args = "0.03" }',
        'long = { args = "0.03" }\nother = { command = ["frobnicate"], package = "frob" }',
    )
    result = result_of(equipoise("run", written(tmp_path, text), "--blocks", "1", "--json", "-"))
    assert len(result["conditions"]) == 4
    missing = [warning for warning in result["warnings"] if warning["code"] == "level_missing"]
    assert [name["hint"] for name in missing] == ["apt install frob"]
    assert "program frobnicate" in missing[0]["summary"]


def test_help_says_that_the_study_has_the_defaults(equipoise: Equipoise) -> None:
    answer = " ".join(equipoise("run", "--help").out.split())
    for limit in ("60)", "5; a verdict at alpha 0.05 takes 7)", "1)", "0.05)"):
        assert f"(the study's, or {limit}" in answer
    assert "1000 if it compares nothing" in answer
