"""Whether somebody who types only what README.md shows gets right answers to seven questions.

    python benchmarks/stranger/run.py                # thirteen cases, ten to twenty minutes
    python benchmarks/stranger/run.py --only log     # one kind of question; --help lists them
    python benchmarks/stranger/run.py --only log --logs 40   # as many logs of each kind

Each case is made with a known answer. Its command is README's own line, found there by this script,
with nothing but the names changed: a line that README no longer has ends the script. The answer is
read where a stranger reads it: on the screen, and for the gate in the exit status. Prints question,
command, answer, right or wrong, and seconds; ends with 1 if an answer is wrong. An interval of 95 %
may miss the truth in one log of twenty: by default the log has seed 1, with `--logs N` 1 to N.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.com")

COMPRESSORS = ("gzip", "bzip2", "xz", "zstd", "lz4", "brotli", "lzop", "7z")
"""The first six of these that are installed are compared."""
TEXT_BYTES = 1_000_000

STEPS = 6_000_000
"""Steps of the C program's loop: some 15 ms."""
PERCENT_ON_BRANCH = 5
C_PROGRAM = """\
int main(void)
{{
    volatile unsigned long sum = 0;
    for (unsigned long step = 0; step < {steps}UL; step++)
        sum += step;
    return 0; /* {comment} */
}}
"""
MAKEFILE = "bench: bench.c\n\tcc -O1 -o bench bench.c\n"

PERCENT_ON_SUITE = 30
CRITERION_CRATE = {
    "Cargo.toml": """\
[package]
name = "parse"
version = "0.1.0"
edition = "2021"

[dev-dependencies]
criterion = { version = "0.5", default-features = false }

[[bench]]
name = "parse"
harness = false
""",
    "src/lib.rs": """\
pub fn parse() -> u64 {{
    (0..{steps}).fold(0, |sum, step| std::hint::black_box(sum ^ step)) // {comment}
}}
""",
    "benches/parse.rs": """\
use criterion::{criterion_group, criterion_main, Criterion};
fn parse(criterion: &mut Criterion) {
    criterion.bench_function("parse", |bencher| bencher.iter(parse::parse));
}
criterion_group!(benches, parse);
criterion_main!(benches);
""",
    ".gitignore": "target\n",
}
PYTEST_SUITE = {
    "parsing.py": """\
def parse():
    return sum(step ^ 3 for step in range({steps}))  # {comment}
""",
    "test_parse.py": """\
from parsing import parse


def test_parse(benchmark):
    assert benchmark(parse) > 0
""",
}
SUITES = {
    "criterion": (CRITERION_CRATE, "src/lib.rs", 20_000),
    "pytest": (PYTEST_SUITE, "parsing.py", 10_000),
}
"""Files of a suite, the one that changes on the branch, and steps of its loop."""

FUNCTIONS = """\
lines = [f"{number},{number * 7919 % 1000},x" for number in range(300)]


def split(lines=lines):
    return [int(line.split(",")[1]) for line in lines]


def strip_and_split(lines=lines):
    return [int(line.strip().split(",")[1]) for line in lines]


if __name__ == "__main__":
"""
"""The second function does all that the first one does, and more."""

FRAMES = """\
import numpy

try:
    import polars as library
except ImportError:
    import pandas as library

drawn = numpy.random.default_rng(1)
frame = library.DataFrame({"price": drawn.random(100_000), "number": drawn.random(100_000)})


def total():
    return (frame["price"] * frame["number"]).sum()


def total_and_median():
    return (frame["price"] * frame["number"]).sum(), frame["price"].median()


if __name__ == "__main__":
"""
"""The second function does all that the first one does, and more."""
COLUMNS = """\
import numpy
import pandas


def make():
    wide = pandas.DataFrame(numpy.ones((100_000, 32)), copy=False)[0]
    return wide, wide.copy()


wide, packed = make()


def sum_of_wide({argument}):
    return {wide}.sum()


def sum_of_packed({argument}):
    return {packed}.sum()


if __name__ == "__main__":
"""
"""The first function reads every 32nd number, the second one numbers that lie side by side."""

SENTENCES_ON_LOG = r"^observed: (.|\n)*?(?=\n\n)"
PLANTED_PERCENT = 6
DAYS, ROWS_A_DAY = 60, 20

BEGINS = {
    "compressors": ("equipoise compare A B C",),
    "functions": ("import equipoise", "print(eq.compare("),
    "frames": ("import equipoise", "print(eq.compare("),
    "branch": ("equipoise gate --baseline main --build",),
    "criterion": ("equipoise gate --baseline main --kind cargo",),
    "pytest": ("equipoise gate --baseline main --kind pytest",),
    "log": ("equipoise observe ci.csv",),
}
"""How the lines of README begin that a stranger types, for each question."""


@dataclass(frozen=True)
class Answer:
    """What a stranger sees after a command: the sentence, and the exit status."""

    screen: str
    status: int

    def sentence(self, pattern: str) -> str:
        """Return on one line what the pattern finds; the end of the screen if it finds nothing."""
        found = re.search(pattern, self.screen, flags=re.MULTILINE)
        return " ".join((found[0] if found else self.screen[-300:]).split())


@dataclass(frozen=True)
class Case:
    """One question with a known answer."""

    question: str
    typed: str
    truth: str
    answered_by: str
    """Pattern of the part of the screen that holds the answer."""
    is_right: Callable[[Answer], bool]


def lines_of(readme: str) -> list[str]:
    """Return all that README shows as something to type: code in lines, and in blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    typed = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [*typed, *re.findall(r"(?<!`)`([^`\n]+)`(?!`)", readme)]


def line_of(readme: str, beginning: str) -> str:
    """Return README's line that begins so.

    Raise `SystemExit`: README has no such line any more, or two different ones.
    """
    found = {line for line in lines_of(readme) if line.startswith(beginning)}
    if len(found) != 1:
        raise SystemExit(f"README.md has {len(found)} lines that begin with {beginning!r}: {found}")
    return found.pop()


def with_names(line: str, names: Mapping[str, str]) -> str:
    """Return a line of README with other names in the place of its own.

    Raise `SystemExit` if a name is not in the line.
    """
    for old, new in names.items():
        parts = re.split(rf"(?<![\w.]){re.escape(old)}(?![\w.])", line)
        if len(parts) != 2:
            raise SystemExit(f"README.md no longer has {old!r} in {line!r}")
        line = new.join(parts)
    return line


def compressors(folder: Path, readme: str, _: int) -> Iterator[Case]:
    """Ask which of six compressors is the fastest on a text."""
    sources = b"".join(path.read_bytes() for path in sorted((ROOT / "packages").rglob("*.py")))
    (folder / "text").write_bytes(sources[:TEXT_BYTES])
    programs = [one for one in COMPRESSORS if shutil.which(one)][:6]
    commands = [f"{one} -c text" if one != "7z" else "7z a -so 7z text" for one in programs]
    processor = [processor_seconds(command, folder) for command in commands]
    fastest = commands[processor.index(min(processor))]
    yield Case(
        f"which of {len(programs)} compressors is the fastest on a text of 1 MB?",
        with_names(line_of(readme, *BEGINS["compressors"]), {"A B C": shlex.join(commands)}),
        f"{fastest}, by the processor time of five runs each, as the kernel counts it",
        r"^.* of \d.*$",
        lambda answer: f"{fastest} is the fastest of {len(programs)}" in answer.screen,
    )


def processor_seconds(command: str, folder: Path) -> float:
    """Return the least user and system time of five runs."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(shlex.split(command), cwd=folder, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def functions(folder: Path, readme: str, _: int) -> Iterator[Case]:
    """Ask which of two functions is the faster, where one does more than the other."""
    names = {"f": "split", "g": "strip_and_split"}
    first, call = (line_of(readme, beginning) for beginning in BEGINS["functions"])
    call = with_names(call.partition("  #")[0], names)
    (folder / "mine.py").write_text(f"{first}\n\n{FUNCTIONS}    {call}\n")
    yield Case(
        "which of two functions is the faster?",
        f"python mine.py  # {first}; {call}",
        "split: strip_and_split does the same and more",
        "^.*$",
        lambda answer: answer.screen.startswith("strip_and_split is slower than split"),
    )


def frames(folder: Path, readme: str, _: int) -> Iterator[Case]:
    """Ask which of two functions is the faster, on data frames of the script."""
    first, call = (line_of(readme, beginning) for beginning in BEGINS["frames"])
    call = call.partition("  #")[0]
    more = with_names(call, {"f": "total", "g": "total_and_median"})
    here = with_names(call, {"f": "sum_of_wide", "g": "sum_of_packed"})
    made = with_names(call, {"f": "sum_of_wide", "g": "sum_of_packed, setup=make"})
    at_module = {"argument": "", "wide": "wide", "packed": "packed"}
    by_setup = {"argument": "both", "wide": "both[0]", "packed": "both[1]"}
    scripts = {
        "frames": (f"{FRAMES}    {more}", more),
        "columns": (f"{COLUMNS.format(**at_module)}    {here}", here),
        "made": (f"{COLUMNS.format(**by_setup)}    {made}", made),
    }
    typed = {}
    for name, (script, line) in scripts.items():
        (folder / f"{name}.py").write_text(f"{first}\n\n{script}\n")
        typed[name] = f"python {name}.py 2>&1  # {first}; {line}"
    yield Case(
        "which of two functions is the faster on a data frame of the script?",
        typed["frames"],
        "total: total_and_median does the same and more",
        "^.*(?=\n  95 %)",
        lambda answer: answer.screen.startswith("total_and_median is slower than total"),
    )
    yield Case(
        "which of two columns of the script is summed faster?",
        typed["columns"],
        "a copy packs the wide column: the packed one is faster, or setup= must make them",
        r"^.*copies of your data.*$\n.*",
        lambda answer: is_packed_faster(answer) or "setup=make" in answer.screen,
    )
    yield Case(
        "which of two columns that the setup makes is summed faster?",
        typed["made"],
        "the packed one: its numbers lie side by side",
        "^.*(?=\n  95 %)",
        is_packed_faster,
    )


def is_packed_faster(given: Answer) -> bool:
    """Return whether the packed column is called the faster one."""
    return bool(re.match(r"sum_of_packed is (faster than|[\d.]+ times as fast as) ", given.screen))


def branch(folder: Path, readme: str, _: int) -> Iterator[Case]:
    """Ask whether a branch is slower: one that is, and one that is not."""
    line = line_of(readme, *BEGINS["branch"])
    for name, percent, status in (
        (f"{PERCENT_ON_BRANCH} % more work", PERCENT_ON_BRANCH, 1),
        ("another comment", 0, 0),
    ):
        clone = folder / f"clone-{percent}"
        clone.mkdir()
        (clone / "Makefile").write_text(MAKEFILE)
        git(clone, "init", "--quiet", "--initial-branch=main", ".")
        commit(clone, STEPS, "the first")
        git(clone, "checkout", "--quiet", "-b", "mine")
        commit(clone, STEPS * (100 + percent) // 100, name)
        yield Case(
            f"is my branch slower than main? ({name} on the branch)",
            f"cd {clone.name} && {line}",
            f"{'slower' if status else 'not slower'}: exit status {status}",
            r"^.*Equipoise gate.*\n\n.*$",
            partial(_ends_with, status),
        )


def suite(name: str, folder: Path, readme: str, _: int) -> Iterator[Case]:
    """Ask whether a branch slowed a suite of benchmarks down: one that did, one that did not."""
    line = line_of(readme, *BEGINS[name])
    files, changed, steps = SUITES[name]
    for percent, status in ((PERCENT_ON_SUITE, 1), (0, 0)):
        clone = folder / f"{name}-{percent}"
        for file, text in files.items():
            (clone / file).parent.mkdir(parents=True, exist_ok=True)
            (clone / file).write_text(text)
        (clone / changed).write_text(files[changed].format(steps=steps, comment="the first"))
        if name == "criterion":
            # As a crate has it: both revisions then compile the same dependencies.
            subprocess.run(["cargo", "generate-lockfile", "--quiet"], cwd=clone, check=True)
        git(clone, "init", "--quiet", "--initial-branch=main", ".")
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "-m", "the first")
        git(clone, "checkout", "--quiet", "-b", "mine")
        more = files[changed].format(steps=steps * (100 + percent) // 100, comment="mine")
        (clone / changed).write_text(more)
        git(clone, "commit", "--quiet", "--all", "-m", f"{percent} % more work")
        yield Case(
            f"did my branch make my {name} suite slower? ({percent} % more work on the branch)",
            f"cd {clone.name} && {line}",
            f"{'slower' if status else 'not slower'}: exit status {status}",
            r"^.*Equipoise gate.*\n\n.*$",
            partial(_says, status, "❌ fails" if status else "✅ passes"),
        )


def _says(status: int, outcome: str, given: Answer) -> bool:
    return given.status == status and f"Equipoise gate: {outcome}" in given.screen


def _ends_with(status: int, given: Answer) -> bool:
    return given.status == status


def commit(clone: Path, steps: int, comment: str) -> None:
    """Commit the program with so many steps."""
    (clone / "bench.c").write_text(C_PROGRAM.format(steps=steps, comment=comment))
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "-m", comment)


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run([*GIT, *words], cwd=folder, check=True)


def log(folder: Path, readme: str, logs: int) -> Iterator[Case]:
    """Ask whether a version slowed a log down: one that did, and one that only met more load."""
    line = line_of(readme, *BEGINS["log"])
    kinds = (("slower", PLANTED_PERCENT), ("innocent", 0))
    for seed, (name, percent) in itertools.product(range(1, logs + 1), kinds):
        naive = write_log(folder / f"{name}.csv", percent, seed)
        names = {
            "ci.csv": f"{name}.csv",
            "version": "release",
            "wall_s": "seconds",
            "load,cache": "queue,cold_cache",
        }
        yield Case(
            f"did release 2.0 slow my CI down? (its runs took {naive:+.0f} % in the mean, under "
            "more load and with a cold cache)",
            with_names(line, names),
            f"{percent:+d} % is planted",
            SENTENCES_ON_LOG,
            partial(_holds, percent),
        )


def write_log(file: Path, percent: float, seed: int) -> float:
    """Write runs of two releases; return the difference of their means in percent.

    The later release ran on busier days, and more often with a cold cache.
    """
    draw = random.Random(seed)
    effect = math.log1p(percent / 100.0)
    seconds: dict[str, list[float]] = {"1.0": [], "2.0": []}
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("day", "release", "queue", "cold_cache", "seconds"))
        for day in range(DAYS):
            busy, of_day = draw.random(), draw.gauss(0.0, 0.01)
            later = draw.random() < 0.2 + 0.6 * busy
            for _ in range(ROWS_A_DAY):
                queue = max(0.0, busy + draw.gauss(0.0, 0.25))
                cold = int(draw.random() < (0.5 if later else 0.25))
                noise = of_day + draw.gauss(0.0, 0.03)
                took = 60.0 * math.exp(0.4 * queue + 0.15 * cold + effect * later + noise)
                release = "2.0" if later else "1.0"
                seconds[release].append(took)
                writer.writerow((day, release, f"{queue:.3f}", cold, f"{took:.3f}"))
    first, second = (sum(took) / len(took) for took in seconds.values())
    return 100.0 * (second / first - 1.0)


def _holds(percent: float, given: Answer) -> bool:
    """Whether an answer names the right direction and its interval holds what was planted."""
    _, _, matched = given.sentence(SENTENCES_ON_LOG).partition("mong comparable rows")
    if percent == 0:
        return "no effect can be shown" in matched.partition(";")[0]
    found = re.search(r"slower \(95 % interval ([\d.]+) % to ([\d.]+) %\)", matched)
    return found is not None and float(found[1]) <= percent <= float(found[2])


QUESTIONS: dict[str, Callable[[Path, str, int], Iterator[Case]]] = {
    "compressors": compressors,
    "functions": functions,
    "frames": frames,
    "branch": branch,
    "log": log,
    "criterion": partial(suite, "criterion"),
    "pytest": partial(suite, "pytest"),
}


def answer(case: Case, folder: Path) -> Answer:
    """Type the line of a case in a shell, and return what a stranger sees."""
    # The summary of a CI job is not for this screen.
    environment = {key: value for key, value in os.environ.items() if "STEP_SUMMARY" not in key}
    done = subprocess.run(
        ["bash", "-c", case.typed],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return Answer(done.stdout, done.returncode)


def ask(folder: Path, readme: str, questions: list[str], logs: int) -> Iterator[bool]:
    """Ask each question and print what came of it; yield whether the answer is right."""
    for name in questions:
        place = folder / name
        place.mkdir()
        for case in QUESTIONS[name](place, readme, logs):
            began = time.monotonic()
            given = answer(case, place)
            took = time.monotonic() - began
            right = case.is_right(given)
            print(f"{case.question}\n  $ {case.typed}\n  {given.sentence(case.answered_by)}")
            print(f"  {'right' if right else 'WRONG'}, {took:.0f} s (truth: {case.truth})\n")
            yield right


def main() -> int:
    """Ask what was chosen; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=QUESTIONS, action="append", help="ask this one")
    parser.add_argument("--logs", type=int, default=1, help="logs of each kind, seeds 1 to LOGS")
    options = parser.parse_args()
    questions = options.only or list(QUESTIONS)
    if shutil.which("equipoise") is None:
        print("equipoise is missing on the PATH: . .venv/bin/activate", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="stranger-") as folder:
        readme = README.read_text(encoding="utf-8")
        right = list(ask(Path(folder), readme, questions, options.logs))
    print(f"{sum(right)} of {len(right)} answers are right")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
