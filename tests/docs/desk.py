"""The folder in which the examples of the documentation are run: what they speak of is there."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

from equipoise.ledger import open_for_writing
from equipoise.measure.installation import native_programs
from equipoise.model.packages import NATIVE_FOLDER, folders_with_programs
from equipoise.model.record import Draw
from equipoise_matching.matching.datasets import lalonde
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.repositories import repository
from packages.matching.tests.observation.logs import loaded_log
from tests.docs.pages import DOCS, ROOT

SAMPLES = ROOT / "packages/equipoise/tests/interop/samples"
SERIES = ROOT / "packages/equipoise/tests/interop/series/samples"
LIMITED = Path(__file__).with_name("limited.py")
LEDGER = ".equipoise/ledger.db"

QUICK = "#!/bin/sh\nexit 0\n"
SLOWER = '#!/bin/sh\nfor one in 1 2 3 4 5 6 7 8 9; do /bin/true "$one"; done\n'
PROGRAMS = {
    "A": QUICK,
    "B": SLOWER,
    "old": SLOWER,
    "new": QUICK,
    "program": QUICK,
    "main/bench": QUICK,
    "branch/bench": QUICK,
    # The revisions build theirs by `make`.
    "source/bench": QUICK,
}
ON_PATH = ("A", "B", "old", "new")
LAYOUTS = ("O2", "O3", "old", "new")
WORK = "def work():\n    return sum(range(1000))\n\n\nif __name__ == '__main__':\n    work()\n"
FILES = {
    "input": "3\n1\n2\n",
    "a": "3\n1\n2\n",
    "words": "".join(f"word {number * 7919 % 500}\n" for number in range(500)),
    "demo/lines": "".join(f"line {number * 7919 % 500}\n" for number in range(500)),
    "work.py": WORK,
    "old.py": WORK,
    "new.py": WORK,
    "module.py": "def function():\n    return sum(range(1000))\n",
    "walk.py": "words = {f'word {number}' for number in range(50)}\nprint(len(words))\n",
    "main.c": "int main(void) { return 0; }\n",
    "list.c": "int other(void) { return 0; }\n",
    "Makefile": "all:\n\tcp source/bench bench\n",
    "benchmarks/test_sums.py": (
        "def test_sums(equipoise_benchmark):\n"
        "    assert equipoise_benchmark(lambda: sum(range(1000))) > 0\n"
    ),
    "STUDY.toml": (
        '[study]\nname = "sums"\n[workload]\ncommand = ["expr", "{number}", "+", "1"]\n'
        "[factors.number]\nlevels = [1, 1000]\n"
    ),
}
GO_BENCH = "".join(
    f"goos: linux\npkg: m\nBenchmarkA-8\t1000\t{1000 + run} ns/op\n"
    f"BenchmarkB-8\t1000\t{1200 + run} ns/op\nPASS\nok\tm\t0.1s\n"
    for run in range(3)
)
RUNS = tuple(f"{which}-{number}.json" for which in ("old", "new") for number in (1, 2, 3))
OTHERS = ("result.json", "old.json", "new.json", *RUNS)
"""Results of hyperfine."""


def prepare(desk: Path) -> None:
    """Fill a new folder."""
    made = repository(desk)
    for name, text in FILES.items():
        made.write(name, text)
    for name, text in PROGRAMS.items():
        made.write(name, text, executable=True)
    for name in ("bench.txt", "old.txt", "new.txt"):
        made.write(name, GO_BENCH)
    for name in OTHERS:
        shutil.copy(SAMPLES / "hyperfine_2.json", desk / name)
    shutil.copy(DOCS / "examples/ci/suite.toml", desk / "suite.toml")
    shutil.copy(native_programs() / "libequipoise_file_order.so", desk / "lib.so")
    for name in LAYOUTS:
        for number in range(1, 13):
            made.write(f"{name}.layouts/layout-{number}", QUICK, executable=True)
    made.commit()
    made.git("tag", "v1.4")
    for number in range(3):
        made.write("source/notes", f"{number}\n")
        made.commit()
    made.git("tag", "v1.5")
    _tables(desk)
    _series(desk)
    _commands(desk)
    _campaigns(desk)


def environment(desk: Path) -> dict[str, str]:
    """That of a shell in a copy of the folder."""
    packages = [folder / NATIVE_FOLDER for folder in folders_with_programs().values()]
    own = (desk / "bin", Path(sys.executable).parent, native_programs())
    folders = (*own, *packages, os.environ["PATH"])
    return {**os.environ, "PATH": os.pathsep.join(map(str, folders))}


def _commands(desk: Path) -> None:
    """What is found without a path: ours with small limits, and interpreters of other versions."""
    folder = desk / "bin"
    folder.mkdir()
    for name in ON_PATH:
        shutil.copy(desk / name, folder / name)
    _script(folder / "equipoise", f"exec '{sys.executable}' '{LIMITED}'")
    for name in ("python3.12", "python3.13"):
        _script(folder / name, f"exec '{sys.executable}'")


def _script(path: Path, line: str) -> None:
    path.write_text(f'#!/bin/sh\n{line} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def _tables(desk: Path) -> None:
    """The people of the experiment, and logs in which the new version ran under load."""
    people = lalonde()
    for name in ("people.csv", "cps.csv"):
        people.to_csv(desk / name, index=False)
    people.to_parquet(desk / "people.parquet")
    log = loaded_log()
    columns = {**log, "cache": log["unmoved"]}
    with (desk / "ci.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(one.tolist() for one in columns.values()), strict=True))
    type(people)(columns).to_parquet(desk / "fleet.parquet")


def _series(desk: Path) -> None:
    """What other tools measured of many commits."""
    shutil.copytree(SERIES / "asv", desk / "results")
    shutil.copytree(SERIES / "pyperf", desk / "pyperf")
    rows = (f"v{number},{100 + 4 * (number > 12)}\n" for number in range(1, 25))
    (desk / "log.csv").write_text(f"commit,value\n{''.join(rows)}", encoding="utf-8")


def _campaigns(desk: Path) -> None:
    """Two campaigns of two weeks and kernels, two of today, and one of primitives elsewhere."""
    (desk / LEDGER).parent.mkdir()
    for kernel, started_at in (("6.1", 1794042000.0), ("6.8", 1794646800.0)):
        _planted(desk / LEDGER, kernel, started_at)
    for file in ("earlier.json", "ours.json"):
        # Unlimited, so that there is a gap to explain.
        words = ("compare", "-n", "old", "-n", "new", "./old", "./new", "--blocks", "10")
        _run(desk, sys.executable, "-m", "equipoise.cli", *words, "--quiet", "--json", file)
    os_words = ("os", "--quiet", "--json", "there.json", "--ledger", ".equipoise/os.db")
    _run(desk, "equipoise", *os_words)


def _planted(path: Path, kernel: str, started_at: float) -> None:
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(plan_of("a", "b"), {"kernel": kernel, "boot_id": kernel}, started_at)
        for block in range(1, 11):
            draw = Draw("measured", block, (0, 1) if block % 2 else (1, 0), 0)
            ledger.record_draw(run, draw)
            for place in (0, 1):
                wall_s = 1.0 + 0.1 * draw.order[place] + 0.01 * (block * 7 % 5)
                ledger.record_trial(run, trial_of(draw, place, wall_s))
        ledger.end_segment(run, 1, started_at + 100, "decided")


def _run(desk: Path, *words: str) -> None:
    subprocess.run(words, cwd=desk, env=environment(desk), check=True)
